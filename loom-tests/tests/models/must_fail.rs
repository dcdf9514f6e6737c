//! The models' own programs on limiters and queues that are wrong in one way: each must be found.

use crate::broken::{line, word};
use crate::program::{Program, model_within};
use crate::threads::{self, Broken, Flaw};
use crate::window_line::broken as window_line;
use crate::{close, grant, leave, line as models, pause, quota, refund, up_to, window_line as edge};

fn word(program: Program, flaw: word::Flaw) {
    program.check_as_bucket(move |law| word::Word::new(flaw, law));
}

fn line(program: Program, flaw: line::Flaw) {
    program.check_as_line(move |law, _, _| line::Line::new(flaw, law));
}

fn threads(program: fn(Broken), flaw: Flaw) {
    model_within(2, move || program(Broken::new(flaw)));
}

fn window_line(program: Program, flaw: window_line::Flaw) {
    program.check_as_window_line(move |law| window_line::WindowLine::new(flaw, law));
}

#[test]
fn without_a_flaw_nothing_is_found() {
    word(grant::three_for_two(), word::Flaw::Nothing);
    word(grant::two_beside_one(), word::Flaw::Nothing);
    word(refund::beside_grants(), word::Flaw::Nothing);
    word(refund::a_look_at_a_reset(), word::Flaw::Nothing);
    word(up_to::four_of_three(), word::Flaw::Nothing);
    word(pause::beside_a_grant(), word::Flaw::Nothing);
    line(models::grant_before_the_bit(), line::Flaw::Nothing);
    line(models::due_head(), line::Flaw::Nothing);
    line(models::last_grant(), line::Flaw::Nothing);
    line(models::two_advance(), line::Flaw::Nothing);
    line(leave::head(), line::Flaw::Nothing);
    line(leave::own_grant(), line::Flaw::Nothing);
    line(leave::before_another(), line::Flaw::Nothing);
    line(leave::in_hand_before_another(), line::Flaw::Nothing);
    line(refund::a_reset_beside_a_line(), line::Flaw::Nothing);
    line(up_to::due_head(), line::Flaw::Nothing);
    line(pause::beside_one_who_passes(), line::Flaw::Nothing);
    line(pause::beside_a_due_head(), line::Flaw::Nothing);
    line(pause::end_beside_those_who_enter(), line::Flaw::Nothing);
    line(close::newcomers(), line::Flaw::Nothing);
    line(close::passes(), line::Flaw::Nothing);
    threads(threads::the_time_comes, Flaw::Nothing);
    threads(threads::another_gives, Flaw::Nothing);
    threads(threads::the_quota_changes, Flaw::Nothing);
    threads(threads::the_end_comes, Flaw::Nothing);
    threads(threads::a_permit_and_the_end_come, Flaw::Nothing);
    threads(threads::two_sleep, Flaw::Nothing);
    threads(threads::one_sleeps_twice, Flaw::Nothing);
    threads(threads::one_gives_up, Flaw::Nothing);
    window_line(edge::entering(), window_line::Flaw::Nothing);
    window_line(edge::opening(), window_line::Flaw::Nothing);
    window_line(edge::granting(), window_line::Flaw::Nothing);
    window_line(edge::leaving(), window_line::Flaw::Nothing);
    window_line(edge::leaving_behind_the_edge(), window_line::Flaw::Nothing);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_that_is_a_load_and_a_store() {
    word(grant::three_for_two(), word::Flaw::LoadAndStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn one_permit_too_many() {
    word(grant::three_for_two(), word::Flaw::OneTooMany);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refused_request_that_is_charged_for_a_while() {
    word(grant::two_beside_one(), word::Flaw::ChargesBeforeItAsks);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_refund_that_is_a_load_and_a_store() {
    word(refund::beside_grants(), word::Flaw::RefundByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_reset_of_one_permit_after_the_other() {
    word(refund::a_look_at_a_reset(), word::Flaw::ResetsOneByOne);
}

#[test]
#[should_panic(expected = "no order explains")]
fn what_was_there_is_taken_whatever_happened_since() {
    word(up_to::four_of_three(), word::Flaw::TakesWhatItSaw);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_pause_of_a_bucket_that_is_a_load_and_a_store() {
    word(pause::beside_a_grant(), word::Flaw::PauseByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_quota_read_without_its_version() {
    word(quota::grants_and_a_change(), word::Flaw::QuotaWithoutVersion);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_waiting_bit_that_is_stored() {
    line(models::grant_before_the_bit(), line::Flaw::BitByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_try_that_overtakes() {
    line(models::due_head(), line::Flaw::Overtakes);
}

#[test]
#[should_panic(expected = "no order explains")]
fn what_is_there_is_taken_from_those_who_wait() {
    line(up_to::due_head(), line::Flaw::TakesFromThoseWhoWait);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_reset_that_does_not_reach_the_line() {
    line(refund::a_reset_beside_a_line(), line::Flaw::ResetsTheWordAlone);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_slot_that_was_looked_up_before_the_lock() {
    line(models::two_advance(), line::Flaw::LooksBeforeTheLock);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_that_is_lost_with_its_waiter() {
    line(leave::own_grant(), line::Flaw::NoTakeBack);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_that_is_given_back_after_a_later_one() {
    line(leave::before_another(), line::Flaw::AlwaysTakesBack);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_permit_in_hand_that_is_given_back_after_a_later_grant() {
    line(leave::in_hand_before_another(), line::Flaw::AlwaysGivesBack);
}

#[test]
#[should_panic(expected = "no order explains")]
fn who_moves_up_is_not_woken() {
    line(leave::head(), line::Flaw::NoWakeUp);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_pause_of_a_line_that_is_a_load_and_a_store() {
    line(pause::beside_one_who_passes(), line::Flaw::PauseByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_pause_of_what_was_seen_before_the_lock() {
    line(pause::beside_a_due_head(), line::Flaw::PausesWhatItSawBeforeTheLock);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_of_what_was_due_before_a_pause() {
    line(pause::beside_a_due_head(), line::Flaw::GrantsWhatWasDueBeforeAPause);
}

#[test]
#[should_panic(expected = "no order explains")]
fn the_end_of_a_pause_that_wakes_nobody() {
    line(pause::end_beside_those_who_enter(), line::Flaw::ResumesWithoutAWakeUp);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_closed_line_that_is_not_drained() {
    line(close::newcomers(), line::Flaw::ClosesWithoutDraining);
}

#[test]
#[should_panic(expected = "no order explains")]
fn an_end_that_who_passes_does_not_see() {
    line(close::passes(), line::Flaw::ClosesWithoutTheBit);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_alarm_that_is_set_for_a_time_that_has_come() {
    threads(threads::the_time_comes, Flaw::SetsItsAlarmUnseen);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_not_noted() {
    threads(threads::another_gives, Flaw::NotesNoWakeUp);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_forgotten_before_the_sleep() {
    threads(threads::the_quota_changes, Flaw::ForgetsBeforeItSleeps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_end_that_is_forgotten_before_the_sleep() {
    threads(threads::the_end_comes, Flaw::ForgetsBeforeItSleeps);
}

#[test]
#[should_panic(expected = "a permit was made")]
fn a_wake_up_that_is_taken_for_a_permit() {
    threads(threads::a_permit_and_the_end_come, Flaw::TakesAWakeUpForAPermit);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_second_wake_up_that_is_forgotten_before_the_sleep() {
    threads(threads::one_sleeps_twice, Flaw::ForgetsBeforeItSleeps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_goes_to_another_thread() {
    threads(threads::two_sleep, Flaw::SharesABed);
}

#[test]
#[should_panic(expected = "made or lost")]
fn a_permit_that_is_lost_with_the_thread_that_gives_up() {
    threads(threads::one_gives_up, Flaw::GoesUnseen);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_window_that_is_opened_by_a_store() {
    window_line(edge::opening(), window_line::Flaw::OpensByStore);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_new_window_that_is_nobodys_turn() {
    window_line(edge::entering(), window_line::Flaw::OvertakesAtTheEdge);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_window_that_was_looked_up_before_the_lock() {
    window_line(edge::granting(), window_line::Flaw::LooksBeforeTheLock);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_permit_that_comes_back_to_another_window() {
    window_line(edge::leaving_behind_the_edge(), window_line::Flaw::GivesBackToAnyWindow);
}
