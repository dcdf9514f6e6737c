//! A thread whose clock is behind, while a key at rest by another's loses its slot.

use super::{Program, look, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ANN, BOB};

const LAW: Law = Law::new(10, 1);

/// The key that loses its slot is asked for by a clock by which it is still busy.
fn old_owner() -> Program {
    Program::new(LAW, &[take(ANN, 0)], [&[take(ANN, 5)], &[take(BOB, 20)]], &[look(ANN, 5), look(BOB, 5)])
}

#[test]
fn a_clock_that_is_behind_makes_no_busy_key_new() {
    old_owner().check();
}

/// Whoever takes the slot by a clock that is behind owes from the horizon on.
fn new_owner() -> Program {
    let threads: [&[_]; 2] = [&[take(BOB, 20)], &[take(ANN, 5), look(BOB, 15)]];
    Program::new(LAW, &[take(ANN, 0)], threads, &[look(ANN, 5), look(BOB, 5)])
}

#[test]
fn a_key_that_comes_back_is_judged_at_the_horizon() {
    new_owner().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    old_owner().check_broken(Flaw::Nothing);
    new_owner().check_broken(Flaw::Nothing);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_table_without_a_horizon() {
    old_owner().check_broken(Flaw::NoHorizon);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_horizon_that_is_raised_after_the_mark() {
    old_owner().check_broken(Flaw::HorizonAfterMark);
}
