//! A line in front of a fixed window, with clocks on both sides of an edge.

pub(crate) mod broken;
pub(crate) mod reference;

use std::time::Duration;

use tollgate::model::Shaping;
use tollgate::{FixedWindow, FixedWindowLaw, ManualClock, Quota};

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{self, Enter, GiveBack, Leave, Step, Try};
use crate::reference::real::Line;

const fn enter(who: usize, now: u64) -> Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

const fn take(now: u64) -> Op {
    Try { n: 1, now }
}

/// So many permits in each window of ten.
const fn each_ten(permits: u64) -> Law {
    Law::new(10, permits)
}

/// The crate's queue.
pub(crate) fn real(law: Law) -> Line<FixedWindowLaw> {
    let quota = Quota::new(law.burst, Duration::from_nanos(law.interval)).unwrap();
    Line::of(Shaping::over(FixedWindow::with_clock(quota, ManualClock::new()), usize::MAX))
}

/// One enters the line before the edge, by its clock; another opens the window behind it.
pub(crate) fn entering() -> Program {
    Program::new(each_ten(1), &[take(0)], [&[enter(0, 9)], &[take(10), take(11)]])
}

#[test]
fn who_enters_before_the_edge_is_not_overtaken_behind_it() {
    entering().check_window_line();
}

/// Two windows are opened at once, by clocks that differ.
pub(crate) fn opening() -> Program {
    Program::new(each_ten(1), &[take(0)], [&[take(10), take(20)], &[take(19), take(20)]])
}

#[test]
fn a_window_is_opened_once() {
    opening().check_window_line();
}

/// Of two in line each asks by its own clock as the window comes.
pub(crate) fn granting() -> Program {
    let before = [take(0), enter(0, 0), enter(1, 0)];
    Program::new(each_ten(1), &before, [&[Step { who: 0, now: 10 }], &[Step { who: 1, now: 20 }]])
}

#[test]
fn each_window_is_given_to_the_next_in_line() {
    granting().check_window_line();
}

/// The head leaves as its window comes.
pub(crate) fn leaving() -> Program {
    let before = [take(0), enter(0, 0)];
    Program::new(each_ten(1), &before, [&[Leave { who: 0, now: 10 }], &[take(10), enter(1, 10)]])
}

#[test]
fn a_leaver_meets_its_own_window() {
    leaving().check_window_line();
}

/// A grant that nobody collected is given back as the next window is opened.
pub(crate) fn leaving_behind_the_edge() -> Program {
    let before = [take(0), enter(0, 0), take(10)];
    Program::new(each_ten(1), &before, [&[Leave { who: 0, now: 20 }], &[take(20), enter(1, 21)]])
}

#[test]
fn a_leaver_gives_nothing_back_to_another_window() {
    leaving_behind_the_edge().check_window_line();
}

/// A permit of a window comes back while the next is opened.
#[test]
fn a_permit_is_not_given_back_behind_an_edge_that_was_passed() {
    let before = [enter(0, 0), enter(1, 0)];
    let gives_back = [GiveBack { who: 0, now: 9 }];
    Program::new(each_ten(1), &before, [&gives_back, &[Step { who: 1, now: 10 }, take(10)]]).check_window_line();
}

/// The line empties at an edge as newcomers arrive.
#[test]
fn a_newcomer_meets_the_last_of_a_window() {
    let before = [take(0), take(0), enter(0, 0), enter(1, 0)];
    let collects = [Step { who: 0, now: 10 }];
    Program::new(each_ten(2), &before, [&collects, &[take(19), enter(2, 20)]]).check_window_line();
}

/// A deadline at the edge itself is in time, and one before it is not.
#[test]
fn a_deadline_meets_its_window() {
    let before = [take(0), Enter { who: 0, n: 1, now: 0, deadline: 10 }];
    let late = [Enter { who: 1, n: 1, now: 9, deadline: 19 }, take(20)];
    Program::new(each_ten(1), &before, [&[Step { who: 0, now: 12 }], &late]).check_window_line();
}
