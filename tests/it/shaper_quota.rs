//! Changes of the quota while some wait: permits are carried, not time, and the order stays.

use std::time::Duration;

use tollgate::{Quota, Refused};

use crate::tasks::{Crowd, Task, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND, quota};

// juju/ratelimit#4.
#[test]
fn a_faster_quota_reaches_those_who_wait() {
    let (clock, shaper) = by_hand(Quota::every(100 * SECOND).unwrap());
    assert!(shaper.try_acquire().is_ok());
    let mut a = Task::in_line(shaper.acquire());
    clock.set(10 * SECOND);
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(a.wakes(), 1);
    assert!(a.waits());
    // A tenth of a permit had accrued, and counts.
    clock.set(10_900 * MILLISECOND - NANOSECOND);
    assert!(a.waits());
    clock.set(10_900 * MILLISECOND);
    assert_eq!(a.wakes(), 2);
    assert!(a.leaves());
}

// juju/ratelimit#4, reverse.
#[test]
fn a_slower_quota_reaches_those_who_wait_and_wakes_nobody() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND / 2);
    shaper.set_quota(Quota::every(100 * SECOND).unwrap());
    assert_eq!((a.wakes(), b.wakes()), (0, 0));
    assert_eq!(shaper.estimated_wait(1), Some(250 * SECOND));
    // Half a permit had accrued: the other half takes 50 s. Their timers end at the old times, and are set anew.
    for at in [SECOND, 2 * SECOND, 50_500 * MILLISECOND - NANOSECOND] {
        clock.set(at);
        assert!(a.waits() && b.waits());
    }
    clock.set(50_500 * MILLISECOND);
    assert!(a.leaves() && b.waits());
    clock.set(150_500 * MILLISECOND - NANOSECOND);
    assert!(b.waits());
    clock.set(150_500 * MILLISECOND);
    assert!(b.leaves());
}

#[test]
fn a_faster_quota_wakes_all_and_keeps_their_order() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let mut crowd = Crowd::default();
    for _ in 0..20 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0]);
    clock.advance(50 * MILLISECOND);
    shaper.set_quota(Quota::per_second(100));
    let expected: Vec<_> = (1..20).zip((0..).map(|slot| 5 + 10 * slot)).collect();
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 200), expected);
    // To come, to set their timers anew, and to leave.
    assert!(crowd.polls() <= 3 * 20, "{} polls", crowd.polls());
}

#[test]
fn a_faster_quota_wakes_each_in_line_once() {
    let (_clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire().is_ok());
    let line: Vec<_> = (0..20).map(|_| Task::in_line(shaper.acquire())).collect();
    for _ in 0..2 {
        // Whoever was woken and has not looked yet is not woken again.
        shaper.set_quota(Quota::per_second(100));
        assert!(line.iter().all(|waiter| waiter.wakes() == 1));
    }
}

#[test]
fn a_slower_quota_costs_one_poll_more() {
    let (clock, shaper) = by_hand(Quota::per_second(100));
    let mut crowd = Crowd::default();
    for _ in 0..20 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0]);
    clock.advance(5 * MILLISECOND);
    shaper.set_quota(Quota::per_second(10));
    let expected: Vec<_> = (1..20).zip((0..).map(|slot| 50 + 100 * slot)).collect();
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 2000), expected);
    assert!(crowd.polls() <= 3 * 20, "{} polls", crowd.polls());
}

#[test]
fn who_asks_for_more_than_the_new_largest_n_ends_and_the_others_move_up() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let mut crowd = Crowd::default();
    for n in [1, 8, 1, 6, 2, 5] {
        crowd.push(shaper.acquire_n(n));
    }
    assert_eq!(crowd.granted(), [0]);
    clock.advance(50 * MILLISECOND);
    shaper.set_quota(Quota::per_second(5));
    assert_eq!(shaper.waiting(), 3);
    let ended: Vec<_> = crowd.run().into_iter().map(|(of, answer)| (of, answer.unwrap_err())).collect();
    let exceeds = |asked| Refused::ExceedsCapacity { asked, capacity: 5 };
    assert_eq!(ended, [(1, exceeds(8)), (3, exceeds(6))]);
    // Half an interval is owed still, which is 100 ms at the new rate.
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 1000), [(2, 100), (4, 300), (5, 700)]);
    assert_eq!(shaper.estimated_wait(1), Some(700 * MILLISECOND));
}

#[test]
fn a_largest_n_that_was_set_stays() {
    let (clock, shaper) = by_hand_with(Quota::per_second(10), |builder| builder.max_n(8));
    assert!(shaper.try_acquire().is_ok());
    let mut large = Task::in_line(shaper.acquire_n(8));
    shaper.set_quota(Quota::per_second(1));
    clock.set(SECOND);
    assert!(large.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(8 * SECOND));
    assert_eq!(shaper.try_acquire_n(9).unwrap_err(), Refused::ExceedsCapacity { asked: 9, capacity: 8 });
}

