//! The shaper: callers wait for their place and leave at an even pace.

mod acquire;
mod blocking;
mod builder;
pub(crate) mod line;
pub(crate) mod pace;
mod permit;
pub(crate) mod queue;
pub(crate) mod ticket;
mod wakers;

pub use acquire::{Acquire, AcquireOwned};
pub use builder::ShaperBuilder;
pub use pace::Waitable;
pub use permit::{OwnedPermit, Permit};

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::{AnyQuota, Gcra, SlidingCounterLaw, SlidingLogLaw};
use crate::clock::Clock;
use crate::limiter::Limiter;
use crate::quota::{Quota, QuotaError};
use crate::refused::Refused;
use crate::time::Nanos;
use crate::timer::Timer;
use queue::{Grant, Queue};

/// Makes callers wait for their place and lets them leave at an even pace (shaping): the leaky bucket as a queue.
///
/// `shaper.acquire().await` before each call is all that is needed in front of a fragile dependency, or
/// [`acquire_blocking`](Self::acquire_blocking) where the code is not async. Share it as `Arc<Shaper>` between tasks and
/// threads. Building it needs no runtime; it runs no task of its own.
///
#[cfg_attr(feature = "tokio", doc = "```")]
#[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
/// use std::sync::Arc;
/// use tollgate::{Quota, Shaper};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tollgate::Refused> {
/// let shaper = Arc::new(Shaper::builder(Quota::per_second(50)).queue(1_000).build());
/// for _ in 0..3 {
///     let _permit = shaper.acquire().await?;
///     // call the service: one call every 20 ms, whoever asks
/// }
/// # Ok(())
/// # }
/// ```
///
/// A [`Permit`] is spent when it is granted: dropping it gives nothing back, holding it delays nobody.
/// [`give_back`](Permit::give_back) returns it if the call did not happen and no later permit was granted.
///
/// # The law
///
/// The leaky bucket as a queue (Turner 1986), kept as the generic cell rate algorithm in its virtual scheduling form (ITU-T
/// I.371): instead of refusing what comes before its theoretical arrival time, it makes it wait until then.
///
/// With T the emission interval (period / permits): n permits leave when min(n, burst) are there, and what is missing is
/// paid afterwards, so that the next waits n*T. In every span of length W at most
/// `max(burst, largest n) + catch_up/T + rate * W` permits are granted. Without [`Quota::burst`] the burst is 1: one permit
/// leaves per T, and idling saves nothing up.
///
/// # On pace
///
/// The schedule is anchored: a permit that a timer delivers late (tokio's timer: up to a millisecond and a half, more on a
/// busy machine) does not move it, so the rate that is delivered is the rate that was configured, with one caller or with
/// thousands. The price is that permits bunch within one tick of the timer; [`Timer::Precise`] has a finer one. How much
/// lateness may be made up for is bounded by [`catch_up`](ShaperBuilder::catch_up).
///
/// Random jitter is not needed and not offered: those who wait leave one by one, in the order in which they came.
///
/// # Fairness
///
/// Strictly first come, first served, in the order of first polls, and of calls where threads wait;
/// [`try_acquire`](Self::try_acquire) does not overtake those who wait, and a large request at the head is not overtaken by
/// small ones. A waiter whose task is not polled when its turn comes takes its slot all the same, so it costs those behind it an
/// interval, and nobody freezes. (One who stands behind two or more such waiters, and behind others that gave up, may sleep
/// until the place that he was told when he came.)
///
/// # Cancel safety
///
/// Every wait may be dropped at any moment: see [`Acquire`]. Permits are never doubled.
///
/// # Any law
///
/// [`Shaper::over`] puts the same line in front of a limiter, to wait where it would have refused. Order, deadlines and
/// cancellation are the same for every law; what differs is when the next may leave.
///
/// - Over a [`TokenBucket`](crate::TokenBucket) it is the law above, with the bucket's burst.
/// - Over a [`FixedWindow`](crate::FixedWindow), a [`SlidingCounter`](crate::SlidingCounter) or a
///   [`SlidingLog`](crate::SlidingLog) n permits leave together at the first instant at which the law admits all of them. They
///   leave in bunches, as those laws have it: a pace is the bucket's. A bunch is granted in order, while a runtime may run the
///   tasks of one instant in another. A permit that a timer delivers late counts from when it is delivered, and `catch_up` makes
///   up for nothing.
/// - A [`LeakyQueue`](crate::LeakyQueue) tells its callers when to start, so there is nothing to wait for.
///
/// A place is told exactly for single permits over a bucket, a fixed window and a log. Over a sliding counter, and where a large
/// request leaves room that it does not fit in, it may be told too early but never too late: a deadline is refused on arrival
/// only if it can't be kept. Who was told too early asks once more: a wait takes two polls where the place was exact, three for
/// single permits over a sliding counter, and with large requests a number that grows with the logarithm of the windows waited.
///
/// # Clock and timer
///
/// A shaper reads the clock of its [`Timer`]: tokio's inside a runtime (its paused clock included), otherwise the monotonic clock
/// and one timer thread that all tasks share which wait so; a thread that waits times its own sleep. A permit is never early on
/// that clock; it is late by the timer's grain, in a tokio runtime up to the next whole millisecond. Where permits must leave one
/// by one and T is not many milliseconds, [`Timer::Precise`] waits without tokio's timer inside a runtime too. For
/// deterministic tests there is [`ShaperBuilder::clock`].
///
/// A shaper works without a runtime too, or in one without timers. (tokio tells of missing timers by a panic alone; it is
/// caught, so the panic hook sees it, and where panics abort such a runtime can't be waited in.)
///
/// # Cost
///
/// With a permit free and nobody waiting, a request is one compare-and-swap and allocates nothing; over a `SlidingLog` it
/// takes that law's short lock. Waiting takes a short lock, two polls of the task (see above for other laws), and a place in
/// a slab that is reused; a refusal by `try_acquire` takes no lock unless someone in line may be due. Changes of the quota
/// and pauses look at everybody in line.
///
/// On a 64-bit machine a place takes 128 bytes, and 48 more for the alarm with the timer thread or on a manual clock. Both come
/// from memory that doubles when it is full and is used again, so that nothing is allocated while no more wait than ever
/// before. The future itself is part of the caller's task: 240 bytes, or 104 without the feature `tokio`.
pub struct Shaper<A = Gcra> {
    queue: Queue<A>,
    timer: Timer,
}

