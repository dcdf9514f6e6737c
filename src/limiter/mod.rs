//! The limiter: a law, a clock, and the questions that can be asked.

mod bounded;
mod builder;
mod laws;
mod leaky_queue;

pub use builder::LimiterBuilder;
pub use laws::{FixedWindow, LeakyBucket, LeakyQueue, SlidingCounter, SlidingLog, TokenBucket};

use std::fmt;
use std::time::Duration;

use crate::algorithm::{Algorithm, AnyQuota, Policing};
use crate::clock::{Clock, DefaultClock};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// Answers at once whether a request may pass (policing). Share it as `Arc<Limiter>` between threads and tasks.
///
/// The law is the type's: [`TokenBucket`], [`FixedWindow`], [`SlidingCounter`], [`SlidingLog`] and [`LeakyQueue`] are
/// limiters, and say what they hold to and what they cost. A `LeakyQueue` is asked when, and not whether; the others are
/// asked in the same way. A law that has a largest limit has constructors and a `set_quota` that may give an error; the
/// others take every quota.
///
/// All methods take `&self`, none waits. Every method that reads the clock has a twin that takes the time and is
/// deterministic: `..._at(.., now)`, where `now` is [`Nanos`], a `u64` of nanoseconds or a [`Duration`]
/// since the clock's origin. Any `u64` is a valid time.
///
/// # Guarantees
///
/// - Never a permit more than the law allows, whatever threads, clocks and inputs do.
/// - A request of n is admitted whole or not at all. A refused one changes nothing. n = 0 is always admitted, and free.
/// - A clock that stands still or goes back admits nothing extra and loses nothing.
/// - No lost race makes a `try` say no: a call that loses an exchange to another tries again.
/// - Decisions are lock-free: a thread that is stopped anywhere blocks no decision of another. The exceptions: grants of a
///   [`SlidingLog`] take a short lock, and the call that carries a word past the end of its field takes that of `set_quota`.
///   (For a bucket at the earliest after a second for the finest rates, after nine years for rates whose interval is whole
///   nanoseconds; for windows the types say when.)
///
/// # Cost
///
/// A yes is one compare-and-swap on one cache line; a no writes nothing. Nothing is allocated but by a [`SlidingLog`]. A
/// `TokenBucket` takes 384 bytes where a cache line is padded to 128, a window law 512. No thread runs, and no timer.
///
/// # Memory ordering
///
/// A call that was admitted happens before every later admitted call that takes permits of the same limiter; beyond that nothing
/// is promised.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Quota, TokenBucket};
///
/// let limiter = Arc::new(TokenBucket::new(Quota::per_second(100).burst(20)));
/// limiter.try_acquire()?;
/// limiter.try_acquire_n(4)?;
/// # Ok::<(), tollgate::Refused>(())
/// ```
///
/// With the time given, everything is deterministic:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, TokenBucket};
///
/// let bucket = TokenBucket::new(Quota::per_second(1).burst(3));
/// let admitted = [0, 200, 400, 600, 1_500, 3_500, 3_600, 3_700]
///     .map(|ms| bucket.try_acquire_at(Duration::from_millis(ms)).is_ok());
/// assert_eq!(admitted, [true, true, true, false, true, true, true, false]);
/// ```
pub struct Limiter<A, C = DefaultClock> {
    algorithm: A,
    clock: C,
}

impl<A: AnyQuota> Limiter<A> {
    /// Makes a limiter at rest, the whole burst or limit there, on the [`DefaultClock`].
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::with_clock(quota, DefaultClock)
    }
}

impl<A: Algorithm> Limiter<A> {
    /// Configures a limiter: the permits it starts with, and its clock.
    pub fn builder(quota: Quota) -> LimiterBuilder<A> {
        LimiterBuilder::new(quota)
    }
}

