//! The rate and the burst that are asked for are the ones that are delivered.

use std::time::Duration;

use tollgate::{ManualClock, Quota, TokenBucket};

use crate::{DAY, HOUR, MILLISECOND, MINUTE, NANOSECOND, SECOND, YEAR, bucket, take_when_due};

/// Ends the count for a bucket that never refuses.
const MORE_THAN_ANY_BURST: u64 = 2_000_000;

/// Asks for `n` at `now` until that is refused; how often it was granted.
fn granted_until_refused(bucket: &TokenBucket<ManualClock>, n: u64, now: Duration) -> u64 {
    (0..MORE_THAN_ANY_BURST).take_while(|_| bucket.try_acquire_n_at(n, now).is_ok()).count() as u64
}

/// Asks for one at every multiple of `every` from 0 to `end` inclusive; how often it was granted.
fn granted_when_polled(bucket: &TokenBucket<ManualClock>, every: Duration, end: Duration) -> usize {
    let mut now = Duration::ZERO;
    let mut granted = 0;
    while now <= end {
        granted += usize::from(bucket.try_acquire_at(now).is_ok());
        now += every;
    }
    granted
}

// bucket4j/bucket4j#51
#[test]
fn long_idling_fills_a_large_bucket_and_no_more() {
    let burst = 10_000_000;
    let fresh = bucket(burst, SECOND, burst);
    assert_eq!(fresh.try_acquire_n_at(burst, 0), Ok(()));
    assert_eq!(fresh.try_acquire_at(12 * HOUR), Ok(()));
    assert_eq!(fresh.available_at(12 * HOUR), burst - 1);

    for idle in [SECOND, HOUR, 30 * DAY, YEAR, 100 * YEAR] {
        let drained = bucket(burst, SECOND, burst);
        assert_eq!(drained.try_acquire_n_at(burst, 0), Ok(()));
        assert_eq!(drained.available_at(idle), burst, "after {idle:?}");
        assert_eq!(drained.try_acquire_at(idle), Ok(()));
        assert_eq!(drained.available_at(idle), burst - 1, "after {idle:?}");
    }
}