impl Shaper {
    /// Makes a shaper with the defaults of [`builder`](Self::builder): a line without bound and a catch-up of 5 ms.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::builder(quota).build()
    }

    /// Configures a shaper.
    pub fn builder(quota: Quota) -> ShaperBuilder {
        ShaperBuilder::new(quota)
    }
}

impl<A: Waitable + AnyQuota> Shaper<A> {
    /// Changes the quota. It carries what [`Limiter::set_quota`](crate::Limiter::set_quota) carries, debts for
    /// large requests included, and reaches those who wait: they keep their order and are timed anew. Whose n exceeds the new
    /// largest n ends at once with [`Refused::ExceedsCapacity`]; at rate 0 the others stay pending; under
    /// [`Quota::UNLIMITED`] all are granted at once, in order.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let clock = ManualClock::new();
    /// let shaper = Shaper::builder(Quota::new(1, Duration::from_secs(100))?).clock(clock.clone()).build();
    /// let _permit = shaper.try_acquire()?;
    /// clock.advance(Duration::from_secs(10)); // a tenth of a permit has accrued, and stays
    /// shaper.set_quota(Quota::per_second(1));
    /// assert_eq!(shaper.estimated_wait(1), Some(Duration::from_millis(900)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) {
        self.queue.set_quota(quota, self.timer.now());
    }
}

