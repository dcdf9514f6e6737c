//! One file a law, and the traits behind which they stand.

mod bucket;
pub(crate) mod field;
mod fixed_window;
pub(crate) mod gcra;
mod leaky_queue;
pub(crate) mod log;
mod log_set;
pub(crate) mod pause;
mod rate_set;
mod ring;
mod sliding_counter;
pub(crate) mod sliding_log;
pub(crate) mod window;
mod window_set;
pub(crate) mod windowed;

pub use bucket::Gcra;
pub use fixed_window::FixedWindowLaw;
pub use leaky_queue::LeakyQueueLaw;
pub use sliding_counter::SlidingCounterLaw;
pub use sliding_log::SlidingLogLaw;

use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A law that a [`Limiter`](crate::Limiter) can keep. Sealed: the crate's own laws implement it, and nothing else can.
pub trait Algorithm: sealed::Algorithm {}

/// A law that says yes or no (policing): that of [`TokenBucket`](crate::TokenBucket), [`FixedWindow`](crate::FixedWindow),
/// [`SlidingCounter`](crate::SlidingCounter) and [`SlidingLog`](crate::SlidingLog). A [`LeakyQueue`](crate::LeakyQueue) says when.
pub trait Policing: Algorithm + sealed::Policing {}

/// A law that takes every quota: that of [`TokenBucket`](crate::TokenBucket), [`FixedWindow`](crate::FixedWindow) and
/// [`LeakyQueue`](crate::LeakyQueue). The others have a largest limit, and a constructor and a `set_quota` that return a `Result`
/// to say so.
pub trait AnyQuota: Algorithm {}

pub(crate) mod sealed {
    use std::time::Duration;

    use super::{Nanos, Quota, Refused, Snapshot};

    /// What every law has to answer. Every call takes the time; none of them blocks, but for a change of the quota that waits
    /// for another one.
    pub trait Algorithm {
        /// A limiter that holds `initial` permits at `now` (all that the quota allows if `None`).
        fn start(quota: Quota, initial: Option<u64>, max_pause: Duration, now: impl FnOnce() -> Nanos) -> Self;
        fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused>;
        fn snapshot(&self, now: Nanos) -> Snapshot;
        /// Changes the quota to one that the law takes.
        fn set_quota(&self, quota: Quota, now: Nanos);
        /// Pauses until `end`, for the longest pause at most. Ends a pause if `end` is not after `now`.
        fn pause_until(&self, end: Nanos, now: Nanos);
        fn quota(&self) -> Quota;

        /// The most that is ever admitted at once under `quota`; everything if unlimited.
        fn largest(quota: &Quota) -> u64;
        /// The first instant from which on the law, left alone, answers as one that is new, for ever after: [`Nanos::ZERO`] if it
        /// does at any time, `None` if it never does, within 584 years.
        fn rests_from(&self) -> Option<Nanos>;
        /// The same law in the same state, to go its own way. It was never paused.
        fn copied(&self) -> Self;
        /// The instant by which a law at rest was at rest by every clock: a new one in its place is judged there at the earliest.
        fn horizon(&self) -> Nanos {
            self.rests_from().unwrap_or(Nanos::MAX)
        }
        /// The bytes that it has allocated.
        fn allocated(&self) -> usize {
            0
        }
    }

    /// What a law that polices answers besides.
    pub trait Policing: Algorithm {
        fn try_acquire(&self, n: u64, now: Nanos) -> Result<(), Refused>;
        /// Takes what is there, `n` at most.
        fn acquire_up_to(&self, n: u64, now: Nanos) -> u64;
        fn refund(&self, n: u64, now: Nanos);
        fn reset(&self, now: Nanos);
    }
}
