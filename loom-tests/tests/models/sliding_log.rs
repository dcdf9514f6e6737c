//! The word of the sliding log and its ring: a refusal against a grant, and what changes both.

use crate::laws::flawed::{FlawedLog, LogFlaw};
use crate::laws::log::List;
use crate::laws::{Log, law};
use crate::program::Program;
use crate::reference::Op::{self, Look, Pause, Peek, Refund, Reset, SetQuota, Try, UpTo};

const LENGTH: u64 = 10;

fn check(program: Program) {
    let reference = List::new(program.law);
    program.check_as(reference, Log::new, |now| Look { now });
}

fn flawed(program: Program, flaw: LogFlaw) {
    let reference = List::new(program.law);
    program.check_as(reference, move |law| FlawedLog::new(flaw, law), |now| Peek { n: 1, now });
}

const fn one(now: u64) -> Op {
    Try { n: 1, now }
}

/// Two per ten nanoseconds.
fn two<const THREADS: usize>(before: &[Op], threads: [&[Op]; THREADS]) -> Program {
    Program::new(law(2, LENGTH), before, threads)
}

fn one_too_many() -> Program {
    two(&[], [&[one(0)], &[one(0)], &[one(0)]])
}

/// The grant at 10 takes the place of the first time, on which the refusal at 9 rests.
fn refusal_beside_a_grant() -> Program {
    two(&[one(0), one(5)], [&[one(10)], &[one(9)], &[Peek { n: 1, now: 9 }]])
}

/// Two threads whose times are on both sides of the instant at which the first permit leaves.
fn around_an_edge() -> Program {
    two(&[one(0), one(5)], [&[one(9), one(10)], &[one(11), one(9)]])
}

/// One per ten: what a look at 29 rests on is the time that the grant at 30 writes, in a place that held another.
fn newest_time() -> Program {
    Program::new(law(1, LENGTH), &[one(0), one(10), one(20)], [&[one(30)], &[Peek { n: 1, now: 29 }]])
}

/// While the refusal at 9 looks, three grants go once around the ring.
fn lap_beside_a_refusal() -> Program {
    two(&[one(0), one(5)], [&[one(10), one(15), one(20)], &[one(9)]])
}

#[test]
fn as_many_as_are_left_are_granted() {
    check(one_too_many());
}

#[test]
fn a_refusal_rests_on_times_that_the_word_tells() {
    check(refusal_beside_a_grant());
}

#[test]
fn a_late_time_counts_as_the_last_one() {
    check(around_an_edge());
}

#[test]
fn a_word_names_times_that_are_there() {
    check(newest_time());
}

#[test]
fn a_refusal_is_confirmed_after_a_lap() {
    check(lap_beside_a_refusal());
}

/// Two at once are there both or not at all.
#[test]
fn a_look_sees_a_grant_of_two_whole() {
    let grants = [Try { n: 2, now: 10 }];
    check(two(&[Try { n: 2, now: 0 }], [&grants, &[Look { now: 9 }, Look { now: 10 }]]));
}

/// A refund takes out the newest, and no grant's time stands in for another's.
#[test]
fn a_refund_does_not_undo_a_grant() {
    let refunds = [Refund { n: 1, now: 6 }, one(6)];
    check(two(&[one(0), one(5)], [&refunds, &[one(10), Look { now: 10 }]]));
}

/// Who takes what is there takes all of it.
#[test]
fn what_is_there_is_taken_whole() {
    let refunds = [Refund { n: 1, now: 6 }, one(7)];
    check(two(&[one(0), one(5)], [&refunds, &[UpTo { n: 9, now: 10 }]]));
}

#[test]
fn a_reset_undoes_no_later_grant() {
    check(two(&[one(0), one(5)], [&[Reset { now: 6 }, one(6)], &[UpTo { n: 2, now: 10 }, Look { now: 11 }]]));
}

/// After a refund the same head is another word.
#[test]
fn a_look_does_not_mix_two_lives_of_a_position() {
    let again = [Refund { n: 2, now: 5 }, one(6), one(8)];
    check(two(&[one(0), one(5)], [&again, &[Look { now: 9 }]]));
}

#[test]
fn a_grant_comes_before_a_pause_or_after_it() {
    let pauses = [Pause { end: 25, now: 9 }, one(12)];
    check(two(&[one(0), one(5)], [&pauses, &[one(10), one(25)]]));
}

/// A larger limit moves the times to a larger ring, another length counts them as taken now.
#[test]
fn a_grant_is_by_one_quota() {
    let changes = [SetQuota { law: law(5, LENGTH), now: 9 }, SetQuota { law: law(2, 6), now: 11 }];
    check(two(&[one(0), one(5)], [&changes, &[one(10), one(11)]]));
}

#[test]
fn a_refusal_is_by_one_quota() {
    let changes = [SetQuota { law: law(5, LENGTH), now: 9 }];
    check(two(&[one(0), one(5)], [&changes, &[Try { n: 2, now: 9 }], &[Look { now: 10 }]]));
}

#[test]
fn without_a_flaw_nothing_is_found() {
    flawed(one_too_many(), LogFlaw::Nothing);
    flawed(refusal_beside_a_grant(), LogFlaw::Nothing);
    flawed(newest_time(), LogFlaw::Nothing);
    flawed(lap_beside_a_refusal(), LogFlaw::Nothing);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_ring_with_room_for_the_limit_alone() {
    flawed(refusal_beside_a_grant(), LogFlaw::RoomForTheLimit);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_word_that_is_ahead_of_its_times() {
    flawed(newest_time(), LogFlaw::WordBeforeTimes);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_that_is_decided_before_the_lock() {
    flawed(one_too_many(), LogFlaw::LooksOnlyBeforeTheLock);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refusal_that_is_not_confirmed() {
    flawed(lap_beside_a_refusal(), LogFlaw::RefusesWithoutLookingAgain);
}
