//! The ends of what can be asked for: bounds, closing, extreme quotas and times.

use std::time::Duration;

use tollgate::{Nanos, Quota, Refused};

use crate::tasks::{Task, by_hand, by_hand_with};
use crate::{HOUR, NANOSECOND, SECOND, YEAR, quota};

// bucket4j/bucket4j#220.
#[test]
fn more_than_the_capacity_is_refused_at_once_and_uses_nothing() {
    for places in [0, 1, usize::MAX] {
        let (_clock, shaper) = by_hand_with(quota(3, 2 * SECOND, 3), |builder| builder.queue(places));
        let exceeds = Refused::ExceedsCapacity { asked: 4, capacity: 3 };
        assert_eq!(shaper.try_acquire_n(4).unwrap_err(), exceeds);
        assert_eq!(Task::new(shaper.acquire_n(4)).refusal(), exceeds);
        assert_eq!(Task::new(shaper.acquire_n_within(4, HOUR)).refusal(), exceeds);
        assert_eq!(exceeds.retry_after(), None);
        assert_eq!(shaper.estimated_wait(4), None);
        assert!(shaper.try_acquire_n(3).is_ok());
        // The same with nothing left, and with a full line.
        let _waiter = (places > 0).then(|| Task::in_line(shaper.acquire()));
        assert_eq!(shaper.try_acquire_n(4).unwrap_err(), exceeds);
        assert_eq!(Task::new(shaper.acquire_n(4)).refusal(), exceeds);
        assert_eq!(Task::new(shaper.acquire_n_within(4, HOUR)).refusal(), exceeds);
    }
}

#[test]
fn the_largest_n_is_the_larger_of_burst_and_permits_per_period_or_what_was_set() {
    for (quota, set, capacity) in [
        (Quota::per_second(10), None, 10),
        (Quota::per_second(10).burst(20), None, 20),
        (Quota::per_second(10).burst(20), Some(5), 5),
        (Quota::per_second(10), Some(40), 40),
        (Quota::every(SECOND).unwrap(), None, 1),
        (Quota::per_second(0), None, 1),
        (Quota::per_second(0).burst(4), None, 4),
        (Quota::per_second(10).burst(0), None, 0),
        (Quota::per_second(10).burst(0), Some(7), 0),
    ] {
        let (_clock, shaper) = by_hand_with(quota, |builder| match set {
            Some(n) => builder.max_n(n),
            None => builder,
        });
        let asked = capacity + 1;
        assert_eq!(shaper.try_acquire_n(asked).unwrap_err(), Refused::ExceedsCapacity { asked, capacity }, "{quota:?}");
        assert!(shaper.try_acquire_n(capacity).is_ok(), "{quota:?}");
    }
}

#[test]
fn what_is_there_at_the_start_can_be_set() {
    for (initial, there) in [(0, 0), (2, 2), (5, 5), (9, 5)] {
        let (clock, shaper) = by_hand_with(quota(1, SECOND, 5), |builder| builder.initial(initial));
        if there > 0 {
            assert!(shaper.try_acquire_n(there).is_ok());
        }
        let mut waiter = Task::in_line(shaper.acquire());
        clock.set(SECOND - NANOSECOND);
        assert!(waiter.waits());
        clock.set(SECOND);
        assert!(waiter.leaves());
    }
}

#[test]
fn without_places_nobody_waits() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(0));
    assert!(Task::new(shaper.acquire()).leaves());
    clock.set(SECOND / 4);
    let full = Refused::QueueFull { waiting: 0, estimated_wait: Some(3 * SECOND / 4) };
    assert_eq!(Task::new(shaper.acquire()).refusal(), full);
    assert_eq!(full.retry_after(), Some(3 * SECOND / 4));
    clock.set(SECOND);
    assert!(Task::new(shaper.acquire()).leaves());
}

