//! Keys that several threads see first, and what they find where few places are left.

use super::{Program, full, look, refund, take};
use crate::broken::table::Flaw;
use crate::reference::Law;
use crate::reference::keys::{ABE, ANN, BEN, BOB};

const LAW: Law = Law::new(10, 2);

/// Two threads see one key first, and it has two permits.
fn one_key() -> Program {
    Program::new(LAW, &[], [&[take(ANN, 0), take(ANN, 0)], &[take(ANN, 0)]], &[look(ANN, 0)])
}

#[test]
fn threads_that_see_a_key_first_make_one_state() {
    one_key().check();
}

/// Keys of both stripes, under different locks.
fn two_keys() -> Program {
    let after = [look(ANN, 0), look(BOB, 0)];
    Program::new(LAW, &[], [&[take(ANN, 0), take(ANN, 0)], &[take(BOB, 0), look(ANN, 0)]], &after)
}

#[test]
fn newcomers_of_two_stripes_do_not_meet_in_one_slot() {
    two_keys().check();
}

/// One place is left, that of a key at rest.
fn one_slot() -> Program {
    let after = [look(ABE, 15), look(BOB, 15), look(ANN, 15)];
    full([&[take(ABE, 15)], &[take(BOB, 15)]], &after)
}

#[test]
fn a_slot_is_given_to_one_of_two_newcomers() {
    one_slot().check();
}

/// Nothing is left, until somebody gives back.
fn no_slot() -> Program {
    let after = [take(BOB, 5), take(ABE, 5), look(ANN, 5)];
    full([&[take(BOB, 5)], &[refund(ANN, 5), take(ANN, 5)]], &after)
}

#[test]
fn a_newcomer_finds_no_room_or_one_that_is_given_up() {
    no_slot().check();
}

/// Those for whom there is no slot share a state.
fn shared() -> Program {
    let after = [look(ABE, 5), look(BOB, 5), take(BEN, 5), look(ANN, 5)];
    full([&[take(ABE, 5)], &[take(BOB, 5), refund(ANN, 5)]], &after).shared()
}

#[test]
fn newcomers_without_a_slot_share_one_state() {
    shared().check();
}

#[test]
fn without_a_flaw_nothing_is_found() {
    for program in [one_key, two_keys, one_slot, no_slot, shared] {
        program().check_broken(Flaw::Nothing);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_first_sight_without_a_second_look() {
    one_key().check_broken(Flaw::NoSecondLook);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_slot_that_is_taken_by_a_store() {
    one_slot().check_broken(Flaw::MarksByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_busy_slot_that_is_taken() {
    no_slot().check_broken(Flaw::TakesABusySlot);
}
