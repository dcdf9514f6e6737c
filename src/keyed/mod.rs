//! Limiters by key.

mod acquire;
mod builder;
mod law;
mod map;
mod prefix;
mod table;
mod waiting;

pub use self::acquire::AcquireKey;
pub use self::builder::{KeyedBuilder, KeyedError, WhenFull};
pub use self::law::{KeyedLaw, KeyedPolicing, KeyedSchedule, KeyedWaitable, LookUp, OneQuota, PerKey};
pub use self::prefix::{IpPrefix, IpPrefixes, PrefixTooLong};

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

use self::law::{Asked, Plans, Police, Schedule, Store};
use crate::algorithm::{FixedWindowLaw, Gcra, LeakyQueueLaw, SlidingCounterLaw, SlidingLogLaw};
use crate::clock::{Clock, DefaultClock};
use crate::quota::{Quota, QuotaError};
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A budget for each key: client, user, address, route. Share it as `Arc<Keyed>`.
///
/// Each key is limited by itself, under one law and one quota, or one of its own (see
/// [`quota_for`](KeyedBuilder::quota_for)). A key is anything that can be hashed, and is looked up as anything
/// that it borrows as: a `Keyed<String>` by `&str`. Nothing is swept, and no memory is taken for keys that owe nothing.
/// Clients of IPv6 are known by their network, [`IpPrefix`], since one client has a whole one.
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate::{IpPrefix, Keyed, Quota};
///
/// let logins = Arc::new(Keyed::<IpPrefix>::token_bucket(Quota::per_minute(5)).max_keys(100_000).build()?);
/// let client: IpAddr = "203.0.113.9".parse()?;
/// match logins.try_acquire(&IpPrefix::of(client)) {
///     Ok(()) => println!("go on"),
///     Err(refused) => println!("429, Retry-After: {:?}", refused.retry_after_secs()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Guarantees
///
/// - Every key is held to its law as a [`Limiter`](crate::Limiter) of its own would be, whatever threads, clocks and inputs do.
///   Threads that see a key first at the same instant share one budget from the start.
/// - A *busy* key, one of which something still counts, never loses its place to another. A key *at rest* equals one that was never
///   seen, so its place may be taken; no call is needed for that.
/// - The memory is bounded, and known ([`memory`](Self::memory)). Where all places are busy, a newcomer is refused with
///   [`Refused::NoRoom`], or shares one budget with all such newcomers: see [`KeyedBuilder::when_full`].
/// - Decisions on known keys are lock-free: a thread that is stopped anywhere blocks none of them. First sight of a key takes a
///   short lock that few keys share. (Logs, and keys with quotas of their own: see below.)
/// - No code of the caller (hashing a key, a clock, a waker) runs under a lock.
///
/// # All keys share one clock
///
/// A key that has lost its place while it was at rest is judged no earlier than the instant at which that was so, and a new quota
/// counts for all keys from one instant on. So a thread whose clock is behind gets nothing twice; if the clock goes back by a
/// year, waits may be a year longer for every key. (What a key owes to a clock further ahead than the unit of the quota can tell, 52
/// days for the finest and 18 years for whole nanoseconds, is cut to that when the quota changes.)
///
/// # Fingerprints
///
/// A key is not kept: it is known by 64 bits of its hash. Two keys with the same fingerprint share one budget. With the default
/// hasher, which is keyed at random, that happens to any two of ten million busy keys with a probability of 3 in a million; nobody
/// can choose such keys. See [`KeyedBuilder::hasher`].
///
/// # Exactness
///
/// As for a [`Limiter`](crate::Limiter), but in one unit for all keys: T = num/den nanoseconds in lowest terms is exact where den is at
/// most 128, which holds for all whole nanoseconds, for 3 and for 7 per second. Else it is rounded up once, to the next 1/128 of
/// a nanosecond or finest power of two that fits.
///
/// # Changes of the quota
///
/// [`set_quota`](Self::set_quota) takes the same time for any number of keys. A busy key carries its permits, as a limiter does; a
/// key at rest has the new burst at once. So a burst that is lowered and raised again is whole again for the keys that were at rest
/// under the lower one. Under [`Quota::UNLIMITED`] no key takes anything, and every key is at rest when that ends (but a start that
/// a [`LeakyQueue`](crate::LeakyQueue) told stands).
/// Each change makes a version, and there are 15: every 14th walks through the table first, some milliseconds for a million keys,
/// while known keys go on. (The end of a time field, once in 26 days at most, counts as a change.)
///
/// # Cost
///
/// 32 bytes a key of `max_keys`, whatever the type of the key. A decision on a known key reads one cache line, seldom two, and
/// writes it for a yes; a no writes nothing. Nothing is allocated after construction.
///
/// # Waiting
///
/// [`acquire`](Self::acquire)`(&key).await` waits for its turn on a key, under every law but that of a [`LeakyQueue`](crate::LeakyQueue).
/// Keys wait for themselves alone. On one key it is first come, first served, as with a [`Shaper`](crate::Shaper): calls that don't
/// wait do not overtake, whoever gives up leaves no trace ([`AcquireKey`]), deadlines are answered on arrival, a change of the quota
/// reaches all who wait, and a waiter that nobody polls costs those behind it one interval.
///
/// - A key is held to its law, whether its permits are waited for or not. So a request of n leaves when all n are there, and a
///   permit that a timer delivers late is late: a burst above 1 makes up for that, a catch-up does not. To pace one stream of calls take
///   a `Shaper`.
/// - Waits are by the table's own clock. A [`ManualClock`](crate::ManualClock) wakes those who are due. For any other clock they
///   use tokio's timer inside a runtime that has one, else the [timer thread](crate::Timer), for as long as there is to wait, and then
///   look again. Give it a `TokioClock` to follow a paused runtime.
/// - While somebody waits on a key its state is in a queue, of about a kilobyte and 128 bytes for each who waits, and calls on that
///   key take a short lock. Afterwards the key is as it was. It keeps its place in the table meanwhile.
/// - Newcomers who share one budget ([`WhenFull::Share`]) wait in one line. As soon as there are places again, others wait in those.
/// - Only tasks wait by key, there is no `acquire_blocking`: a thread asks, and sleeps for [`Refused::retry_after`]. The wait ends
///   with `()`, there is no permit to hold.
///
/// # Logs, and a quota for each key
///
/// A [`SlidingLog`](crate::SlidingLog) is more than a word, and with [`quota_for`](KeyedBuilder::quota_for) each key has a limiter of its
/// own. Those are in a map of shards, a lock each, with the same promises, and these differences:
/// - A decision on a known key takes the lock of its shard for reading; first sight of a key, and another plan, for writing.
/// - A busy key takes memory when it comes: some 550 bytes for a bucket, 700 for windows, 1,450 and its times for a log. Keys at rest go as
///   others come, a few with each. [`memory`](Self::memory) and [`len`](Self::len) walk through all keys.
/// - Exactly `max_keys` keys may be busy: nobody is refused for want of room while fewer are.
/// - Each key is as exact as a limiter, whatever unit its quota needs.
/// - [`set_quota`](Self::set_quota) walks through all keys, one lock at a time, in short stretches. A call beside it is by the old quota or
///   by the new one.
/// - Of newcomers who shared one budget ([`WhenFull::Share`]), one that is given a place begins with what is left in that budget, so that
///   it has not the whole burst again. What it gives back of what it took there is lost.
pub struct Keyed<K: ?Sized, A: KeyedLaw = Gcra, C = DefaultClock, S = RandomState> {
    store: A::Store,
    plans: <A::Plans as Plans>::Of<K>,
    clock: C,
    hasher: S,
    /// How many may wait on each key.
    places: usize,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized> Keyed<K> {
    /// Configures a table of [`TokenBucket`](crate::TokenBucket)s.
    pub fn token_bucket(quota: Quota) -> KeyedBuilder<K> {
        KeyedBuilder::new(quota)
    }

    /// Configures a table of [`LeakyBucket`](crate::LeakyBucket)s, which is another name for [`token_bucket`](Self::token_bucket).
    pub fn leaky_bucket(quota: Quota) -> KeyedBuilder<K> {
        Self::token_bucket(quota)
    }

    /// Configures a table of [`FixedWindow`](crate::FixedWindow)s. Windows are the same for all keys: whole multiples of their
    /// length since the clock's origin.
    pub fn fixed_window(quota: Quota) -> KeyedBuilder<K, FixedWindowLaw> {
        KeyedBuilder::new(quota)
    }

    /// Configures a table of [`SlidingCounter`](crate::SlidingCounter)s.
    pub fn sliding_counter(quota: Quota) -> KeyedBuilder<K, SlidingCounterLaw> {
        KeyedBuilder::new(quota)
    }

    /// Configures a table of [`SlidingLog`](crate::SlidingLog)s.
    ///
    /// A log is more than one word, so each busy key has a place of its own on the heap: some 1,450 bytes, and 8 for each of twice the
    /// limit, rounded up to a power of two. See *Logs, and a quota for each key* at [`Keyed`].
    pub fn sliding_log(quota: Quota) -> KeyedBuilder<K, SlidingLogLaw> {
        KeyedBuilder::new(quota)
    }

    /// Configures a table of [`LeakyQueue`](crate::LeakyQueue)s.
    pub fn leaky_queue(quota: Quota) -> KeyedBuilder<K, LeakyQueueLaw> {
        KeyedBuilder::new(quota)
    }
}

impl<K: ?Sized, A: KeyedPolicing, C: Clock, S: BuildHasher> Keyed<K, A, C, S> {
    /// Takes one permit of a key, now or not at all.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why and when to come back: too soon, exceeds capacity, never, or no room for a new key.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<String>::token_bucket(Quota::per_hour(1)).build()?;
    /// users.try_acquire("ann")?;
    /// assert!(users.try_acquire("ann").is_err());
    /// users.try_acquire("bob")?; // has his own
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits of a key at once, or none.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire_n("ann", 4)?;
    /// assert!(users.try_acquire_n("ann", 2).is_err()); // and takes nothing
    /// users.try_acquire("ann")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_n<Q>(&self, key: &Q, n: u64) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        // The hash comes first: a processor whose counter is read waits for what it has begun before, and begins nothing after.
        let key = self.asked(key);
        self.store.try_acquire(key, n, self.clock.now())
    }

