//! The queue that tells when: each start is told once, and what changes it comes before a start or after it.

use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::laws::queue::{Queue, Real};
use crate::program::Program;
use crate::reference::Op::{self, Look, Pause, SetQuota, Try};
use crate::reference::real::Subject;
use crate::reference::{Law, Outcome, Reference};

/// What is wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Nothing: shows that the flaw is what turns a model red.
    Nothing,
    /// A start is taken by a load and a store.
    LoadAndStore,
    /// The start is looked up after the place was taken.
    LooksAgain,
}

/// A queue in one atomic, without pauses and changes.
struct Flawed {
    flaw: Flaw,
    law: Law,
    free_at: AtomicU64,
}

impl Subject for Flawed {
    fn call(&self, op: Op) -> Outcome {
        loop {
            let seen = self.free_at.load(SeqCst);
            let mut queue = Queue::new(self.law);
            queue.free_at = seen;
            let outcome = queue.call(op).outcome();
            if self.flaw == Flaw::LoadAndStore {
                self.free_at.store(queue.free_at, SeqCst);
            } else if queue.free_at != seen
                && self.free_at.compare_exchange(seen, queue.free_at, SeqCst, SeqCst).is_err()
            {
                continue;
            }
            return match (outcome, op) {
                (Outcome::Waits(_), Try { n, .. }) if self.flaw == Flaw::LooksAgain => {
                    Outcome::Waits(self.free_at.load(SeqCst) - n * self.law.interval)
                }
                _ => outcome,
            };
        }
    }
}

fn check(program: Program) {
    let queue = Queue::new(program.law);
    program.check_as(queue, Real::new, |now| Look { now });
}

fn flawed(program: Program, flaw: Flaw) {
    let queue = Queue::new(program.law);
    program.check_as(queue, move |law| Flawed { flaw, law, free_at: AtomicU64::new(0) }, |now| Look { now });
}

const fn one(now: u64) -> Op {
    Try { n: 1, now }
}

fn three_for_two() -> Program {
    Program::new(Law::new(10, 2), &[], [&[one(0)], &[one(0)], &[one(0)]])
}

fn large_beside_small() -> Program {
    Program::new(Law::new(10, 3), &[], [&[Try { n: 3, now: 0 }, one(11)], &[one(0), Try { n: 2, now: 5 }]])
}

#[test]
fn two_of_three_are_told_a_start_each() {
    check(three_for_two());
}

#[test]
fn a_refusal_takes_no_place() {
    check(large_beside_small());
}

#[test]
fn late_times_start_nobody_twice() {
    check(Program::new(Law::new(10, 3), &[one(20)], [&[one(15), one(31)], &[one(25), one(19)]]));
}

#[test]
fn a_start_comes_before_a_pause_or_after_it() {
    check(Program::new(Law::new(10, 2), &[], [&[Pause { end: 50, now: 10 }, one(11)], &[one(10), one(50)]]));
}

#[test]
fn the_end_of_a_pause_meets_starts() {
    let before = [one(0), Pause { end: 50, now: 4 }];
    check(Program::new(Law::new(10, 2), &before, [&[Pause { end: 8, now: 8 }, one(8)], &[one(9), one(50)]]));
}

#[test]
fn a_start_is_by_one_quota() {
    let changes = [SetQuota { law: Law::new(25, 3), now: 10 }, SetQuota { law: Law::new(4, 2), now: 10 }];
    check(Program::new(Law::new(10, 2), &[one(5)], [&changes, &[one(10), Try { n: 2, now: 15 }]]));
}

#[test]
fn without_a_flaw_nothing_is_found() {
    flawed(three_for_two(), Flaw::Nothing);
    flawed(large_beside_small(), Flaw::Nothing);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_place_that_is_a_load_and_a_store() {
    flawed(three_for_two(), Flaw::LoadAndStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_start_that_is_looked_up_after_its_place_was_taken() {
    flawed(three_for_two(), Flaw::LooksAgain);
}
