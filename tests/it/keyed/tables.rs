//! The tables of all laws, built and asked in one way: a law is added in one line.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

use tollgate::{FixedWindowLaw, Gcra, LeakyQueueLaw, PerKey, SlidingCounterLaw, SlidingLogLaw};
use tollgate::{Keyed, KeyedError, ManualClock, Quota, Refused, Snapshot, WhenFull};

/// A table of keys that are numbers.
pub(crate) trait Table: Sync {
    fn try_n_at(&self, key: u64, n: u64, now: u64) -> Result<(), Refused>;
    fn peek_at(&self, key: u64, n: u64, now: u64) -> Result<(), Refused>;
    fn available_at(&self, key: u64, now: u64) -> u64;
    fn snapshot_at(&self, key: u64, now: u64) -> Snapshot;
    /// Does nothing to a queue, nor does a reset.
    fn refund_at(&self, _key: u64, _n: u64, _now: u64) {}
    fn reset_at(&self, _key: u64, _now: u64) {}
    fn set_quota_at(&self, quota: Quota, now: u64);
    fn quota(&self) -> Quota;
    fn len_at(&self, now: u64) -> usize;
    fn memory(&self) -> usize;

    /// The clock that the calls without a time read.
    fn clock(&self) -> &ManualClock;
    fn try_n(&self, key: u64, n: u64) -> Result<(), Refused>;
    fn peek(&self, key: u64, n: u64) -> Result<(), Refused>;
    fn available(&self, key: u64) -> u64;
    fn snapshot(&self, key: u64) -> Snapshot;
    fn refund(&self, _key: u64, _n: u64) {}
    fn reset(&self, _key: u64) {}
    fn set_quota(&self, quota: Quota);
    fn len(&self) -> usize;

    fn try_at(&self, key: u64, now: u64) -> Result<(), Refused> {
        self.try_n_at(key, 1, now)
    }

    /// Whether one permit is there, which is then taken.
    fn takes_at(&self, key: u64, now: u64) -> bool {
        self.try_n_at(key, 1, now).is_ok()
    }
}

macro_rules! table {
    ($law:ty) => {
        table! { $law, try_acquire_n, try_acquire_n_at,
            fn refund_at(&self, key: u64, n: u64, now: u64) {
                self.refund_at(&key, n, now);
            }
            fn reset_at(&self, key: u64, now: u64) {
                self.reset_at(&key, now);
            }
            fn refund(&self, key: u64, n: u64) {
                self.refund(&key, n);
            }
            fn reset(&self, key: u64) {
                self.reset(&key);
            }
        }
    };
    ($law:ty, $try_n:ident, $try_n_at:ident, $($gives_back:tt)*) => {
        impl Table for Keyed<u64, $law, ManualClock, Hash> {
            fn try_n_at(&self, key: u64, n: u64, now: u64) -> Result<(), Refused> {
                self.$try_n_at(&key, n, now)?;
                Ok(())
            }
            fn peek_at(&self, key: u64, n: u64, now: u64) -> Result<(), Refused> {
                self.peek_at(&key, n, now)
            }
            fn available_at(&self, key: u64, now: u64) -> u64 {
                self.available_at(&key, now)
            }
            fn snapshot_at(&self, key: u64, now: u64) -> Snapshot {
                self.snapshot_at(&key, now)
            }
            fn set_quota_at(&self, quota: Quota, now: u64) {
                self.set_quota_at(quota, now).expect("a limit that the law takes");
            }
            fn quota(&self) -> Quota {
                self.quota()
            }
            fn len_at(&self, now: u64) -> usize {
                self.len_at(now)
            }
            fn memory(&self) -> usize {
                self.memory()
            }
            fn clock(&self) -> &ManualClock {
                self.clock()
            }
            fn try_n(&self, key: u64, n: u64) -> Result<(), Refused> {
                self.$try_n(&key, n)?;
                Ok(())
            }
            fn peek(&self, key: u64, n: u64) -> Result<(), Refused> {
                self.peek(&key, n)
            }
            fn available(&self, key: u64) -> u64 {
                self.available(&key)
            }
            fn snapshot(&self, key: u64) -> Snapshot {
                self.snapshot(&key)
            }
            fn set_quota(&self, quota: Quota) {
                self.set_quota(quota).expect("a limit that the law takes");
            }
            fn len(&self) -> usize {
                self.len()
            }
            $($gives_back)*
        }
    };
}

table! { Gcra }
table! { FixedWindowLaw }
table! { SlidingCounterLaw }
table! { SlidingLogLaw }
table! { PerKey<Gcra> }
table! { PerKey<FixedWindowLaw> }
table! { LeakyQueueLaw, schedule_n, schedule_n_at, }
table! { PerKey<LeakyQueueLaw>, schedule_n, schedule_n_at, }

/// How a table is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) quota: Quota,
    pub(crate) max_keys: usize,
    pub(crate) when_full: WhenFull,
    pub(crate) hash: Hash,
    /// What the clock says.
    pub(crate) built: u64,
}

impl Setup {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, max_keys: 1_000, when_full: WhenFull::Refuse, hash: Hash::Spread, built: 0 }
    }

    pub(crate) fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    pub(crate) fn hash(self, hash: Hash) -> Self {
        Self { hash, ..self }
    }

    pub(crate) fn built(self, built: u64) -> Self {
        Self { built, ..self }
    }
}

