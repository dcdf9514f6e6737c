//! The queue that tells when: each start is told once, and what changes it comes before a start or after it.

use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tollgate::{LeakyQueue, Refused};

use crate::program::Program;
use crate::reference::Op::{self, Look, Pause, SetQuota, Try};
use crate::reference::real::Subject;
use crate::reference::{Expected, Law, Outcome, Reference};

/// One call after the other. The capacity is the burst of the law.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queue {
    law: Law,
    free_at: u64,
    /// The end of a pause that has not been seen to be over.
    pause: Option<u64>,
}

impl Queue {
    fn new(law: Law) -> Self {
        Self { law, free_at: 0, pause: None }
    }

    /// The first instant at which there is room for `n`.
    fn room(&self, n: u64) -> u64 {
        let (before, capacity) = (self.free_at + (n - 1) * self.law.interval, self.law.burst * self.law.interval);
        (before + 1).saturating_sub(capacity).max(self.pause.unwrap_or(0))
    }

    fn schedule(&mut self, n: u64, now: u64) -> Outcome {
        if n > self.law.burst {
            return Outcome::Refused(Refused::ExceedsCapacity { asked: n, capacity: self.law.burst });
        }
        let room = self.room(n);
        if room > now {
            let retry_after = Duration::from_nanos(room - now);
            return Outcome::Refused(match self.pause.filter(|end| now < *end) {
                Some(_) => Refused::Paused { asked: n, retry_after },
                None => Refused::TooSoon { asked: n, remaining: self.remaining(now), retry_after },
            });
        }
        let start = now.max(self.free_at);
        (self.free_at, self.pause) = (start + n * self.law.interval, None);
        Outcome::Waits(start)
    }

    fn remaining(&self, now: u64) -> u64 {
        (1..=self.law.burst).take_while(|n| self.room(*n) <= now).count() as u64
    }
}

impl Reference for Queue {
    fn call(&mut self, op: Op) -> Expected {
        Expected::exactly(match op {
            Try { n, now } => self.schedule(n, now),
            Look { now } => Outcome::Took(self.remaining(now)),
            SetQuota { law, .. } => {
                self.law = law;
                Outcome::Done
            }
            Pause { end, now } => {
                let held = self.pause.filter(|end| now < *end);
                if held.is_some() || end > now {
                    self.free_at = end.max(now) + self.free_at.saturating_sub(held.unwrap_or(now));
                    self.pause = (end > now).then_some(end);
                }
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a queue that tells when"),
        })
    }
}

struct Real(LeakyQueue);

impl Subject for Real {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Try { n, now } => {
                return self.0.schedule_n_at(n, now).map_or_else(Outcome::Refused, |start| Outcome::Waits(start.get()));
            }
            Look { now } => return Outcome::Took(self.0.available_at(now)),
            SetQuota { law, now } => self.0.set_quota_at(law.quota(), now),
            Pause { end, now } => self.0.pause_until_at(end, now),
            _ => panic!("{op:?} is not for a queue that tells when"),
        }
        Outcome::Done
    }
}

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
            let mut queue = Queue { free_at: seen, ..Queue::new(self.law) };
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
    program.check_as(queue, |law| Real(LeakyQueue::new(law.quota())), |now| Look { now });
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
