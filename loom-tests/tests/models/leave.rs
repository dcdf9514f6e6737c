//! Who gives up leaves no hole and no debt, and gives nothing back that would make two departures in one interval.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Enter, GiveBack, Leave, Step, Try};

const fn enter(who: usize, now: u64) -> crate::reference::Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

/// The head leaves as its slot comes.
pub(crate) fn own_grant() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let leaves = [Leave { who: 0, now: 10 }];
    Program::new(Law::new(10, 1), &before, [&leaves, &[Try { n: 1, now: 10 }, enter(1, 10)]])
}

#[test]
fn a_leaver_meets_its_own_grant() {
    own_grant().check_line();
}

/// The head leaves while those behind it are granted; who moves up is woken in time.
pub(crate) fn head() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0), enter(1, 0), enter(2, 0)];
    let leaves = [Leave { who: 0, now: 5 }];
    let steps = [Step { who: 1, now: 10 }];
    Program::new(Law::new(10, 1), &before, [&leaves, &steps])
}

#[test]
fn a_head_that_leaves_moves_the_others_up() {
    head().check_line();
}

/// A grant that nobody collected is given back, unless another one was made after it.
pub(crate) fn before_another() -> Program {
    let before = [Try { n: 1, now: 0 }, enter(0, 0), Try { n: 1, now: 10 }];
    let leaves = [Leave { who: 0, now: 20 }];
    let takes = [Try { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &before, [&leaves, &takes])
}

#[test]
fn a_grant_before_another_is_not_given_back_by_leaving() {
    before_another().check_line();
}

/// The same for a permit in hand: it comes back before the next grant, or not at all.
pub(crate) fn in_hand_before_another() -> Program {
    let (gives_back, takes) = ([GiveBack { who: 0, now: 10 }], [Try { n: 1, now: 10 }, Try { n: 1, now: 10 }]);
    Program::new(Law::new(10, 1), &[enter(0, 0)], [&gives_back, &takes])
}

#[test]
fn a_permit_before_another_is_not_given_back() {
    in_hand_before_another().check_line();
    let before = [enter(0, 0), enter(1, 0)];
    let (gives_back, takes) = ([GiveBack { who: 0, now: 0 }], [Try { n: 1, now: 10 }, Try { n: 1, now: 10 }]);
    Program::new(Law::new(10, 2), &before, [&gives_back, &takes]).check_line();
}

/// Of two in hand both come back if the later one is the first to do so.
#[test]
fn the_last_permit_is_given_back_first() {
    let before = [enter(0, 0)];
    let gives_back = [GiveBack { who: 0, now: 0 }];
    let later = [enter(1, 0), GiveBack { who: 1, now: 1 }, Try { n: 2, now: 1 }];
    Program::new(Law::new(10, 2), &before, [&gives_back, &later]).check_line();
}

/// A permit that comes back is the next one's in line at once.
#[test]
fn a_permit_given_back_goes_to_the_head() {
    let before = [enter(0, 0)];
    let gives_back = [GiveBack { who: 0, now: 0 }];
    Program::new(Law::new(10, 1), &before, [&gives_back, &[enter(1, 0), Try { n: 1, now: 0 }]]).check_line();
}