#[test]
fn a_full_line_tells_its_length_and_the_wait() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(2).max_n(5));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire_n(5)));
    let full = |seconds| Refused::QueueFull { waiting: 2, estimated_wait: Some(seconds * SECOND) };
    assert_eq!(Task::new(shaper.acquire()).refusal(), full(7));
    assert_eq!(Task::new(shaper.acquire_n(3)).refusal(), full(7));
    // A try does not want a place.
    let refused = Refused::TooSoon { asked: 1, remaining: 0, retry_after: 7 * SECOND };
    assert_eq!(shaper.try_acquire().unwrap_err(), refused);
    // A place is free as soon as one has left, or has given up.
    clock.set(SECOND);
    let c = Task::in_line(shaper.acquire());
    assert_eq!(Task::new(shaper.acquire()).refusal(), full(7));
    assert!(a.leaves());
    drop((b, c));
    let _next = [Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire())];
    assert_eq!(Task::new(shaper.acquire()).refusal(), full(3));
}

#[test]
fn a_full_line_without_a_rate_has_no_wait_to_tell() {
    let (_clock, shaper) = by_hand_with(Quota::per_second(0), |builder| builder.queue(1));
    assert!(shaper.try_acquire().is_ok());
    let _waiter = Task::in_line(shaper.acquire());
    assert_eq!(Task::new(shaper.acquire()).refusal(), Refused::QueueFull { waiting: 1, estimated_wait: None });
}

#[test]
fn one_place_is_enough_for_a_line_of_one() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(1));
    assert!(shaper.try_acquire().is_ok());
    for second in 1..100 {
        let mut waiter = Task::in_line(shaper.acquire());
        let full = Refused::QueueFull { waiting: 1, estimated_wait: Some(2 * SECOND) };
        assert_eq!(Task::new(shaper.acquire()).refusal(), full);
        clock.set(second * SECOND);
        assert!(waiter.leaves());
    }
}

// base/infra PR 45.
#[test]
fn closing_ends_all_waits_at_once() {
    let (_clock, shaper) = by_hand(Quota::per_hour(1));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..10).map(|_| Task::in_line(shaper.acquire())).collect();
    assert!(!shaper.is_closed());
    shaper.close();
    assert!(shaper.is_closed());
    assert_eq!(shaper.waiting(), 0);
    for waiter in &mut line {
        assert_eq!(waiter.wakes(), 1);
        assert_eq!(waiter.refusal(), Refused::Closed);
    }
}

#[test]
fn closed_it_grants_nothing_and_what_was_granted_stands() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let first = shaper.try_acquire().unwrap();
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    let unseen = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert_eq!(shaper.waiting(), 2);
    for _ in 0..2 {
        shaper.close();
        assert!(shaper.is_closed());
    }
    assert!(a.leaves());
    assert_eq!(b.refusal(), Refused::Closed);
    drop(unseen);
    first.give_back();
    clock.set(HOUR);
    for n in [0, 1, 100] {
        assert_eq!(shaper.try_acquire_n(n).unwrap_err(), Refused::Closed);
        assert_eq!(Task::new(shaper.acquire_n(n)).refusal(), Refused::Closed);
        assert_eq!(Task::new(shaper.acquire_n_within(n, Duration::ZERO)).refusal(), Refused::Closed);
        assert_eq!(shaper.estimated_wait(n), None);
    }
    // A change of the quota opens nothing.
    for quota in [Quota::UNLIMITED, Quota::per_second(0), Quota::per_second(1000)] {
        shaper.set_quota(quota);
        assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Closed);
    }
    assert_eq!((shaper.waiting(), Refused::Closed.retry_after()), (0, None));
}

#[test]
fn a_slot_that_is_due_when_it_is_closed_is_granted() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND);
    shaper.close();
    assert!(a.leaves());
    assert_eq!(b.refusal(), Refused::Closed);
}

// tokio-rs/tokio#5183.
#[test]
fn a_wait_longer_than_a_timer_can_hold_is_an_ordinary_wait() {
    for interval in [400 * YEAR, 584 * YEAR, 10_000 * YEAR, Duration::MAX] {
        let (clock, shaper) = by_hand(Quota::every(interval).unwrap());
        assert!(shaper.try_acquire().is_ok());
        assert!(shaper.try_acquire().is_err());
        let mut waiter = Task::in_line(shaper.acquire());
        let limited = Task::new(shaper.acquire_within(HOUR)).refusal();
        assert!(matches!(limited, Refused::DeadlineTooSoon { wait } if wait > 399 * YEAR), "{limited:?}");
        drop(Task::in_line(shaper.acquire()));
        clock.set(300 * YEAR);
        assert!(waiter.waits());
        shaper.set_quota(Quota::per_second(1));
        assert!(waiter.wakes() > 0);
        clock.advance(SECOND);
        assert!(waiter.leaves(), "{interval:?}");
    }
}

