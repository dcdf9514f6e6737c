//! A change of the quota of all keys, beside those that are known, first seen, and taken over.

use super::{Program, TWO, full, look, on, quota, refund, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ABE, ANN, BEN, BOB};

const LAW: Law = Law::new(10, 2);
const OTHER: Law = Law::new(100, 5);
const THIRD: Law = Law::new(7, 1);

/// A known key is charged under both quotas.
fn beside_charges() -> Program {
    let changes = [quota(OTHER, 5), take(ANN, 5), quota(THIRD, 6)];
    Program::new(LAW, &[take(ANN, 0)], [&[take(ANN, 5), take(ANN, 6)], &changes], &[look(ANN, 7)])
}

#[test]
fn a_charge_is_by_one_quota() {
    beside_charges().check();
}

/// What is told is so by one quota.
fn beside_looks() -> Program {
    let changes = [quota(OTHER, 5), take(ANN, 5), quota(THIRD, 6)];
    Program::new(LAW, &[take(ANN, 0)], [&[look(ANN, 6), on(ANN, TWO)], &changes], &[look(ANN, 7)])
}

#[test]
fn a_look_and_a_refusal_are_by_one_quota() {
    beside_looks().check();
}

/// A key is first seen, and then the quota changes, while somebody looks.
fn after_a_first_sight() -> Program {
    Program::new(LAW, &[], [&[look(ANN, 5)], &[take(ANN, 5), quota(OTHER, 5)]], &[look(ANN, 5)])
}

#[test]
fn a_look_does_not_miss_a_key_that_is_older_than_the_quota() {
    after_a_first_sight().check();
}

/// Two threads see a key first as the quota changes.
fn beside_a_first_sight() -> Program {
    let threads: [&[_]; 2] = [&[take(ANN, 5), look(ANN, 5)], &[quota(OTHER, 5), take(ANN, 6)]];
    Program::new(LAW, &[], threads, &[look(ANN, 7)])
}

#[test]
fn a_first_sight_is_by_one_quota() {
    beside_a_first_sight().check();
}

/// A slot is at rest by one quota, and was taken by another.
fn beside_a_take_over() -> Program {
    let threads: [&[_]; 2] = [&[quota(OTHER, 5), quota(THIRD, 12), take(ANN, 15)], &[take(BOB, 15)]];
    Program::new(LAW, &[take(ANN, 0)], threads, &[look(ANN, 16), look(BOB, 16)])
}

#[test]
fn a_take_over_is_by_one_quota() {
    beside_a_take_over().check();
}

/// A refund gives back under the quota in force.
fn beside_a_refund() -> Program {
    let before = [take(ANN, 0), take(ANN, 0)];
    Program::new(LAW, &before, [&[refund(ANN, 5)], &[quota(OTHER, 5), take(ANN, 6)]], &[look(ANN, 7)])
}

#[test]
fn a_refund_is_by_one_quota() {
    beside_a_refund().check();
}

/// Newcomers who share a state share it under the new quota.
fn beside_those_who_share() -> Program {
    full([&[take(ABE, 5)], &[take(BOB, 5), quota(OTHER, 5)]], &[take(BEN, 5), look(ANN, 5)]).shared()
}

#[test]
fn a_shared_state_is_carried() {
    beside_those_who_share().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    let programs = [
        beside_charges,
        beside_looks,
        after_a_first_sight,
        beside_a_first_sight,
        beside_a_take_over,
        beside_a_refund,
        beside_those_who_share,
    ];
    for program in programs {
        program().check_broken(Flaw::Nothing);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_version_that_is_read_before_the_word() {
    beside_charges().check_broken(Flaw::VersionBeforeWord);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_version_that_is_named_before_it_is_written() {
    beside_looks().check_broken(Flaw::NamesBeforeItWrites);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_version_that_is_read_after_a_key_was_not_found() {
    after_a_first_sight().check_broken(Flaw::LooksForTheVersionLast);
}
