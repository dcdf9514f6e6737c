//! What the clock may do: stand still, go back, leap, and start anywhere.

use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, TokenBucket};

use crate::{DAY, HOUR, MILLISECOND, NANOSECOND, SECOND, bucket, quota, take_when_due};

const UNIX_TIME: u64 = 1_700_000_000_000_000_000;

// golang/go#56287
#[test]
fn a_clock_that_steps_back_and_forth_mints_nothing() {
    let clock = ManualClock::at(1_000 * SECOND);
    let bucket = TokenBucket::with_clock(quota(1, SECOND, 10), clock.clone());
    assert_eq!(bucket.try_acquire_n(10), Ok(()));
    for _ in 0..1_000 {
        clock.set(999 * SECOND);
        assert!(bucket.try_acquire().is_err());
        clock.set(1_000 * SECOND);
        assert!(bucket.try_acquire().is_err());
    }
    clock.set(1_001 * SECOND);
    assert_eq!(bucket.try_acquire(), Ok(()));
    assert!(bucket.try_acquire().is_err());
}

#[test]
fn after_a_step_back_the_wait_is_longer_by_the_step() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(10, 1_000 * SECOND), Ok(()));
    let refused = bucket.try_acquire_at(400 * SECOND).unwrap_err();
    assert_eq!(refused.retry_after(), Some(601 * SECOND));
    assert_eq!(bucket.try_acquire_at(1_001 * SECOND), Ok(()));
}

/// Takes `count` permits, each as soon as it is there; the seconds at which they came.
fn one_after_another(bucket: &TokenBucket<ManualClock>, count: usize, mut now: Duration) -> Vec<u64> {
    let next = || {
        now = take_when_due(bucket, now);
        now.as_secs()
    };
    std::iter::repeat_with(next).take(count).collect()
}

// uber-go/ratelimit#119
#[test]
fn idling_saves_up_the_burst_and_no_more() {
    for idle in [2 * SECOND, 10 * SECOND, HOUR, 30 * DAY] {
        let start = idle.as_secs();
        let single = bucket(1, SECOND, 1);
        assert_eq!(single.try_acquire_at(0), Ok(()));
        assert_eq!(one_after_another(&single, 24, idle), Vec::from_iter(start..start + 24));

        let double = bucket(1, SECOND, 2);
        assert_eq!(double.try_acquire_at(0), Ok(()));
        let expected: Vec<u64> = std::iter::once(start).chain(start..start + 23).collect();
        assert_eq!(one_after_another(&double, 24, idle), expected);
    }
}

#[test]
fn a_new_bucket_is_full_at_whatever_time_it_is_first_asked() {
    for now in [0, 1, UNIX_TIME, u64::MAX - 1, u64::MAX] {
        for quota in [quota(10, SECOND, 5), quota(7, SECOND, 5), quota(1, 10 * DAY, 5), quota(0, SECOND, 5)] {
            let told = TokenBucket::with_clock(quota, ManualClock::new());
            let clocked = TokenBucket::with_clock(quota, ManualClock::at(now));
            assert_eq!((told.available_at(now), clocked.available()), (5, 5), "at {now}");
            for _ in 0..5 {
                assert_eq!((told.try_acquire_at(now), clocked.try_acquire()), (Ok(()), Ok(())), "at {now}");
            }
            assert!(told.try_acquire_at(now).is_err() && clocked.try_acquire().is_err(), "at {now}");
        }
    }
}

#[test]
fn a_bucket_with_the_default_clock_is_full_when_new() {
    let bucket = TokenBucket::new(Quota::per_day(3));
    for _ in 0..3 {
        assert_eq!(bucket.try_acquire(), Ok(()));
    }
    let refused = bucket.try_acquire().unwrap_err();
    assert!(refused.retry_after().is_some_and(|wait| wait <= DAY / 3));
}

#[test]
fn a_bucket_may_start_with_less() {
    let start = 5 * SECOND;
    let starting =
        |initial| TokenBucket::builder(quota(1, SECOND, 10)).initial(initial).clock(ManualClock::at(start)).build();
    let some = starting(3);
    assert_eq!(some.available(), 3);
    assert_eq!(some.try_acquire_n(3), Ok(()));
    assert_eq!(some.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    assert_eq!(some.available_at(start + 4 * SECOND), 4);

    let empty = starting(0);
    assert_eq!(empty.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    assert_eq!(empty.snapshot().reset_after, Some(10 * SECOND));

    let at_most_the_burst = starting(u64::MAX);
    assert_eq!(at_most_the_burst.available(), 10);
    assert!(at_most_the_burst.try_acquire_n(11).is_err());
}

#[test]
fn a_request_for_nothing_does_not_start_the_clock() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(0, u64::MAX), Ok(()));
    assert_eq!(bucket.try_acquire_n_at(10, 0), Ok(()));
}

#[test]
fn a_time_long_past_the_origin_changes_no_answer() {
    // 9 years are more than a word holds in nanoseconds, 3 s more than it holds in units of this odd rate.
    for (permits, period, leap) in [(1, SECOND, 9 * 365 * DAY), (576_460_751, SECOND, 3 * SECOND)] {
        let bucket = bucket(permits, period, 1_000_000);
        let mut now = Duration::ZERO;
        for _ in 0..50 {
            now += leap;
            assert_eq!(bucket.try_acquire_n_at(1_000_000, now), Ok(()));
            assert!(bucket.try_acquire_at(now).is_err());
            // A clock that is a little behind the leap finds the bucket as empty.
            assert_eq!(bucket.available_at(now - MILLISECOND), 0);
            let wait = bucket.try_acquire_at(now).unwrap_err().retry_after().unwrap();
            assert!(bucket.peek_at(1, now + wait - NANOSECOND).is_err());
            assert_eq!(bucket.peek_at(1, now + wait), Ok(()));
        }
    }
}

#[test]
fn the_end_of_time_neither_opens_nor_wedges_the_bucket() {
    let bucket = bucket(1, SECOND, 3);
    assert_eq!(bucket.try_acquire_n_at(3, u64::MAX), Ok(()));
    for _ in 0..10 {
        let refused = bucket.try_acquire_at(u64::MAX).unwrap_err();
        assert_eq!(refused.retry_after(), Some(SECOND));
    }
    assert_eq!(bucket.available_at(u64::MAX), 0);
    assert_eq!(bucket.available_at(0), 0);
}

#[test]
fn the_clock_and_the_told_time_give_the_same_answers() {
    let clock = ManualClock::new();
    let (clocked, told) = (TokenBucket::with_clock(quota(3, SECOND, 4), clock.clone()), bucket(3, SECOND, 4));
    for step in 0..100_u32 {
        clock.advance(step % 7 * 50 * MILLISECOND);
        let (n, now): (u64, Nanos) = (u64::from(step % 4), clock.now());
        assert_eq!(clocked.peek(n), told.peek_at(n, now));
        assert_eq!(clocked.try_acquire_n(n), told.try_acquire_n_at(n, now));
        assert_eq!(clocked.try_acquire(), told.try_acquire_at(now));
        assert_eq!(clocked.available(), told.available_at(now));
        assert_eq!(clocked.snapshot(), told.snapshot_at(now));
    }
}
