//! Refunds, resets, taking what is there, the permits there at first, and all of it at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, Refused, TokenBucket};

use crate::{DAY, HOUR, MILLISECOND, SECOND, bucket, quota};

pub(crate) fn paused(asked: u64, retry_after: Duration) -> Result<(), Refused> {
    Err(Refused::Paused { asked, retry_after })
}

/// What is there to take at once, and the waits for one permit and for all of them.
pub(crate) fn told(bucket: &TokenBucket<ManualClock>, now: Duration) -> (u64, Option<Duration>, Option<Duration>) {
    let snapshot = bucket.snapshot_at(now);
    assert_eq!(bucket.available_at(now), snapshot.remaining);
    (snapshot.remaining, snapshot.retry_after, snapshot.reset_after)
}

#[test]
fn a_refund_gives_back_what_was_taken() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(8, 0), Ok(()));
    bucket.refund_at(3, 500 * MILLISECOND);
    assert_eq!(bucket.available_at(500 * MILLISECOND), 5);
    // The half that had come in is still there.
    assert_eq!(bucket.available_at(SECOND), 6);
}

#[test]
fn a_refund_never_overfills() {
    for n in [1, 10, 11, u64::MAX] {
        let bucket = bucket(1, SECOND, 10);
        bucket.refund_at(n, HOUR);
        assert_eq!(told(&bucket, HOUR), (10, Some(Duration::ZERO), Some(Duration::ZERO)));
        assert_eq!(bucket.try_acquire_at(HOUR), Ok(()));
        bucket.refund_at(n, HOUR);
        bucket.refund_at(n, HOUR);
        assert_eq!(bucket.try_acquire_n_at(10, HOUR), Ok(()));
        assert_eq!(bucket.available_at(HOUR), 0);
    }
}

#[test]
fn a_refund_of_nothing_changes_nothing() {
    let bucket = bucket(1, SECOND, 10);
    assert_eq!(bucket.try_acquire_n_at(8, 0), Ok(()));
    let before = bucket.snapshot_at(500 * MILLISECOND);
    bucket.refund_at(0, 500 * MILLISECOND);
    assert_eq!(bucket.snapshot_at(500 * MILLISECOND), before);
}

#[test]
fn a_refund_where_nothing_is_limited_changes_nothing() {
    let bucket = TokenBucket::with_clock(Quota::UNLIMITED, ManualClock::new());
    for n in [0, 1, u64::MAX] {
        bucket.refund_at(n, SECOND);
        assert_eq!(bucket.available_at(SECOND), u64::MAX);
    }
    bucket.set_quota_at(quota(1, SECOND, 10), SECOND);
    assert_eq!(bucket.available_at(SECOND), 0);
}

#[test]
fn a_refund_at_rate_zero_is_all_that_brings_permits() {
    let bucket = bucket(0, SECOND, 3);
    assert_eq!(bucket.try_acquire_n_at(3, 0), Ok(()));
    bucket.refund_at(1, HOUR);
    assert_eq!(bucket.available_at(DAY), 1);
    bucket.refund_at(u64::MAX, DAY);
    assert_eq!(told(&bucket, DAY), (3, Some(Duration::ZERO), Some(Duration::ZERO)));
}

