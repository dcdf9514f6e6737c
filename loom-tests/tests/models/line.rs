//! The way into the line and to its head: nobody overtakes, and nobody is forgotten.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Step, Try, Waiting};

const fn enter(who: usize, now: u64) -> crate::reference::Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

/// Who finds the last permit taken lines up behind, and is told for how long.
#[test]
fn who_loses_the_last_permit_waits_for_the_next() {
    let takes = [Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 1), &[], [&takes, &[enter(0, 10)], &[enter(1, 10)]]).check_line();
}

/// A grant by a later clock comes before the bit that somebody waits.
pub(crate) fn grant_before_the_bit() -> Program {
    let before = [Try { n: 1, now: 0 }];
    let takes = [Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 1), &before, [&takes, &[enter(0, 5), enter(1, 6)]])
}

#[test]
fn who_enters_is_told_of_every_grant() {
    grant_before_the_bit().check_line();
}

/// The line empties as a newcomer arrives.
pub(crate) fn last_grant() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let collects = [Step { who: 0, now: 10 }];
    let passes = [Try { n: 1, now: 20 }, enter(1, 20)];
    Program::new(Law::new(10, 1), &before, [&collects, &passes])
}

#[test]
fn a_newcomer_meets_the_last_grant() {
    last_grant().check_line();
}

/// Two threads grant what is due at once.
pub(crate) fn two_advance() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0), enter(1, 0), enter(2, 0)];
    let first = [Step { who: 0, now: 20 }];
    let second = [Step { who: 1, now: 10 }, Step { who: 1, now: 30 }];
    Program::new(Law::new(10, 1), &before, [&first, &second])
}

#[test]
fn each_slot_is_given_once() {
    two_advance().check_line();
}

/// Who does not wait does not overtake either, though he sees the head's slot come first.
pub(crate) fn due_head() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let tries = [Try { n: 1, now: 10 }, Try { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &before, [&tries, &[Step { who: 0, now: 10 }]])
}

#[test]
fn a_try_leaves_a_due_slot_to_the_head() {
    due_head().check_line();
}

/// Who collects late leaves the schedule behind, unless somebody has gone on from it.
#[test]
fn a_late_collection_meets_the_next_grant() {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let collects = [Step { who: 0, now: 25 }];
    let passes = [Try { n: 1, now: 25 }, Try { n: 1, now: 32 }];
    Program::new(Law::new(10, 1), &before, [&collects, &passes]).catch_up(15).check_line();
}

/// A large head is not overtaken by a small newcomer.
#[test]
fn a_large_head_is_not_overtaken() {
    let before = [Try { n: 3, now: 0 }, Enter { who: 0, n: 3, now: 0, deadline: u64::MAX }];
    let small = [enter(1, 15), Try { n: 1, now: 25 }];
    Program::new(Law::new(10, 3), &before, [&small, &[Step { who: 0, now: 30 }]]).check_line();
}

/// Who was granted is no longer counted.
#[test]
fn those_who_wait_are_counted_at_one_instant() {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let counts = [Waiting { now: 5 }, Waiting { now: 10 }];
    Program::new(Law::new(10, 1), &before, [&counts, &[enter(1, 5)]]).check_line();
}

/// The last place is taken once.
#[test]
fn the_last_place_is_taken_once() {
    let before = [Try { n: 1, now: 0 }];
    Program::new(Law::new(10, 1), &before, [&[enter(0, 1)], &[enter(1, 2)]]).places(1).check_line();
}
