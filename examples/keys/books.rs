//! The books: what a key was given, and what its law allows.
//!
//! Threads have times of their own, and a table judges a key that has lost its place no earlier than the instant at which it was at
//! rest. So a call counts at some instant between its own time and the latest time that anybody has given until it returned. The books
//! take the one or the other, whichever lets a permit pass, and find every one that no instant between them allows; and the other
//! way round for what is refused. Without disorder the two are one, and the books exact.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Nanos, Refused};

use crate::subject::{Kind, Terms};

/// A call on a key, and between which instants it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) n: u64,
    pub(crate) now: u64,
    /// The latest time that anybody had given when it returned.
    pub(crate) latest: u64,
    pub(crate) brought: Brought,
}

/// The nanoseconds that changes of the quota may have brought to a key until then: see [`Changes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    /// Changes that have ended.
    ended: u64,
    /// Those that are under way: nobody knows whether they have reached the key.
    under_way: u64,
}

/// The changes of a quota, whose times are disordered as well.
///
/// A change to a faster rate counts from its own instant on. If a key was called at a later one before, the time between is
/// counted twice: by the slower quota until then, and by the faster one again. The books allow for as much.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    ended: u64,
    under_way: Vec<u64>,
}

impl Changes {
    pub(crate) fn begins(&mut self, now: u64) {
        self.under_way.push(now);
    }

    pub(crate) fn ends(&mut self, now: u64, latest: u64) {
        self.ended += latest.saturating_sub(now);
        if let Some(at) = self.under_way.iter().position(|begun| *begun == now) {
            self.under_way.swap_remove(at);
        }
    }

    /// What those have brought that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// What those have brought that have ended, and those may bring that are under way.
    pub(crate) fn brought(&self, latest: u64) -> Brought {
        let under_way = self.under_way.iter().map(|now| latest.saturating_sub(*now)).sum();
        Brought { ended: self.ended, under_way }
    }
}

/// The books of a key whose calls are made one after the other, so that their order is known.
#[derive(Debug)]
pub(crate) struct Book {
    terms: Terms,
    /// Whether the quota stays the same. Else a refusal can't be judged, and permits are judged by the fastest quota.
    fixed: bool,
    /// When a bucket is full again: at the earliest and at the latest. Of a queue both are when its next request starts.
    full: (u64, u64),
    /// What changes had brought that had ended when it was called last.
    brought: u64,
    /// The grants that may still count.
    grants: VecDeque<Call>,
}

impl Book {
    pub(crate) fn new(terms: Terms, fixed: bool) -> Self {
        Self { terms, fixed, full: (0, 0), brought: 0, grants: VecDeque::new() }
    }

    /// Takes note of a grant, and finds one beyond the law. A queue has told a start.
    pub(crate) fn granted(&mut self, call: Call, start: Option<Nanos>) -> Result<(), String> {
        let Terms { kind, most, span } = self.terms;
        let lawful = match kind {
            Kind::Bucket => {
                self.full.0 = self.full.0.saturating_sub(call.brought.ended - self.brought);
                self.brought = call.brought.ended;
                self.full = (self.full.0.max(call.now) + call.n * span, self.full.1.max(call.latest) + call.n * span);
                self.full.0 <= call.latest + most * span + call.brought.under_way
            }
            Kind::Queue => {
                let start = start.map_or(0, Nanos::get);
                let free = self.full.0;
                self.full = (start + call.n * span, start + call.n * span);
                let lawful =
                    start >= call.now.max(free) && start <= call.latest.max(free) && start < call.latest + most * span;
                lawful || !self.fixed
            }
            Kind::Window | Kind::Counter | Kind::Log => {
                self.grants.retain(|grant| grant.latest + 4 * span > call.now);
                self.grants.push_back(call);
                self.least(call.latest) <= u128::from(most) * self.unit()
            }
        };
        if lawful { Ok(()) } else { Err(format!("a grant beyond the law: {call:?}, start {start:?}, after {self:?}")) }
    }

    /// Takes note that the last grant was given back at its own time.
    pub(crate) fn given_back(&mut self, call: Call) {
        if self.terms.kind == Kind::Bucket {
            let debt = call.n * self.terms.span;
            self.full = (self.full.0 - debt, self.full.1 - debt);
        }
        self.grants.pop_back();
    }

