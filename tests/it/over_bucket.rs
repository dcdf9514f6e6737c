//! A shaper over a token bucket: what the limiter held is what the shaper starts with, whatever their clocks.

use std::time::Duration;

use tollgate::{Gcra, ManualClock, Quota, Refused, Shaper, TokenBucket};

use crate::tasks::Task;
use crate::{HOUR, NANOSECOND, SECOND, quota};

/// A bucket on a clock of its own.
fn bucket_at(now: Duration, quota: Quota) -> (ManualClock, TokenBucket<ManualClock>) {
    let clock = ManualClock::at(now);
    (clock.clone(), TokenBucket::with_clock(quota, clock))
}

/// A shaper over `bucket`, on another clock, which stands at `now`.
fn over_at(now: Duration, bucket: TokenBucket<ManualClock>) -> (ManualClock, Shaper) {
    let clock = ManualClock::at(now);
    (clock.clone(), Shaper::over(bucket).clock(clock).build())
}

/// Takes what is there, one by one.
fn drained(shaper: &Shaper<Gcra>) -> usize {
    (0..1_000).take_while(|_| shaper.try_acquire().is_ok()).count()
}

/// Clocks with the same origin, one of another, and one far ahead or behind.
const CLOCKS: [(Duration, Duration); 4] = [
    (HOUR, HOUR),
    (Duration::ZERO, Duration::from_secs(1 << 33)),
    (Duration::from_secs(1 << 33), HOUR),
    (HOUR, SECOND),
];

#[test]
fn what_is_left_is_left_to_the_fraction_whatever_the_clocks() {
    for (limiters, shapers) in CLOCKS {
        let (clock, bucket) = bucket_at(limiters, quota(1, 10 * SECOND, 3));
        assert_eq!(bucket.try_acquire_n(3), Ok(()));
        clock.advance(14 * SECOND);
        let (clock, shaper) = over_at(shapers, bucket);
        // 1.4 permits.
        assert_eq!(drained(&shaper), 1);
        let mut line = [Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire())];
        clock.set(shapers + 6 * SECOND - NANOSECOND);
        assert!(line[0].waits());
        clock.advance(NANOSECOND);
        assert!(line[0].leaves() && line[1].waits());
        clock.advance(10 * SECOND);
        assert!(line[1].leaves());
    }
}

#[test]
fn a_bucket_at_rest_starts_full_and_gains_nothing_by_the_change_of_clocks() {
    for (limiters, shapers) in CLOCKS {
        let (_, bucket) = bucket_at(limiters, quota(1, 10 * SECOND, 3));
        let (clock, shaper) = over_at(shapers, bucket);
        assert_eq!(drained(&shaper), 3);
        clock.advance(10 * SECOND - NANOSECOND);
        assert_eq!(drained(&shaper), 0);
        clock.advance(NANOSECOND);
        assert_eq!(drained(&shaper), 1);
    }
}

#[test]
fn times_that_were_not_of_the_limiters_clock_hold_nobody_up_for_longer_than_a_full_burst() {
    let (_, bucket) = bucket_at(Duration::ZERO, quota(1, 10 * SECOND, 3));
    assert_eq!(bucket.try_acquire_n_at(3, 1_000 * HOUR), Ok(()));
    let (clock, shaper) = over_at(HOUR, bucket);
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(10 * SECOND));
    clock.advance(30 * SECOND);
    assert_eq!(drained(&shaper), 3);
}

#[test]
fn the_time_between_over_and_build_adds_nothing() {
    let (clock, bucket) = bucket_at(HOUR, quota(1, 10 * SECOND, 3));
    assert_eq!(bucket.try_acquire_n(3), Ok(()));
    let builder = Shaper::over(bucket).clock(clock.clone());
    clock.advance(HOUR);
    let shaper = builder.build();
    assert_eq!(shaper.estimated_wait(1), Some(10 * SECOND));
}

