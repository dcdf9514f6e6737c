//! A pause, against grants, against the line, and its end.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Look, Pause, SetQuota, Step, Try, Waiting};

const fn enter(who: usize, now: u64) -> crate::reference::Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

pub(crate) fn beside_a_grant() -> Program {
    let pauses = [Pause { end: 15, now: 10 }, Try { n: 1, now: 11 }];
    let takes = [Try { n: 1, now: 10 }, Try { n: 2, now: 15 }];
    Program::new(Law::new(10, 2), &[], [&pauses, &takes])
}

/// A grant comes before the pause, or not at all; what it left is left at the end.
#[test]
fn a_grant_comes_before_a_pause_or_after_it() {
    beside_a_grant().check_bucket();
}

/// The same in front of a line.
#[test]
fn nobody_passes_a_line_that_is_held() {
    let pauses = [Pause { end: 50, now: 10 }, Try { n: 1, now: 11 }];
    let takes = [Try { n: 1, now: 10 }, Try { n: 1, now: 50 }];
    Program::new(Law::new(10, 2), &[], [&pauses, &takes]).check_line();
}

pub(crate) fn beside_one_who_passes() -> Program {
    let pauses = [Pause { end: 50, now: 10 }];
    Program::new(Law::new(10, 1), &[], [&pauses, &[enter(0, 10)], &[enter(1, 10)]])
}

/// Of two who come beside a pause one may pass before it; the other is told the slot after it.
#[test]
fn one_passes_before_a_pause_and_counts_after_it() {
    beside_one_who_passes().check_line();
}

/// The head's slot has come, or is held until the end; who pauses sees which.
pub(crate) fn beside_a_due_head() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0), enter(1, 0)];
    let pauses = [Pause { end: 50, now: 9 }, Waiting { now: 9 }];
    let steps = [Step { who: 0, now: 10 }, Try { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &before, [&pauses, &steps])
}

#[test]
fn a_due_head_is_granted_before_a_pause_or_held() {
    beside_a_due_head().check_line();
}

pub(crate) fn end_beside_those_who_enter() -> Program {
    let before = [Try { n: 1, now: 0 }, Pause { end: 100, now: 1 }];
    let resumes = [Pause { end: 5, now: 5 }];
    Program::new(Law::new(10, 1), &before, [&resumes, &[enter(0, 5)], &[enter(1, 6)]])
}

/// Who enters while a pause ends is told the slot without it, or is woken for it.
#[test]
fn the_end_of_a_pause_reaches_who_enters() {
    end_beside_those_who_enter().check_line();
}

/// Pauses and changes of the quota follow each other; a pause goes on under the new quota.
#[test]
fn a_pause_goes_on_under_another_quota() {
    let before = [Try { n: 1, now: 0 }];
    let pauses = [Pause { end: 50, now: 5 }, Look { now: 6 }];
    let changes = [SetQuota { law: Law::new(20, 3), now: 7 }];
    Program::new(Law::new(10, 2), &before, [&pauses, &changes]).check_bucket();
}
