//! The tables, law by law.

use std::time::Duration;

use tollgate::{
    FixedWindowLaw, Gcra, Keyed, KeyedError, LeakyQueueLaw, Nanos, PerKey, Quota, Refused, SlidingCounterLaw,
    SlidingLogLaw, Snapshot,
};

/// A table of any law.
pub(crate) trait Subject: Send + Sync {
    /// Takes permits of a key; a queue tells when they start.
    fn take(&self, key: u64, n: u64, now: Nanos) -> Result<Option<Nanos>, Refused>;
    /// Gives permits back, if the law knows such a thing.
    fn refund(&self, key: u64, n: u64, now: Nanos) -> bool;
    fn peek(&self, key: u64, n: u64, now: Nanos) -> Result<(), Refused>;
    fn snapshot(&self, key: u64, now: Nanos) -> Snapshot;
    fn set_quota(&self, quota: Quota, now: Nanos) -> Result<(), String>;
    fn len(&self, now: Nanos) -> usize;
}

macro_rules! subject {
    ($($law:ty),*; $take:expr, $refund:expr) => { $(
        impl Subject for Keyed<u64, $law> {
            fn take(&self, key: u64, n: u64, now: Nanos) -> Result<Option<Nanos>, Refused> {
                $take(self, key, n, now)
            }
            fn refund(&self, key: u64, n: u64, now: Nanos) -> bool {
                $refund(self, key, n, now)
            }
            fn peek(&self, key: u64, n: u64, now: Nanos) -> Result<(), Refused> {
                self.peek_at(&key, n, now)
            }
            fn snapshot(&self, key: u64, now: Nanos) -> Snapshot {
                self.snapshot_at(&key, now)
            }
            fn set_quota(&self, quota: Quota, now: Nanos) -> Result<(), String> {
                self.set_quota_at(quota, now).map_err(|error| error.to_string())
            }
            fn len(&self, now: Nanos) -> usize {
                self.len_at(now)
            }
        }
    )* };
}

subject!(
    Gcra, FixedWindowLaw, SlidingCounterLaw, SlidingLogLaw,
    PerKey<Gcra>, PerKey<FixedWindowLaw>, PerKey<SlidingCounterLaw>, PerKey<SlidingLogLaw>;
    |table: &Self, key: u64, n, now| table.try_acquire_n_at(&key, n, now).map(|()| None),
    |table: &Self, key: u64, n, now| { table.refund_at(&key, n, now); true }
);
subject!(
    LeakyQueueLaw, PerKey<LeakyQueueLaw>;
    |table: &Self, key: u64, n, now| table.schedule_n_at(&key, n, now).map(Some),
    |_, _, _, _| false
);

/// What a law promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bucket,
    Window,
    Counter,
    Log,
    Queue,
}

/// A law, and the numbers that all its quotas in a run keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) kind: Kind,
    /// The burst, limit or capacity.
    pub(crate) most: u64,
    /// T of a bucket or queue, the window of the others, in nanoseconds.
    pub(crate) span: u64,
}

impl Terms {
    pub(crate) const fn new(kind: Kind) -> Self {
        // Busy for a tenth of a second at most, or the next after that.
        match kind {
            Kind::Bucket | Kind::Queue => Self { kind, most: 10, span: 10_000_000 },
            Kind::Window | Kind::Counter | Kind::Log => Self { kind, most: 10, span: 100_000_000 },
        }
    }

    /// A quota of these terms whose permits come `slower` times as slowly, or of which there are fewer by that.
    pub(crate) fn quota(&self, slower: u64) -> Quota {
        let span = Duration::from_nanos(self.span);
        let quota = match self.kind {
            Kind::Bucket | Kind::Queue => Quota::every(span.saturating_mul(u32::try_from(slower).unwrap_or(u32::MAX))),
            Kind::Window | Kind::Counter | Kind::Log => Quota::new((self.most / slower).max(1), span),
        };
        match self.kind {
            Kind::Bucket | Kind::Queue => quota.map(|quota| quota.burst(self.most)),
            Kind::Window | Kind::Counter | Kind::Log => quota,
        }
        .unwrap_or(Quota::UNLIMITED)
    }

    /// A table of these terms; if `plans`, every second key has its quota from `quota_for`.
    pub(crate) fn table(&self, places: usize, plans: bool) -> Result<Box<dyn Subject>, KeyedError> {
        let quota = self.quota(1);
        let plan = move |key: &u64| (key % 2 == 0).then_some(quota);
        macro_rules! build {
            ($builder:expr) => {{
                let builder = $builder.max_keys(places);
                if plans { Box::new(builder.quota_for(plan).build()?) } else { Box::new(builder.build()?) }
            }};
        }
        Ok(match self.kind {
            Kind::Bucket => build!(Keyed::<u64>::token_bucket(quota)),
            Kind::Window => build!(Keyed::<u64>::fixed_window(quota)),
            Kind::Counter => build!(Keyed::<u64>::sliding_counter(quota)),
            Kind::Log => build!(Keyed::<u64>::sliding_log(quota)),
            Kind::Queue => build!(Keyed::<u64>::leaky_queue(quota)),
        })
    }
}
