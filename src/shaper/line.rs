//! The line of those who wait: a first-in first-out list in a slab, with removal from anywhere in constant time.

use std::num::NonZeroUsize;
use std::task::Waker;

use slab::Slab;

use super::queue::Grant;
use super::wakers::Wakers;
use crate::refused::Refused;
use crate::time::Nanos;

/// The name of a place in line, until it is given up with [`Line::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(NonZeroUsize);

impl Key {
    /// The name of a place in the slab: one more than its index, so that an `Option` of it is no larger.
    fn of(index: usize) -> Self {
        Self(NonZeroUsize::MIN.saturating_add(index))
    }

    fn index(self) -> usize {
        self.0.get().wrapping_sub(1)
    }
}

/// What has become of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// In line.
    Waiting,
    /// Granted, and not collected yet.
    Granted(Grant),
    /// Ended without a grant, and not collected yet.
    Refused(Refused),
}

/// A request that waits, or whose answer has not been collected.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) n: u64,
    pub(crate) deadline: Option<Nanos>,
    /// When its own timer will wake it.
    pub(crate) armed: Nanos,
    pub(crate) state: State,
    pub(crate) waker: Option<Waker>,
    /// The permits that had ever been asked for before it, in line order.
    before: u128,
    previous: Option<Key>,
    next: Option<Key>,
}

impl Entry {
    /// The instant at which it is to ask again, if its turn comes at `due`: its deadline if that is earlier.
    pub(crate) fn no_later(&self, due: Nanos) -> Nanos {
        self.deadline.map_or(due, |deadline| due.min(deadline))
    }
}

/// The waiting in order of arrival, and the granted and refused that have not collected their answer.
#[derive(Debug, Default)]
pub(crate) struct Line {
    entries: Slab<Entry>,
    head: Option<Key>,
    tail: Option<Key>,
    waiting: usize,
    /// The permits that those in line ask for together.
    weight: u128,
    /// The permits ever asked for in line.
    total: u128,
    /// One who stands in for heads that are absent, and the last one that it found so.
    driver: Option<(Key, Absent)>,
}

/// A head whose slot came and went unasked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Absent {
    key: Key,
    before: u128,
}

impl Line {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// The permits that those in line ask for together.
    pub(crate) fn weight(&self) -> u128 {
        self.weight
    }

    /// Appends a request.
    pub(crate) fn push(&mut self, n: u64, deadline: Option<Nanos>, armed: Nanos, waker: Option<Waker>) -> Key {
        let entry = Entry {
            n,
            deadline,
            armed,
            state: State::Waiting,
            waker,
            before: self.total,
            previous: self.tail,
            next: None,
        };
        let key = Key::of(self.entries.insert(entry));
        match self.tail.and_then(|tail| self.get(tail)) {
            Some(tail) => tail.next = Some(key),
            None => self.head = Some(key),
        }
        self.tail = Some(key);
        self.waiting = self.waiting.saturating_add(1);
        // 2^64 requests of 2^64 permits fit.
        self.weight = self.weight.saturating_add(u128::from(n));
        self.total = self.total.saturating_add(u128::from(n));
        key
    }

