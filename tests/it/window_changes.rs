//! What pauses, changes of the quota, permits given back and a first filling do to counts of windows.

use std::time::Duration;

use tollgate::{FixedWindow, ManualClock, Nanos, Quota, QuotaError, Refused, SlidingCounter};

use crate::{DAY, HOUR, MINUTE, NANOSECOND, SECOND, YEAR, quota};

fn fixed(limit: u64, length: Duration) -> FixedWindow {
    FixedWindow::new(quota(limit, length, 0))
}

fn sliding(limit: u64, length: Duration) -> SlidingCounter {
    SlidingCounter::new(quota(limit, length, 0)).unwrap()
}

fn too_soon(asked: u64, remaining: u64, retry_after: Duration) -> Result<(), Refused> {
    Err(Refused::TooSoon { asked, remaining, retry_after })
}

#[test]
fn what_is_left_when_a_pause_begins_is_left_when_it_ends() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(3, SECOND), Ok(()));
    window.pause_until_at(25 * SECOND, 2 * SECOND);
    assert_eq!(window.available_at(24 * SECOND), 0);
    assert_eq!(window.try_acquire_n_at(2, 24 * SECOND), Err(Refused::Paused { asked: 2, retry_after: SECOND }));
    // Three were taken, so as many wait for the window after the one in which the pause ends.
    assert_eq!(window.try_acquire_n_at(3, 24 * SECOND), Err(Refused::Paused { asked: 3, retry_after: 6 * SECOND }));
    assert_eq!(window.available_at(25 * SECOND), 2);
    assert_eq!(window.try_acquire_n_at(2, 25 * SECOND), Ok(()));
    assert_eq!(window.try_acquire_at(29 * SECOND), too_soon(1, 0, SECOND));
    assert_eq!(window.try_acquire_n_at(5, 30 * SECOND), Ok(()));
}

#[test]
fn a_sliding_counter_keeps_its_estimate_through_a_pause() {
    let counter = sliding(10, 10 * SECOND);
    assert_eq!(counter.try_acquire_n_at(8, 9 * SECOND), Ok(()));
    // 8 * 0.55 = 4.4, rounded up.
    counter.pause_until_at(32 * SECOND, Duration::from_millis(14_500));
    assert_eq!(counter.available_at(32 * SECOND), 5);
    assert_eq!(counter.available_at(35 * SECOND), 5);
    assert_eq!(counter.available_at(42 * SECOND), 6); // 5 * 0.8
}

#[test]
fn an_earlier_end_shortens_a_pause_and_resume_ends_it() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(3, SECOND), Ok(()));
    window.pause_until_at(100 * SECOND, 2 * SECOND);
    window.pause_until_at(15 * SECOND, 3 * SECOND);
    assert_eq!(window.available_at(15 * SECOND - NANOSECOND), 0);
    assert_eq!(window.available_at(15 * SECOND), 2);
    window.pause_until_at(100 * SECOND, 16 * SECOND);
    window.resume_at(37 * SECOND);
    assert_eq!(window.available_at(37 * SECOND), 2);
    assert_eq!(window.available_at(40 * SECOND), 5);
    window.resume_at(41 * SECOND);
    assert_eq!(window.available_at(41 * SECOND), 5);
}

#[test]
fn a_pause_that_is_over_does_not_come_back_with_a_clock_that_is_set_back() {
    let window = fixed(5, 10 * SECOND);
    window.pause_until_at(20 * SECOND, SECOND);
    assert_eq!(window.try_acquire_at(20 * SECOND), Ok(()));
    assert_eq!(window.try_acquire_n_at(4, 2 * SECOND), Ok(()));
    // A time in an older window counts as the start of the newest.
    assert_eq!(window.try_acquire_at(2 * SECOND), too_soon(1, 0, 28 * SECOND));
}

#[test]
fn a_pause_after_a_pause_holds_as_well() {
    let window = fixed(5, 10 * SECOND);
    for begin in [0, 20, 40] {
        window.pause_until_at((begin + 10) * SECOND, begin * SECOND);
        let refused = window.try_acquire_at((begin + 9) * SECOND);
        assert_eq!(refused, Err(Refused::Paused { asked: 1, retry_after: SECOND }));
        assert_eq!(window.try_acquire_at((begin + 10) * SECOND), Ok(()));
    }
}

#[test]
fn a_pause_by_a_clock_that_was_set_back_lasts_until_its_end_and_opens_no_window_again() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(5, 50 * SECOND), Ok(()));
    window.pause_until_at(40 * SECOND, 30 * SECOND);
    assert!(matches!(window.try_acquire_at(39 * SECOND), Err(Refused::Paused { .. })));
    assert_eq!(window.try_acquire_at(40 * SECOND), too_soon(1, 0, 20 * SECOND));
    window.pause_until_at(90 * SECOND, 45 * SECOND);
    window.resume_at(46 * SECOND);
    assert_eq!(window.try_acquire_at(46 * SECOND), too_soon(1, 0, 14 * SECOND));
}

