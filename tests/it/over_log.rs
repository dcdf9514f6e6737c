//! A shaper over the sliding log: each request leaves at the first nanosecond at which no span of W would hold too many.

use std::time::Duration;

use tollgate::{ManualClock, Quota, Refused, Shaper, SlidingLog, SlidingLogLaw};

use crate::over_windows::{over, seconds_of, ten_seconds};
use crate::tasks::{Crowd, Task};
use crate::{HOUR, NANOSECOND, SECOND};

fn log(limit: u64) -> (ManualClock, Shaper<SlidingLogLaw>) {
    over(SlidingLog::with_clock(ten_seconds(limit), ManualClock::new()).unwrap())
}

#[test]
fn each_leaves_when_the_one_before_by_the_limit_is_out_of_the_span() {
    let (clock, shaper) = log(3);
    for second in [0, 1, 4] {
        clock.set(Duration::from_secs(second));
        assert!(shaper.try_acquire().is_ok());
    }
    let (left, polls) = seconds_of(&clock, &shaper, &[1; 8], 100);
    // Seconds from 4 on.
    assert_eq!(left, [6, 7, 10, 16, 17, 20, 26, 27]);
    assert_eq!(polls, 8 * 2);
}

#[test]
fn weights_leave_together_and_in_order() {
    let (clock, shaper) = log(3);
    for second in [0, 1, 4] {
        clock.set(Duration::from_secs(second));
        assert!(shaper.try_acquire().is_ok());
    }
    let (left, _) = seconds_of(&clock, &shaper, &[2, 1, 3, 1, 1, 2], 100);
    assert_eq!(left, [7, 10, 20, 30, 30, 40]);
}

#[test]
fn many_weights_take_few_polls() {
    for weights in [vec![3; 60], [5, 1].repeat(30), [1, 4, 2, 2, 5].repeat(12)] {
        let (clock, shaper) = log(5);
        let (left, polls) = seconds_of(&clock, &shaper, &weights, 1_000);
        let most: usize = left.iter().map(|second| 5 + 2 * (second / 10).max(1).ilog2() as usize).sum();
        assert!(polls <= most, "{polls} of {most}, {weights:?}");
    }
}

#[test]
fn the_place_is_told_to_the_nanosecond() {
    let (clock, shaper) = log(2);
    clock.set(Duration::from_nanos(7));
    assert!(shaper.try_acquire().is_ok());
    clock.set(Duration::from_nanos(9));
    assert!(shaper.try_acquire().is_ok());
    let wait = 10 * SECOND - Duration::from_nanos(2);
    assert_eq!(Task::new(shaper.acquire_within(wait - NANOSECOND)).refusal(), Refused::DeadlineTooSoon { wait });
    let mut first = Task::in_line(shaper.acquire_within(wait));
    assert_eq!(shaper.estimated_wait(1), Some(10 * SECOND));
    assert_eq!(shaper.estimated_wait(2), Some(20 * SECOND - Duration::from_nanos(2)));
    clock.advance(wait - NANOSECOND);
    assert!(first.waits());
    clock.advance(NANOSECOND);
    assert!(first.leaves());
}

#[test]
fn several_that_are_due_at_one_instant_count_as_of_it() {
    let (clock, shaper) = log(3);
    assert!(shaper.try_acquire_n(3).is_ok());
    let mut line: Vec<_> = (0..4).map(|_| Task::in_line(shaper.acquire())).collect();
    // Nobody looked for a while; all that may leave now do.
    clock.set(25 * SECOND);
    assert!(line[..3].iter_mut().all(Task::leaves) && line[3].waits());
    clock.set(35 * SECOND - NANOSECOND);
    assert!(line[3].waits());
    clock.set(35 * SECOND);
    assert!(line[3].leaves());
}

#[test]
fn times_are_carried_to_another_clock() {
    for (limiters, shapers) in [(Duration::ZERO, HOUR), (HOUR, Duration::from_secs(1 << 33)), (HOUR, 20 * SECOND)] {
        let clock = ManualClock::at(limiters);
        let limiter = SlidingLog::with_clock(ten_seconds(2), clock.clone()).unwrap();
        assert_eq!(limiter.try_acquire(), Ok(()));
        clock.advance(3 * SECOND);
        assert_eq!(limiter.try_acquire(), Ok(()));
        clock.advance(SECOND);
        let clock = ManualClock::at(shapers);
        let shaper = Shaper::over(limiter).clock(clock.clone()).build();
        let mut line = [Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire())];
        clock.set(shapers + 6 * SECOND - NANOSECOND);
        assert!(line[0].waits());
        clock.set(shapers + 6 * SECOND);
        assert!(line[0].leaves() && line[1].waits());
        clock.set(shapers + 9 * SECOND);
        assert!(line[1].leaves());
    }
}