// kent8192/reinhardt-web#2246
#[test]
fn a_part_of_an_interval_is_not_lost_at_a_grant() {
    let bucket = bucket(1, 10 * SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    assert_eq!(bucket.try_acquire_n_at(2, 25 * SECOND), Ok(()));
    let refused = bucket.try_acquire_at(29 * SECOND).unwrap_err();
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert_eq!(bucket.try_acquire_at(30 * SECOND), Ok(()));
}

// kent8192/reinhardt-web#2246
#[test]
fn polling_out_of_step_with_the_interval_loses_nothing() {
    let bucket = bucket(1, 10 * SECOND, 5);
    assert_eq!(bucket.try_acquire_n_at(5, 0), Ok(()));
    let granted = (1..=1_000).filter(|step| bucket.try_acquire_at(7 * step * SECOND).is_ok()).count();
    assert_eq!(granted, 700);
}

// InterCooperative-Network/icn#2503
#[test]
fn slow_rates_are_not_snapped_to_a_coarser_grain() {
    let polled = |permits, period, every, end| granted_when_polled(&bucket(permits, period, 1), every, end);
    assert_eq!(polled(1, SECOND, 100 * MILLISECOND, 60 * SECOND), 61);
    assert_eq!(polled(5, SECOND, 100 * MILLISECOND, 60 * SECOND), 301);
    assert_eq!(polled(1, MINUTE, SECOND, HOUR), 61);
    assert_eq!(polled(1, DAY, HOUR, 30 * DAY), 31);
}

// alibaba/Sentinel#1615
#[test]
fn fast_rates_are_not_rounded_to_another_interval() {
    for rate in [1_000, 1_001, 1_500, 2_000, 2_004, 5_000, 50_000, 1_000_000] {
        let bucket = bucket(rate, SECOND, 1);
        let times = std::iter::successors(Some(Duration::ZERO), |&now| Some(take_when_due(&bucket, now)));
        // The first of these is not a grant, but the start.
        let granted = times.skip(1).take(2_000_000).take_while(|&now| now < SECOND).count() as u64;
        assert!(granted.abs_diff(rate) <= (rate / 1_000).max(1), "{granted} in a second at {rate}/s");
    }
}

#[test]
fn exactly_the_burst_passes_at_one_instant_one_by_one() {
    for rate in 1..=5_000 {
        let bucket = TokenBucket::with_clock(Quota::per_second(rate), ManualClock::new());
        assert_eq!(granted_until_refused(&bucket, 1, Duration::ZERO), rate);
    }
}

#[test]
fn exactly_the_burst_passes_at_one_instant_in_twos() {
    for rate in 1..=5_000 {
        let bucket = TokenBucket::with_clock(Quota::per_second(rate), ManualClock::new());
        assert_eq!(granted_until_refused(&bucket, 2, Duration::ZERO), rate / 2);
        assert_eq!(granted_until_refused(&bucket, 1, Duration::ZERO), rate % 2);
    }
}

#[test]
fn exactly_the_burst_passes_at_one_instant_as_one_request() {
    for rate in 1..=5_000 {
        let bucket = TokenBucket::with_clock(Quota::per_second(rate), ManualClock::new());
        assert!(bucket.try_acquire_n_at(rate + 1, 0).is_err());
        assert_eq!(bucket.try_acquire_n_at(rate, 0), Ok(()));
        assert!(bucket.try_acquire_at(0).is_err(), "one more than {rate}");
    }
}

/// Rates whose interval is no whole number of nanoseconds.
const UNEVEN: [(u64, Duration); 5] = [
    (3, SECOND),
    (7, SECOND),
    (2_004, SECOND),
    (2_500_000, Duration::from_secs(30 * 24 * 60 * 60)),
    (980_000_000, Duration::from_secs(10)),
];

/// The first whole nanosecond at which `k` intervals are over.
fn end_of_interval(k: u64, permits: u64, period: Duration) -> Duration {
    let nanos = (u128::from(k) * period.as_nanos()).div_ceil(u128::from(permits));
    Duration::from_nanos(nanos.try_into().expect("within 584 years"))
}

#[test]
fn the_kth_permit_comes_at_the_end_of_the_kth_interval() {
    for (permits, period) in UNEVEN {
        // With room for a second permit a wait that ends between two nanoseconds costs nothing.
        let bucket = bucket(permits, period, 2);
        assert_eq!(bucket.try_acquire_n_at(2, 0), Ok(()));
        let mut now = Duration::ZERO;
        for k in 1..=10_000 {
            now = take_when_due(&bucket, now);
            assert_eq!(now, end_of_interval(k, permits, period), "permit {k} at {permits} per {period:?}");
        }
    }
}

#[test]
fn a_period_brings_exactly_its_permits_however_they_are_taken() {
    for (permits, period) in UNEVEN {
        assert_eq!(Quota::new(permits, period).unwrap().rate_loss_ppb(), 0);
        let idle = bucket(permits, period, permits);
        assert_eq!(idle.try_acquire_n_at(permits, 0), Ok(()));
        assert_eq!(idle.available_at(period - NANOSECOND), permits - 1);
        assert_eq!(idle.available_at(period), permits);

        let busy = bucket(permits, period, permits);
        assert_eq!(busy.try_acquire_n_at(permits, 0), Ok(()));
        let (mut now, mut taken) = (Duration::ZERO, 0);
        // 997 is prime, so that the steps fall on no boundary.
        let step = period / 997;
        while now < period {
            now = period.min(now + step);
            let there = busy.available_at(now);
            assert_eq!(busy.try_acquire_n_at(there, now), Ok(()));
            taken += there;
        }
        assert_eq!(taken, permits);
    }
}

#[test]
fn single_permits_cost_what_one_request_for_all_of_them_costs() {
    for (permits, period) in UNEVEN {
        let (one_by_one, at_once) = (bucket(permits, period, 1_000), bucket(permits, period, 1_000));
        for _ in 0..777 {
            assert_eq!(one_by_one.try_acquire_at(SECOND), Ok(()));
        }
        assert_eq!(at_once.try_acquire_n_at(777, SECOND), Ok(()));
        assert_eq!(one_by_one.snapshot_at(SECOND), at_once.snapshot_at(SECOND));
    }
}

#[test]
fn a_burst_of_many_days_is_not_short() {
    let bucket = TokenBucket::with_clock(Quota::per_day(1).burst(1_000_000), ManualClock::new());
    assert_eq!(granted_until_refused(&bucket, 1, Duration::ZERO), 1_000_000);
    // The interval is rounded up here: one permit is there after a day and one part per billion, as the quota says.
    assert_eq!(Quota::per_day(1).burst(1_000_000).rate_loss_ppb(), 1);
    assert!(bucket.try_acquire_at(DAY - NANOSECOND).is_err());
    assert_eq!(bucket.try_acquire_at(DAY + DAY / 1_000_000_000), Ok(()));
}

#[test]
fn more_than_one_permit_may_come_in_a_nanosecond() {
    let rate = 700_000_000;
    let bucket = TokenBucket::with_clock(Quota::per_second(rate), ManualClock::new());
    assert_eq!(bucket.try_acquire_n_at(rate, 0), Ok(()));
    assert_eq!(granted_until_refused(&bucket, 1, Duration::from_micros(1)), 700);

    let faster = TokenBucket::with_clock(Quota::per_second(5_000_000_000), ManualClock::new());
    assert_eq!(faster.try_acquire_n_at(5_000_000_000, 0), Ok(()));
    assert_eq!(granted_until_refused(&faster, 1, Duration::from_micros(1)), 5_000);
}