#[test]
fn the_longest_pause_bounds_a_pause() {
    let clock = ManualClock::new();
    let window = FixedWindow::builder(quota(5, SECOND, 0)).max_pause(MINUTE).clock(clock.clone()).build();
    window.pause_for(YEAR);
    assert_eq!(window.try_acquire(), Err(Refused::Paused { asked: 1, retry_after: MINUTE }));
}

#[test]
fn another_limit_keeps_the_counts() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(4, SECOND), Ok(()));
    window.set_quota_at(quota(3, 10 * SECOND, 0), 2 * SECOND);
    assert_eq!(window.snapshot_at(2 * SECOND).remaining, 0);
    assert_eq!(window.try_acquire_at(2 * SECOND), too_soon(1, 0, 8 * SECOND));
    window.set_quota_at(quota(1_000, 10 * SECOND, 0), 3 * SECOND);
    assert_eq!(window.available_at(3 * SECOND), 996);
    let counter = sliding(10, 10 * SECOND);
    assert_eq!(counter.try_acquire_n_at(8, 9 * SECOND), Ok(()));
    assert_eq!(counter.try_acquire_n_at(2, 10 * SECOND), Ok(()));
    counter.set_quota_at(quota(1 << 28, 10 * SECOND, 0), 15 * SECOND).unwrap();
    assert_eq!(counter.available_at(15 * SECOND), (1 << 28) - 6);
    assert_eq!(counter.available_at(20 * SECOND), (1 << 28) - 2);
}

#[test]
fn the_same_quota_again_changes_nothing() {
    let counter = sliding(10, 10 * SECOND);
    for (step, n) in [3, 2, 4, 0, 1].into_iter().enumerate() {
        let now = u32::try_from(step).unwrap() * 4 * SECOND;
        let (before, taken) = (counter.snapshot_at(now), counter.acquire_up_to_at(n, now));
        counter.refund_at(taken, now);
        counter.set_quota_at(quota(10, 10 * SECOND, 7), now).unwrap();
        assert_eq!(counter.snapshot_at(now), before);
        assert_eq!(counter.acquire_up_to_at(n, now), taken);
    }
}

#[test]
fn another_length_starts_with_what_still_counted() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(4, 3 * SECOND), Ok(()));
    window.set_quota_at(quota(5, 4 * SECOND, 0), 9 * SECOND);
    assert_eq!(window.available_at(11 * SECOND), 1);
    assert_eq!(window.available_at(12 * SECOND), 5);
    let counter = sliding(10, 10 * SECOND);
    assert_eq!(counter.try_acquire_n_at(8, 9 * SECOND), Ok(()));
    // 8 * 0.55 = 4.4, rounded up.
    counter.set_quota_at(quota(10, 4 * SECOND, 0), Duration::from_millis(14_500)).unwrap();
    assert_eq!(counter.available_at(15 * SECOND), 5);
    assert_eq!(counter.available_at(17 * SECOND), 6); // 5 * 0.75
}

#[test]
fn a_change_by_a_clock_that_was_set_back_opens_no_window_again() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(5, 50 * SECOND), Ok(()));
    window.set_quota_at(quota(5, SECOND, 0), 3 * SECOND);
    assert_eq!(window.try_acquire_at(3 * SECOND), too_soon(1, 0, 48 * SECOND));
}

#[test]
fn unlimited_admits_all_and_leaves_nothing() {
    let window = fixed(5, 10 * SECOND);
    window.set_quota_at(Quota::UNLIMITED, SECOND);
    assert_eq!(window.try_acquire_n_at(u64::MAX, SECOND), Ok(()));
    assert_eq!(window.available_at(SECOND), u64::MAX);
    window.pause_until_at(3 * SECOND, 2 * SECOND);
    assert_eq!(window.try_acquire_at(2 * SECOND), Err(Refused::Paused { asked: 1, retry_after: SECOND }));
    assert_eq!(window.try_acquire_at(3 * SECOND), Ok(()));
    assert_eq!(window.try_acquire_at(2 * SECOND), Ok(()));
    window.set_quota_at(quota(5, 10 * SECOND, 0), 14 * SECOND);
    assert_eq!(window.try_acquire_at(14 * SECOND), too_soon(1, 0, 6 * SECOND));
    assert_eq!(window.available_at(20 * SECOND), 5);
}

#[test]
fn permits_that_still_count_are_given_back_the_latest_first() {
    let window = fixed(5, 10 * SECOND);
    assert_eq!(window.try_acquire_n_at(4, SECOND), Ok(()));
    window.refund_at(1, 2 * SECOND);
    assert_eq!(window.available_at(2 * SECOND), 2);
    window.refund_at(9, 12 * SECOND);
    assert_eq!(window.available_at(2 * SECOND), 2);
    window.refund_at(9, 2 * SECOND);
    assert_eq!(window.available_at(2 * SECOND), 5);

    let counter = sliding(10, 10 * SECOND);
    assert_eq!(counter.try_acquire_n_at(8, 9 * SECOND), Ok(()));
    assert_eq!(counter.try_acquire_n_at(2, 10 * SECOND), Ok(()));
    counter.refund_at(4, 15 * SECOND); // the two, and two of the eight
    assert_eq!(counter.available_at(15 * SECOND), 7); // 6 * 0.5
    assert_eq!(counter.try_acquire_n_at(7, 15 * SECOND), Ok(()));
    counter.refund_at(4, 25 * SECOND);
    assert_eq!(counter.available_at(25 * SECOND), 8); // 3 * 0.5
    counter.reset_at(25 * SECOND);
    assert_eq!(counter.available_at(25 * SECOND), 10);
}