/// How a key becomes a fingerprint, the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// As by any good hasher.
    Spread,
    /// All keys alike.
    Constant,
    /// The key itself.
    Identity,
    /// The key in the upper half, and nothing below.
    High,
    /// So many bits of a good one.
    Bits(u32),
}

impl BuildHasher for Hash {
    type Hasher = OfNumbers;

    fn build_hasher(&self) -> OfNumbers {
        OfNumbers { hash: *self, key: 0 }
    }
}

/// Hashes one number.
pub(crate) struct OfNumbers {
    hash: Hash,
    key: u64,
}

impl Hasher for OfNumbers {
    fn finish(&self) -> u64 {
        // The finalizer of splitmix64.
        let spread = || {
            let mixed = self.key.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        match self.hash {
            Hash::Spread => spread(),
            Hash::Constant => 0,
            Hash::Identity => self.key,
            Hash::High => self.key << 32,
            Hash::Bits(bits) => spread() & ((1 << bits) - 1),
        }
    }

    fn write(&mut self, _: &[u8]) {
        panic!("keys are numbers");
    }

    fn write_u64(&mut self, key: u64) {
        self.key = key;
    }
}

/// How many keys have room in a small table.
pub(crate) const PLACES: usize = 16;

/// What a law counts, as far as tests have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Permits come back one by one.
    Bucket,
    /// They do, a little earlier, and nothing can be given back.
    Queue,
    /// They come back where a window ends, for all keys at once.
    Fixed,
    /// Those of the window before still count, by their share.
    Counter,
    /// Each comes back a window after it was taken.
    Log,
}

/// A law by its tables.
#[derive(Clone, Copy)]
pub(crate) struct Law {
    name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) store: Store,
    build: fn(Setup) -> Result<Box<dyn Table>, KeyedError>,
}

/// Where keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// In slots that are there from the start.
    Slots,
    /// In a map, each with a law of its own.
    Map,
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Law {
    pub(crate) fn table(&self, setup: Setup) -> Box<dyn Table> {
        (self.build)(setup).expect("lawful")
    }

    pub(crate) fn build(&self, setup: Setup) -> Result<(), KeyedError> {
        (self.build)(setup).map(drop)
    }

    /// The same with exactly [`PLACES`] places, in which each key may be.
    pub(crate) fn small(&self, setup: Setup) -> Box<dyn Table> {
        self.table(setup.max_keys(self.few_keys()))
    }

    /// The `max_keys` of such a table.
    pub(crate) fn few_keys(&self) -> usize {
        // Slots come in pairs of lines of four: there are two pairs for a single key.
        if self.store == Store::Slots { 1 } else { PLACES }
    }

    /// Whether permits come back one by one.
    pub(crate) fn is_bucket(&self) -> bool {
        matches!(self.shape, Shape::Bucket | Shape::Queue)
    }

    /// The time after which a limit that was taken at the start of a window comes back, in windows of so many; all of it, or only one.
    pub(crate) fn first_back(&self, window: u64, limit: u64) -> u64 {
        match self.shape {
            Shape::Bucket | Shape::Queue => window / limit,
            Shape::Fixed | Shape::Log => window,
            Shape::Counter => window + window / limit,
        }
    }

    /// How many are there then.
    pub(crate) fn back_at_once(&self, limit: u64) -> u64 {
        if matches!(self.shape, Shape::Fixed | Shape::Log) { limit } else { 1 }
    }

    /// The time after which nothing of them counts.
    pub(crate) fn all_back(&self, window: u64) -> u64 {
        if self.shape == Shape::Counter { 2 * window } else { window }
    }
}

macro_rules! law {
    ($name:literal, $shape:ident, $store:ident, $constructor:ident $(, $quota_for:ident)?) => {
        Law {
            name: $name,
            shape: Shape::$shape,
            store: Store::$store,
            build: |setup| {
                let Setup { quota, max_keys, when_full, hash, built } = setup;
                let builder = Keyed::<u64>::$constructor(quota).max_keys(max_keys).when_full(when_full).hasher(hash);
                let builder = builder.clock(ManualClock::at(built))$(.$quota_for(|_| None))?;
                Ok(Box::new(builder.build()?))
            },
        }
    };
}

/// All laws that police, by key. Those with plans name the table's quota for each key.
pub(crate) const LAWS: [Law; 6] = [
    law!("buckets", Bucket, Slots, token_bucket),
    law!("fixed windows", Fixed, Slots, fixed_window),
    law!("sliding counters", Counter, Slots, sliding_counter),
    law!("sliding logs", Log, Map, sliding_log),
    law!("buckets with plans", Bucket, Map, token_bucket, quota_for),
    law!("fixed windows with plans", Fixed, Map, fixed_window, quota_for),
];

/// The law that tells when.
pub(crate) const QUEUES: [Law; 2] = [
    law!("leaky queues", Queue, Slots, leaky_queue),
    law!("leaky queues with plans", Queue, Map, leaky_queue, quota_for),
];

/// All of them.
pub(crate) fn all_laws() -> impl Iterator<Item = Law> {
    LAWS.into_iter().chain(QUEUES)
}