// tokio-rs/tokio#5183.
#[test]
fn a_waiter_of_five_years_leaves_after_five_years() {
    let (clock, shaper) = by_hand(Quota::every(5 * YEAR).unwrap());
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    clock.advance(5 * YEAR - NANOSECOND);
    assert!(waiter.waits());
    clock.advance(NANOSECOND);
    assert!(waiter.leaves());
}

#[test]
fn near_the_end_of_time_all_goes_on() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(Nanos::new(u64::MAX - 1_500_000_000));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.advance(SECOND);
    assert!(a.leaves() && b.waits());
    // b's slot lies beyond the last instant.
    clock.set(Nanos::new(u64::MAX - 1));
    assert!(b.waits());
    assert!(Task::new(shaper.acquire_within(HOUR)).poll().is_pending());
    drop(b);
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn extreme_numbers_neither_panic_nor_pass_what_they_should_not() {
    let large = [1, u64::from(u32::MAX), Quota::MAX_BURST, u64::MAX - 1, u64::MAX];
    for permits in [0, 1, 3, 1_000_000_007, u64::MAX] {
        for period in [NANOSECOND, SECOND, 584 * YEAR, Duration::MAX] {
            for burst in large.into_iter().chain([0]) {
                for n in large {
                    let (clock, shaper) =
                        by_hand_with(quota(permits, period, burst), |builder| builder.max_n(n).catch_up(Duration::MAX));
                    let first = shaper.try_acquire_n(n);
                    // More than what nine years earn is too large.
                    let too_large = matches!(first, Err(Refused::ExceedsCapacity { .. })) && n > 1;
                    assert!(first.is_ok() || burst == 0 || too_large, "{permits} {period:?} {burst} {n}");
                    let mut waiter = Task::new(shaper.acquire_n(n));
                    let mut pending = waiter.poll().is_pending();
                    let _ = (shaper.estimated_wait(n), shaper.try_acquire_n(n).map_err(|refused| refused.to_string()));
                    for now in [Nanos::from_secs(1), Nanos::ZERO, Nanos::MAX, Nanos::new(1)] {
                        clock.set(now);
                        pending = pending && waiter.poll().is_pending();
                    }
                    shaper.set_quota(Quota::per_second(1));
                    shaper.set_quota(Quota::UNLIMITED);
                    assert!(!pending || waiter.poll().is_ready());
                    assert_eq!(shaper.waiting(), 0);
                }
            }
        }
    }
}

#[test]
fn the_smallest_interval_is_exact() {
    let (clock, shaper) = by_hand(Quota::every(NANOSECOND).unwrap());
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..100).map(|_| Task::in_line(shaper.acquire())).collect();
    for waiter in &mut line {
        clock.advance(NANOSECOND);
        assert!(waiter.leaves());
    }
}

#[test]
fn fine_units_last_for_longer_than_their_field() {
    // T = 1/576,460,752 ns: the time field of the word ends after a second, and its origin moves once a second.
    let rate = Quota::new(576_460_752, NANOSECOND).unwrap();
    let (clock, shaper) = by_hand_with(rate, |builder| builder.max_n(576_460_752));
    let whole = 576_460_752;
    assert!(shaper.try_acquire_n(whole).is_ok());
    for _ in 0..50 {
        let mut waiter = Task::in_line(shaper.acquire_n(whole));
        clock.advance(NANOSECOND);
        assert!(waiter.leaves());
        assert!(shaper.try_acquire().is_err());
        clock.advance(SECOND);
        assert!(shaper.try_acquire_n(whole).is_ok());
        assert!(shaper.try_acquire().is_err());
    }
}