#[test]
fn the_debt_of_a_large_request_is_carried_in_permits() {
    let (clock, shaper) = by_hand_with(Quota::per_second(10), |builder| builder.max_n(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    clock.set(500 * MILLISECOND);
    // Five permits are still owed.
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(shaper.estimated_wait(1), Some(5 * SECOND));
    shaper.set_quota(Quota::per_second(1000));
    assert_eq!(shaper.estimated_wait(1), Some(5 * MILLISECOND));
}

#[test]
fn the_same_quota_set_every_10_ms_changes_nothing() {
    for (permits, burst) in [(40, 1), (3, 1), (7, 4), (1000, 3)] {
        let run = |changes: bool| {
            let quota = Quota::per_second(permits).burst(burst);
            let (clock, shaper) = by_hand_with(quota, |builder| builder.max_n(5));
            let mut crowd = Crowd::default();
            let mut left = Vec::new();
            for ms in 0..21_000 {
                if ms < 20 {
                    crowd.push(shaper.acquire_n(1 + ms % 5));
                }
                left.extend(crowd.granted().into_iter().map(|of| (of, ms)));
                if changes && ms % 10 == 0 {
                    shaper.set_quota(quota);
                }
                clock.advance(MILLISECOND);
            }
            (left, shaper.estimated_wait(5))
        };
        let undisturbed = run(false);
        assert_eq!(run(true), undisturbed, "{permits} a second, burst {burst}");
        assert_eq!(undisturbed.0.len(), 20);
    }
}

#[test]
fn at_rate_zero_they_stay_until_the_rate_is_back() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut line = [Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire())];
    shaper.set_quota(Quota::per_second(0));
    for _ in 0..10 {
        clock.advance(HOUR);
        assert!(line.iter_mut().all(Task::waits));
    }
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (2, None));
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Never { asked: 1, remaining: 0 });
    let wakes = line[0].wakes();
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(line[0].wakes(), wakes + 1);
    let [a, b] = &mut line;
    assert!(a.waits() && b.waits());
    clock.advance(SECOND - NANOSECOND);
    assert!(a.waits());
    clock.advance(NANOSECOND);
    assert!(a.leaves() && b.waits());
    clock.advance(SECOND);
    assert!(b.leaves());
}

#[test]
fn at_rate_zero_the_burst_leaves_and_nothing_after_it() {
    let (clock, shaper) = by_hand(Quota::per_second(0).burst(3));
    let mut crowd = Crowd::default();
    for _ in 0..5 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted_while(&clock, HOUR, 100), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(shaper.waiting(), 2);
    // What is set then starts with the nothing that is left.
    shaper.set_quota(Quota::per_second(1).burst(3));
    assert_eq!(crowd.granted_while(&clock, SECOND, 3), [(3, 1), (4, 2)]);
}

#[test]
fn after_no_limit_a_quota_starts_empty() {
    let (clock, shaper) = by_hand(Quota::UNLIMITED);
    assert!(shaper.try_acquire_n(1_000_000).is_ok());
    shaper.set_quota(quota(1, SECOND, 5));
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert!(waiter.leaves());
}

#[test]
fn what_was_granted_before_a_change_stands() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND);
    assert_eq!(shaper.waiting(), 1);
    shaper.set_quota(Quota::every(HOUR).unwrap());
    assert!(a.leaves());
    assert!(b.waits());
    assert_eq!(shaper.quota(), Quota::every(HOUR).unwrap());
    clock.set(SECOND + HOUR);
    assert!(b.leaves());
}

// SGrondin/bottleneck#185.
#[test]
fn the_same_settings_set_again_and_again_refill_as_ever() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    assert!(shaper.try_acquire_n(5).is_ok());
    for _ in 0..99 {
        clock.advance(10 * MILLISECOND);
        shaper.set_quota(quota(1, SECOND, 5));
    }
    clock.set(999 * MILLISECOND);
    assert!(shaper.try_acquire().is_err());
    clock.set(SECOND);
    shaper.set_quota(quota(1, SECOND, 5));
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

// SGrondin/bottleneck#185.
#[test]
fn a_debt_is_not_shrunk_by_converting_time() {
    let (_clock, shaper) = by_hand(quota(100, SECOND, 10));
    assert!(shaper.try_acquire_n(5).is_ok());
    shaper.set_quota(quota(1, SECOND, 10));
    let refused = Refused::TooSoon { asked: 6, remaining: 5, retry_after: SECOND };
    assert_eq!(shaper.try_acquire_n(6).unwrap_err(), refused);
    assert!(shaper.try_acquire_n(5).is_ok());
}

// SGrondin/bottleneck#185, (d).
#[test]
fn another_burst_neither_adds_permits_nor_takes_those_that_fit() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    shaper.set_quota(quota(1, SECOND, 10));
    let refused = Refused::TooSoon { asked: 6, remaining: 5, retry_after: SECOND };
    assert_eq!(shaper.try_acquire_n(6).unwrap_err(), refused);
    clock.set(5 * SECOND);
    let permit = shaper.acquire_up_to(11);
    assert_eq!(permit.permits(), 10);
    permit.give_back();
    shaper.set_quota(quota(1, SECOND, 3));
    assert!(shaper.try_acquire_n(3).is_ok());
    let refused = Refused::TooSoon { asked: 1, remaining: 0, retry_after: SECOND };
    assert_eq!(shaper.try_acquire().unwrap_err(), refused);
}