impl<A: Policing, C: Clock> Limiter<A, C> {
    /// Takes one permit, now or not at all.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why and when to come back: too soon, paused, exceeds capacity (burst or limit 0), or never (a
    /// bucket of rate 0, and none left).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let api = TokenBucket::new(Quota::per_second(100).burst(20));
    /// match api.try_acquire() {
    ///     Ok(()) => println!("go on"),
    ///     Err(refused) => println!("429, Retry-After: {:?}", refused.retry_after_secs()),
    /// }
    /// ```
    pub fn try_acquire(&self) -> Result<(), Refused> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits at once, or none. k calls for one cost what one call for k costs.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire). `n` above the burst or limit is [`Refused::ExceedsCapacity`] and never a wait.
    pub fn try_acquire_n(&self, n: u64) -> Result<(), Refused> {
        self.try_acquire_n_at(n, self.clock.now())
    }

    /// [`try_acquire`](Self::try_acquire) at a given time.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_at(&self, now: impl Into<Nanos>) -> Result<(), Refused> {
        self.try_acquire_n_at(1, now)
    }

    /// [`try_acquire_n`](Self::try_acquire_n) at a given time.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_at(&self, n: u64, now: impl Into<Nanos>) -> Result<(), Refused> {
        self.algorithm.try_acquire(n, now.into())
    }

    /// Takes what is there, `n` at most, and says how much: 0 to `n`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bytes = TokenBucket::new(Quota::per_second(1_000).burst(64));
    /// assert_eq!(bytes.acquire_up_to_at(50, 0), 50);
    /// assert_eq!(bytes.acquire_up_to_at(50, 0), 14);
    /// assert_eq!(bytes.acquire_up_to_at(50, 0), 0);
    /// ```
    #[must_use = "it says how many were taken"]
    pub fn acquire_up_to(&self, n: u64) -> u64 {
        self.acquire_up_to_at(n, self.clock.now())
    }

    /// [`acquire_up_to`](Self::acquire_up_to) at a given time.
    #[must_use = "it says how many were taken"]
    pub fn acquire_up_to_at(&self, n: u64, now: impl Into<Nanos>) -> u64 {
        self.algorithm.acquire_up_to(n, now.into())
    }

    /// Gives `n` permits back whose work did not happen, at most those that still count: what is beyond is lost. A bucket is never
    /// fuller than full; a window takes them from its count, a sliding counter then from the window before, and a log drops the
    /// newest.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Quota::per_hour(10));
    /// bucket.try_acquire_n_at(8, 0)?;
    /// bucket.refund_at(3, 0);
    /// assert_eq!(bucket.available_at(0), 5);
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn refund(&self, n: u64) {
        self.refund_at(n, self.clock.now());
    }

    /// [`refund`](Self::refund) at a given time.
    pub fn refund_at(&self, n: u64, now: impl Into<Nanos>) {
        self.algorithm.refund(n, now.into());
    }

    /// Forgets all that was taken: the whole burst or limit is there. A pause goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{FixedWindow, Quota};
    ///
    /// let window = FixedWindow::new(Quota::per_hour(10));
    /// window.try_acquire_n_at(10, 0)?;
    /// window.reset_at(0);
    /// assert_eq!(window.available_at(0), 10);
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn reset(&self) {
        self.reset_at(self.clock.now());
    }

    /// [`reset`](Self::reset) at a given time.
    pub fn reset_at(&self, now: impl Into<Nanos>) {
        self.algorithm.reset(now.into());
    }
}

impl<A: Algorithm, C: Clock> Limiter<A, C> {
    /// Tells what a request of `n` would be answered, without taking anything and without a write.
    ///
    /// # Errors
    ///
    /// The [`Refused`] that the request would get.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Quota::per_hour(10));
    /// assert!(bucket.peek(10).is_ok());
    /// assert!(bucket.peek(11).is_err());
    /// assert_eq!(bucket.available(), 10);
    /// ```
    pub fn peek(&self, n: u64) -> Result<(), Refused> {
        self.peek_at(n, self.clock.now())
    }

    /// [`peek`](Self::peek) at a given time.
    ///
    /// # Errors
    ///
    /// As [`peek`](Self::peek).
    pub fn peek_at(&self, n: u64, now: impl Into<Nanos>) -> Result<(), Refused> {
        self.algorithm.peek(n, now.into())
    }

    /// The whole permits that are there now: the largest n that would be admitted. `u64::MAX` if unlimited.
    #[must_use]
    pub fn available(&self) -> u64 {
        self.available_at(self.clock.now())
    }

    /// [`available`](Self::available) at a given time.
    #[must_use]
    pub fn available_at(&self, now: impl Into<Nanos>) -> u64 {
        self.snapshot_at(now).remaining
    }

