//! Threads that wait, in more schedules than loom's few preemptions allow.

use crate::run::check;
use crate::threads::{self, Broken, Flaw, Real};

#[test]
fn threads_that_wait_all_end_and_no_permit_is_lost_or_made() {
    check(2_000, || threads::the_time_comes(Real::new()));
    check(2_000, || threads::another_gives(Real::new()));
    check(2_000, || threads::the_quota_changes(Real::new()));
    check(2_000, || threads::the_end_comes(Real::new()));
    check(4_000, || threads::a_permit_and_the_end_come(Real::new()));
    check(4_000, || threads::two_sleep(Real::new()));
    check(4_000, || threads::one_sleeps_twice(Real::new()));
    check(4_000, || threads::one_gives_up(Real::new()));
}

#[test]
fn without_a_flaw_nothing_is_found() {
    check(2_000, || threads::two_sleep(Broken::new(Flaw::Nothing)));
    check(2_000, || threads::one_gives_up(Broken::new(Flaw::Nothing)));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_not_noted_is_found() {
    check(2_000, || threads::another_gives(Broken::new(Flaw::NotesNoWakeUp)));
}

#[test]
#[should_panic(expected = "made or lost")]
fn a_permit_that_is_lost_with_the_thread_that_gives_up_is_found() {
    check(2_000, || threads::one_gives_up(Broken::new(Flaw::GoesUnseen)));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_goes_to_another_thread_is_found() {
    check(2_000, || threads::two_sleep(Broken::new(Flaw::SharesABed)));
}