#[test]
fn a_quota_set_while_the_clock_is_back_gives_nothing_extra() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    clock.set(1000 * SECOND);
    assert!(shaper.try_acquire_n(5).is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    for _ in 0..20 {
        clock.set(900 * SECOND);
        shaper.set_quota(quota(1, SECOND, 5));
        assert!(waiter.waits());
        clock.set(1000 * SECOND);
        shaper.set_quota(quota(1, SECOND, 5));
        assert!(waiter.waits());
    }
    clock.set(1001 * SECOND - NANOSECOND);
    assert!(waiter.waits());
    clock.set(1001 * SECOND);
    assert!(waiter.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_quota_can_be_set_more_often_than_there_are_versions() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    for _ in 0..100 {
        for rate in [100, 1] {
            shaper.set_quota(Quota::per_second(rate));
            assert!(waiter.waits());
        }
        clock.advance(MILLISECOND);
    }
    assert_eq!(shaper.estimated_wait(1), Some(1900 * MILLISECOND));
    clock.set(SECOND);
    assert!(waiter.leaves());
}

#[test]
fn a_debt_is_carried_through_a_quota_with_a_smaller_largest_n() {
    // Ten permits are owed. The quota in between would let nobody owe more than one.
    let (clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    shaper.set_quota(Quota::every(10 * SECOND).unwrap());
    assert_eq!(shaper.estimated_wait(1), Some(100 * SECOND));
    shaper.set_quota(Quota::per_second(10));
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert!(waiter.leaves());
    // And to a slower one: nobody gets off more lightly.
    let (_clock, shaper) = by_hand(Quota::per_second(1000));
    assert!(shaper.try_acquire_n(1000).is_ok());
    shaper.set_quota(Quota::every(MILLISECOND).unwrap());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    shaper.set_quota(Quota::every(10 * SECOND).unwrap());
    assert_eq!(shaper.estimated_wait(1), Some(10_000 * SECOND));
}

#[test]
fn what_had_accrued_before_rate_zero_is_there_after_it() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(3 * SECOND / 4);
    shaper.set_quota(Quota::per_second(0));
    clock.set(HOUR);
    assert!(waiter.waits());
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(shaper.estimated_wait(1), Some(SECOND / 4 + SECOND));
    assert!(waiter.waits());
    clock.set(HOUR + SECOND / 4);
    assert!(waiter.leaves());
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Record, until_waiting};
    use std::sync::Arc;
    use tollgate::Shaper;

    // juju/ratelimit#4.
    #[tokio::test(start_paused = true)]
    async fn a_faster_quota_reaches_those_who_sleep() {
        let shaper = Arc::new(Shaper::new(Quota::every(100 * SECOND).unwrap()));
        let record = Record::begin();
        for who in 0..3 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 2).await;
        record.until(10_000).await;
        shaper.set_quota(Quota::per_second(1));
        record.until(20_000).await;
        assert_eq!(record.lines(), [(0, 0), (1, 10_900), (2, 11_900)]);
    }

    // juju/ratelimit#4, reverse.
    #[tokio::test(start_paused = true)]
    async fn a_slower_quota_reaches_those_who_sleep() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let record = Record::begin();
        for who in 0..3 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 2).await;
        record.until(500).await;
        shaper.set_quota(Quota::every(100 * SECOND).unwrap());
        record.until(200_000).await;
        assert_eq!(record.lines(), [(0, 0), (1, 50_500), (2, 150_500)]);
    }

    // golang/go#47221.
    #[tokio::test(start_paused = true)]
    async fn at_rate_zero_the_second_stays_until_the_rate_is_set() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(0)));
        let record = Record::begin();
        record.spawn(0, &shaper, 1);
        let second = record.spawn(1, &shaper, 1);
        until_waiting(&shaper, 1).await;
        record.until(3_600_000).await;
        assert_eq!(record.lines(), [(0, 0)]);
        shaper.set_quota(Quota::per_second(1));
        second.await.unwrap().unwrap();
        assert_eq!(record.lines(), [(0, 0), (1, 3_601_000)]);
    }
}

// golang/go#47221.
#[test]
fn at_rate_zero_one_of_a_thousand_tries_passes() {
    let (clock, shaper) = by_hand(Quota::per_second(0));
    let mut passed = 0;
    for _ in 0..1000 {
        passed += usize::from(shaper.try_acquire().is_ok());
        clock.advance(HOUR / 1000);
    }
    assert_eq!(passed, 1);
    assert!(shaper.try_acquire_n(0).is_ok());
    assert_eq!(shaper.estimated_wait(0), Some(Duration::ZERO));
}
