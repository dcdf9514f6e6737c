//! What can be asked of a queue that tells when.

use super::LeakyQueue;
use crate::clock::Clock;
use crate::refused::Refused;
use crate::time::Nanos;

impl<C: Clock> LeakyQueue<C> {
    /// Takes the next place, and tells when it starts: now, or after those before it.
    ///
    /// The start is an instant of the limiter's clock, rounded up to a nanosecond. One beyond the clock's end is told as
    /// [`Nanos::MAX`].
    ///
    /// # Errors
    ///
    /// [`Refused`] says why and when to come back: too soon (the queue is full), paused, exceeds capacity (capacity 0), or never
    /// (rate 0).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Clock, LeakyQueue, Quota};
    ///
    /// let queue = LeakyQueue::new(Quota::per_second(50).burst(10));
    /// match queue.schedule() {
    ///     Ok(start) => println!("run it in {:?}", start.saturating_since(queue.clock().now())),
    ///     Err(refused) => println!("{refused}"),
    /// }
    /// ```
    pub fn schedule(&self) -> Result<Nanos, Refused> {
        self.schedule_n(1)
    }

    /// Takes `n` places in a row, or none, and tells when the first of them starts. The next request starts n\*T after that.
    ///
    /// `n` = 0 takes none, and tells when a request would start.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule). `n` above the capacity is [`Refused::ExceedsCapacity`] and never a wait.
    pub fn schedule_n(&self, n: u64) -> Result<Nanos, Refused> {
        self.schedule_n_at(n, self.clock.now())
    }

    /// [`schedule`](Self::schedule) at a given time.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule).
    pub fn schedule_at(&self, now: impl Into<Nanos>) -> Result<Nanos, Refused> {
        self.schedule_n_at(1, now)
    }

    /// [`schedule_n`](Self::schedule_n) at a given time.
    ///
    /// # Errors
    ///
    /// As [`schedule_n`](Self::schedule_n).
    pub fn schedule_n_at(&self, n: u64, now: impl Into<Nanos>) -> Result<Nanos, Refused> {
        self.algorithm.schedule(n, now.into())
    }
}
