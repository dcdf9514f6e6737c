//! The word of the window laws: around the edge of a window, and what changes it. Each program is one of both laws.

use crate::laws::flawed::{FlawedWindow, WindowFlaw};
use crate::laws::window::Window;
use crate::laws::{Counter, Fixed, law};
use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{self, Look, Pause, Peek, Refund, Reset, SetQuota, Try, UpTo};

const LENGTH: u64 = 10;

/// Two, or four that a sliding counter has room to weigh, per ten nanoseconds.
fn limit(slides: bool) -> Law {
    law(if slides { 5 } else { 2 }, LENGTH)
}

fn check(program: fn(bool) -> Program) {
    let look = |now| Look { now };
    let (fixed, sliding) = (program(false), program(true));
    let reference = Window::new(fixed.law, false);
    fixed.check_as(reference, Fixed::new, look);
    let reference = Window::new(sliding.law, true);
    sliding.check_as(reference, Counter::new, look);
}

fn flawed(program: fn(bool) -> Program, flaw: WindowFlaw, slides: bool) {
    let program = program(slides);
    let reference = Window::new(program.law, slides);
    program.check_as(reference, move |law| FlawedWindow::new(flaw, law, slides), |now| Look { now });
}

fn one(now: u64) -> Op {
    Try { n: 1, now }
}

/// As many as are left and one more ask at the same instant.
fn one_too_many(slides: bool) -> Program {
    let before = [Try { n: if slides { 3 } else { 0 }, now: 0 }];
    Program::new(limit(slides), &before, [&[one(0)], &[one(0)], &[one(0)]])
}

/// The first grant of a window rolls it over, while another is made before its edge by a clock that is behind.
fn around_an_edge(slides: bool) -> Program {
    let before = [Try { n: if slides { 4 } else { 1 }, now: 5 }];
    Program::new(limit(slides), &before, [&[one(9), one(10)], &[one(10), one(9)]])
}

/// Three threads on both sides of an edge, one of which only looks.
fn three_around_an_edge(slides: bool) -> Program {
    let before = [Try { n: if slides { 4 } else { 1 }, now: 5 }];
    Program::new(limit(slides), &before, [&[one(9)], &[Try { n: 2, now: 12 }], &[Peek { n: 1, now: 11 }]])
}

/// A request that is refused in the new window meets one that is granted in the old one.
fn refusal_beside_a_grant(slides: bool) -> Program {
    let before = [Try { n: if slides { 4 } else { 1 }, now: 5 }];
    Program::new(limit(slides), &before, [&[Try { n: if slides { 5 } else { 3 }, now: 11 }], &[one(9), one(12)]])
}

/// Permits are given back in the old window while the new one begins.
fn refund_beside_grants(slides: bool) -> Program {
    let before = [Try { n: if slides { 5 } else { 2 }, now: 5 }];
    Program::new(limit(slides), &before, [&[Refund { n: 1, now: 9 }], &[one(10), one(9)], &[Refund { n: 1, now: 11 }]])
}

/// What is granted before a pause is carried through it.
fn pause_beside_grants(slides: bool) -> Program {
    let before = [Try { n: if slides { 3 } else { 0 }, now: 5 }];
    let pauses = [Pause { end: 25, now: 9 }, one(12)];
    Program::new(limit(slides), &before, [&pauses, &[one(9), one(25)]])
}

/// A pause by a clock that is behind, and its end, meet grants in a newer window.
fn end_of_a_pause_beside_grants(slides: bool) -> Program {
    let before = [one(5), Pause { end: 25, now: 6 }];
    Program::new(limit(slides), &before, [&[Pause { end: 8, now: 8 }, one(8)], &[one(25), one(9)]])
}

/// Another limit keeps the counts, another length carries them.
fn changes_beside_grants(slides: bool) -> Program {
    let before = [Try { n: if slides { 4 } else { 1 }, now: 5 }];
    let changes = [SetQuota { law: law(10, LENGTH), now: 9 }, SetQuota { law: law(6, 6), now: 11 }];
    Program::new(limit(slides), &before, [&changes, &[one(10), one(11)]])
}