    /// The entry of a key. `None` only after its removal.
    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(key.index())
    }

    /// Sets whom to wake.
    pub(crate) fn set_waker(&mut self, key: Key, waker: Waker) {
        if let Some(entry) = self.get(key) {
            entry.waker = Some(waker);
        }
    }

    /// The head of the line.
    pub(crate) fn head(&self) -> Option<(Key, &Entry)> {
        self.head.and_then(|key| Some((key, self.entries.get(key.index())?)))
    }

    /// The permits to be granted before `entry`'s turn: exact for the first two in line, an upper bound behind places that
    /// were given up, until those have moved to the front.
    pub(crate) fn ahead(&self, key: Key) -> u128 {
        let Some((head_key, head)) = self.head() else { return 0 };
        if key == head_key {
            return 0;
        }
        if head.next == Some(key) {
            return u128::from(head.n);
        }
        self.entries.get(key.index()).map_or(0, |entry| entry.before.saturating_sub(head.before))
    }

    /// Notes that `caller` had the head `absent` granted long after its slot, or stood in for it as the driver. One who waits on
    /// becomes the driver, if there is none.
    pub(crate) fn note_absent(&mut self, caller: Key, absent: Key) {
        let waits = self.entries.get(caller.index()).is_some_and(|entry| matches!(entry.state, State::Waiting));
        let Some(before) = self.entries.get(absent.index()).map(|entry| entry.before) else { return };
        if waits && self.driver.is_none_or(|(driver, _)| driver == caller) {
            self.driver = Some((caller, Absent { key: absent, before }));
        }
    }

    /// Whether `key` has to ask again at the slot of the head instead of its own: the last head that it found absent has not
    /// come for its permit since, so the next may be absent as well. One such waiter serves all, at one poll a slot.
    pub(crate) fn is_driver(&mut self, key: Key) -> bool {
        let Some((_, absent)) = self.driver.filter(|(driver, _)| *driver == key) else { return false };
        let still = self.entries.get(absent.key.index()).is_some_and(|entry| entry.before == absent.before);
        if !still {
            self.driver = None;
        }
        still
    }

    /// Takes a request out of the line and says what became of it. The entry stays until it is removed. Returns its waker.
    pub(crate) fn settle(&mut self, key: Key, state: State) -> Option<Waker> {
        self.unlink(key);
        let entry = self.get(key)?;
        entry.state = state;
        entry.waker.take()
    }

    /// Ends the waits for which `why` gives a reason, by their n.
    pub(crate) fn refuse(&mut self, why: impl Fn(u64) -> Option<Refused>, wakers: &mut Wakers) {
        let mut next = self.head;
        while let Some(key) = next {
            let Some(entry) = self.get(key) else { return };
            next = entry.next;
            if let Some(refused) = why(entry.n) {
                wakers.wake(self.settle(key, State::Refused(refused)));
            }
        }
    }

    /// Wakes those whose timers would end later than their turn, `due(permits ahead, n)`, or their deadline.
    pub(crate) fn wake_late(&mut self, wakers: &mut Wakers, due: impl Fn(u128, u64) -> Nanos) {
        self.wake_late_among(usize::MAX, wakers, due);
    }

    /// The same for the first two in line, whose turn is known exactly. Two, so that one who never looks again does not hold
    /// up those behind for longer than its own slot.
    pub(crate) fn rearm_first_two(&mut self, wakers: &mut Wakers, due: impl Fn(u128, u64) -> Nanos) {
        self.wake_late_among(2, wakers, due);
    }

    fn wake_late_among(&mut self, most: usize, wakers: &mut Wakers, due: impl Fn(u128, u64) -> Nanos) {
        let (mut next, mut ahead) = (self.head, 0u128);
        for _ in 0..most {
            let Some(entry) = next.and_then(|key| self.get(key)) else { return };
            if entry.armed > entry.no_later(due(ahead, entry.n)) {
                wakers.wake(entry.waker.take());
            }
            ahead = ahead.saturating_add(u128::from(entry.n));
            next = entry.next;
        }
    }

    /// Frees a place, in line or not.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Entry> {
        self.unlink(key);
        self.entries.try_remove(key.index())
    }

    /// Takes an entry out of the list if it is in it.
    fn unlink(&mut self, key: Key) {
        let Some(entry) = self.get(key) else { return };
        if !matches!(entry.state, State::Waiting) {
            return;
        }
        let (n, previous, next) = (entry.n, entry.previous.take(), entry.next.take());
        match previous.and_then(|previous| self.get(previous)) {
            Some(previous) => previous.next = next,
            None => self.head = next,
        }
        match next.and_then(|next| self.get(next)) {
            Some(next) => next.previous = previous,
            None => self.tail = previous,
        }
        self.driver = self.driver.filter(|(driver, _)| *driver != key);
        self.waiting = self.waiting.saturating_sub(1);
        self.weight = self.weight.saturating_sub(u128::from(n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<const N: usize>() -> (Line, [Key; N]) {
        let mut line = Line::default();
        let keys = std::array::from_fn(|_| line.push(1, None, Nanos::ZERO, None));
        (line, keys)
    }

    #[test]
    fn who_stands_in_for_absent_heads_is_one_who_waits_until_he_leaves() {
        let (mut line, [absent, granted, first, second]) = line();
        for key in [absent, granted] {
            line.settle(key, State::Refused(Refused::Closed));
        }
        // Who was settled with the absent head needs no more slots.
        line.note_absent(granted, absent);
        line.note_absent(first, absent);
        line.note_absent(second, absent);
        assert_eq!([granted, first, second].map(|key| line.is_driver(key)), [false, true, false]);
        line.remove(granted);
        assert!(line.is_driver(first));
        line.remove(second);
        assert!(line.is_driver(first), "another one left");
        line.remove(first);
        let next = line.push(1, None, Nanos::ZERO, None);
        assert!(!line.is_driver(next), "in the place of one who left");
    }

    #[test]
    fn who_stands_in_does_so_for_the_last_head_that_he_found_absent() {
        let (mut line, [first_absent, second_absent, driver]) = line();
        for absent in [first_absent, second_absent] {
            line.settle(absent, State::Refused(Refused::Closed));
            line.note_absent(driver, absent);
        }
        line.remove(first_absent);
        assert!(line.is_driver(driver));
        line.remove(second_absent);
        assert!(!line.is_driver(driver));
    }
}
