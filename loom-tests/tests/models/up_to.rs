//! What is there is taken, as much as is asked for: at one instant, and never from those who wait.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{self, Close, Enter, Look, Pause, Refund, Reset, SetQuota, Step, Try, UpTo};

const fn enter(who: usize, now: u64) -> Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

/// Three are there, and those who ask want four.
pub(crate) fn four_of_three() -> Program {
    let two = [UpTo { n: 2, now: 0 }];
    Program::new(Law::new(10, 3), &[], [&two, &two])
}

#[test]
fn what_is_there_is_taken_once() {
    four_of_three().check_bucket();
}

/// The same in front of a line that nobody waits in.
#[test]
fn what_is_there_is_taken_once_in_front_of_a_line() {
    four_of_three().check_line();
}

/// Who is refused two does not keep another from the one that is there.
#[test]
fn the_rest_is_taken_beside_who_asks_for_too_much() {
    let before = [Try { n: 1, now: 0 }];
    let (takes, asks) =
        ([UpTo { n: 5, now: 0 }, UpTo { n: 5, now: 10 }], [Try { n: 2, now: 0 }, Try { n: 1, now: 10 }]);
    Program::new(Law::new(10, 2), &before, [&takes, &asks]).check_bucket();
}

/// As much as one of the quotas leaves, at the price of that one.
#[test]
fn what_is_taken_is_by_one_quota() {
    let before = [Try { n: 3, now: 100 }];
    let takes = [UpTo { n: 5, now: 113 }, Look { now: 114 }];
    let change = [SetQuota { law: Law::new(100, 5), now: 112 }];
    Program::new(Law::new(10, 3), &before, [&takes, &change]).check_bucket();
}

#[test]
fn what_is_taken_in_front_of_a_line_is_by_one_quota() {
    let takes = [UpTo { n: 5, now: 10 }, Try { n: 1, now: 10 }];
    let change = [SetQuota { law: Law::new(1_000, 4), now: 10 }];
    Program::new(Law::new(10, 2), &[], [&takes, &change]).check_line();
}

/// What is given back is there for one of the two.
#[test]
fn what_comes_back_is_taken_once() {
    let before = [Try { n: 2, now: 0 }];
    let refunds = [Refund { n: 1, now: 0 }, UpTo { n: 2, now: 0 }];
    Program::new(Law::new(10, 2), &before, [&refunds, &[UpTo { n: 2, now: 0 }]]).check_bucket();
}

/// All is taken that is there: before a reset what is left, after it the whole burst.
#[test]
fn a_reset_comes_before_what_is_taken_or_after_it() {
    let before = [Try { n: 1, now: 0 }];
    let takes = [UpTo { n: 3, now: 0 }, Try { n: 2, now: 0 }];
    let program = Program::new(Law::new(10, 3), &before, [&[Reset { now: 0 }], &takes]);
    program.clone().check_bucket();
    program.check_line();
}

/// Nothing is there in a pause, and at its end what was there before.
#[test]
fn a_pause_leaves_nothing_to_take() {
    let pauses = [Pause { end: 50, now: 10 }, UpTo { n: 3, now: 11 }];
    let takes = [UpTo { n: 1, now: 10 }, UpTo { n: 3, now: 50 }];
    let program = Program::new(Law::new(10, 3), &[], [&pauses, &takes]);
    program.clone().check_bucket();
    program.check_line();
}

/// What is due is the head's; when nobody waits any more, the next slot is there to take.
pub(crate) fn due_head() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let takes = [UpTo { n: 1, now: 10 }, UpTo { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &before, [&takes, &[Step { who: 0, now: 10 }]])
}

#[test]
fn nothing_is_taken_from_those_who_wait() {
    due_head().check_line();
}

/// Who lines up waits behind what was taken before.
#[test]
fn who_enters_is_told_of_what_was_taken() {
    let takes = [UpTo { n: 3, now: 10 }];
    Program::new(Law::new(10, 2), &[], [&takes, &[enter(0, 10)], &[enter(1, 10)]]).check_line();
}

/// After the end nothing is there.
#[test]
fn who_closes_leaves_nothing_to_take() {
    let closes = [Close { now: 0 }, UpTo { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &[], [&closes, &[UpTo { n: 1, now: 0 }, UpTo { n: 1, now: 10 }]]).check_line();
}

/// It may have to move the origin first, under the lock.
#[test]
fn what_is_there_is_taken_once_where_the_origin_moves() {
    let half = 1 << 58;
    let before = [Try { n: 2, now: half - 10 }];
    let takes = [UpTo { n: 2, now: half }];
    Program::new(Law::new(10, 3), &before, [&takes, &[Try { n: 1, now: half - 1 }, UpTo { n: 1, now: half }]])
        .check_line();
}