    /// Limit, remaining, and the times until one permit and until all of them are there: one consistent value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Quota::per_second(2).burst(4));
    /// bucket.try_acquire_n_at(3, 0)?;
    /// let seen = bucket.snapshot_at(0);
    /// assert_eq!((seen.limit, seen.remaining), (4, 1));
    /// assert_eq!(seen.retry_after, Some(Duration::ZERO));
    /// assert_eq!(seen.reset_after, Some(Duration::from_millis(1_500)));
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_at(self.clock.now())
    }

    /// [`snapshot`](Self::snapshot) at a given time.
    #[must_use]
    pub fn snapshot_at(&self, now: impl Into<Nanos>) -> Snapshot {
        self.algorithm.snapshot(now.into())
    }

    /// Admits nothing for `span`, and lets nothing accrue: what is left now is left at the end. For a server's `Retry-After`.
    ///
    /// A pause that is set during another one replaces it: an earlier end shortens it, a later one prolongs it. With several
    /// calls under way, a later answer may name an earlier end; keep the latest yourself. At most
    /// [`max_pause`](LimiterBuilder::max_pause) from now. Requests meanwhile are refused with [`Refused::Paused`], which tells
    /// when to come back.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Refused, TokenBucket};
    ///
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::with_clock(Quota::per_second(1).burst(3), clock.clone());
    /// bucket.try_acquire()?;
    /// bucket.pause_for(Duration::from_secs(10));
    /// assert_eq!(bucket.try_acquire(), Err(Refused::Paused { asked: 1, retry_after: Duration::from_secs(10) }));
    /// clock.advance(Duration::from_secs(10));
    /// assert_eq!(bucket.available(), 2);
    /// # Ok::<(), Refused>(())
    /// ```
    pub fn pause_for(&self, span: Duration) {
        let now = self.clock.now();
        self.pause_until_at(now.saturating_add(span), now);
    }

    /// Admits nothing until `end`, an instant of the limiter's clock (not a span, not Unix time). See
    /// [`pause_for`](Self::pause_for). An `end` that is not after now
    /// ends a pause.
    pub fn pause_until(&self, end: impl Into<Nanos>) {
        self.pause_until_at(end, self.clock.now());
    }

    /// [`pause_until`](Self::pause_until) at a given time.
    pub fn pause_until_at(&self, end: impl Into<Nanos>, now: impl Into<Nanos>) {
        self.algorithm.pause_until(end.into(), now.into());
    }

    /// Ends a pause: what was left when it began is left now. Without a pause it changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Quota::per_hour(10));
    /// let second = Duration::from_secs(1);
    /// bucket.pause_until_at(60 * second, 0);
    /// assert_eq!(bucket.available_at(second), 0);
    /// bucket.resume_at(2 * second);
    /// assert_eq!(bucket.available_at(2 * second), 10);
    /// ```
    pub fn resume(&self) {
        self.resume_at(self.clock.now());
    }

    /// [`resume`](Self::resume) at a given time.
    pub fn resume_at(&self, now: impl Into<Nanos>) {
        let now = now.into();
        self.algorithm.pause_until(now, now);
    }

    /// The quota that was set last.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.algorithm.quota()
    }

    /// The time on the limiter's clock, for [`pause_until`](Self::pause_until).
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// The limiter's clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    pub(crate) fn into_parts(self) -> (A, C) {
        (self.algorithm, self.clock)
    }
}

impl<A: Algorithm, C> Limiter<A, C> {
    /// A limiter at rest whose law takes the quota.
    fn at_rest(quota: Quota, clock: C) -> Self {
        Self { algorithm: A::start(quota, None, Duration::MAX, || Nanos::ZERO), clock }
    }
}

impl<A: AnyQuota, C: Clock> Limiter<A, C> {
    /// Makes a limiter at rest on a clock of the caller's, such as a [`ManualClock`](crate::ManualClock) in tests.
    #[must_use]
    pub fn with_clock(quota: Quota, clock: C) -> Self {
        Self::at_rest(quota, clock)
    }

    /// Changes the quota of the live limiter. Nothing is credited for the time before, and setting the same quota again changes
    /// nothing. A pause goes on.
    ///
    /// A bucket carries permits, not time: what is left stays left, the fraction accrued included, cut to the new burst.
    /// - A larger burst starts with what was left, and fills at the new rate. A full bucket whose burst grows is not full.
    /// - The new arrival time is rounded up to the unit of the new quota (a fraction of a nanosecond, as a rule), once. Where a unit
    ///   is longer than a nanosecond (see [`Quota::rate_loss_ppb`]), each change may lose a part of one.
    ///
    /// Windows carry what was taken:
    /// - With the same window length the counts stay, and only the limit is another. If more was taken, nothing is left.
    /// - With another length the window that now lies in starts with what still counted, estimates rounded up.
    ///
    /// A log keeps its times with the same length, and with another all that still counts is as if taken now.
    ///
    /// Entering [`Quota::UNLIMITED`] admits everything at once; leaving it starts with nothing left.
    ///
    /// Decisions under way are by the old quota or by the new one, never by a mixture. Setters wait for each other; nobody
    /// else waits for them, but for grants of a [`SlidingLog`] while its times are copied to a larger ring.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// let bucket = TokenBucket::new(Quota::per_second(100).burst(10));
    /// bucket.try_acquire_n_at(5, 0)?;
    /// bucket.set_quota_at(Quota::per_second(1).burst(20), 0);
    /// assert_eq!(bucket.available_at(0), 5);
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) {
        self.set_quota_at(quota, self.clock.now());
    }

    /// [`set_quota`](Self::set_quota) at a given time.
    pub fn set_quota_at(&self, quota: Quota, now: impl Into<Nanos>) {
        self.algorithm.set_quota(quota, now.into());
    }
}

impl<A: Algorithm, C: fmt::Debug> fmt::Debug for Limiter<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = self.algorithm.quota();
        f.debug_struct("Limiter").field("quota", &quota).field("clock", &self.clock).finish_non_exhaustive()
    }
}