impl<A: Waitable> Shaper<A> {
    /// Configures a shaper over a limiter: whom it would have refused waits. See [any law](Self#any-law).
    ///
    /// The limiter is taken with its quota and all that is left in it. Requests are granted first come, first served, each at the
    /// first instant at which the law admits it. A quota that does not say a burst has the limiter's, the permits per period, here
    /// and in a later [`set_quota`](Self::set_quota).
    ///
    /// # Whose clock
    ///
    /// The shaper reads the clock of its [`timer`](ShaperBuilder::timer), and the limiter's own clock is dropped. Since the two may
    /// count from different origins, permits are carried and not times: what was left in the limiter at this call, by its clock,
    /// is left when the shaper is built, by its own. So is what remained of a pause. No more is owed than the whole burst, or limit.
    /// With a [`ManualClock`](crate::ManualClock), give it to the builder too: on one clock, and built at once, nothing moves at all.
    ///
    /// On another clock windows are counted from its origin, and the one in which the shaper is built starts with what still
    /// counted, estimates rounded up. What a log took longer ago than that clock tells counts from its origin. So windows can't
    /// be aligned with a wall clock here, nor with those of somebody else: of theirs, one may see twice the limit of a fixed
    /// window. A log holds wherever a window begins.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper, TokenBucket};
    ///
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::with_clock(Quota::per_second(10).burst(3), clock.clone());
    /// bucket.try_acquire_n(2)?;
    ///
    /// let shaper = Shaper::over(bucket).queue(100).clock(clock).build();
    /// assert!(shaper.try_acquire().is_ok());
    /// assert_eq!(shaper.estimated_wait(1), Some(Duration::from_millis(100)));
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    ///
    /// Three in every ten seconds, whoever asks:
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use tollgate::{Quota, Shaper, SlidingLog};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let shaper = Shaper::over(SlidingLog::new(Quota::new(3, Duration::from_secs(10))?)?).build();
    /// let start = tokio::time::Instant::now();
    /// for _ in 0..7 {
    ///     let _permit = shaper.acquire().await?;
    /// }
    /// assert_eq!(start.elapsed().as_secs(), 20); // three at 0, three at 10 and one at 20 s
    /// # Ok(())
    /// # }
    /// ```
    pub fn over<C: Clock>(limiter: Limiter<A, C>) -> ShaperBuilder<A> {
        let (law, clock) = limiter.into_parts();
        let now = clock.now();
        ShaperBuilder::over(law, now)
    }

