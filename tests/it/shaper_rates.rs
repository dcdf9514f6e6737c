//! The field cases of a bucket, asked of a shaper: rates, bursts and waits are the same. Each names the public report that it
//! restates.

use std::time::Duration;

use tollgate::{Quota, Refused};

use crate::tasks::{Task, by_hand, by_hand_with};
use crate::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, YEAR, quota};

// bucket4j/bucket4j#51
#[test]
fn long_idling_fills_a_large_bucket_and_no_more() {
    let burst = 10_000_000;
    for idle in [SECOND, HOUR, 12 * HOUR, 30 * DAY, YEAR, 100 * YEAR] {
        let (clock, shaper) = by_hand(quota(burst, SECOND, burst));
        assert!(shaper.try_acquire_n(burst).is_ok());
        clock.set(idle);
        assert!(shaper.try_acquire().is_ok());
        assert_eq!(shaper.acquire_up_to(u64::MAX).permits(), burst - 1, "{idle:?}");
    }
}

// golang/go#56287
#[test]
fn a_clock_that_steps_back_and_forth_mints_nothing() {
    for burst in [1, 10] {
        let (clock, shaper) = by_hand(quota(1, SECOND, burst));
        clock.set(1000 * SECOND);
        assert!(shaper.try_acquire_n(burst).is_ok());
        for _ in 0..1000 {
            clock.set(999 * SECOND);
            assert!(shaper.try_acquire().is_err());
            clock.set(1000 * SECOND);
            assert!(shaper.try_acquire().is_err());
        }
        clock.set(1001 * SECOND);
        assert!(shaper.try_acquire().is_ok());
        assert!(shaper.try_acquire().is_err());
    }
}

// kent8192/reinhardt-web#2246
#[test]
fn a_part_of_an_interval_is_not_lost() {
    let (clock, shaper) = by_hand(quota(1, 10 * SECOND, 5));
    assert!(shaper.try_acquire_n(5).is_ok());
    clock.set(25 * SECOND);
    assert!(shaper.try_acquire_n(2).is_ok());
    clock.set(29 * SECOND);
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    clock.set(30 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    let (clock, shaper) = by_hand(quota(1, 10 * SECOND, 5));
    assert!(shaper.try_acquire_n(5).is_ok());
    let granted = (1..=1000).filter(|seventh| {
        clock.set(7 * *seventh * SECOND);
        shaper.try_acquire().is_ok()
    });
    assert_eq!(granted.count(), 700);
}

// InterCooperative-Network/icn#2503
#[test]
fn slow_rates_are_not_snapped_to_a_coarse_grain() {
    let cases = [
        (1, SECOND, 100 * MILLISECOND, 60 * SECOND, 61),
        (5, SECOND, 100 * MILLISECOND, 60 * SECOND, 301),
        (1, MINUTE, SECOND, HOUR, 61),
        (1, DAY, HOUR, 30 * DAY, 31),
    ];
    for (permits, period, every, end, expected) in cases {
        let (clock, shaper) = by_hand(quota(permits, period, 1));
        let (mut now, mut granted) = (Duration::ZERO, 0);
        while now <= end {
            clock.set(now);
            granted += usize::from(shaper.try_acquire().is_ok());
            now += every;
        }
        assert_eq!(granted, expected, "{permits} per {period:?}");
    }
}

/// How many leave in `span` if whoever is refused comes back when he was told to.
fn granted_in(quota: Quota, max_n: Option<u64>, span: Duration) -> u64 {
    let (clock, shaper) =
        by_hand_with(quota, |builder| max_n.into_iter().fold(builder, |builder, max_n| builder.max_n(max_n)));
    let mut granted = 0;
    while Duration::from_nanos(clock.now().get()) < span {
        match shaper.try_acquire() {
            Ok(_) => granted += 1,
            Err(refused) => clock.advance(refused.retry_after().unwrap()),
        }
    }
    granted
}

// alibaba/Sentinel#1615
#[test]
fn fast_rates_are_not_rounded() {
    for rate in [1000, 1001, 1500, 2000, 2004, 5000, 50_000, 1_000_000] {
        let granted = granted_in(Quota::per_second(rate), None, SECOND);
        assert!(granted.abs_diff(rate) <= 1, "{granted} at {rate}");
    }
}

#[test]
fn a_generous_largest_request_costs_no_exactness() {
    for max_n in [1_000, 1 << 30, 1 << 50, u64::MAX] {
        assert_eq!(granted_in(Quota::per_second(50), Some(max_n), 100 * SECOND), 5_000, "{max_n}");
    }
}

// upstash/ratelimit-js PR 161
#[test]
fn a_refused_request_takes_nothing() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 10));
    assert!(shaper.try_acquire_n(8).is_ok());
    let refused = shaper.try_acquire_n(5).unwrap_err();
    assert_eq!(refused, Refused::TooSoon { asked: 5, remaining: 2, retry_after: 3 * SECOND });
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

// benwis/tower-governor#65
#[test]
fn a_wait_in_whole_seconds_is_never_zero() {
    let (_clock, shaper) = by_hand(Quota::per_second(5));
    assert!(shaper.try_acquire().is_ok());
    let refused = shaper.try_acquire().unwrap_err();
    assert_eq!((refused.retry_after(), refused.retry_after_secs()), (Some(200 * MILLISECOND), Some(1)));
}

#[test]
fn without_a_limit_any_number_passes() {
    let (_clock, shaper) = by_hand(Quota::UNLIMITED);
    for n in [1, u64::from(u32::MAX), 1 << 57, u64::MAX] {
        assert_eq!(shaper.try_acquire_n(n).unwrap().permits(), n);
        assert!(Task::new(shaper.acquire_n(n)).leaves());
    }
}

#[test]
fn at_the_end_of_the_field_a_try_comes_to_an_end() {
    for nanos in [1 << 59, u64::MAX] {
        let (clock, shaper) = by_hand(Quota::every(Duration::from_nanos(nanos)).unwrap());
        clock.set(nanos - 1);
        assert!(shaper.try_acquire().is_ok());
        assert!(shaper.try_acquire().is_err());
        assert_eq!(shaper.acquire_up_to(1).permits(), 0);
    }
}