#[test]
fn a_pause_outlasts_a_reset() {
    let counter = sliding(10, 10 * SECOND);
    assert_eq!(counter.try_acquire_n_at(8, SECOND), Ok(()));
    counter.pause_until_at(7 * SECOND, 2 * SECOND);
    counter.reset_at(3 * SECOND);
    assert_eq!(counter.available_at(6 * SECOND), 0);
    assert_eq!(counter.available_at(7 * SECOND), 10);
}

#[test]
fn a_window_may_start_with_less() {
    let clock = ManualClock::new();
    clock.set(Nanos::from_secs(1_700_000_005));
    let window = FixedWindow::builder(quota(5, 10 * SECOND, 0)).initial(2).clock(clock.clone()).build();
    assert_eq!(window.available(), 2);
    clock.advance(5 * SECOND);
    assert_eq!(window.available(), 5);
    let counter = SlidingCounter::builder(quota(5, 10 * SECOND, 0)).initial(9).clock(clock).build().unwrap();
    assert_eq!(counter.available(), 5);
}

#[test]
fn a_limit_of_nothing_admits_nothing_and_nothing_is_always_admitted() {
    let window = fixed(0, SECOND);
    assert_eq!(window.try_acquire_at(0), Err(Refused::ExceedsCapacity { asked: 1, capacity: 0 }));
    assert_eq!(window.try_acquire_n_at(0, 0), Ok(()));
    let seen = window.snapshot_at(0);
    assert_eq!((seen.limit, seen.remaining, seen.retry_after, seen.reset_after), (0, 0, None, Some(Duration::ZERO)));
    window.set_quota_at(quota(2, SECOND, 0), 0);
    assert_eq!(window.available_at(0), 2);
}

#[test]
fn a_limit_too_large_for_a_sliding_counter_is_told_and_changes_nothing() {
    let most = SlidingCounter::MAX_LIMIT;
    let beyond = QuotaError::BeyondSlidingCounter { asked: most + 1, most };
    assert_eq!(SlidingCounter::new(Quota::per_day(most + 1)).unwrap_err(), beyond);
    assert_eq!(SlidingCounter::builder(Quota::per_day(most + 1)).build().unwrap_err(), beyond);
    let counter = SlidingCounter::new(Quota::per_day(most)).unwrap();
    assert_eq!(counter.try_acquire_n_at(most, 0), Ok(()));
    assert_eq!(counter.set_quota_at(Quota::per_day(most + 1), 0), Err(beyond));
    assert_eq!(counter.quota(), Quota::per_day(most));
    assert_eq!(counter.available_at(0), 0);
    assert!(beyond.to_string().contains("268435456") && beyond.to_string().contains("TokenBucket"));
    assert_eq!(counter.set_quota_at(Quota::UNLIMITED, 0), Ok(()));
}

#[test]
fn always_less_than_twice_the_limit_passes_in_a_span_of_a_sliding_counter() {
    let counter = sliding(100, MINUTE);
    assert_eq!(counter.try_acquire_n_at(100, MINUTE - NANOSECOND), Ok(()));
    let mut passed = 100;
    // Each permit as soon as it is there, as long as the hundred are within a minute.
    for time in 60_000..120_000 {
        passed += u64::from(counter.try_acquire_at(Duration::from_millis(time)).is_ok());
    }
    assert_eq!(passed, 199);
}

#[test]
fn ten_million_per_day_are_weighed_exactly() {
    let (limit, before) = (10_000_000, 9_999_999);
    let counter = sliding(limit, DAY);
    assert_eq!(counter.try_acquire_n_at(before, DAY - NANOSECOND), Ok(()));
    for elapsed in [0, 1, 8_640_000, 8_640_001, 12 * HOUR.as_nanos(), DAY.as_nanos() - 1] {
        let weighed = (u128::from(before) * (DAY.as_nanos() - elapsed)).div_ceil(DAY.as_nanos());
        let now = DAY + Duration::from_nanos(elapsed.try_into().unwrap());
        assert_eq!(u128::from(counter.available_at(now)), u128::from(limit) - weighed, "{elapsed} ns after the edge");
    }
    assert_eq!(counter.try_acquire_at(DAY), Ok(()));
    // One of those before is out of the day after a day / 9,999,999.
    assert_eq!(counter.try_acquire_at(DAY), too_soon(1, 0, Duration::from_nanos(8_640_001)));
    assert_eq!(counter.try_acquire_at(DAY + Duration::from_nanos(8_640_001)), Ok(()));
}

#[test]
fn a_word_of_counts_takes_what_the_docs_say() {
    assert!(size_of::<FixedWindow>() <= 512, "{}", size_of::<FixedWindow>());
    assert_eq!(size_of::<SlidingCounter>(), size_of::<FixedWindow>());
}
