//! An ordered set of alarms: whom to wake at which instant.

use super::WakeList;
use crate::time::Nanos;
use std::collections::BTreeMap;
use std::task::Waker;

/// Alarms in the order in which they are due; those for the same instant in the order in which they were set.
///
/// The set stands behind its owner's lock. So no method calls, clones or drops a waker, all of which run foreign code: what
/// comes out is handed to the caller, who deals with it when the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    by_time: BTreeMap<AlarmKey, Waker>,
    next_id: u64,
}

/// The name of one alarm in its set. Names are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AlarmKey {
    at: Nanos,
    id: u64,
}

impl Alarms {
    pub(crate) const fn new() -> Self {
        Self { by_time: BTreeMap::new(), next_id: 0 }
    }

    pub(crate) fn insert(&mut self, at: Nanos, waker: Waker) -> AlarmKey {
        let key = AlarmKey { at, id: self.next_id };
        // At one alarm a nanosecond the ids last 584 years.
        self.next_id = self.next_id.wrapping_add(1);
        self.by_time.insert(key, waker);
        key
    }

    /// Says whether the alarm would wake the same task as `waker`; `None` if it has rung.
    pub(crate) fn would_wake(&self, key: AlarmKey, waker: &Waker) -> Option<bool> {
        self.by_time.get(&key).map(|set| set.will_wake(waker))
    }

    /// Lets the alarm wake `waker` and returns the waker before it. If the alarm has rung, `waker` itself comes back.
    pub(crate) fn replace(&mut self, key: AlarmKey, waker: Waker) -> Result<Waker, Waker> {
        match self.by_time.get_mut(&key) {
            Some(set) => Ok(std::mem::replace(set, waker)),
            None => Err(waker),
        }
    }

    /// Takes the alarm out; `None` if it has rung.
    pub(crate) fn remove(&mut self, key: AlarmKey) -> Option<Waker> {
        self.by_time.remove(&key)
    }

    /// Moves the wakers of all alarms that are due at `now` to the end of `due`.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut WakeList) {
        while let Some(first) = self.by_time.first_entry() {
            if first.key().at > now {
                break;
            }
            due.push(first.remove());
        }
    }

    /// Returns the instant of the earliest alarm.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.by_time.first_key_value().map(|(key, _)| key.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::test_wakers::{Count, Log};

    #[test]
    fn alarms_ring_in_the_order_of_time_and_then_of_setting() {
        let log = Log::new();
        let mut alarms = Alarms::new();
        for (name, at) in [("c", 30), ("a", 10), ("d", 30), ("b", 20), ("e", 31)] {
            alarms.insert(Nanos::new(at), log.waker(name));
        }
        assert_eq!(alarms.next(), Some(Nanos::new(10)));
        let mut due = WakeList::new();
        alarms.take_due(Nanos::new(9), &mut due);
        assert!(due.is_empty());
        alarms.take_due(Nanos::new(30), &mut due);
        due.wake_all();
        assert_eq!(log.get(), ["a", "b", "c", "d"]);
        assert_eq!(alarms.next(), Some(Nanos::new(31)));
    }

    #[test]
    fn the_ends_of_time_are_ordinary_instants() {
        let count = Count::new();
        let mut alarms = Alarms::new();
        alarms.insert(Nanos::ZERO, count.waker());
        alarms.insert(Nanos::MAX, count.waker());
        for (now, woken) in [(Nanos::ZERO, 1), (Nanos::new(u64::MAX - 1), 1), (Nanos::MAX, 2)] {
            let mut due = WakeList::new();
            alarms.take_due(now, &mut due);
            due.wake_all();
            assert_eq!(count.get(), woken, "{now:?}");
        }
        assert!(alarms.is_empty());
    }

    #[test]
    fn a_removed_alarm_does_not_ring() {
        let (kept, removed) = (Count::new(), Count::new());
        let mut alarms = Alarms::new();
        alarms.insert(Nanos::new(1), kept.waker());
        let key = alarms.insert(Nanos::new(1), removed.waker());
        assert!(alarms.remove(key).is_some());
        assert!(alarms.remove(key).is_none());
        let mut due = WakeList::new();
        alarms.take_due(Nanos::MAX, &mut due);
        due.wake_all();
        assert_eq!((kept.get(), removed.get()), (1, 0));
    }

    #[test]
    fn a_replaced_waker_is_handed_out_and_not_woken() {
        let (old, new) = (Count::new(), Count::new());
        let (old_waker, new_waker) = (old.waker(), new.waker());
        let mut alarms = Alarms::new();
        let key = alarms.insert(Nanos::new(1), old_waker.clone());
        assert_eq!(alarms.would_wake(key, &old_waker), Some(true));
        assert_eq!(alarms.would_wake(key, &new_waker), Some(false));
        assert!(alarms.replace(key, new_waker.clone()).unwrap().will_wake(&old_waker));
        let mut due = WakeList::new();
        alarms.take_due(Nanos::MAX, &mut due);
        due.wake_all();
        assert_eq!((old.get(), new.get()), (0, 1));
        assert_eq!(alarms.would_wake(key, &new_waker), None);
        assert!(alarms.replace(key, new_waker).is_err());
    }
}