/// Two setters follow each other, and a look sees one of their quotas.
fn changes_beside_changes(slides: bool) -> Program {
    let before = [Try { n: 2, now: 5 }];
    let (other_length, other_limit) =
        ([SetQuota { law: law(3, 6), now: 9 }], [SetQuota { law: law(10, LENGTH), now: 9 }]);
    Program::new(limit(slides), &before, [&other_length, &other_limit, &[Look { now: 9 }]])
}

/// Who takes what is there takes all of it, in the old window or in the new one.
fn what_is_there_beside_grants(slides: bool) -> Program {
    let before = [Try { n: if slides { 4 } else { 1 }, now: 5 }];
    Program::new(limit(slides), &before, [&[UpTo { n: 9, now: 11 }], &[Refund { n: 1, now: 9 }, one(12)]])
}

/// Nothing that was granted before a reset counts after it, and what comes after it does.
fn reset_beside_grants(slides: bool) -> Program {
    let before = [Try { n: 2, now: 5 }];
    Program::new(limit(slides), &before, [&[Reset { now: 9 }], &[one(10), UpTo { n: 9, now: 11 }]])
}

/// The grant that would leave the index of the word moves the origin with it, in one step.
fn end_of_the_index(slides: bool) -> Program {
    // The index has 57 bits beside a count of two, and 53 beside two of three.
    let end = (1 << if slides { 53 } else { 57 }) * LENGTH;
    let before = [one(end - 1)];
    let beyond = [one(end), one(end)];
    Program::new(limit(slides), &before, [&beyond, &[one(end + 1), one(end - 1)]])
}

#[test]
fn as_many_as_are_left_are_granted() {
    check(one_too_many);
}

#[test]
fn a_roll_over_is_part_of_the_grant_that_needs_it() {
    check(around_an_edge);
}

#[test]
fn three_see_one_edge() {
    check(three_around_an_edge);
}

#[test]
fn a_refusal_rolls_nothing() {
    check(refusal_beside_a_grant);
}

#[test]
fn a_refund_does_not_undo_a_grant_or_a_roll_over() {
    check(refund_beside_grants);
}

#[test]
fn a_grant_comes_before_a_pause_or_after_it() {
    check(pause_beside_grants);
}

#[test]
fn the_end_of_a_pause_opens_no_window_again() {
    check(end_of_a_pause_beside_grants);
}

#[test]
fn a_grant_is_by_one_quota() {
    check(changes_beside_grants);
}

#[test]
fn one_change_comes_after_the_other() {
    check(changes_beside_changes);
}

#[test]
fn what_is_there_is_taken_whole() {
    check(what_is_there_beside_grants);
}

#[test]
fn a_reset_undoes_no_later_grant() {
    check(reset_beside_grants);
}

#[test]
fn a_grant_at_the_end_of_the_index_is_granted_once() {
    check(end_of_the_index);
}

#[test]
fn without_a_flaw_nothing_is_found() {
    for slides in [false, true] {
        flawed(around_an_edge, WindowFlaw::Nothing, slides);
        flawed(refusal_beside_a_grant, WindowFlaw::Nothing, slides);
        flawed(refund_beside_grants, WindowFlaw::Nothing, slides);
        flawed(pause_beside_grants, WindowFlaw::Nothing, slides);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_roll_over_that_is_a_load_and_a_store() {
    flawed(around_an_edge, WindowFlaw::RollsByStore, false);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_roll_over_of_two_counts_that_is_a_load_and_a_store() {
    flawed(around_an_edge, WindowFlaw::RollsByStore, true);
}

#[test]
#[should_panic(expected = "no order explains")]
fn an_old_window_that_is_opened_again() {
    flawed(around_an_edge, WindowFlaw::OpensAnOldWindow, false);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refusal_that_rolls_by_a_store() {
    flawed(refusal_beside_a_grant, WindowFlaw::RefusalRolls, false);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refund_that_is_a_load_and_a_store() {
    flawed(refund_beside_grants, WindowFlaw::RefundByStore, true);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_pause_that_is_a_load_and_a_store() {
    flawed(pause_beside_grants, WindowFlaw::PauseByStore, false);
}
