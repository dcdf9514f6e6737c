//! The walk through the whole table, before a version is written over an old one.

use super::{Program, look, quota, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ANN, BOB, Call};

const LAW: Law = Law::new(10, 2);
/// What the walk makes room for.
const NEXT: Law = Law::new(100, 5);

/// So many changes, each to another quota.
fn changes(count: u64, burst: u64) -> impl Iterator<Item = Call> {
    (1..=count).map(move |change| quota(Law::new(10 + change, burst), 0))
}

/// What happens before so many changes, and then those.
fn old(before: &[Call], count: u64) -> Vec<Call> {
    before.iter().copied().chain(changes(count, 2)).collect()
}

/// A key of the first version is charged, by the last or by the one that takes the number of the first.
fn beside_charges() -> Program {
    let before = old(&[take(ANN, 0)], 14);
    Program::new(LAW, &before, [&[quota(NEXT, 5)], &[take(ANN, 5), take(ANN, 5)]], &[look(ANN, 6)])
}

#[test]
fn a_walk_meets_a_charge() {
    beside_charges().check();
}

/// The word of a newcomer who has seen an old version is there before the walk, or has seen a new one.
fn beside_a_first_sight() -> Program {
    let before = old(&[], 13);
    let last: Vec<_> = changes(13, 3).chain([look(BOB, 6)]).collect();
    Program::new(LAW, &before, [&[take(BOB, 5)], &[quota(NEXT, 5), quota(LAW, 5)]], &last)
}

#[test]
fn a_walk_meets_a_first_sight() {
    beside_a_first_sight().check();
}

/// The same in the slot of a key at rest.
fn beside_a_take_over() -> Program {
    let before = old(&[take(ANN, 0)], 13);
    let last: Vec<_> = changes(13, 3).chain([look(ANN, 50), look(BOB, 50)]).collect();
    Program::new(LAW, &before, [&[take(BOB, 50)], &[quota(NEXT, 50), quota(LAW, 50)]], &last)
}

#[test]
fn a_walk_meets_a_take_over() {
    beside_a_take_over().check();
}

/// A look through all versions, one of which is written over.
fn beside_a_look() -> Program {
    let before = old(&[take(ANN, 0), take(ANN, 0)], 14);
    Program::new(LAW, &before, [&[quota(NEXT, 5)], &[look(ANN, 5), look(BOB, 5)]], &[look(ANN, 6)])
}

#[test]
fn a_look_meets_a_walk() {
    beside_a_look().check();
}

/// Under the version that has the number of the first, the key owes as much as it did under that.
fn before_the_same_debt() -> Program {
    let before = old(&[take(ANN, 0)], 14);
    let threads: [&[_]; 2] = [&[quota(Law::new(10, 1), 0), take(ANN, 0)], &[take(ANN, 0)]];
    Program::new(LAW, &before, threads, &[look(ANN, 6)])
}

#[test]
fn a_charge_by_an_old_quota_meets_no_word_of_its_number() {
    before_the_same_debt().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    for program in [beside_charges, beside_a_first_sight, beside_a_take_over, beside_a_look, before_the_same_debt] {
        program().check_broken(Flaw::Nothing);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_version_that_is_written_over_without_a_walk() {
    beside_charges().check_broken(Flaw::NoWalk);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_walk_that_is_a_load_and_a_store() {
    beside_charges().check_broken(Flaw::WalksByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_walk_that_leaves_words_as_they_were() {
    before_the_same_debt().check_broken(Flaw::WalkKeepsGeneration);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_walk_that_passes_over_a_slot_that_is_being_taken() {
    beside_a_first_sight().check_broken(Flaw::WalkTakesNoLocks);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_look_at_a_version_that_is_written_over() {
    beside_a_look().check_broken(Flaw::LooksOnce);
}
