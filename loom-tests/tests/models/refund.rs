//! Permits that are given back by number, and all at once.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Look, Peek, Refund, Reset, SetQuota, Step, Try};

const fn enter(who: usize, now: u64) -> crate::reference::Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

/// Refunds and grants are all counted.
pub(crate) fn beside_grants() -> Program {
    let before = [Try { n: 2, now: 0 }];
    let refunds = [Refund { n: 1, now: 0 }];
    let takes = [Try { n: 1, now: 0 }, Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 2), &before, [&refunds, &takes, &refunds])
}

#[test]
fn a_refund_does_not_undo_a_grant() {
    beside_grants().check_bucket();
}

/// A refund is by the quota under which it takes effect.
#[test]
fn a_refund_is_by_one_quota() {
    let before = [Try { n: 3, now: 0 }];
    let refunds = [Refund { n: 1, now: 0 }];
    let change = [SetQuota { law: Law::new(100, 3), now: 0 }];
    Program::new(Law::new(10, 3), &before, [&refunds, &change]).check_bucket();
}

/// Who waits moves up.
#[test]
fn a_refund_reaches_who_enters() {
    let before = [Try { n: 3, now: 0 }];
    let refunds = [Refund { n: 2, now: 5 }];
    let enters = [Enter { who: 0, n: 1, now: 5, deadline: u64::MAX }];
    Program::new(Law::new(10, 1).permits(3), &before, [&refunds, &enters]).check_line();
}

/// In front of a line grants take no lock, but a refund does.
#[test]
fn a_refund_meets_a_grant_in_front_of_a_line() {
    let before = [Try { n: 2, now: 0 }];
    let refunds = [Refund { n: 1, now: 0 }];
    let takes = [Try { n: 1, now: 10 }, Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 2), &before, [&refunds, &takes]).check_line();
}

/// Nobody sees a bucket that is filled in part.
pub(crate) fn a_look_at_a_reset() -> Program {
    let before = [Try { n: 3, now: 0 }];
    let looks = [Look { now: 0 }, Peek { n: 2, now: 0 }];
    Program::new(Law::new(10, 3), &before, [&[Reset { now: 0 }], &looks])
}

#[test]
fn a_reset_is_one_step() {
    a_look_at_a_reset().check_bucket();
}

/// A grant comes before a reset and is forgotten, or after it and stands.
#[test]
fn a_reset_meets_grants() {
    let before = [Try { n: 2, now: 0 }];
    let resets = [Reset { now: 5 }, Try { n: 1, now: 5 }];
    let takes = [Try { n: 1, now: 4 }, Try { n: 2, now: 5 }];
    let program = Program::new(Law::new(10, 2), &before, [&resets, &takes]);
    program.clone().check_bucket();
    program.check_line();
}

/// A reset fills the burst of the quota under which it takes effect.
#[test]
fn a_reset_is_by_one_quota() {
    let before = [Try { n: 3, now: 0 }];
    let change = [SetQuota { law: Law::new(100, 5), now: 0 }, Look { now: 0 }];
    Program::new(Law::new(10, 3), &before, [&[Reset { now: 0 }], &change]).check_bucket();
}

/// Who waits is granted from the burst that is there again; who comes later waits behind.
pub(crate) fn a_reset_beside_a_line() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0), enter(1, 0)];
    let steps = [Step { who: 0, now: 5 }, Try { n: 1, now: 5 }];
    Program::new(Law::new(10, 1), &before, [&[Reset { now: 5 }], &steps])
}

#[test]
fn a_reset_reaches_those_who_wait() {
    a_reset_beside_a_line().check_line();
}
