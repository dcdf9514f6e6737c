//! Permits that are given back, and resets, while the slot goes to another key.

use super::{Program, look, refund, reset, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ANN, BOB};

const LAW: Law = Law::new(10, 2);

fn both(now: u64) -> [crate::reference::keys::Call; 2] {
    [look(ANN, now), look(BOB, now)]
}

/// The owner has read its word when all is given back and a newcomer owes as much as it did.
fn before_a_charge() -> Program {
    Program::new(LAW, &[take(ANN, 0)], [&[take(ANN, 0)], &[refund(ANN, 0), take(BOB, 0)]], &both(0))
}

#[test]
fn a_charge_meets_no_newcomer_who_owes_as_much() {
    before_a_charge().check();
}

/// The same with one who gives back.
fn before_a_refund() -> Program {
    Program::new(LAW, &[take(ANN, 0)], [&[refund(ANN, 0)], &[reset(ANN, 0), take(BOB, 0)]], &both(0))
}

#[test]
fn a_refund_gives_a_newcomer_nothing() {
    before_a_refund().check();
}

/// A refund by a clock that is behind, when the slot is at rest by another.
fn beside_a_take_over() -> Program {
    let before = [take(ANN, 0), take(ANN, 0)];
    Program::new(LAW, &before, [&[refund(ANN, 5)], &[take(BOB, 20), take(BOB, 20)]], &both(5))
}

#[test]
fn a_refund_comes_before_a_take_over_or_is_none() {
    beside_a_take_over().check();
}

fn reset_beside_a_take_over() -> Program {
    let before = [take(ANN, 0), take(ANN, 0)];
    Program::new(LAW, &before, [&[reset(ANN, 5)], &[take(BOB, 20), take(BOB, 20)]], &both(5))
}

#[test]
fn a_reset_comes_before_a_take_over_or_is_none() {
    reset_beside_a_take_over().check();
}

/// A reset, charges before and after it, and a newcomer who may find the slot at rest.
fn reset_beside_charges() -> Program {
    let threads: [&[_]; 2] = [&[reset(ANN, 5), take(BOB, 5)], &[take(ANN, 5), take(ANN, 5)]];
    Program::new(LAW, &[take(ANN, 0)], threads, &both(5))
}

#[test]
fn a_reset_undoes_no_later_charge() {
    reset_beside_charges().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    let programs =
        [before_a_charge, before_a_refund, beside_a_take_over, reset_beside_a_take_over, reset_beside_charges];
    for program in programs {
        program().check_broken(Flaw::Nothing);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_charge_of_a_newcomer_without_generations() {
    before_a_charge().check_broken(Flaw::NoGeneration);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refund_to_a_newcomer_without_generations() {
    before_a_refund().check_broken(Flaw::NoGeneration);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refund_that_is_a_load_and_a_store() {
    beside_a_take_over().check_broken(Flaw::RefundByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_reset_that_is_a_load_and_a_store() {
    reset_beside_a_take_over().check_broken(Flaw::ResetByStore);
}