    /// Finds a refusal of what is due. That there was no room is none.
    pub(crate) fn refused(&self, call: Call, refused: Refused) -> Result<(), String> {
        let Terms { kind, most, span } = self.terms;
        let due = match kind {
            _ if matches!(refused, Refused::NoRoom { .. }) => false,
            _ if call.n > most || !self.fixed => false,
            Kind::Bucket => self.full.1 + call.n * span <= call.now + most * span,
            Kind::Queue => self.full.1 <= call.now,
            Kind::Window | Kind::Counter | Kind::Log => self
                .most(call)
                .is_some_and(|taken| taken + u128::from(call.n) * self.unit() <= u128::from(most) * self.unit()),
        };
        if due { Err(format!("a refusal of what is due: {call:?}, {refused:?}, after {self:?}")) } else { Ok(()) }
    }

    /// In what windows are counted: the counter weighs them by nanoseconds.
    fn unit(&self) -> u128 {
        if self.terms.kind == Kind::Counter { u128::from(self.terms.span) } else { 1 }
    }

    /// What counts at `latest` at the least: of the grants whose window is known.
    fn least(&self, latest: u64) -> u128 {
        let window = latest / self.terms.span;
        let within =
            |grant: &Call, window| grant.now / self.terms.span == window && grant.latest / self.terms.span == window;
        match self.terms.kind {
            Kind::Log => self.sum(|grant| latest.saturating_sub(grant.now) < self.terms.span),
            Kind::Counter => {
                let left = u128::from(self.terms.span - latest % self.terms.span);
                let before = window.checked_sub(1).map_or(0, |before| self.sum(|grant| within(grant, before)));
                before * left + self.sum(|grant| within(grant, window)) * self.unit()
            }
            _ => self.sum(|grant| within(grant, window)),
        }
    }

    /// What counts for a call at the most; `None` if its window is not known.
    fn most(&self, call: Call) -> Option<u128> {
        let span = self.terms.span;
        if self.terms.kind == Kind::Log {
            return Some(self.sum(|grant| grant.latest + span > call.now));
        }
        let window = call.now / span;
        if call.latest / span != window {
            return None;
        }
        let perhaps = |window| self.sum(|grant: &Call| (grant.now / span..=grant.latest / span).contains(&window));
        if self.terms.kind == Kind::Window {
            return Some(perhaps(window));
        }
        let left = u128::from(span - call.now % span);
        Some(window.checked_sub(1).map_or(0, perhaps) * left + perhaps(window) * self.unit())
    }

    fn sum(&self, counts: impl Fn(&Call) -> bool) -> u128 {
        self.grants.iter().filter(|grant| counts(grant)).map(|grant| u128::from(grant.n)).sum()
    }
}

/// The books of a key on which threads call at once: only sums are known.
///
/// # Ordering
///
/// `Relaxed`: they are read when all threads have been joined.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    granted: AtomicU64,
    given_back: AtomicU64,
}

