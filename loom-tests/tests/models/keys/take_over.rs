//! A slot at rest that a newcomer takes over, while its old owner and its new one are at work.

use super::{Program, look, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ANN, BOB};

const LAW: Law = Law::new(10, 2);

/// The old owner comes back as its slot is taken.
fn beside_charges_of_the_old_owner() -> Program {
    let after = [look(ANN, 20), look(BOB, 20)];
    Program::new(LAW, &[take(ANN, 0)], [&[take(ANN, 20), take(ANN, 20)], &[take(BOB, 20)]], &after)
}

#[test]
fn a_charge_of_the_old_owner_is_nobody_elses_and_not_lost() {
    beside_charges_of_the_old_owner().check();
}

/// The new owner is asked for by two, who both find a slot that is being taken.
fn beside_charges_of_the_new_owner() -> Program {
    let after = [look(ANN, 20), look(BOB, 20)];
    Program::new(LAW, &[take(ANN, 0)], [&[take(BOB, 20)], &[take(BOB, 20)]], &after)
}

#[test]
fn a_charge_of_the_new_owner_is_not_lost() {
    beside_charges_of_the_new_owner().check();
}

/// Both owners are looked at.
fn beside_looks() -> Program {
    let looks = [look(ANN, 20), look(BOB, 20)];
    Program::new(LAW, &[take(ANN, 0)], [&looks, &[take(BOB, 20), take(BOB, 20)]], &looks)
}

#[test]
fn a_look_sees_one_owner() {
    beside_looks().check();
}

/// By one clock the slot is taken over, by another its owner is still busy.
fn beside_a_refusal() -> Program {
    let after = [look(ANN, 20), look(BOB, 20)];
    Program::new(Law::new(10, 1), &[take(ANN, 0)], [&[take(BOB, 20)], &[take(BOB, 5)]], &after)
}

#[test]
fn nobody_is_refused_for_what_another_owes() {
    beside_a_refusal().check();
}

/// The same for one who only looks.
fn beside_a_look() -> Program {
    let after = [look(ANN, 20), look(BOB, 20)];
    Program::new(Law::new(10, 1), &[take(ANN, 0)], [&[take(BOB, 20)], &[look(BOB, 5)]], &after)
}

#[test]
fn nobody_is_told_what_another_owes() {
    beside_a_look().check();
}

/// The slot goes on to a third key.
fn twice() -> Program {
    let after = [look(ANN, 40), look(BOB, 40)];
    let threads: [&[_]; 2] = [&[take(ANN, 40)], &[take(BOB, 20), take(ANN, 40)]];
    Program::new(LAW, &[take(ANN, 0)], threads, &after)
}

#[test]
fn a_slot_may_go_from_key_to_key() {
    twice().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    let programs = [
        beside_charges_of_the_old_owner,
        beside_charges_of_the_new_owner,
        beside_looks,
        beside_a_refusal,
        beside_a_look,
        twice,
    ];
    for program in programs {
        program().check_broken(Flaw::Nothing);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_tag_that_is_read_before_the_word() {
    beside_charges_of_the_old_owner().check_broken(Flaw::TagBeforeWord);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_slot_that_is_not_marked() {
    beside_charges_of_the_new_owner().check_broken(Flaw::NoMark);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_word_that_is_there_before_its_tag() {
    beside_charges_of_the_old_owner().check_broken(Flaw::WordBeforeTag);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_charge_under_a_mark_that_is_stored() {
    beside_charges_of_the_old_owner().check_broken(Flaw::MarksByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refusal_that_is_not_confirmed() {
    beside_a_refusal().check_broken(Flaw::RefusesWithoutLookingAgain);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_look_that_is_not_confirmed() {
    beside_a_look().check_broken(Flaw::LooksOnce);
}