#[test]
fn what_is_older_than_the_shapers_clock_counts_from_its_origin() {
    let clock = ManualClock::at(HOUR);
    let limiter = SlidingLog::with_clock(ten_seconds(1), clock.clone()).unwrap();
    assert_eq!(limiter.try_acquire(), Ok(()));
    clock.advance(6 * SECOND);
    let shaper = Shaper::over(limiter).clock(ManualClock::at(2 * SECOND)).build();
    // Four seconds would do.
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(8 * SECOND));
}

#[test]
fn what_remains_of_a_pause_and_of_the_span_remains_on_another_clock() {
    let clock = ManualClock::at(HOUR);
    let limiter = SlidingLog::with_clock(ten_seconds(1), clock.clone()).unwrap();
    assert_eq!(limiter.try_acquire(), Ok(()));
    clock.advance(4 * SECOND);
    limiter.pause_for(60 * SECOND);
    clock.advance(20 * SECOND);
    let clock = ManualClock::at(30 * SECOND);
    let shaper = Shaper::over(limiter).clock(clock.clone()).build();
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Paused { asked: 1, retry_after: 46 * SECOND });
    let mut waiter = Task::in_line(shaper.acquire());
    clock.advance(46 * SECOND - NANOSECOND);
    assert!(waiter.waits());
    clock.advance(NANOSECOND);
    assert!(waiter.leaves());
}

#[test]
fn times_that_were_not_of_the_limiters_clock_hold_nobody_up_for_longer_than_the_span() {
    let limiter = SlidingLog::with_clock(ten_seconds(1), ManualClock::new()).unwrap();
    assert_eq!(limiter.try_acquire_at(1_000 * HOUR), Ok(()));
    let shaper = Shaper::over(limiter).clock(ManualClock::at(HOUR)).build();
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(10 * SECOND));
}

#[test]
fn a_larger_limit_and_another_span_reach_those_who_wait() {
    let (clock, shaper) = log(2);
    let mut crowd = Crowd::default();
    for _ in 0..9 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0, 1]);
    clock.set(SECOND);
    shaper.set_quota(ten_seconds(5)).unwrap();
    assert_eq!(crowd.granted(), [2, 3, 4]);
    // All five count as of now.
    shaper.set_quota(Quota::new(6, 4 * SECOND).unwrap()).unwrap();
    assert_eq!(crowd.granted(), [5]);
    assert_eq!(crowd.granted_while(&clock, SECOND, 10), [(6, 4), (7, 4), (8, 4)]);
    assert!(shaper.set_quota(ten_seconds(1 << 21)).is_err());
    assert_eq!(shaper.quota(), Quota::new(6, 4 * SECOND).unwrap());
}

#[test]
fn a_pause_holds_all_and_what_counted_counts_at_its_end() {
    let (clock, shaper) = log(2);
    assert!(shaper.try_acquire().is_ok());
    clock.set(4 * SECOND);
    shaper.pause_until(100 * SECOND);
    let mut crowd = Crowd::default();
    for _ in 0..4 {
        crowd.push(shaper.acquire());
    }
    // One is left at the end. Six seconds later the first is out of the span.
    assert_eq!(crowd.granted_while(&clock, SECOND, 200), [(0, 96), (1, 102), (2, 106), (3, 112)]);
}

#[test]
fn a_permit_is_given_back_while_it_is_the_last_one() {
    let (_, shaper) = log(2);
    let (first, last) = (shaper.try_acquire().unwrap(), shaper.try_acquire().unwrap());
    let mut waiter = Task::in_line(shaper.acquire());
    first.give_back();
    assert!(waiter.waits());
    last.give_back();
    assert!(waiter.leaves());
}

#[test]
fn a_permit_is_given_back_through_a_change_and_takes_no_other_along() {
    let (clock, shaper) = log(4);
    assert!(shaper.try_acquire_n(2).is_ok());
    let permit = shaper.try_acquire_n(2).unwrap();
    clock.set(SECOND);
    shaper.set_quota(Quota::new(4, 20 * SECOND).unwrap()).unwrap();
    shaper.refund(1);
    permit.give_back();
    // One and then two of four were taken out; the refund had made room of the same permit.
    assert_eq!(shaper.acquire_up_to(9).permits(), 3);
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn no_more_than_counts_is_given_back() {
    let (clock, shaper) = log(2);
    assert!(shaper.try_acquire_n(2).is_ok());
    clock.set(10 * SECOND);
    let permit = shaper.try_acquire_n(2).unwrap();
    shaper.refund(1);
    permit.give_back();
    assert_eq!(shaper.acquire_up_to(9).permits(), 2);
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn close_and_a_deadline_end_waits() {
    let (clock, shaper) = log(1);
    assert!(shaper.try_acquire().is_ok());
    let mut late = Task::in_line(shaper.acquire_within(15 * SECOND));
    clock.set(5 * SECOND);
    shaper.pause_until(12 * SECOND);
    let mut other = Task::in_line(shaper.acquire());
    clock.set(15 * SECOND);
    assert_eq!(late.refusal(), Refused::DeadlineTooSoon { wait: 2 * SECOND });
    shaper.close();
    assert_eq!(other.refusal(), Refused::Closed);
}
