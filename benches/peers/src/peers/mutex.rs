//! A token bucket as most write it: the arrival time behind a mutex.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;
use tollgate::{Clock, DefaultClock};

use super::{Decide, DecideKey, Law};

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

/// The same for keys: a map of arrival times behind one mutex, which grows as keys come.
#[derive(Debug)]
pub(crate) struct MutexMap<K> {
    arrivals: Mutex<HashMap<K, u64>>,
    interval: u64,
    capacity: u64,
}

pub(crate) fn map<K>(law: Law) -> MutexMap<K> {
    let MutexBucket { interval, capacity, .. } = bucket(law);
    MutexMap { arrivals: Mutex::default(), interval, capacity }
}

impl<K: Hash + Eq + Clone + Send> DecideKey<K> for MutexMap<K> {
    #[inline]
    fn decide(&self, key: &K) -> bool {
        let now = DefaultClock.now().get();
        let mut arrivals = self.arrivals.lock();
        let arrival = arrivals.get(key).copied().unwrap_or(0);
        let next = now.max(arrival).saturating_add(self.interval);
        let granted = next <= now.saturating_add(self.capacity);
        if granted {
            match arrivals.get_mut(key) {
                Some(arrival) => *arrival = next,
                None => drop(arrivals.insert(key.clone(), next)),
            }
        }
        granted
    }
}