    /// Waits for one permit. In a task that is spawned, use a clone of the `Arc` in an `async move` block, or
    /// [`acquire_owned`](Self::acquire_owned).
    ///
    /// # Errors
    ///
    /// The future ends with [`Refused`]: at once if the queue is full, the shaper closed or the request too large (any is
    /// with a burst of 0), later if it is closed meanwhile or a change of the quota makes the request too large. At rate 0 it
    /// stays pending until the quota changes.
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// # use tollgate::{Quota, Shaper};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), tollgate::Refused> {
    /// let shaper = Shaper::new(Quota::per_second(10));
    /// let start = tokio::time::Instant::now();
    /// for _ in 0..3 {
    ///     let _permit = shaper.acquire().await?;
    /// }
    /// assert_eq!(start.elapsed().as_millis(), 200); // at 0, 100 and 200 ms
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Acquire<'_, A> {
        self.acquire_n(1)
    }

    /// Waits for `n` permits, which leave together when min(n, burst) are there; the rest is paid afterwards. (Over a law of windows,
    /// when all are there.) `n` = 0 is granted at once and free.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). `n` above [`max_n`](ShaperBuilder::max_n) is [`Refused::ExceedsCapacity`], at once:
    /// without it that is the larger of the burst and the permits per period, so 1 for `Quota::every(interval)`.
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    pub fn acquire_n(&self, n: u64) -> Acquire<'_, A> {
        Acquire::new(self, n)
    }

    /// Waits for one permit, but no longer than `limit`, counted from the first poll.
    ///
    /// If its place lies beyond that, it is refused on the first poll and takes no place; exactly `limit` is in time. A permit
    /// whose slot is in time is granted even if the timer tells of it later. If the place moves back afterwards (a slower
    /// quota), the answer comes at the deadline at the latest.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Refused::DeadlineTooSoon`] with the wait that it would have been, or
    /// [`Refused::Paused`] if a pause outlasts the limit; [`Refused::Never`] at rate 0.
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use tollgate::{Quota, Refused, Shaper};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Refused> {
    /// let shaper = Shaper::new(Quota::per_second(1));
    /// let _permit = shaper.acquire().await?;
    /// let refused = shaper.acquire_within(Duration::from_millis(50)).await.unwrap_err();
    /// assert_eq!(refused, Refused::DeadlineTooSoon { wait: Duration::from_secs(1) });
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_within(&self, limit: Duration) -> Acquire<'_, A> {
        self.acquire_n_within(1, limit)
    }

    /// Waits for `n` permits, but no longer than `limit`. See [`acquire_n`](Self::acquire_n) and
    /// [`acquire_within`](Self::acquire_within).
    ///
    /// # Errors
    ///
    /// As those.
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    pub fn acquire_n_within(&self, n: u64, limit: Duration) -> Acquire<'_, A> {
        self.acquire_n(n).within(limit)
    }

    /// Waits for one permit with a future that keeps the shaper alive itself, for tasks that can't borrow. A time limit is set with
    /// [`AcquireOwned::within`].
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use std::sync::Arc;
    /// use tollgate::{Quota, Shaper};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let shaper = Arc::new(Shaper::new(Quota::per_second(10)));
    /// let task = tokio::spawn(Arc::clone(&shaper).acquire_owned());
    /// assert!(task.await.unwrap().is_ok());
    /// # }
    /// ```
    pub fn acquire_owned(self: Arc<Self>) -> AcquireOwned<A> {
        self.acquire_n_owned(1)
    }

    /// Waits for `n` permits with a future that keeps the shaper alive itself. A time limit is set with
    /// [`AcquireOwned::within`].
    ///
    /// # Errors
    ///
    /// As [`acquire_n`](Self::acquire_n).
    ///
    /// # Cancel safety
    ///
    /// See [`Acquire`].
    pub fn acquire_n_owned(self: Arc<Self>, n: u64) -> AcquireOwned<A> {
        AcquireOwned::new(self, n)
    }

    /// Waits for one permit on this thread. For code that is not async: threads and tasks stand in one line, in the order in which
    /// they came, and no runtime is needed.
    ///
    /// While it waits the thread sleeps. It wakes by the same clock as tasks: in the context of a tokio runtime that is the
    /// runtime's. Prefer `tokio::task::spawn_blocking` there: a thread of the runtime that waits here runs no tasks meanwhile,
    /// as with any blocking call.
    ///
    /// A clock that stands still has to be moved by somebody else: a [`ManualClock`](crate::ManualClock) by another thread, a
    /// paused tokio clock with `tokio::time::advance`, since tokio does not move it by itself while a thread is blocked.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). At rate 0 it waits until the quota changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use tollgate::{Quota, Shaper};
    ///
    /// let shaper = Shaper::new(Quota::per_second(1_000));
    /// thread::scope(|scope| {
    ///     for _ in 0..3 {
    ///         scope.spawn(|| {
    ///             let _permit = shaper.acquire_blocking()?;
    ///             // call the service: one call a millisecond, whichever thread asks
    ///             Ok::<(), tollgate::Refused>(())
    ///         });
    ///     }
    /// });
    /// ```
    pub fn acquire_blocking(&self) -> Result<Permit<'_, A>, Refused> {
        self.acquire_blocking_n(1)
    }

    /// Waits for `n` permits on this thread. See [`acquire_n`](Self::acquire_n) and
    /// [`acquire_blocking`](Self::acquire_blocking).
    ///
    /// # Errors
    ///
    /// As those.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Refused, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(8)).clock(ManualClock::new()).build();
    /// assert_eq!(shaper.acquire_blocking_n(8)?.permits(), 8);
    /// let refused = shaper.acquire_blocking_n(9).unwrap_err();
    /// assert_eq!(refused, Refused::ExceedsCapacity { asked: 9, capacity: 8 });
    /// # Ok::<(), Refused>(())
    /// ```
    pub fn acquire_blocking_n(&self, n: u64) -> Result<Permit<'_, A>, Refused> {
        blocking::acquire(self, n, None)
    }

    /// Waits for one permit on this thread, but no longer than `limit`, counted from the call. If its place lies beyond that, it
    /// is refused at once: see [`acquire_within`](Self::acquire_within) and [`acquire_blocking`](Self::acquire_blocking).
    ///
    /// # Errors
    ///
    /// As those.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Refused, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(1)).clock(ManualClock::new()).build();
    /// let _permit = shaper.acquire_blocking_within(Duration::ZERO)?;
    /// let refused = shaper.acquire_blocking_within(Duration::from_millis(50)).unwrap_err();
    /// assert_eq!(refused, Refused::DeadlineTooSoon { wait: Duration::from_secs(1) });
    /// # Ok::<(), Refused>(())
    /// ```
    pub fn acquire_blocking_within(&self, limit: Duration) -> Result<Permit<'_, A>, Refused> {
        self.acquire_blocking_n_within(1, limit)
    }

    /// Waits for `n` permits on this thread, but no longer than `limit`. See [`acquire_n`](Self::acquire_n) and
    /// [`acquire_blocking_within`](Self::acquire_blocking_within).
    ///
    /// # Errors
    ///
    /// As those.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(8)).clock(ManualClock::new()).build();
    /// assert!(shaper.acquire_blocking_n_within(5, Duration::ZERO).is_ok());
    /// assert!(shaper.acquire_blocking_n_within(5, Duration::from_millis(624)).is_err());
    /// ```
    pub fn acquire_blocking_n_within(&self, n: u64, limit: Duration) -> Result<Permit<'_, A>, Refused> {
        blocking::acquire(self, n, Some(limit))
    }

    /// Takes one permit now or not at all. Never overtakes those who wait.
    ///
    /// # Errors
    ///
    /// [`Refused::TooSoon`] with the time after which a permit would be free behind those who wait; paused, closed, exceeds
    /// capacity or never.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let clock = ManualClock::new();
    /// let shaper = Shaper::builder(Quota::per_second(4)).clock(clock.clone()).build();
    /// let _permit = shaper.try_acquire()?;
    /// let refused = shaper.try_acquire().unwrap_err();
    /// assert_eq!(refused.retry_after(), Some(Duration::from_millis(250)));
    /// clock.advance(Duration::from_millis(250));
    /// assert!(shaper.try_acquire().is_ok());
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn try_acquire(&self) -> Result<Permit<'_, A>, Refused> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits now or not at all. See [`acquire_n`](Self::acquire_n) for when they are there.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_n(&self, n: u64) -> Result<Permit<'_, A>, Refused> {
        self.queue.try_acquire(n, self.timer.now()).map(|grant| Permit::new(self, grant))
    }

    /// Takes the permits that are there now, `n` at most, without waiting; the [`Permit`] says how many, perhaps 0. While others
    /// wait, in a pause, and after [`close`](Self::close), none is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(1).burst(5)).clock(ManualClock::new()).build();
    /// assert_eq!(shaper.acquire_up_to(3).permits(), 3);
    /// assert_eq!(shaper.acquire_up_to(3).permits(), 2);
    /// ```
    pub fn acquire_up_to(&self, n: u64) -> Permit<'_, A> {
        Permit::new(self, self.queue.acquire_up_to(n, self.timer.now()))
    }

    /// Gives `n` permits back whose work did not happen, at most to the full burst or limit; who waits moves up.
    ///
    /// With a burst of 1 that lets the next leave less than T after the last one, so it is right only if the last one did not
    /// leave. [`Permit::give_back`] knows; prefer it where a permit is at hand.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(1).burst(5)).clock(ManualClock::new()).build();
    /// let _permit = shaper.try_acquire_n(5)?;
    /// shaper.refund(2); // two of five were not needed
    /// assert!(shaper.try_acquire_n(2).is_ok());
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn refund(&self, n: u64) {
        self.queue.refund(n, self.timer.now());
    }

    /// Forgets what was taken: the full burst or limit is there, and who waits is granted from it. A pause goes on.
    pub fn reset(&self) {
        self.queue.reset(self.timer.now());
    }

    /// Holds everybody for `span`, those who wait and those who come. For a server's `Retry-After`.
    ///
    /// Nothing accrues meanwhile: the first leaves at the end plus what was left of its interval, the others behind it at the
    /// pace, so that nothing leaves in a burst. Places and deadlines stay: who would be too late is told at its deadline, or at
    /// once if it comes later. What was granted before goes out. A pause that is set during another one replaces it: an earlier
    /// end shortens it, a later one prolongs it. With several calls under way, a later answer may name an earlier end; keep the
    /// latest yourself. At most [`max_pause`](ShaperBuilder::max_pause) from now.
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, Shaper};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), tollgate::Refused> {
    /// let shaper = Shaper::new(Quota::per_second(10));
    /// let start = tokio::time::Instant::now();
    /// let _permit = shaper.acquire().await?;
    /// shaper.pause_for(Duration::from_secs(30)); // 429, Retry-After: 30
    /// let _permit = shaper.acquire().await?;
    /// assert_eq!(start.elapsed(), Duration::from_millis(30_100));
    /// # Ok(())
    /// # }
    /// ```
    pub fn pause_for(&self, span: Duration) {
        let now = self.timer.now();
        self.queue.pause_until(now.saturating_add(span), now);
    }

    /// Holds everybody until `end`, an instant of the shaper's clock, which [`now`](Self::now) reads (not a span, not Unix time).
    /// See [`pause_for`](Self::pause_for). An `end` that is not after now ends a pause.
    pub fn pause_until(&self, end: impl Into<Nanos>) {
        let now = self.timer.now();
        self.queue.pause_until(end.into(), now);
    }

    /// Ends a pause: what was left when it began is left now, and who waits is timed anew. Without a pause it changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(10)).clock(ManualClock::new()).build();
    /// let later = shaper.now().saturating_add(Duration::from_secs(60));
    /// shaper.pause_until(later);
    /// assert_eq!(shaper.estimated_wait(1), Some(Duration::from_secs(60)));
    /// shaper.resume();
    /// assert!(shaper.try_acquire().is_ok());
    /// ```
    pub fn resume(&self) {
        let now = self.timer.now();
        self.queue.pause_until(now, now);
    }

    /// The time on the shaper's clock, for [`pause_until`](Self::pause_until).
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.timer.now()
    }

    /// The quota that was set last.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.queue.quota()
    }

    /// How many callers wait in line.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting(self.timer.now())
    }

    /// How long a request of `n` that enters the line now would wait. Exact if nobody gives up or changes anything; over other
    /// laws than a bucket's it may be shorter than the wait [where a place is told too early](Self#any-law). `None` if it would
    /// never be granted: too large, rate 0 with too little left, or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(10)).clock(ManualClock::new()).build();
    /// let _permit = shaper.try_acquire()?;
    /// assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (0, Some(Duration::from_millis(100))));
    /// assert_eq!(shaper.estimated_wait(1_000), None); // too large
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    #[must_use]
    pub fn estimated_wait(&self, n: u64) -> Option<Duration> {
        self.queue.estimated_wait(n, self.timer.now())
    }

    /// Closes the shaper: all waits end at once with [`Refused::Closed`], and so does all that comes later. A permit that was
    /// granted already stands. Closing twice does nothing more.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, Refused, Shaper};
    ///
    /// let shaper = Shaper::new(Quota::per_second(10));
    /// shaper.close();
    /// assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Closed);
    /// ```
    pub fn close(&self) {
        self.queue.close(self.timer.now());
    }

    /// Whether the shaper was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    fn give_back(&self, grant: Grant) {
        self.queue.give_back(grant, self.timer.now());
    }
}

