//! A pause admits nothing, and what was left at its start is left at its end.

use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, Refused, TokenBucket};

use crate::bucket_control::{paused, told};
use crate::{DAY, HOUR, MILLISECOND, NANOSECOND, SECOND, YEAR, bucket, quota};

#[test]
fn a_pause_of_ten_seconds_admits_nothing_for_ten_seconds() {
    let bucket = bucket(1, SECOND, 3);
    bucket.pause_until_at(11 * SECOND, SECOND);
    for (now, wait) in [(SECOND, 10 * SECOND), (6 * SECOND, 5 * SECOND), (11 * SECOND - NANOSECOND, NANOSECOND)] {
        assert_eq!(bucket.try_acquire_at(now), paused(1, wait));
        assert_eq!(bucket.peek_at(3, now), paused(3, wait));
        assert_eq!(told(&bucket, now), (0, Some(wait), Some(wait)));
    }
    assert_eq!(bucket.try_acquire_n_at(3, 11 * SECOND), Ok(()));
}

#[test]
fn a_pause_reads_the_clock() {
    let clock = ManualClock::at(SECOND);
    let bucket = TokenBucket::with_clock(quota(1, SECOND, 3), clock.clone());
    bucket.pause_for(10 * SECOND);
    assert_eq!(bucket.try_acquire(), paused(1, 10 * SECOND));
    bucket.pause_until(5 * SECOND);
    assert_eq!(bucket.try_acquire(), paused(1, 4 * SECOND));
    bucket.resume();
    assert_eq!((bucket.try_acquire_n(3), bucket.available()), (Ok(()), 0));
    bucket.refund(1);
    assert_eq!((bucket.acquire_up_to(5), bucket.available()), (1, 0));
    bucket.reset();
    assert_eq!(bucket.available(), 3);
}

#[test]
fn an_earlier_end_shortens_a_pause() {
    let bucket = bucket(1, SECOND, 3);
    bucket.pause_until_at(100 * SECOND, 0);
    bucket.pause_until_at(10 * SECOND, 5 * SECOND);
    assert_eq!(bucket.try_acquire_at(5 * SECOND), paused(1, 5 * SECOND));
    assert_eq!(bucket.try_acquire_at(10 * SECOND), Ok(()));
}

#[test]
fn a_later_end_prolongs_a_pause() {
    let bucket = bucket(1, SECOND, 3);
    bucket.pause_until_at(10 * SECOND, 0);
    bucket.pause_until_at(100 * SECOND, 5 * SECOND);
    assert_eq!(bucket.try_acquire_at(10 * SECOND), paused(1, 90 * SECOND));
    assert_eq!(bucket.try_acquire_n_at(3, 100 * SECOND), Ok(()));
}

#[test]
fn to_resume_gives_back_what_was_left_and_nothing_more() {
    let bucket = bucket(1, SECOND, 3);
    assert_eq!(bucket.try_acquire_n_at(2, 0), Ok(()));
    bucket.pause_until_at(HOUR, 500 * MILLISECOND);
    bucket.resume_at(100 * SECOND);
    assert_eq!(bucket.available_at(100 * SECOND), 1);
    // Half a permit had come in before the pause.
    assert_eq!(bucket.available_at(100_500 * MILLISECOND - NANOSECOND), 1);
    assert_eq!(bucket.available_at(100_500 * MILLISECOND), 2);
}

#[test]
fn to_resume_without_a_pause_changes_nothing() {
    let bucket = bucket(1, SECOND, 3);
    assert_eq!(bucket.try_acquire_n_at(2, 0), Ok(()));
    let before = bucket.snapshot_at(300 * MILLISECOND);
    bucket.resume_at(200 * MILLISECOND);
    assert_eq!(bucket.snapshot_at(300 * MILLISECOND), before);
}

#[test]
fn a_pause_that_ended_in_the_past_does_nothing() {
    let bucket = bucket(1, SECOND, 3);
    assert_eq!(bucket.try_acquire_n_at(2, 10 * SECOND), Ok(()));
    let before = bucket.snapshot_at(10 * SECOND);
    for end in [Duration::ZERO, 9 * SECOND, 10 * SECOND] {
        bucket.pause_until_at(end, 10 * SECOND);
        assert_eq!(bucket.snapshot_at(10 * SECOND), before);
    }
}

