//! A no: what it says, and that it changes nothing.

use std::error::Error;
use std::time::Duration;

use tollgate::{Quota, Refused, TokenBucket};

use crate::reference::{No, answer};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND, bucket};

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    const fn is_small_error<T: Copy + Error + Send + Sync + 'static>() {}
    is_shared::<TokenBucket>();
    is_small_error::<Refused>();
    assert!(size_of::<TokenBucket>() < 512);
};

// upstash/ratelimit-js PR 161
#[test]
fn a_refused_request_takes_nothing() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(8, 0), Ok(()));
    assert!(bucket.try_acquire_n_at(5, 0).is_err());
    assert_eq!(bucket.available_at(0), 2);
    assert_eq!(bucket.try_acquire_at(0), Ok(()));
    assert_eq!(bucket.try_acquire_at(0), Ok(()));
    assert!(bucket.try_acquire_at(0).is_err());
}

#[test]
fn a_refused_request_changes_nothing_that_can_be_observed() {
    for (permits, period, burst) in [(1, SECOND, 10), (7, SECOND, 10), (1, 400 * HOUR, 1_000_000), (0, SECOND, 10)] {
        let (asked, untouched) = (bucket(permits, period, burst), bucket(permits, period, burst));
        for bucket in [&asked, &untouched] {
            assert_eq!(bucket.try_acquire_n_at(burst - 2, 5 * SECOND), Ok(()));
        }
        for _ in 0..100 {
            assert!(asked.try_acquire_n_at(8, 5 * SECOND).is_err());
            assert!(asked.try_acquire_n_at(3, 4 * SECOND).is_err());
            assert!(asked.try_acquire_n_at(burst + 1, HOUR).is_err());
            assert!(asked.try_acquire_n_at(u64::MAX, u64::MAX).is_err());
        }
        for now in [Duration::ZERO, 4 * SECOND, 5 * SECOND, 5 * SECOND + NANOSECOND, 6 * SECOND, HOUR] {
            assert_eq!(asked.snapshot_at(now), untouched.snapshot_at(now));
            assert_eq!(asked.try_acquire_n_at(1, now), untouched.try_acquire_n_at(1, now));
        }
    }
}

// benwis/tower-governor#65
#[test]
fn a_wait_in_whole_seconds_is_rounded_up_and_never_zero() {
    let five_per_second = bucket(5, SECOND, 1);
    assert_eq!(five_per_second.try_acquire_at(0), Ok(()));
    let refused = five_per_second.try_acquire_at(0).unwrap_err();
    assert_eq!((refused.retry_after(), refused.retry_after_secs()), (Some(200 * MILLISECOND), Some(1)));

    for (wait, seconds) in
        [(NANOSECOND, 1), (SECOND, 1), (SECOND + NANOSECOND, 2), (59_900 * MILLISECOND, 60), (Duration::MAX, u64::MAX)]
    {
        let bucket = bucket(1, wait, 1);
        assert_eq!(bucket.try_acquire_at(0), Ok(()));
        let refused = bucket.try_acquire_at(0).unwrap_err();
        assert_eq!((refused.retry_after(), refused.retry_after_secs()), (Some(wait), Some(seconds)));
        if let Some(then) = u64::try_from(wait.as_nanos()).ok().map(|_| Duration::from_secs(seconds)) {
            assert_eq!(bucket.try_acquire_at(then), Ok(()), "a client that slept for the whole seconds");
        }
    }

    let never = bucket(0, SECOND, 1).try_acquire_n_at(2, 0).unwrap_err();
    assert_eq!((never.retry_after(), never.retry_after_secs()), (None, None));
}

#[test]
fn the_wait_is_exact_to_the_nanosecond() {
    for (permits, period, burst) in
        [(1, SECOND, 10), (3, SECOND, 3), (7, SECOND, 20), (980_000_000, 10 * SECOND, 100), (1, HOUR, 1_000_000)]
    {
        let bucket = bucket(permits, period, burst);
        assert_eq!(bucket.try_acquire_n_at(burst, 12_345), Ok(()));
        for n in 1..=burst.min(20) {
            let now = Duration::from_nanos(12_345 + n);
            let wait = bucket.peek_at(n, now).unwrap_err().retry_after().expect("a rate above 0");
            assert!(bucket.peek_at(n, now + wait - NANOSECOND).is_err(), "{n} at {permits} per {period:?}");
            assert_eq!(bucket.peek_at(n, now + wait), Ok(()), "{n} at {permits} per {period:?}");
        }
    }
}

