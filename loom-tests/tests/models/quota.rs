//! A change of the quota, against grants and against another change.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Look, SetQuota, Try};

/// A grant is by the old quota or by the new one, and its debt is carried.
pub(crate) fn grants_and_a_change() -> Program {
    let before = [Try { n: 3, now: 100 }];
    let grants = [Try { n: 1, now: 110 }, Try { n: 2, now: 113 }];
    let change = [SetQuota { law: Law::new(100, 5), now: 112 }];
    Program::new(Law::new(10, 3), &before, [&grants, &change])
}

#[test]
fn a_grant_is_by_one_quota() {
    grants_and_a_change().check_bucket();
}

/// The same in front of a line: a request that only one of the quotas takes is judged by that one.
#[test]
fn a_large_request_is_judged_by_one_quota() {
    let grant = [Try { n: 3, now: 10 }];
    let change = [SetQuota { law: Law::new(1_000, 1).permits(3), now: 10 }];
    Program::new(Law::new(10, 1), &[], [&grant, &change]).check_line();
}

/// Who waits is timed by the new quota.
#[test]
fn who_waits_is_timed_anew() {
    let before = [Try { n: 1, now: 0 }];
    let enter = [Enter { who: 0, n: 1, now: 5, deadline: u64::MAX }];
    let change = [SetQuota { law: Law::new(10, 1), now: 6 }];
    Program::new(Law::new(100, 1), &before, [&enter, &change]).check_line();
}

/// Setters follow each other, and what is left goes through both.
#[test]
fn one_change_comes_after_the_other() {
    let before = [Try { n: 3, now: 100 }];
    let slower = [SetQuota { law: Law::new(100, 5), now: 110 }, Look { now: 120 }];
    let faster = [SetQuota { law: Law::new(2, 2), now: 115 }, Try { n: 1, now: 115 }];
    Program::new(Law::new(10, 3), &before, [&slower, &faster]).check_bucket();
}
