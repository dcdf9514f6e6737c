//! Permits that are given back by number.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Refund, SetQuota, Try};

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