    /// [`try_acquire`](Self::try_acquire) at a given time.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_second(1)).build()?;
    /// users.try_acquire_at("ann", Duration::ZERO)?;
    /// assert!(users.try_acquire_at("ann", Duration::from_millis(999)).is_err());
    /// users.try_acquire_at("ann", Duration::from_secs(1))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_at<Q>(&self, key: &Q, now: impl Into<Nanos>) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.try_acquire_n_at(key, 1, now)
    }

    /// [`try_acquire_n`](Self::try_acquire_n) at a given time.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_n_at<Q>(&self, key: &Q, n: u64, now: impl Into<Nanos>) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.try_acquire(self.asked(key), n, now.into())
    }

    /// Gives `n` permits of a key back whose work did not happen, at most those that still count. See
    /// [`Limiter::refund`](crate::Limiter::refund).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire_n("ann", 5)?;
    /// users.refund("ann", 2);
    /// assert_eq!(users.available("ann"), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund<Q>(&self, key: &Q, n: u64)
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.refund_at(key, n, self.clock.now());
    }

    /// [`refund`](Self::refund) at a given time.
    pub fn refund_at<Q>(&self, key: &Q, n: u64, now: impl Into<Nanos>)
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.refund(self.asked(key), n, now.into());
    }

    /// Forgets all that was taken of a key: the whole burst or limit is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire_n("ann", 5)?;
    /// users.reset("ann");
    /// assert_eq!(users.available("ann"), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset<Q>(&self, key: &Q)
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.reset_at(key, self.clock.now());
    }

    /// [`reset`](Self::reset) at a given time.
    pub fn reset_at<Q>(&self, key: &Q, now: impl Into<Nanos>)
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.reset(self.asked(key), now.into());
    }
}

