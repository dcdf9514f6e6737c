//! A new quota carries permits over, not time.

use tollgate::{ManualClock, Quota, TokenBucket};

use crate::reference::{No, answer};
use crate::{DAY, HOUR, MILLISECOND, NANOSECOND, SECOND, bucket, quota};

// juju/ratelimit#4
#[test]
fn a_faster_quota_counts_from_the_change_on_and_keeps_the_part_that_has_come_in() {
    let bucket = bucket(1, 100 * SECOND, 1);
    assert_eq!(bucket.try_acquire_at(0), Ok(()));
    bucket.set_quota_at(quota(1, SECOND, 1), 10 * SECOND);
    assert!(bucket.try_acquire_at(10_900 * MILLISECOND - NANOSECOND).is_err());
    assert_eq!(bucket.try_acquire_at(10_900 * MILLISECOND), Ok(()));
}

// juju/ratelimit#4
#[test]
fn a_slower_quota_counts_from_the_change_on_and_keeps_the_part_that_has_come_in() {
    let bucket = bucket(1, SECOND, 1);
    assert_eq!(bucket.try_acquire_at(0), Ok(()));
    bucket.set_quota_at(quota(1, 100 * SECOND, 1), 500 * MILLISECOND);
    let first = 50_500 * MILLISECOND;
    assert!(bucket.try_acquire_at(first - NANOSECOND).is_err());
    assert_eq!(bucket.try_acquire_at(first), Ok(()));
    assert!(bucket.try_acquire_at(first + 100 * SECOND - NANOSECOND).is_err());
    assert_eq!(bucket.try_acquire_at(first + 100 * SECOND), Ok(()));
}

// SGrondin/bottleneck#185
#[test]
fn the_same_quota_set_again_and_again_neither_stops_nor_speeds_the_refill() {
    let bucket = bucket(1, SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    for step in 0..=100 {
        bucket.set_quota_at(quota(1, SECOND, 5), step * 10 * MILLISECOND);
    }
    assert!(bucket.try_acquire_at(999 * MILLISECOND).is_err());
    assert_eq!(bucket.try_acquire_at(SECOND), Ok(()));
    assert!(bucket.try_acquire_at(SECOND).is_err());
}

// SGrondin/bottleneck#185
#[test]
fn old_debt_does_not_shrink_at_a_slower_rate() {
    let bucket = bucket(100, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    bucket.set_quota_at(quota(1, SECOND, 10), 0);
    assert_eq!(bucket.available_at(0), 5);
    let refused = answer(bucket.try_acquire_n_at(6, 0));
    assert_eq!(refused, Err(No::TooSoon { asked: 6, remaining: 5, retry_after: SECOND }));
}

// SGrondin/bottleneck#185
#[test]
fn a_larger_burst_is_not_filled_for_free() {
    let bucket = bucket(1, SECOND, 5);
    bucket.set_quota_at(quota(1, SECOND, 10), HOUR);
    assert_eq!(bucket.available_at(HOUR), 5);
    assert_eq!(bucket.available_at(HOUR + 5 * SECOND), 10);
}

// SGrondin/bottleneck#185
#[test]
fn a_smaller_burst_cuts_what_is_left() {
    let bucket = bucket(1, SECOND, 10);
    bucket.set_quota_at(quota(1, SECOND, 3), HOUR);
    assert_eq!(bucket.available_at(HOUR), 3);
    assert_eq!(bucket.available_at(2 * HOUR), 3);
}

#[test]
fn a_faster_quota_gives_nothing_for_the_time_before_it() {
    let bucket = bucket(1, HOUR, 10);
    assert_eq!(bucket.try_acquire_n_at(10, 0), Ok(()));
    bucket.set_quota_at(quota(1_000, SECOND, 10), HOUR / 2);
    assert_eq!(bucket.available_at(HOUR / 2), 0);
    // Half a permit was carried over.
    assert_eq!(bucket.available_at(HOUR / 2 + MILLISECOND / 2), 1);
}

#[test]
fn a_change_with_the_clock_set_back_mints_nothing() {
    for next in [quota(1, SECOND, 10), quota(7, SECOND, 100), quota(1, DAY, 10)] {
        let bucket = bucket(1, SECOND, 10);
        assert_eq!(bucket.try_acquire_n_at(10, 1_000 * SECOND), Ok(()));
        bucket.set_quota_at(next, 0);
        assert_eq!((bucket.available_at(0), bucket.available_at(1_000 * SECOND)), (0, 0));
    }
}

#[test]
fn a_change_between_two_readings_of_an_older_time_mints_nothing() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(10, 100 * SECOND), Ok(()));
    for step in 0..100 {
        bucket.set_quota_at(quota(1 + step % 2, SECOND, 10), 100 * SECOND);
        bucket.set_quota_at(quota(1, SECOND, 10), 50 * SECOND);
        assert!(bucket.try_acquire_at(100 * SECOND).is_err());
    }
    assert_eq!(bucket.available_at(101 * SECOND), 1);
}

