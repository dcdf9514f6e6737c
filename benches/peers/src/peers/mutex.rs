//! A token bucket as most write it: the arrival time behind a mutex.

use parking_lot::Mutex;
use tollgate::{Clock, DefaultClock};

use super::{Decide, Law};

#[derive(Debug)]
pub(crate) struct MutexBucket {
    arrival: Mutex<u64>,
    interval: u64,
    capacity: u64,
}

pub(crate) fn bucket(law: Law) -> MutexBucket {
    let interval = u64::try_from(law.interval().as_nanos()).unwrap_or(u64::MAX);
    MutexBucket { arrival: Mutex::new(0), interval, capacity: interval.saturating_mul(law.burst.into()) }
}

impl Decide for MutexBucket {
    #[inline]
    fn decide(&self) -> bool {
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
