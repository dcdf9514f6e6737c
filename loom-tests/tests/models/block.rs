//! Threads that wait: no wake-up is lost between a look and the sleep, and no permit between a grant and the end of a wait.

use crate::program::{model, model_within};
use crate::threads::{self, Real};

#[test]
fn a_thread_that_goes_to_sleep_does_not_miss_its_time() {
    model(|| threads::the_time_comes(Real::new()));
}

#[test]
fn a_thread_that_goes_to_sleep_does_not_miss_its_permit() {
    model(|| threads::another_gives(Real::new()));
}

#[test]
fn a_thread_that_goes_to_sleep_does_not_miss_another_quota() {
    model(|| threads::the_quota_changes(Real::new()));
}

#[test]
fn a_thread_that_goes_to_sleep_does_not_miss_the_end() {
    model(|| threads::the_end_comes(Real::new()));
}

#[test]
fn a_thread_that_sleeps_twice_is_woken_twice() {
    model(|| threads::one_sleeps_twice(Real::new()));
}

#[test]
fn a_thread_that_gives_up_is_granted_or_leaves_the_permit() {
    model(|| threads::one_gives_up(Real::new()));
}

#[test]
fn two_threads_that_sleep_are_both_woken() {
    model_within(2, || threads::two_sleep(Real::new()));
}

#[test]
fn a_permit_and_the_end_wake_two_threads() {
    model_within(2, || threads::a_permit_and_the_end_come(Real::new()));
}