impl<K: ?Sized, A: KeyedSchedule, C: Clock, S: BuildHasher> Keyed<K, A, C, S> {
    /// Tells a request of a key when to start. See [`LeakyQueue`](crate::LeakyQueue).
    ///
    /// # Errors
    ///
    /// As [`Limiter::schedule`](crate::Limiter::schedule), and [`Refused::NoRoom`].
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Nanos, Quota};
    ///
    /// let quota = Quota::per_second(2);
    /// let hosts = Keyed::<str>::leaky_queue(quota).clock(ManualClock::new()).build()?;
    /// assert_eq!(hosts.schedule("a")?, Nanos::from_millis(0));
    /// assert_eq!(hosts.schedule("a")?, Nanos::from_millis(500));
    /// assert_eq!(hosts.schedule("b")?, Nanos::from_millis(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule<Q>(&self, key: &Q) -> Result<Nanos, Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.schedule_n_at(key, 1, self.clock.now())
    }

    /// Tells a request of `n` when to start.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule).
    pub fn schedule_n<Q>(&self, key: &Q, n: u64) -> Result<Nanos, Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.schedule_n_at(key, n, self.clock.now())
    }

    /// [`schedule`](Self::schedule) at a given time.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule).
    pub fn schedule_at<Q>(&self, key: &Q, now: impl Into<Nanos>) -> Result<Nanos, Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.schedule_n_at(key, 1, now)
    }

    /// [`schedule_n`](Self::schedule_n) at a given time.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule).
    pub fn schedule_n_at<Q>(&self, key: &Q, n: u64, now: impl Into<Nanos>) -> Result<Nanos, Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.schedule(self.asked(key), n, now.into())
    }
}