// bucket4j/bucket4j#220
#[test]
fn more_than_the_burst_is_refused_at_once_and_for_good() {
    let bucket = bucket(3, 2 * SECOND, 3);
    assert_eq!(answer(bucket.try_acquire_n_at(4, 0)), Err(No::ExceedsCapacity { asked: 4, capacity: 3 }));
    assert_eq!(answer(bucket.peek_at(u64::MAX, 0)), Err(No::ExceedsCapacity { asked: u64::MAX, capacity: 3 }));
    assert_eq!(bucket.try_acquire_n_at(4, 0).unwrap_err().retry_after(), None);
    assert_eq!(bucket.try_acquire_n_at(3, 0), Ok(()));
}

// golang/go#47221
#[test]
fn at_rate_zero_the_burst_passes_and_nothing_after_it() {
    let bucket = bucket(0, SECOND, 1);
    let granted = (0..1_000).filter(|&step| bucket.try_acquire_at(step * HOUR / 1_000).is_ok()).count();
    assert_eq!(granted, 1);
    assert_eq!(answer(bucket.try_acquire_at(HOUR)), Err(No::Never { asked: 1, remaining: 0 }));
    assert_eq!(answer(bucket.try_acquire_at(u64::MAX)), Err(No::Never { asked: 1, remaining: 0 }));

    bucket.set_quota_at(Quota::per_second(1), HOUR);
    assert!(bucket.try_acquire_at(HOUR + SECOND - NANOSECOND).is_err());
    assert_eq!(bucket.try_acquire_at(HOUR + SECOND), Ok(()));
}

// golang/go#16854
#[test]
fn unlimited_admits_any_number() {
    let bucket = TokenBucket::new(Quota::UNLIMITED);
    for n in [1, u64::from(u32::MAX), u64::MAX, u64::MAX] {
        assert_eq!(bucket.try_acquire_n_at(n, 0), Ok(()));
    }
    assert_eq!(bucket.available(), u64::MAX);
}

// golang/go#47221
#[test]
fn a_request_for_nothing_is_granted_and_free() {
    for quota in [Quota::per_second(5), Quota::per_second(0).burst(5), Quota::per_second(1).burst(0), Quota::UNLIMITED]
    {
        let bucket = TokenBucket::new(quota);
        let full = bucket.available_at(0);
        assert_eq!((bucket.try_acquire_n_at(0, 0), bucket.peek_at(0, 0)), (Ok(()), Ok(())));
        assert_eq!(bucket.available_at(0), full);
        assert_eq!(bucket.try_acquire_n_at(full, 0), Ok(()));
        assert_eq!((bucket.try_acquire_n_at(0, 0), bucket.peek_at(0, 0)), (Ok(()), Ok(())));
    }
}

#[test]
fn a_burst_of_zero_admits_nothing() {
    let bucket = bucket(100, SECOND, 0);
    for now in [0, 1, u64::MAX] {
        assert_eq!(answer(bucket.try_acquire_at(now)), Err(No::ExceedsCapacity { asked: 1, capacity: 0 }));
        assert_eq!(bucket.available_at(now), 0);
    }
    assert_eq!(bucket.snapshot_at(0).retry_after, None);
}

#[test]
fn a_refusal_says_its_numbers() {
    let bucket = bucket(1, 61 * SECOND, 17);
    assert_eq!(bucket.try_acquire_n_at(15, 0), Ok(()));
    let says = |refused: Refused, numbers: &[&str]| {
        let text = refused.to_string();
        for number in numbers {
            assert!(text.contains(number), "{text:?} does not say {number}");
        }
    };
    says(bucket.try_acquire_n_at(5, 0).unwrap_err(), &["5", "2", "183s"]);
    says(bucket.try_acquire_n_at(18, 0).unwrap_err(), &["18", "17"]);
    bucket.set_quota_at(Quota::per_second(0).burst(17), 0);
    says(bucket.try_acquire_n_at(3, 0).unwrap_err(), &["3", "2", "never"]);
}

#[test]
fn what_is_said_to_be_left_is_what_passes() {
    let bucket = bucket(2, SECOND, 6);
    assert_eq!(bucket.try_acquire_n_at(4, 0), Ok(()));
    let now = 700 * MILLISECOND;
    let refused = answer(bucket.try_acquire_n_at(6, now));
    assert_eq!(refused, Err(No::TooSoon { asked: 6, remaining: 3, retry_after: 1_300 * MILLISECOND }));
    let snapshot = bucket.snapshot_at(now);
    assert_eq!((snapshot.limit, snapshot.remaining), (6, 3));
    assert_eq!((snapshot.retry_after, snapshot.reset_after), (Some(Duration::ZERO), Some(1_300 * MILLISECOND)));
    assert_eq!(bucket.try_acquire_n_at(3, now), Ok(()));
    assert_eq!(bucket.available_at(now), 0);
}