#[test]
fn leaving_unlimited_starts_empty() {
    let bucket = TokenBucket::with_clock(Quota::UNLIMITED, ManualClock::new());
    assert_eq!(bucket.try_acquire_n_at(u64::MAX, 10 * SECOND), Ok(()));
    bucket.set_quota_at(quota(1, SECOND, 5), 10 * SECOND);
    assert_eq!(bucket.available_at(10 * SECOND), 0);
    assert_eq!(bucket.available_at(11 * SECOND), 1);
    assert_eq!(bucket.available_at(15 * SECOND), 5);
    assert_eq!(bucket.available_at(16 * SECOND), 5);
}

#[test]
fn leaving_unlimited_by_a_clock_set_back_gives_nothing_for_the_time_between() {
    let bucket = bucket(1, SECOND, 5);
    bucket.set_quota_at(Quota::UNLIMITED, 100 * SECOND);
    bucket.set_quota_at(quota(1, SECOND, 5), 10 * SECOND);
    assert_eq!(bucket.available_at(100 * SECOND), 0);
    assert_eq!(bucket.available_at(101 * SECOND), 1);
}

#[test]
fn rate_zero_keeps_what_is_left_until_a_rate_is_set_again() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(6, 0), Ok(()));
    bucket.set_quota_at(quota(0, SECOND, 10), 0);
    assert_eq!(bucket.available_at(HOUR), 4);
    assert_eq!(bucket.try_acquire_at(HOUR), Ok(()));
    bucket.set_quota_at(quota(1, SECOND, 10), DAY);
    assert_eq!(bucket.available_at(DAY), 3);
    assert_eq!(bucket.available_at(DAY + SECOND), 4);
}

#[test]
fn a_burst_of_zero_for_a_while_empties_the_bucket() {
    let bucket = bucket(1, SECOND, 10);
    bucket.set_quota_at(quota(1, SECOND, 0), HOUR);
    assert!(bucket.try_acquire_at(2 * HOUR).is_err());
    bucket.set_quota_at(quota(1, SECOND, 10), 2 * HOUR);
    assert_eq!(bucket.available_at(2 * HOUR), 0);
    assert_eq!(bucket.available_at(2 * HOUR + SECOND), 1);
}

#[test]
fn the_quota_told_is_the_one_set_last() {
    let bucket = bucket(1, SECOND, 10);
    for permits in 0..100 {
        let next = quota(permits, HOUR, permits);
        bucket.set_quota_at(next, 0);
        assert_eq!(bucket.quota(), next);
        assert_eq!(bucket.snapshot_at(0).limit, permits);
    }
    bucket.set_quota_at(Quota::UNLIMITED, 0);
    assert!(bucket.quota().is_unlimited());
}

#[test]
fn a_change_reads_the_clock() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(quota(1, 100 * SECOND, 1), clock.clone());
    assert_eq!(bucket.try_acquire(), Ok(()));
    clock.set(10 * SECOND);
    bucket.set_quota(quota(1, SECOND, 1));
    clock.set(10_900 * MILLISECOND);
    assert_eq!(bucket.try_acquire(), Ok(()));
}
