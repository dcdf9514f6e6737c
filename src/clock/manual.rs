//! A clock that moves when told.

use super::Clock;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;
use crate::timer::{AlarmKey, Alarms, WakeList};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A clock that stands still until it is moved by hand: for tests and simulations.
///
/// Clones share one time. Moving it wakes the waits of a [`Shaper`](crate::Shaper) or a [`Keyed`](crate::Keyed) that have become
/// due, after the move and on the thread that moves it. The time may be set backwards.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, Nanos};
///
/// let clock = ManualClock::new();
/// let same = clock.clone();
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(same.now(), Nanos::from_secs(2));
/// same.set(Nanos::ZERO);
/// assert_eq!(clock.now(), Nanos::ZERO);
/// ```
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Shared>);

/// What the clones share.
///
/// # Ordering
///
/// `now` is written only under the lock of `alarms`, and an alarm is set under that lock after a look at `now`. So an alarm
/// and a move are in one order: if the move comes first, the alarm is not set since its time is there; if the alarm comes
/// first, the move finds it.
#[derive(Default)]
struct Shared {
    now: AtomicU64,
    alarms: Mutex<Alarms>,
}

impl ManualClock {
    /// Makes a clock that stands at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a clock that stands at `now`.
    #[must_use]
    pub fn at(now: impl Into<Nanos>) -> Self {
        Self(Arc::new(Shared { now: AtomicU64::new(now.into().get()), alarms: Mutex::default() }))
    }

    /// Returns the time at which the clock stands.
    #[must_use]
    pub fn now(&self) -> Nanos {
        // Acquire: pairs with the Release in `change`, so what was done before a move is seen by whoever sees the move.
        Nanos::new(self.0.now.load(Ordering::Acquire))
    }

    /// Moves the clock to `now`, which may be earlier than the time at which it stands.
    pub fn set(&self, now: impl Into<Nanos>) {
        let now = now.into();
        self.change(|_| now);
    }

    /// Moves the clock forward by `span`, to [`Nanos::MAX`] at most.
    pub fn advance(&self, span: Duration) {
        self.change(|now| now.saturating_add(span));
    }

    fn change(&self, next: impl FnOnce(Nanos) -> Nanos) {
        let mut due = WakeList::new();
        {
            let mut alarms = self.0.alarms.lock();
            let now = next(self.now());
            // Release: pairs with the Acquire in `now`.
            self.0.now.store(now.get(), Ordering::Release);
            alarms.take_due(now, &mut due);
        }
        due.wake_all();
    }

    /// Sets an alarm that wakes `waker` when the clock reaches `at`; `None` if it has reached it already.
    pub(crate) fn set_alarm(&self, at: Nanos, waker: Waker) -> Option<AlarmKey> {
        let mut alarms = self.0.alarms.lock();
        if self.now() >= at {
            drop(alarms);
            // Dropped here, where the lock is free again.
            drop(waker);
            return None;
        }
        Some(alarms.insert(at, waker))
    }

    /// Lets `change` work on the alarms, under their lock.
    pub(crate) fn with_alarms<R>(&self, change: impl FnOnce(&mut Alarms) -> R) -> R {
        change(&mut self.0.alarms.lock())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        self.now()
    }

    fn manual(&self) -> Option<&ManualClock> {
        Some(self)
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_only_when_told() {
        let clock = ManualClock::at(Duration::from_secs(1));
        assert_eq!(clock.now(), Nanos::from_secs(1));
        clock.advance(Duration::ZERO);
        assert_eq!(clock.now(), Nanos::from_secs(1));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(clock.now(), Nanos::new(1_000_000_001));
        clock.set(3_u64);
        assert_eq!(clock.now(), Nanos::new(3));
    }

    #[test]
    fn it_stops_at_the_last_instant() {
        let clock = ManualClock::at(Nanos::MAX);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(clock.now(), Nanos::MAX);
        clock.set(1_u64);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Nanos::MAX);
    }

    #[test]
    fn clones_share_the_time_and_new_clocks_do_not() {
        let clock = ManualClock::new();
        let (clone, other) = (clock.clone(), ManualClock::new());
        clock.advance(Duration::from_secs(1));
        assert_eq!(clone.now(), Nanos::from_secs(1));
        assert_eq!(other.now(), Nanos::ZERO);
    }

    #[test]
    fn an_alarm_is_not_set_for_a_time_that_is_there() {
        let clock = ManualClock::at(5_u64);
        assert!(clock.set_alarm(Nanos::new(5), Waker::noop().clone()).is_none());
        assert!(clock.set_alarm(Nanos::new(6), Waker::noop().clone()).is_some());
    }

    #[test]
    fn debug_shows_the_time() {
        assert_eq!(format!("{:?}", ManualClock::at(5_u64)), "ManualClock(Nanos(5))");
    }
}