#[test]
fn what_remains_of_a_pause_remains() {
    for (limiters, shapers) in CLOCKS {
        let (clock, bucket) = bucket_at(limiters, quota(1, 10 * SECOND, 3));
        assert_eq!(bucket.try_acquire_n(2), Ok(()));
        bucket.pause_for(60 * SECOND);
        clock.advance(20 * SECOND);
        let (clock, shaper) = over_at(shapers, bucket);
        let retry_after = 40 * SECOND;
        assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Paused { asked: 1, retry_after });
        clock.advance(retry_after);
        assert_eq!(drained(&shaper), 1);
        assert_eq!(shaper.estimated_wait(1), Some(10 * SECOND));
    }
}

#[test]
fn a_pause_that_is_over_does_not_come_back_with_the_shapers_clock() {
    let (clock, bucket) = bucket_at(Duration::ZERO, quota(1, 10 * SECOND, 3));
    bucket.pause_for(60 * SECOND);
    clock.set(70 * SECOND);
    assert_eq!(bucket.try_acquire(), Ok(()));
    // By a clock that was set back it looks as if it lasted.
    clock.set(SECOND);
    let (_, shaper) = over_at(SECOND, bucket);
    assert!(!matches!(shaper.try_acquire(), Err(Refused::Paused { .. })));
}

#[test]
fn a_burst_that_is_not_said_is_the_limiters() {
    let clock = ManualClock::new();
    let shaper = Shaper::over(TokenBucket::new(Quota::per_second(5))).clock(clock.clone()).build();
    assert_eq!(drained(&shaper), 5);
    shaper.set_quota(Quota::per_second(3));
    clock.advance(HOUR);
    assert_eq!(drained(&shaper), 3);
    assert_eq!(shaper.quota(), Quota::per_second(3));
    let paced = Shaper::builder(Quota::per_second(5)).clock(clock).build();
    assert_eq!(drained(&paced), 1);
}

#[test]
fn initial_permits_count_instead_of_what_was_left() {
    for (had, initial) in [(0, 2), (2, 0), (3, 9)] {
        let (clock, bucket) = bucket_at(HOUR, quota(1, 10 * SECOND, 3));
        assert_eq!(bucket.try_acquire_n(3 - had), Ok(()));
        let shaper = Shaper::over(bucket).initial(initial).clock(clock).build();
        assert_eq!(drained(&shaper) as u64, initial.min(3));
    }
}

#[test]
fn the_shorter_bound_of_a_pause_holds() {
    for (limiters, shapers, held) in [(5, 9, 5), (9, 5, 5)] {
        let clock = ManualClock::new();
        let builder = TokenBucket::builder(quota(1, SECOND, 1)).max_pause(limiters * SECOND);
        let shaper =
            Shaper::over(builder.clock(clock.clone()).build()).max_pause(shapers * SECOND).clock(clock).build();
        shaper.pause_for(HOUR);
        assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(held * SECOND));
    }
}

#[test]
fn a_rate_of_zero_and_no_limit_are_carried_too() {
    let (_, bucket) = bucket_at(HOUR, quota(0, SECOND, 5));
    assert_eq!(bucket.try_acquire_n(2), Ok(()));
    let (_, shaper) = over_at(SECOND, bucket);
    assert_eq!(drained(&shaper), 3);
    let mut waiter = Task::in_line(shaper.acquire_n(2));
    shaper.set_quota(Quota::UNLIMITED);
    assert!(waiter.leaves());
    let (_, bucket) = bucket_at(HOUR, Quota::UNLIMITED);
    let (_, shaper) = over_at(SECOND, bucket);
    assert_eq!(drained(&shaper), 1_000);
}

#[test]
fn more_than_the_burst_is_paid_afterwards() {
    let (_, bucket) = bucket_at(HOUR, quota(2, 20 * SECOND, 1));
    let (clock, shaper) = over_at(SECOND, bucket);
    assert!(shaper.try_acquire_n(2).is_ok());
    assert_eq!(shaper.try_acquire_n(3).unwrap_err(), Refused::ExceedsCapacity { asked: 3, capacity: 2 });
    let mut waiter = Task::in_line(shaper.acquire());
    clock.advance(20 * SECOND);
    assert!(waiter.leaves());
}