impl Sums {
    pub(crate) fn granted(&self, n: u64) {
        self.granted.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn given_back(&self, n: u64) {
        self.given_back.fetch_add(n, Ordering::Relaxed);
    }

    /// What was granted, and the most that the law allows between two instants, and for what changes brought.
    pub(crate) fn close(&self, terms: Terms, first: u64, latest: u64, brought: u64) -> Result<(u64, u64), String> {
        let Terms { kind, most, span } = terms;
        let allowed = match kind {
            Kind::Bucket => most + (latest - first + brought) / span,
            Kind::Queue => most + 1 + (latest - first + brought) / span,
            Kind::Window | Kind::Counter => most * (latest / span - first / span + 1),
            Kind::Log => most * ((latest - first) / span + 1),
        } + self.given_back.load(Ordering::Relaxed);
        let granted = self.granted.load(Ordering::Relaxed);
        if granted > allowed {
            return Err(format!(
                "{granted} permits granted from {first} ns to {latest} ns, where {allowed} are lawful"
            ));
        }
        Ok((granted, allowed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TOO_SOON: Refused = Refused::Never { asked: 1, remaining: 0 };
    const MILLISECOND: u64 = 1_000_000;

    fn call(n: u64, now: u64, latest: u64) -> Call {
        Call { n, now: now * MILLISECOND, latest: latest * MILLISECOND, brought: Brought::default() }
    }

    #[test]
    fn the_eleventh_is_found_under_every_law_and_the_tenth_is_not() {
        for kind in [Kind::Bucket, Kind::Window, Kind::Counter, Kind::Log] {
            let mut book = Book::new(Terms::new(kind), true);
            for _ in 0..5 {
                assert_eq!(book.granted(call(2, 1_000, 1_000), None), Ok(()), "{kind:?}");
            }
            assert!(book.refused(call(1, 1_000, 1_000), TOO_SOON).is_ok(), "{kind:?}");
            assert!(book.granted(call(1, 1_009, 1_009), None).is_err(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_due_is_found_to_be_refused_and_no_sooner() {
        for (kind, soon, due) in [
            (Kind::Bucket, 1_009, 1_010),
            (Kind::Window, 1_099, 1_100),
            (Kind::Counter, 1_109, 1_110),
            (Kind::Log, 1_099, 1_100),
        ] {
            let mut book = Book::new(Terms::new(kind), true);
            book.granted(call(10, 1_000, 1_000), None).unwrap();
            assert!(book.refused(call(1, soon, soon), TOO_SOON).is_ok(), "{kind:?}");
            assert!(book.refused(call(1, due, due), TOO_SOON).is_err(), "{kind:?}");
            assert!(book.refused(call(11, due, due), TOO_SOON).is_ok(), "{kind:?}");
            let no_room = Refused::NoRoom { max_keys: 1, retry_after: Some(Duration::ZERO) };
            assert!(book.refused(call(1, due, due), no_room).is_ok(), "{kind:?}");
            book.given_back(call(10, 1_000, 1_000));
            assert!(book.refused(call(10, soon, soon), TOO_SOON).is_err(), "{kind:?}");
        }
    }

    #[test]
    fn disorder_is_given_the_benefit_of_the_doubt() {
        for kind in [Kind::Bucket, Kind::Window, Kind::Counter, Kind::Log] {
            let mut book = Book::new(Terms::new(kind), true);
            book.granted(call(10, 1_000, 1_000), None).unwrap();
            // It may have counted at 1,250, when the key was at rest.
            assert_eq!(book.granted(call(10, 1_000, 1_250), None), Ok(()), "{kind:?}");
            assert!(book.refused(call(1, 1_100, 1_250), TOO_SOON).is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn starts_of_a_queue_are_apart() {
        let mut book = Book::new(Terms::new(Kind::Queue), true);
        book.granted(call(2, 1_000, 1_000), Some(Nanos::from_millis(1_000))).unwrap();
        book.granted(call(1, 1_000, 1_000), Some(Nanos::from_millis(1_020))).unwrap();
        assert!(book.granted(call(1, 1_000, 1_000), Some(Nanos::from_millis(1_029))).is_err());
        let mut book = Book::new(Terms::new(Kind::Queue), true);
        assert!(book.granted(call(1, 1_000, 1_000), Some(Nanos::from_millis(1_001))).is_err());
    }

    #[test]
    fn sums_beyond_the_law_are_found() {
        let sums = Sums::default();
        sums.granted(20);
        let terms = Terms::new(Kind::Bucket);
        assert!(sums.close(terms, 0, 99 * MILLISECOND, 0).is_err());
        assert_eq!(sums.close(terms, 0, 100 * MILLISECOND, 0), Ok((20, 20)));
        sums.given_back(1);
        assert!(sums.close(terms, 0, 90 * MILLISECOND, 0).is_ok());
    }

    #[test]
    fn a_change_that_is_late_may_bring_what_lies_between() {
        let mut changes = Changes::default();
        changes.begins(95);
        changes.begins(90);
        let all = |changes: &Changes, latest| (changes.brought(latest).ended, changes.brought(latest).under_way);
        assert_eq!([90, 100, 110].map(|latest| all(&changes, latest)), [(0, 0), (0, 15), (0, 35)]);
        changes.ends(90, 110);
        assert_eq!(all(&changes, 110), (20, 15));
        changes.ends(95, 120);
        assert_eq!(all(&changes, 200), (45, 0));

        let late = |ended, under_way| {
            let brought = Brought { ended: ended * MILLISECOND, under_way: under_way * MILLISECOND };
            Call { brought, ..call(1, 1_000, 1_000) }
        };
        let mut book = Book::new(Terms::new(Kind::Bucket), false);
        book.granted(call(10, 1_000, 1_000), None).unwrap();
        assert!(book.granted(late(10, 0), None).is_ok());
        assert!(book.granted(late(19, 0), None).is_err());
        // One that is under way may reach the key at any time until it has ended, and once.
        let mut book = Book::new(Terms::new(Kind::Bucket), false);
        book.granted(Call { n: 10, ..late(0, 10) }, None).unwrap();
        assert!(book.granted(late(0, 10), None).is_ok());
        assert!(book.granted(late(10, 0), None).is_err());
    }
}
