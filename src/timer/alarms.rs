//! An ordered set of alarms: whom to wake at which instant.

use super::WakeList;
use crate::time::Nanos;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

/// Alarms in the order in which they are due; those for the same instant in the order in which they were set.
///
/// A heap of instants, and the wakers in a slab: as many alarms as there have been before need no memory anew. An alarm that is
/// taken back leaves its instant in the heap until it comes to the top, or until such instants are half of the heap.
///
/// The set stands behind its owner's lock. So no method calls, clones or drops a waker, all of which run foreign code: what
/// comes out is handed to the caller, who deals with it when the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    /// The top is always an alarm that is set.
    instants: BinaryHeap<Reverse<Instant>>,
    set: Slab<SetWaker>,
    next_id: u64,
}

/// The name of one alarm in its set. Names are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlarmKey {
    slot: usize,
    id: u64,
}

/// When an alarm is due. In the order of time, then of setting; the slot comes last and decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Instant {
    at: Nanos,
    id: u64,
    slot: usize,
}

/// Whom an alarm wakes.
#[derive(Debug)]
struct SetWaker {
    id: u64,
    waker: Waker,
}

impl Alarms {
    pub(crate) const fn new() -> Self {
        Self { instants: BinaryHeap::new(), set: Slab::new(), next_id: 0 }
    }

    pub(crate) fn insert(&mut self, at: Nanos, waker: Waker) -> AlarmKey {
        let id = self.next_id;
        // At one alarm a nanosecond the ids last 584 years.
        self.next_id = self.next_id.wrapping_add(1);
        let slot = self.set.insert(SetWaker { id, waker });
        self.instants.push(Reverse(Instant { at, id, slot }));
        AlarmKey { slot, id }
    }

    /// Says whether the alarm would wake the same task as `waker`; `None` if it has rung.
    pub(crate) fn would_wake(&self, key: AlarmKey, waker: &Waker) -> Option<bool> {
        self.set.get(key.slot).filter(|set| set.id == key.id).map(|set| set.waker.will_wake(waker))
    }

    /// Lets the alarm wake `waker` and returns the waker before it. If the alarm has rung, `waker` itself comes back.
    pub(crate) fn replace(&mut self, key: AlarmKey, waker: Waker) -> Result<Waker, Waker> {
        match self.set.get_mut(key.slot) {
            Some(set) if set.id == key.id => Ok(std::mem::replace(&mut set.waker, waker)),
            _ => Err(waker),
        }
    }

    /// Takes the alarm out; `None` if it has rung.
    pub(crate) fn remove(&mut self, key: AlarmKey) -> Option<Waker> {
        let waker = self.take(key)?;
        if self.set.len() < self.instants.len() / 2 {
            let set = &self.set;
            self.instants.retain(|Reverse(instant)| instant.is_set(set));
        }
        self.drop_taken();
        Some(waker)
    }

    /// Moves the wakers of all alarms that are due at `now` to the end of `due`.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut WakeList) {
        while let Some(&Reverse(Instant { id, slot, .. })) =
            self.instants.peek().filter(|Reverse(first)| first.at <= now)
        {
            if let Some(waker) = self.take(AlarmKey { slot, id }) {
                due.push(waker);
            }
            self.drop_taken();
        }
    }

    /// Returns the instant of the earliest alarm.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.instants.peek().map(|Reverse(first)| first.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Gives back the memory that the alarms which are set do not need. Their names, and those of former ones, stay.
    pub(crate) fn shrink(&mut self) {
        self.instants.shrink_to_fit();
        self.set.shrink_to_fit();
    }

    fn take(&mut self, key: AlarmKey) -> Option<Waker> {
        self.set.get(key.slot).filter(|set| set.id == key.id)?;
        self.set.try_remove(key.slot).map(|set| set.waker)
    }

    /// Drops the instants at the top whose alarms have been taken out.
    fn drop_taken(&mut self) {
        while let Some(Reverse(first)) = self.instants.peek() {
            if first.is_set(&self.set) {
                return;
            }
            self.instants.pop();
        }
    }
}

impl Instant {
    fn is_set(&self, set: &Slab<SetWaker>) -> bool {
        set.get(self.slot).is_some_and(|set| set.id == self.id)
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

    #[test]
    fn alarms_taken_back_in_any_order_leave_the_others_in_order() {
        const ALARMS: u64 = 60;
        for step in [1, 7, 13, 59] {
            let (count, mut alarms, mut keys) = (Count::new(), Alarms::new(), Vec::new());
            for i in 0..ALARMS {
                // Each instant once, in another order.
                keys.push((i * 17 % ALARMS, alarms.insert(Nanos::new(i * 17 % ALARMS), count.waker())));
            }
            let mut left: std::collections::BTreeSet<u64> = (0..ALARMS).collect();
            for i in 0..ALARMS {
                let (at, key) = keys[usize::try_from(i * step % ALARMS).unwrap()];
                assert!(alarms.remove(key).is_some());
                assert!(alarms.remove(key).is_none() && alarms.would_wake(key, &count.waker()).is_none());
                left.remove(&at);
                assert_eq!(alarms.next().map(Nanos::get), left.first().copied());
                assert!(alarms.instants.len() <= 2 * left.len() + 1);
            }
            assert!(alarms.is_empty());
        }
    }

    #[test]
    fn memory_is_given_back_and_names_stay_apart() {
        let count = Count::new();
        let mut alarms = Alarms::new();
        let keys: Vec<_> = (0..100).map(|at| alarms.insert(Nanos::new(at), count.waker())).collect();
        for &key in &keys {
            assert!(alarms.remove(key).is_some());
        }
        alarms.shrink();
        assert_eq!((alarms.instants.capacity(), alarms.set.capacity()), (0, 0));
        let key = alarms.insert(Nanos::new(7), count.waker());
        assert!(keys.iter().all(|&gone| alarms.remove(gone).is_none()));
        assert!(alarms.remove(key).is_some());
    }

    #[test]
    fn a_name_is_not_taken_for_the_next_one_in_its_slot() {
        let (old, new) = (Count::new(), Count::new());
        let mut alarms = Alarms::new();
        let gone = alarms.insert(Nanos::new(1), old.waker());
        assert!(alarms.remove(gone).is_some());
        let key = alarms.insert(Nanos::new(2), new.waker());
        assert_eq!(key.slot, gone.slot);
        assert!(alarms.remove(gone).is_none());
        assert!(alarms.replace(gone, old.waker()).is_err());
        assert_eq!(alarms.would_wake(gone, &new.waker()), None);
        assert_eq!(alarms.next(), Some(Nanos::new(2)));
        assert!(alarms.remove(key).is_some());
    }
}