impl<K: ?Sized, A: KeyedLaw, C: Clock, S: BuildHasher> Keyed<K, A, C, S> {
    /// Tells what a request of `n` would be answered, without taking anything and without a write.
    ///
    /// # Errors
    ///
    /// The [`Refused`] that the request would get.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.peek("ann", 5)?;
    /// users.try_acquire("ann")?;
    /// assert!(users.peek("ann", 5).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek<Q>(&self, key: &Q, n: u64) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.peek_at(key, n, self.clock.now())
    }

    /// [`peek`](Self::peek) at a given time.
    ///
    /// # Errors
    ///
    /// As [`peek`](Self::peek).
    pub fn peek_at<Q>(&self, key: &Q, n: u64, now: impl Into<Nanos>) -> Result<(), Refused>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.peek(self.asked(key), n, now.into())
    }

    /// The whole permits of a key that are there now; `u64::MAX` if unlimited. Whether there is room for a new key is not asked.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire("ann")?;
    /// assert_eq!((users.available("ann"), users.available("bob")), (4, 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn available<Q>(&self, key: &Q) -> u64
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.available_at(key, self.clock.now())
    }

    /// [`available`](Self::available) at a given time.
    #[must_use]
    pub fn available_at<Q>(&self, key: &Q, now: impl Into<Nanos>) -> u64
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.snapshot_at(key, now).remaining
    }

    /// Limit, remaining, and the times until one permit of a key and until all of them are there: one consistent value.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire_n("ann", 5)?;
    /// let seen = users.snapshot("ann");
    /// assert_eq!((seen.limit, seen.remaining), (5, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot<Q>(&self, key: &Q) -> Snapshot
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.snapshot_at(key, self.clock.now())
    }

    /// [`snapshot`](Self::snapshot) at a given time.
    #[must_use]
    pub fn snapshot_at<Q>(&self, key: &Q, now: impl Into<Nanos>) -> Snapshot
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.snapshot(self.asked(key), now.into())
    }

    fn asked<Q>(&self, key: &Q) -> Asked
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        A::asked(&self.plans, self.hasher.hash_one(key), key)
    }

    /// Changes the quota of all keys that have none of their own (see [`quota_for`](KeyedBuilder::quota_for)).
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the law does not take the quota: a limit too large for a [`SlidingCounter`](crate::SlidingCounter) or a
    /// [`SlidingLog`](crate::SlidingLog). Then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<str>::token_bucket(Quota::per_hour(5)).build()?;
    /// users.try_acquire_n("ann", 3)?;
    /// users.set_quota(Quota::per_hour(1).burst(10))?;
    /// assert_eq!((users.available("ann"), users.available("bob")), (2, 10)); // what was left, and the new burst
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) -> Result<(), QuotaError> {
        self.set_quota_at(quota, self.clock.now())
    }

    /// [`set_quota`](Self::set_quota) at a given time.
    ///
    /// # Errors
    ///
    /// As [`set_quota`](Self::set_quota).
    pub fn set_quota_at(&self, quota: Quota, now: impl Into<Nanos>) -> Result<(), QuotaError> {
        A::check(&quota)?;
        self.store.set_quota(quota, now.into());
        Ok(())
    }

    /// How many keys are busy now: those of which something still counts. Walks through the whole table; beside calls that are under
    /// way, each key counts at an instant of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota};
    ///
    /// let clock = ManualClock::new();
    /// let users = Keyed::<str>::token_bucket(Quota::per_second(1)).clock(clock.clone()).build()?;
    /// users.try_acquire("ann")?;
    /// assert_eq!(users.len(), 1);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(users.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.len_at(self.clock.now())
    }

    /// [`len`](Self::len) at a given time.
    #[must_use]
    pub fn len_at(&self, now: impl Into<Nanos>) -> usize {
        self.store.len(now.into())
    }

    /// Whether no key is busy now. Walks through the whole table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: ?Sized, A: KeyedLaw, C, S> Keyed<K, A, C, S> {
    /// The quota of the keys that have none of their own.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.store.quota()
    }

    /// How many keys may be busy at once.
    #[must_use]
    pub fn max_keys(&self) -> usize {
        self.store.max_keys()
    }

    /// The bytes that the table takes, with the queues of keys on which somebody waits, but without the places in those.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let users = Keyed::<String>::token_bucket(Quota::per_second(1)).max_keys(1_000_000).build()?;
    /// assert!(users.memory() <= 32 * 1_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> usize {
        self.store.memory()
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }
}

impl<K: ?Sized, A: KeyedLaw, C: fmt::Debug, S> fmt::Debug for Keyed<K, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("quota", &self.quota())
            .field("max_keys", &self.max_keys())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