#[test]
fn a_refund_during_a_pause_is_there_at_its_end() {
    let bucket = bucket(1, SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    bucket.pause_until_at(10 * SECOND, 0);
    bucket.refund_at(2, 5 * SECOND);
    assert_eq!(bucket.try_acquire_n_at(3, 5 * SECOND), paused(3, 6 * SECOND));
    assert_eq!(bucket.available_at(10 * SECOND), 2);
    bucket.refund_at(u64::MAX, 5 * SECOND);
    assert_eq!(bucket.available_at(10 * SECOND), 5);
    assert_eq!(bucket.available_at(HOUR), 5);
}

#[test]
fn a_reset_fills_a_bucket_in_debt_and_a_full_one_stays_full() {
    for taken in [0, 1, 5] {
        let bucket = bucket(1, HOUR, 5);
        assert_eq!(bucket.try_acquire_n_at(taken, SECOND), Ok(()));
        bucket.reset_at(2 * SECOND);
        assert_eq!(told(&bucket, 2 * SECOND), (5, Some(Duration::ZERO), Some(Duration::ZERO)));
        assert_eq!(bucket.try_acquire_n_at(5, 2 * SECOND), Ok(()));
        assert_eq!(bucket.available_at(2 * SECOND), 0);
    }
}

#[test]
fn a_reset_during_a_pause_fills_what_will_be_left_and_the_pause_goes_on() {
    let bucket = bucket(1, HOUR, 5);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    bucket.pause_until_at(10 * SECOND, 0);
    bucket.reset_at(SECOND);
    assert_eq!(bucket.try_acquire_at(SECOND), paused(1, 9 * SECOND));
    assert_eq!(bucket.try_acquire_n_at(5, 10 * SECOND), Ok(()));
}

#[test]
fn a_reset_after_the_clock_went_back_fills_the_bucket_too() {
    for later in [None, Some(quota(1, SECOND, 5))] {
        let bucket = bucket(1, SECOND, 5);
        assert_eq!(bucket.try_acquire_n_at(5, 100 * SECOND), Ok(()));
        if let Some(quota) = later {
            bucket.set_quota_at(quota, 100 * SECOND);
        }
        bucket.reset_at(50 * SECOND);
        assert_eq!(bucket.available_at(50 * SECOND), 5, "{later:?}");
    }
}

#[test]
fn a_reset_fills_the_bucket_even_if_a_clock_set_back_owes_more_than_2_to_the_64_permits() {
    let fast = Quota::per_second(1 << 60).burst(5);
    let bucket = TokenBucket::new(fast);
    assert_eq!(bucket.try_acquire_n_at(5, DAY), Ok(()));
    bucket.reset_at(0);
    assert_eq!(bucket.available_at(0), 5);
}

#[test]
fn what_is_there_is_taken_and_no_more_than_asked_for() {
    let bucket = bucket(1, SECOND, 10);
    let taken = [(0, 0), (4, 4), (0, 0), (7, 6), (1, 0), (u64::MAX, 0)].map(|(n, _)| bucket.acquire_up_to_at(n, 0));
    assert_eq!(taken, [0, 4, 0, 6, 0, 0]);
    assert_eq!(bucket.acquire_up_to_at(u64::MAX, 3_900 * MILLISECOND), 3);
    assert_eq!(bucket.acquire_up_to_at(u64::MAX, 4 * SECOND), 1);
}

#[test]
fn taking_what_is_there_at_the_edges() {
    let unlimited = TokenBucket::with_clock(Quota::UNLIMITED, ManualClock::new());
    assert_eq!([0, 1, u64::MAX].map(|n| unlimited.acquire_up_to_at(n, u64::MAX)), [0, 1, u64::MAX]);
    let nothing = bucket(1, SECOND, 0);
    assert_eq!([0, 1, u64::MAX].map(|n| nothing.acquire_up_to_at(n, HOUR)), [0, 0, 0]);
    let paused = bucket(1, SECOND, 5);
    paused.pause_until_at(10 * SECOND, 0);
    assert_eq!([0, 1, u64::MAX].map(|n| paused.acquire_up_to_at(n, SECOND)), [0, 0, 0]);
    assert_eq!(paused.acquire_up_to_at(u64::MAX, 10 * SECOND), 5);
    let zero = bucket(0, SECOND, 5);
    assert_eq!([3, 3, 3].map(|n| zero.acquire_up_to_at(n, HOUR)), [3, 2, 0]);
}

#[test]
fn a_bucket_starts_with_what_it_is_told_and_at_most_full() {
    for (initial, left) in [(0, 0), (4, 4), (10, 10), (11, 10), (u64::MAX, 10)] {
        let clock = ManualClock::at(HOUR);
        let bucket = TokenBucket::builder(quota(1, SECOND, 10)).initial(initial).clock(clock.clone()).build();
        assert_eq!(bucket.available(), left);
        clock.advance(SECOND);
        assert_eq!(bucket.available(), 10.min(left + 1));
    }
}

#[test]
fn permits_counted_from_the_building_are_not_counted_from_before_it() {
    // At rate 0 time gives nothing, so only the time of building tells from when the next quota may count.
    let clock = ManualClock::at(100 * SECOND);
    let bucket = TokenBucket::builder(quota(0, SECOND, 10)).initial(0).clock(clock).build();
    bucket.set_quota_at(quota(1, SECOND, 10), 0);
    assert_eq!((bucket.available_at(100 * SECOND), bucket.available_at(101 * SECOND)), (0, 1));
}

const THREADS: u64 = 8;
const ROUNDS: u64 = if cfg!(debug_assertions) { 500 } else { 10_000 };

#[test]
fn threads_that_take_give_back_pause_and_resume_never_pass_more_than_there_is() {
    let burst = 100;
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(quota(1, MILLISECOND, burst), clock.clone());
    let (start, taken, returned) = (Barrier::new(8), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bucket, clock, start, taken, returned) = (&bucket, &clock, &start, &taken, &returned);
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    // Relaxed: sums that are read after all have ended.
                    taken.fetch_add(u64::from(bucket.try_acquire().is_ok()), Ordering::Relaxed);
                    taken.fetch_add(bucket.acquire_up_to(3), Ordering::Relaxed);
                    match (thread + round) % THREADS {
                        0 if bucket.try_acquire_n(5).is_ok() => {
                            taken.fetch_add(5, Ordering::Relaxed);
                            bucket.refund(2);
                            returned.fetch_add(2, Ordering::Relaxed);
                        }
                        1 => bucket.pause_for(3 * MILLISECOND),
                        2 | 3 => bucket.resume(),
                        4 => clock.advance(MILLISECOND),
                        _ => {}
                    }
                }
            });
        }
    });
    let passed = clock.now().saturating_since(Nanos::ZERO).as_millis();
    let taken = u128::from(taken.load(Ordering::Relaxed));
    let most = u128::from(burst) + passed + u128::from(returned.load(Ordering::Relaxed));
    assert!(taken <= most, "{taken} passed, at most {most} were there");
    bucket.resume();
    // A bucket at rest, which no race has left in a pause or in debt for good.
    clock.advance(SECOND);
    assert_eq!((bucket.try_acquire_n(burst), bucket.available()), (Ok(()), 0));
}

#[test]
fn threads_that_race_in_pauses_with_the_time_standing_still_get_exactly_the_burst() {
    let burst = 100 * THREADS;
    let bucket = bucket(1, HOUR, burst);
    let (start, taken) = (Barrier::new(8), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bucket, start, taken) = (&bucket, &start, &taken);
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    // Relaxed: a sum that is read after all have ended.
                    taken.fetch_add(u64::from(bucket.try_acquire().is_ok()), Ordering::Relaxed);
                    match (thread + round) % THREADS {
                        0 => bucket.pause_for(SECOND),
                        _ => bucket.resume(),
                    }
                }
            });
        }
    });
    bucket.resume();
    assert_eq!(taken.load(Ordering::Relaxed) + bucket.acquire_up_to(u64::MAX), burst);
}
