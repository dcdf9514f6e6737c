//! How a limiter is configured.

use std::marker::PhantomData;
use std::time::Duration;

use super::Limiter;
use crate::algorithm::{Algorithm, AnyQuota};
use crate::clock::{Clock, DefaultClock};
use crate::quota::Quota;

/// Configures a [`Limiter`]. Made by [`Limiter::builder`].
///
/// # Examples
///
/// ```
/// use tollgate::{ManualClock, Quota, TokenBucket};
///
/// let clock = ManualClock::new();
/// let bucket = TokenBucket::builder(Quota::per_second(10)).initial(0).clock(clock.clone()).build();
/// assert_eq!(bucket.available(), 0);
/// clock.advance(std::time::Duration::from_millis(300));
/// assert_eq!(bucket.available(), 3);
/// ```
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder<A, C = DefaultClock> {
    pub(super) quota: Quota,
    initial: Option<u64>,
    max_pause: Duration,
    clock: C,
    law: PhantomData<fn() -> A>,
}

impl<A: Algorithm> LimiterBuilder<A> {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, initial: None, max_pause: Duration::MAX, clock: DefaultClock, law: PhantomData }
    }
}

impl<A: Algorithm, C: Clock> LimiterBuilder<A, C> {
    /// Sets how many permits are there when the limiter is built, instead of the whole burst or limit. More counts as that. The
    /// time of building is read from the clock.
    pub fn initial(self, permits: u64) -> Self {
        Self { initial: Some(permits), ..self }
    }

    /// Sets the longest pause that [`pause_for`](Limiter::pause_for) and its relatives may set, counted from the call; a longer
    /// one counts as this. Without it there is no bound, so a server that answers with a `Retry-After` of 31 years is believed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, TokenBucket};
    ///
    /// let minute = Duration::from_secs(60);
    /// let bucket = TokenBucket::builder(Quota::per_second(1)).max_pause(minute).clock(ManualClock::new()).build();
    /// bucket.pause_for(Duration::from_secs(1_000_000_000));
    /// assert_eq!(bucket.try_acquire().unwrap_err().retry_after(), Some(minute));
    /// ```
    pub fn max_pause(self, longest: Duration) -> Self {
        Self { max_pause: longest, ..self }
    }

    /// Sets the clock.
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<A, D> {
        LimiterBuilder { quota: self.quota, initial: self.initial, max_pause: self.max_pause, clock, law: self.law }
    }

    /// Builds a limiter whose law takes the quota.
    pub(super) fn build_lawful(self) -> Limiter<A, C> {
        let algorithm = A::start(self.quota, self.initial, self.max_pause, || self.clock.now());
        Limiter { algorithm, clock: self.clock }
    }
}

impl<A: AnyQuota, C: Clock> LimiterBuilder<A, C> {
    /// Builds the limiter.
    #[must_use]
    pub fn build(self) -> Limiter<A, C> {
        self.build_lawful()
    }
}
