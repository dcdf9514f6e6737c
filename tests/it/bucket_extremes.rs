//! The largest and the longest that can be asked for: lawful or a typed error, never a panic or a permit too many.

use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, QuotaError, TokenBucket};

use crate::reference::{Exact, MAX_BURST, No, Spec, answer, whole};
use crate::{NANOSECOND, SECOND, YEAR, bucket, quota};

// tokio-rs/tokio#5183
#[test]
fn a_wait_of_years_is_told_and_comes_true() {
    for period in [5 * YEAR, 400 * YEAR, 584 * YEAR] {
        let bucket = bucket(1, period, 1);
        assert_eq!(bucket.try_acquire_at(0), Ok(()));
        assert_eq!(bucket.try_acquire_at(0).unwrap_err().retry_after(), Some(period));
        assert!(bucket.try_acquire_at(period - NANOSECOND).is_err());
        assert_eq!(bucket.try_acquire_at(period), Ok(()));
    }
}

// tokio-rs/tokio#5183
#[test]
fn a_wait_beyond_the_end_of_time_is_told_and_nothing_is_admitted() {
    for period in [10_000 * YEAR, Duration::MAX] {
        let bucket = bucket(1, period, 1);
        assert_eq!(bucket.try_acquire_at(0), Ok(()));
        for now in [0, 1, u64::MAX / 2, u64::MAX] {
            let wait = bucket.try_acquire_at(now).unwrap_err().retry_after().expect("a rate above 0");
            assert!(wait >= period - Duration::from_nanos(now), "{wait:?} at {now}");
        }
    }
}

// tokio-rs/tokio#5183
#[test]
fn a_wait_of_years_ends_with_a_faster_quota() {
    for period in [5 * YEAR, 400 * YEAR, 10_000 * YEAR, Duration::MAX] {
        let bucket = bucket(1, period, 1);
        assert_eq!(bucket.try_acquire_at(0), Ok(()));
        bucket.set_quota_at(quota(1, SECOND, 1), 10 * SECOND);
        assert!(bucket.try_acquire_at(10 * SECOND).is_err());
        assert_eq!(bucket.try_acquire_at(11 * SECOND), Ok(()));
    }
}

#[test]
fn a_burst_above_the_largest_counts_as_that() {
    assert_eq!(Quota::MAX_BURST, MAX_BURST);
    for burst in [MAX_BURST, MAX_BURST + 1, u64::MAX] {
        for (permits, period) in [(1, NANOSECOND), (1, 2 * NANOSECOND), (1, SECOND), (7, SECOND), (1, Duration::MAX)] {
            let bucket = bucket(permits, period, burst);
            assert_eq!(bucket.available_at(0), MAX_BURST);
            let beyond = Err(No::ExceedsCapacity { asked: MAX_BURST + 1, capacity: MAX_BURST });
            assert_eq!(answer(bucket.try_acquire_n_at(MAX_BURST + 1, 0)), beyond);
            assert_eq!(bucket.try_acquire_n_at(MAX_BURST, 0), Ok(()));
            assert!(bucket.try_acquire_at(0).is_err(), "{permits} per {period:?}");
        }
    }
}

#[test]
fn a_rate_beyond_what_a_word_can_tell_is_slower_and_says_so() {
    let period = NANOSECOND;
    let quota = quota(u64::MAX, period, 10);
    assert!(quota.rate_loss_ppb() > 0);
    let bucket = TokenBucket::with_clock(quota, ManualClock::new());
    assert_eq!(bucket.try_acquire_n_at(10, 0), Ok(()));
    assert!(bucket.try_acquire_at(0).is_err());
    assert_eq!(bucket.available_at(1), 10);
}

#[test]
fn a_rate_that_can_not_be_kept_is_lower_by_no_more_than_the_quota_says() {
    let rates = [
        (1, Duration::MAX),
        (7, Duration::MAX),
        (u64::MAX, Duration::MAX),
        (u64::MAX, SECOND),
        (999_999_937, SECOND),
        (1, 400 * YEAR),
        (1_000_003, 3 * YEAR),
    ];
    for (permits, period) in rates {
        for burst in [1, 2, 1_000] {
            let quota = quota(permits, period, burst);
            let bucket = TokenBucket::with_clock(quota, ManualClock::new());
            assert_eq!(bucket.try_acquire_n_at(burst, 0), Ok(()));
            let full_after = bucket.snapshot_at(0).reset_after.expect("a rate above 0");
            if full_after == Duration::MAX {
                continue;
            }
            let due = whole(burst) * interval_of(permits, period);
            let kept = Exact::from_integer(full_after.as_nanos().into());
            assert!(kept >= due, "{permits} per {period:?} is faster than asked for");
            // The time until it is full is told in whole nanoseconds.
            let lost = (&kept - whole(1) - due) / kept * whole(1_000_000_000);
            let said = quota.rate_loss_ppb();
            assert!(lost <= whole(said), "{permits} per {period:?}, burst {burst}: {lost} ppb are lost, not {said}");
        }
    }
}

fn interval_of(permits: u64, period: Duration) -> Exact {
    Spec::new(permits, period, 1).interval().expect("a rate above 0")
}

#[test]
fn no_period_is_an_error_and_no_permits_are_not() {
    assert!(matches!(Quota::new(10, Duration::ZERO), Err(QuotaError::ZeroPeriod { permits: 10, .. })));
    let error = Quota::new(10, Duration::ZERO).unwrap_err().to_string();
    assert!(error.starts_with("10 permits per zero time: the period must be at least 1 ns"), "{error}");
    assert!(Quota::every(Duration::ZERO).is_err());
    assert!(Quota::new(0, SECOND).is_ok());
}

#[test]
fn durations_beyond_the_last_nanosecond_count_as_it() {
    assert_eq!(Nanos::from(Duration::MAX), Nanos::MAX);
    let bucket = bucket(1, SECOND, 1);
    assert_eq!(bucket.try_acquire_at(Duration::MAX), Ok(()));
    assert!(bucket.try_acquire_at(u64::MAX).is_err());
}