#[test]
fn a_pause_until_now_ends_the_one_that_lasts() {
    let bucket = bucket(1, SECOND, 3);
    bucket.pause_until_at(HOUR, 0);
    bucket.pause_until_at(SECOND, SECOND);
    assert_eq!(bucket.try_acquire_n_at(3, SECOND), Ok(()));
}

#[test]
fn a_retry_after_of_31_years_is_believed_for_as_long_as_the_limiter_allows() {
    let builder = || TokenBucket::builder(quota(1, SECOND, 3)).clock(ManualClock::new());
    let (trusting, careful) = (builder().build(), builder().max_pause(60 * SECOND).build());
    for bucket in [&trusting, &careful] {
        bucket.pause_for(31 * YEAR);
    }
    assert_eq!(trusting.try_acquire_at(0), paused(1, 31 * YEAR));
    assert_eq!(careful.try_acquire_at(0), paused(1, 60 * SECOND));
    // The bound counts from each call.
    careful.pause_until_at(31 * YEAR, 50 * SECOND);
    assert_eq!(careful.try_acquire_at(60 * SECOND), paused(1, 50 * SECOND));
    assert_eq!(careful.try_acquire_at(110 * SECOND), Ok(()));
    careful.pause_until_at(115 * SECOND, 110 * SECOND);
    assert_eq!(careful.try_acquire_at(110 * SECOND), paused(1, 5 * SECOND));
}

#[test]
fn where_no_pause_is_allowed_none_begins() {
    let bucket = TokenBucket::builder(quota(1, SECOND, 3)).max_pause(Duration::ZERO).clock(ManualClock::new()).build();
    bucket.pause_for(HOUR);
    assert_eq!(bucket.try_acquire_n(3), Ok(()));
}

#[test]
fn what_was_saved_before_a_pause_survives_it_and_nothing_is_gained() {
    for (taken, left) in [(0, 5), (2, 3), (5, 0)] {
        let bucket = bucket(1, SECOND, 5);
        assert_eq!(bucket.try_acquire_n_at(taken, SECOND), Ok(()));
        bucket.pause_until_at(DAY, SECOND);
        assert_eq!(bucket.available_at(DAY - NANOSECOND), 0);
        assert_eq!(bucket.available_at(DAY), left);
        assert_eq!(bucket.available_at(DAY + SECOND - NANOSECOND), left);
        assert_eq!(bucket.available_at(DAY + SECOND), 5.min(left + 1));
    }
}

#[test]
fn the_wait_told_in_a_pause_counts_what_will_be_left() {
    let bucket = bucket(1, SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(3, 0), Ok(()));
    bucket.pause_until_at(10 * SECOND, 0);
    for (n, wait) in [(1, 10), (2, 10), (3, 11), (5, 13)] {
        assert_eq!(bucket.try_acquire_n_at(n, 0), paused(n, wait * SECOND));
        assert_eq!(bucket.peek_at(n, wait * SECOND), Ok(()));
        assert!(bucket.peek_at(n, wait * SECOND - NANOSECOND).is_err());
    }
    assert_eq!(told(&bucket, SECOND), (0, Some(9 * SECOND), Some(12 * SECOND)));
    assert_eq!(bucket.try_acquire_n_at(6, 0), Err(Refused::ExceedsCapacity { asked: 6, capacity: 5 }));
    assert_eq!(bucket.try_acquire_n_at(0, 0), Ok(()));
}

#[test]
fn a_pause_at_the_edges_of_time() {
    let last = Duration::from_nanos(u64::MAX);
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(quota(1, SECOND, 3), clock.clone());
    bucket.pause_until_at(0, 0);
    bucket.pause_for(Duration::ZERO);
    assert_eq!(bucket.available_at(0), 3);
    for forever in [Nanos::MAX, Nanos::from(Duration::MAX)] {
        bucket.pause_until(forever);
        assert_eq!(bucket.try_acquire_at(0), paused(1, last));
        bucket.pause_for(Duration::MAX);
        assert_eq!(bucket.try_acquire_at(SECOND), paused(1, last - SECOND));
    }
    // The last instant is the end, and it is one.
    assert_eq!(bucket.try_acquire_at(last - NANOSECOND), paused(1, NANOSECOND));
    assert_eq!(bucket.try_acquire_at(last), Ok(()));
    // No later end can be told.
    bucket.pause_until_at(Nanos::MAX, last);
    clock.set(Nanos::MAX);
    bucket.pause_for(Duration::MAX);
    assert_eq!(bucket.available_at(last), 2);
}