#[test]
fn at_the_last_instant_a_wait_without_a_limit_goes_on() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(Nanos::new(u64::MAX - 500_000_000));
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(Nanos::MAX);
    assert!(waiter.waits());
    shaper.set_quota(Quota::UNLIMITED);
    assert!(waiter.leaves());
}

#[test]
fn at_the_last_instant_a_wait_with_a_limit_is_refused() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(Nanos::MAX);
    assert!(shaper.try_acquire().is_ok());
    for limit in [Duration::ZERO, SECOND, Duration::MAX] {
        let refused = Task::new(shaper.acquire_within(limit)).refusal();
        assert_eq!(refused, Refused::DeadlineTooSoon { wait: SECOND }, "{limit:?}");
    }
    assert_eq!(shaper.waiting(), 0);
}

// tokio-rs/tokio#5183.
#[test]
fn a_new_quota_counts_from_now_however_long_the_old_interval_was() {
    for interval in [400 * YEAR, 10_000 * YEAR] {
        let (clock, shaper) = by_hand(Quota::every(interval).unwrap());
        clock.set(SECOND);
        assert!(shaper.try_acquire().is_ok());
        shaper.set_quota(Quota::per_second(1));
        let wait = shaper.estimated_wait(1).unwrap();
        assert!(wait <= SECOND + Duration::from_millis(1), "{wait:?} after {interval:?}");
    }
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::MILLISECOND;
    use crate::tasks::{Record, until_waiting};
    use std::sync::Arc;
    use tollgate::Shaper;

    // base/infra PR 45.
    #[tokio::test(start_paused = true)]
    async fn closing_ends_all_waits_at_once() {
        let shaper = Arc::new(Shaper::new(Quota::per_hour(1)));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let line: Vec<_> = (0..10).map(|who| record.spawn(who, &shaper, 1)).collect();
        until_waiting(&shaper, 10).await;
        shaper.close();
        for waiter in line {
            assert_eq!(waiter.await.unwrap(), Err(Refused::Closed));
        }
        assert_eq!(record.now(), 0);
    }

    // tokio-rs/tokio#5183.
    #[tokio::test(start_paused = true)]
    async fn a_wait_of_400_years_neither_panics_nor_outlasts_a_new_quota() {
        for interval in [400 * YEAR, 584 * YEAR, 10_000 * YEAR] {
            let shaper = Arc::new(Shaper::new(Quota::every(interval).unwrap()));
            let record = Record::begin();
            assert!(shaper.acquire().await.is_ok());
            let waiter = record.spawn(1, &shaper, 1);
            until_waiting(&shaper, 1).await;
            shaper.set_quota(Quota::per_second(1));
            waiter.await.unwrap().unwrap();
            // So long an interval is counted in units of 128 ns or more, and tokio's timer in milliseconds.
            assert!(record.now() <= 1001, "{}", record.now());
            // The same, and dropped instead.
            shaper.set_quota(Quota::every(interval).unwrap());
            let waiter = record.spawn(2, &shaper, 1);
            until_waiting(&shaper, 1).await;
            waiter.abort();
            until_waiting(&shaper, 0).await;
        }
    }

    // tokio-rs/tokio#5183.
    #[tokio::test(start_paused = true)]
    async fn a_waiter_of_five_years_leaves_after_exactly_five_years() {
        let shaper = Arc::new(Shaper::new(Quota::every(5 * YEAR).unwrap()));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let waiter = record.spawn(1, &shaper, 1);
        until_waiting(&shaper, 1).await;
        tokio::time::advance(5 * YEAR - MILLISECOND).await;
        tokio::task::yield_now().await;
        assert_eq!(shaper.waiting(), 1);
        tokio::time::advance(MILLISECOND).await;
        waiter.await.unwrap().unwrap();
        assert_eq!(record.lines(), [(1, 5 * 365 * 24 * 60 * 60 * 1000)]);
    }

    // tokio-rs/tokio#5183.
    #[tokio::test(start_paused = true)]
    async fn slept_through_five_years_are_five_years_too() {
        let shaper = Shaper::new(Quota::every(5 * YEAR).unwrap());
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        assert!(shaper.acquire().await.is_ok());
        assert_eq!(record.now(), 5 * 365 * 24 * 60 * 60 * 1000);
    }
}
