//! What decisions are measured against: the least that any of them must do, and a bucket behind a mutex.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate::{Clock, DefaultClock};

/// The floor: one reading of the clock, one load and one compare-and-swap.
#[derive(Default)]
pub(crate) struct Floor(AtomicU64);

impl Floor {
    pub(crate) fn exchange(&self) -> bool {
        let now = DefaultClock.now().get();
        let seen = self.0.load(Ordering::Acquire);
        self.0.compare_exchange(seen, now.max(seen.saturating_add(1)), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A token bucket as most write it: the arrival time behind a mutex.
pub(crate) struct MutexBucket {
    arrival: Mutex<u64>,
    interval: u64,
    capacity: u64,
}

impl MutexBucket {
    pub(crate) fn new(interval: u64, burst: u64) -> Self {
        Self { arrival: Mutex::new(0), interval, capacity: interval.saturating_mul(burst) }
    }

    pub(crate) fn try_acquire(&self) -> bool {
        let now = DefaultClock.now().get();
        let mut arrival = self.arrival.lock();
        let next = now.max(*arrival).saturating_add(self.interval);
        let granted = next <= now.saturating_add(self.capacity);
        if granted {
            *arrival = next;
        }
        granted
    }
}