impl Shaper<SlidingCounterLaw> {
    /// Changes the quota, as [`SlidingCounter::set_quota`](crate::SlidingCounter::set_quota) does, and reaches those who wait.
    ///
    /// # Errors
    ///
    /// [`QuotaError::BeyondSlidingCounter`] if the limit is above
    /// [`SlidingCounter::MAX_LIMIT`](crate::SlidingCounter::MAX_LIMIT); then nothing has changed.
    pub fn set_quota(&self, quota: Quota) -> Result<(), QuotaError> {
        SlidingCounterLaw::check(&quota)?;
        self.queue.set_quota(quota, self.timer.now());
        Ok(())
    }
}

impl Shaper<SlidingLogLaw> {
    /// Changes the quota, as [`SlidingLog::set_quota`](crate::SlidingLog::set_quota) does, and reaches those who wait.
    ///
    /// # Errors
    ///
    /// [`QuotaError::BeyondSlidingLog`] if the limit is above [`SlidingLog::MAX_LIMIT`](crate::SlidingLog::MAX_LIMIT); then
    /// nothing has changed.
    pub fn set_quota(&self, quota: Quota) -> Result<(), QuotaError> {
        SlidingLogLaw::check(&quota)?;
        self.queue.set_quota(quota, self.timer.now());
        Ok(())
    }
}

impl<A: Waitable> std::fmt::Debug for Shaper<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shaper").field("quota", &self.quota()).finish_non_exhaustive()
    }
}
