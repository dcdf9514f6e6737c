//! How a shaper is configured.

use std::time::Duration;

use super::Shaper;
use super::pace::{MaxN, Settings, UnsaidBurst, Waitable};
use super::queue::Queue;
use crate::algorithm::Gcra;
use crate::clock::ManualClock;
use crate::quota::Quota;
use crate::time::Nanos;
use crate::timer::Timer;

/// Timers and schedulers are late by a millisecond or two as a rule and by five now and then; at 5 ms the configured rate is
/// delivered in full.
const CATCH_UP: Duration = Duration::from_millis(5);

/// Configures a [`Shaper`]. Made by [`Shaper::builder`] and [`Shaper::over`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, Shaper};
///
/// let shaper = Shaper::builder(Quota::per_second(100).burst(5))
///     .queue(1_000)
///     .max_n(50)
///     .catch_up(Duration::from_millis(10))
///     .build();
/// assert_eq!(shaper.waiting(), 0);
/// ```
#[derive(Debug)]
#[must_use]
pub struct ShaperBuilder<A = Gcra> {
    source: Source<A>,
    settings: Settings,
    timer: Timer,
}

/// What the queue will stand in front of.
#[derive(Debug)]
enum Source<A> {
    /// A law at rest, to be started once the settings and the time are known.
    Rest { quota: Quota, initial: Option<u64>, start: fn(Quota, &Settings, Option<u64>, Nanos) -> A },
    /// A limiter's law, as it was at that instant of the limiter's clock.
    Limiter(A, Nanos),
}

impl ShaperBuilder {
    pub(super) fn new(quota: Quota) -> Self {
        let source = Source::Rest { quota, initial: None, start: Gcra::for_queue };
        Self::with_defaults(source, UnsaidBurst::One)
    }

    /// Sets how many permits are there when the shaper is built, instead of the full burst, or of what was left in the limiter.
    /// More than the burst counts as the burst.
    pub fn initial(mut self, permits: u64) -> Self {
        match &mut self.source {
            Source::Rest { initial, .. } => *initial = Some(permits),
            Source::Limiter(law, now) => law.set_left(permits, *now),
        }
        self
    }
}

impl<A: Waitable> ShaperBuilder<A> {
    pub(super) fn over(law: A, now: Nanos) -> Self {
        Self::with_defaults(Source::Limiter(law, now), UnsaidBurst::Period)
    }

    fn with_defaults(source: Source<A>, unsaid: UnsaidBurst) -> Self {
        let settings =
            Settings { places: usize::MAX, max_n: MaxN::Unsaid, catch_up: CATCH_UP, max_pause: Duration::MAX, unsaid };
        Self { source, settings, timer: Timer::Runtime }
    }

    /// Sets how many callers may wait; the next is refused with [`Refused::QueueFull`](crate::Refused::QueueFull). 0: nobody
    /// waits. Without it there is no bound.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, Refused, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(10)).queue(0).clock(ManualClock::new()).build();
    /// let _permit = shaper.acquire_blocking()?;
    /// let estimated_wait = Some(Duration::from_millis(100));
    /// assert_eq!(shaper.acquire_blocking().unwrap_err(), Refused::QueueFull { waiting: 0, estimated_wait });
    /// # Ok::<(), Refused>(())
    /// ```
    pub fn queue(mut self, callers: usize) -> Self {
        self.settings.places = callers;
        self
    }

    /// Sets the largest n of one request, beyond the burst too; a larger one is refused with
    /// [`Refused::ExceedsCapacity`](crate::Refused::ExceedsCapacity).
    ///
    /// Without it: the larger of the burst and the permits per period; no bound under [`Quota::UNLIMITED`]. Over a law of windows it
    /// is the limit at most. With a burst of 0
    /// nothing is admitted, whatever is set here. What would take more than some nine years to pay is too large in any case
    /// (2^58 units of T, see [`Quota::rate_loss_ppb`]), so that a generous value costs no exactness.
    pub fn max_n(mut self, n: u64) -> Self {
        self.settings.max_n = MaxN::Said(n);
        self
    }

    /// Sets how much lateness may be made up for. The default is 5 ms.
    ///
    /// What timers and schedulers delay is made up for at once, by permits that leave closer together than T, up to
    /// `catch_up/T` of them. Longer stalls are lost on purpose. Zero keeps a strict distance of T on the shaper's clock, and
    /// delivers fewer permits than configured, by whatever the timer is late. A machine that stalls for longer (a throttled
    /// container) needs more. At most a quarter of the word's time field is made up for: a quarter of a second or more. Laws of
    /// windows have no schedule to catch up with: see [any law](Shaper#any-law).
    pub fn catch_up(mut self, catch_up: Duration) -> Self {
        self.settings.catch_up = catch_up;
        self
    }

    /// Sets the longest pause that [`pause_for`](Shaper::pause_for) and [`pause_until`](Shaper::pause_until) may set, counted
    /// from the call; a longer one counts as this. Without it there is no bound, so a server that answers with a `Retry-After`
    /// of 31 years is believed. Over a limiter that has a bound, the shorter one holds.
    pub fn max_pause(mut self, longest: Duration) -> Self {
        self.settings.max_pause = longest;
        self
    }

    /// Sets what the shaper waits with, and whose clock it reads: see [`Timer`]. The default is [`Timer::Runtime`].
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, Shaper, Timer};
    ///
    /// // One permit every 500 µs; tokio's timer would let two leave every millisecond.
    /// let shaper = Shaper::builder(Quota::per_second(2_000)).timer(Timer::Precise).build();
    /// assert!(shaper.try_acquire().is_ok());
    /// ```
    pub fn timer(mut self, timer: Timer) -> Self {
        self.timer = timer;
        self
    }

    /// Runs the shaper on a clock that is moved by hand, for deterministic tests. Waits need no runtime then: moving the clock
    /// wakes those who are due. Short for `timer(Timer::Manual(clock))`.
    pub fn clock(self, clock: ManualClock) -> Self {
        self.timer(Timer::Manual(clock))
    }

    /// Builds the shaper. It needs no runtime.
    #[must_use]
    pub fn build(self) -> Shaper<A> {
        let Self { source, settings, timer } = self;
        let now = timer.now();
        let queue = match source {
            Source::Rest { quota, initial, start } => Queue::new(start(quota, &settings, initial, now), settings),
            Source::Limiter(law, then) => Queue::over(law, settings, then, now),
        };
        Shaper { queue, timer }
    }
}