#[test]
fn a_new_quota_during_a_pause_carries_what_is_left_and_the_pause_goes_on() {
    let bucket = bucket(1, SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(3, 0), Ok(()));
    bucket.pause_until_at(10 * SECOND, 0);
    bucket.set_quota_at(quota(10, SECOND, 20), 5 * SECOND);
    assert_eq!(bucket.try_acquire_at(5 * SECOND), paused(1, 5 * SECOND));
    assert_eq!(told(&bucket, 5 * SECOND), (0, Some(5 * SECOND), Some(6_800 * MILLISECOND)));
    assert_eq!(bucket.available_at(10 * SECOND), 2);
    assert_eq!(bucket.available_at(10_100 * MILLISECOND), 3);
}

#[test]
fn unlimited_is_paused_too() {
    let bucket = TokenBucket::with_clock(Quota::UNLIMITED, ManualClock::new());
    bucket.pause_until_at(10 * SECOND, 0);
    assert_eq!(bucket.try_acquire_n_at(u64::MAX, SECOND), paused(u64::MAX, 9 * SECOND));
    assert_eq!(told(&bucket, SECOND), (0, Some(9 * SECOND), Some(9 * SECOND)));
    assert_eq!(bucket.acquire_up_to_at(u64::MAX, SECOND), 0);
    assert_eq!(bucket.try_acquire_n_at(u64::MAX, 10 * SECOND), Ok(()));
}

#[test]
fn at_rate_zero_a_pause_has_an_end_only_for_what_will_be_left() {
    let bucket = bucket(0, SECOND, 3);
    assert_eq!(bucket.try_acquire_at(0), Ok(()));
    bucket.pause_until_at(10 * SECOND, 0);
    assert_eq!(bucket.try_acquire_n_at(2, SECOND), paused(2, 9 * SECOND));
    assert_eq!(bucket.try_acquire_n_at(3, SECOND), Err(Refused::Never { asked: 3, remaining: 0 }));
    assert_eq!(told(&bucket, SECOND), (0, Some(9 * SECOND), None));
    bucket.reset_at(SECOND);
    assert_eq!(told(&bucket, SECOND), (0, Some(9 * SECOND), Some(9 * SECOND)));
    assert_eq!(bucket.try_acquire_n_at(3, 10 * SECOND), Ok(()));
}

#[test]
fn a_clock_set_back_during_a_pause_mints_nothing() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(10, 100 * SECOND), Ok(()));
    bucket.pause_until_at(200 * SECOND, 100 * SECOND);
    bucket.resume_at(50 * SECOND);
    assert_eq!((bucket.available_at(50 * SECOND), bucket.available_at(100 * SECOND)), (0, 0));
    assert_eq!(bucket.available_at(101 * SECOND), 1);
}

#[test]
fn a_clock_set_back_into_a_pause_that_is_over_mints_nothing() {
    let bucket = bucket(1, SECOND, 10);
    bucket.pause_until_at(110 * SECOND, 100 * SECOND);
    assert_eq!(bucket.try_acquire_n_at(10, 120 * SECOND), Ok(()));
    bucket.resume_at(105 * SECOND);
    assert_eq!(bucket.available_at(120 * SECOND), 0);
    bucket.pause_until_at(107 * SECOND, 105 * SECOND);
    assert_eq!(bucket.available_at(120 * SECOND), 0);
}

#[test]
fn a_pause_set_by_a_clock_set_back_admits_nothing_before_its_end() {
    let zero = bucket(0, SECOND, 3);
    let unlimited = bucket(1, SECOND, 3);
    zero.set_quota_at(quota(0, SECOND, 5), 100 * SECOND);
    unlimited.set_quota_at(Quota::UNLIMITED, 100 * SECOND);
    for bucket in [zero, unlimited] {
        bucket.pause_until_at(80 * SECOND, 50 * SECOND);
        for now in [50 * SECOND, 60 * SECOND, 80 * SECOND - NANOSECOND] {
            assert_eq!(bucket.available_at(now), 0, "at {now:?}");
        }
        assert!(bucket.available_at(100 * SECOND) > 0);
    }
}
