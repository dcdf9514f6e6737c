//! Grants against grants: none is doubled, none is lost, and a refusal changes nothing.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, Look, Peek, Try};

/// Two are there, and three ask.
pub(crate) fn three_for_two() -> Program {
    let one = [Try { n: 1, now: 0 }];
    Program::new(Law::new(10, 2), &[], [&one, &one, &one])
}

#[test]
fn two_of_three_are_granted() {
    three_for_two().check_bucket();
}

/// The same in front of a line that nobody waits in.
#[test]
fn two_of_three_pass_a_line() {
    three_for_two().check_line();
}

/// Who is refused two does not take the one that is there from another.
pub(crate) fn two_beside_one() -> Program {
    let before = [Try { n: 1, now: 0 }];
    let (two, one, looks) = ([Try { n: 2, now: 0 }], [Try { n: 1, now: 0 }], [Peek { n: 1, now: 5 }]);
    Program::new(Law::new(10, 2), &before, [&two, &one, &looks])
}

#[test]
fn a_refusal_changes_nothing() {
    two_beside_one().check_bucket();
}

/// Times come out of order between threads.
#[test]
fn late_times_admit_nothing_extra() {
    let early = [Try { n: 1, now: 5 }, Try { n: 1, now: 25 }];
    let late = [Try { n: 1, now: 20 }, Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 2), &[], [&early, &late]).check_bucket();
}

/// The grant that would leave the time field moves the origin with it, in one step.
#[test]
fn a_grant_at_the_end_of_the_field_is_granted_once() {
    let end = (1 << 59) - 5;
    let before = [Try { n: 1, now: end - 10 }];
    let beyond = [Try { n: 1, now: end }, Try { n: 1, now: end }];
    let another = [Try { n: 1, now: end }, Look { now: end + 10 }];
    Program::new(Law::new(10, 2), &before, [&beyond, &another]).check_bucket();
}

/// A queue moves its origin under the lock, a grant without a lock looks again.
#[test]
fn a_queue_moves_its_origin_between_grants() {
    let half = 1 << 58;
    let before = [Try { n: 2, now: half - 10 }];
    let without_lock = [Try { n: 1, now: half - 1 }, Try { n: 1, now: half - 1 }];
    let moves = [Enter { who: 0, n: 1, now: half, deadline: u64::MAX }];
    Program::new(Law::new(10, 3), &before, [&without_lock, &moves]).check_line();
}
