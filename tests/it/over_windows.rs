//! Shapers over the window laws: each request leaves at the first instant at which the law admits it, in the order of arrival.

use std::time::Duration;

use tollgate::{
    FixedWindow, FixedWindowLaw, Limiter, ManualClock, Policing, Quota, Refused, Shaper, ShaperBuilder, SlidingCounter,
    SlidingCounterLaw, Waitable,
};

use crate::tasks::{Crowd, Task};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND};

/// `limit` per ten seconds.
pub(crate) fn ten_seconds(limit: u64) -> Quota {
    Quota::new(limit, 10 * SECOND).unwrap()
}

pub(crate) fn over<A: Waitable>(limiter: Limiter<A, ManualClock>) -> (ManualClock, Shaper<A>) {
    over_with(limiter, |builder| builder)
}

fn over_with<A: Waitable>(
    limiter: Limiter<A, ManualClock>,
    configure: impl FnOnce(ShaperBuilder<A>) -> ShaperBuilder<A>,
) -> (ManualClock, Shaper<A>) {
    let clock = limiter.clock().clone();
    (clock.clone(), configure(Shaper::over(limiter)).clock(clock).build())
}

fn fixed(limit: u64) -> (ManualClock, Shaper<FixedWindowLaw>) {
    over(FixedWindow::with_clock(ten_seconds(limit), ManualClock::new()))
}

fn sliding(limit: u64) -> (ManualClock, Shaper<SlidingCounterLaw>) {
    over(SlidingCounter::with_clock(ten_seconds(limit), ManualClock::new()).unwrap())
}

/// Sends requests of these weights at once, moves the clock by seconds, and returns when each left, and the polls of all. They
/// leave in order; within a second tasks learn of it as they are polled.
pub(crate) fn seconds_of<A: Waitable>(
    clock: &ManualClock,
    shaper: &Shaper<A>,
    weights: &[u64],
    seconds: u64,
) -> (Vec<u64>, usize) {
    let mut crowd = Crowd::default();
    for &n in weights {
        crowd.push(shaper.acquire_n(n));
    }
    let mut left = crowd.granted_while(clock, SECOND, seconds);
    left.sort_by_key(|&(of, second)| (second, of));
    assert!(left.iter().map(|left| left.0).eq(0..weights.len()), "in order: {left:?}");
    (left.into_iter().map(|left| left.1).collect(), crowd.polls())
}

#[test]
fn a_fixed_window_lets_its_limit_leave_at_each_edge() {
    let (clock, shaper) = fixed(3);
    let (left, polls) = seconds_of(&clock, &shaper, &[1; 7], 100);
    assert_eq!(left, [0, 0, 0, 10, 10, 10, 20]);
    // One for those who pass, two for those who wait.
    assert_eq!(polls, 3 + 4 * 2);
}

#[test]
fn a_fixed_window_is_filled_in_order_even_if_a_small_request_would_fit() {
    let (clock, shaper) = fixed(3);
    let (left, polls) = seconds_of(&clock, &shaper, &[2, 2, 1, 3, 1, 2, 3], 100);
    assert_eq!(left, [0, 10, 10, 20, 30, 30, 40]);
    assert!(polls <= 7 * 3, "{polls}");
}

#[test]
fn a_sliding_counter_lets_them_leave_as_the_window_before_slides_out() {
    let (clock, shaper) = sliding(5);
    let (left, polls) = seconds_of(&clock, &shaper, &[1; 16], 100);
    // From 10 s on the five before fade by one in two seconds. The fifth would come at 20 s, and is the next window's; so four fade
    // there by one in two seconds and a half, and the same again. The clock is moved by whole seconds.
    assert_eq!(left, [0, 0, 0, 0, 0, 12, 14, 16, 18, 20, 23, 25, 28, 30, 33, 35]);
    // Those of a later window than the next ask once more when it begins.
    assert!(polls <= 5 + 11 * 3, "{polls}");
}

#[test]
fn a_sliding_counter_admits_weights_to_the_nanosecond() {
    let (clock, shaper) = sliding(7);
    assert!(shaper.try_acquire_n(6).is_ok());
    let mut three = Task::in_line(shaper.acquire_n(3));
    let mut five = Task::in_line(shaper.acquire_n(5));
    // 6 * (10 - e) + 3 * 10 <= 7 * 10, that is e >= 10/3.
    let first = 10 * SECOND + Duration::from_nanos(3_333_333_334);
    clock.set(first - NANOSECOND);
    assert!(three.waits());
    clock.set(first);
    assert!(three.leaves());
    // In the window after the next: 3 * (10 - e) + 5 * 10 <= 7 * 10.
    let second = 20 * SECOND + Duration::from_nanos(3_333_333_334);
    clock.set(second - NANOSECOND);
    assert!(five.waits());
    clock.set(second);
    assert!(five.leaves());
}

/// The most polls of one that waits `windows`: where large requests leave room, each time half of what seemed to be before it may
/// be left.
fn polls_at_most(windows: u64) -> usize {
    3 + (windows.max(1).ilog2() as usize + 1) * 2
}

#[test]
fn polls_grow_with_the_logarithm_of_the_windows_waited_whatever_the_weights() {
    // Three of five leave room for two that nobody fits in: half of the places are told too early.
    for weights in [vec![3; 60], [5, 1].repeat(30), [1, 4, 2, 2, 5].repeat(12)] {
        let (clock, shaper) = fixed(5);
        let (left, polls) = seconds_of(&clock, &shaper, &weights, 1_000);
        let most: usize = left.iter().map(|second| polls_at_most(second / 10)).sum();
        assert!(polls <= most, "{polls} of {most}, {weights:?}");
        let (clock, shaper) = sliding(5);
        let (left, polls) = seconds_of(&clock, &shaper, &weights, 2_000);
        let most: usize = left.iter().map(|second| polls_at_most(second / 10)).sum();
        assert!(polls <= most, "{polls} of {most}, {weights:?}");
    }
}

#[test]
fn what_was_taken_before_counts() {
    let clock = ManualClock::at(14 * SECOND);
    let limiter = FixedWindow::with_clock(ten_seconds(3), clock.clone());
    assert_eq!(limiter.try_acquire_n(2), Ok(()));
    let (_, shaper) = over(limiter);
    assert!(shaper.try_acquire().is_ok());
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(6 * SECOND));
}

fn what_still_counts_is_counted_by_another_clock<A: Policing + Waitable>(
    limiter: impl Fn(ManualClock) -> Limiter<A, ManualClock>,
) {
    for (limiters, shapers) in [(14, 1 << 33), ((1 << 33) + 4, 11), (5, 13)] {
        let limiter = limiter(ManualClock::at(Duration::from_secs(limiters)));
        assert_eq!(limiter.try_acquire_n(2), Ok(()));
        let clock = ManualClock::at(Duration::from_secs(shapers));
        let shaper = Shaper::over(limiter).clock(clock.clone()).build();
        assert!(shaper.try_acquire().is_ok(), "{limiters} {shapers}");
        let retry_after = shaper.try_acquire().unwrap_err().retry_after().unwrap();
        assert!(retry_after <= 20 * SECOND, "{limiters} {shapers}: {retry_after:?}");
        clock.advance(retry_after - NANOSECOND);
        assert!(shaper.try_acquire().is_err());
        clock.advance(NANOSECOND);
        assert!(shaper.try_acquire().is_ok());
    }
}

#[test]
fn a_window_law_is_carried_to_any_clock() {
    what_still_counts_is_counted_by_another_clock(|clock| FixedWindow::with_clock(ten_seconds(3), clock));
    what_still_counts_is_counted_by_another_clock(|clock| SlidingCounter::with_clock(ten_seconds(3), clock).unwrap());
}

#[test]
fn what_remains_of_a_pause_remains_by_another_clock() {
    let limiters = ManualClock::at(HOUR);
    let limiter = FixedWindow::with_clock(ten_seconds(3), limiters.clone());
    assert_eq!(limiter.try_acquire_n(2), Ok(()));
    limiter.pause_for(60 * SECOND);
    limiters.advance(25 * SECOND);
    let clock = ManualClock::at(SECOND);
    let shaper = Shaper::over(limiter).clock(clock.clone()).build();
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Paused { asked: 1, retry_after: 35 * SECOND });
    clock.advance(35 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(4 * SECOND));
}

#[test]
fn more_than_the_limit_is_refused_at_once_and_so_is_more_than_was_set() {
    let (_, shaper) = fixed(3);
    let refused = Refused::ExceedsCapacity { asked: 4, capacity: 3 };
    assert_eq!(shaper.try_acquire_n(4).unwrap_err(), refused);
    assert_eq!(Task::new(shaper.acquire_n(4)).refusal(), refused);
    let limiter = FixedWindow::with_clock(ten_seconds(3), ManualClock::new());
    let (_, shaper) = over_with(limiter, |builder| builder.max_n(2));
    assert_eq!(shaper.try_acquire_n(3).unwrap_err(), Refused::ExceedsCapacity { asked: 3, capacity: 2 });
    let (_, none) = fixed(0);
    assert_eq!(Task::new(none.acquire()).refusal(), Refused::ExceedsCapacity { asked: 1, capacity: 0 });
}

#[test]
fn a_place_beyond_the_deadline_is_refused_on_arrival_and_holds_no_place() {
    let (clock, shaper) = fixed(3);
    clock.set(4 * SECOND);
    assert!(shaper.try_acquire_n(3).is_ok());
    let wait = 6 * SECOND;
    let too_soon = Task::new(shaper.acquire_within(wait - NANOSECOND)).refusal();
    assert_eq!(too_soon, Refused::DeadlineTooSoon { wait });
    let mut line: Vec<_> = (0..3).map(|_| Task::in_line(shaper.acquire_within(wait))).collect();
    let wait = 16 * SECOND;
    let too_soon = Task::new(shaper.acquire_within(wait - NANOSECOND)).refusal();
    assert_eq!(too_soon, Refused::DeadlineTooSoon { wait });
    assert_eq!(shaper.waiting(), 3);
    // In time is in time, however late it is told.
    clock.set(13 * SECOND);
    assert!(line.iter_mut().all(Task::leaves));
}

#[test]
fn a_deadline_that_passes_is_answered_at_it() {
    let (clock, shaper) = fixed(3);
    assert!(shaper.try_acquire_n(2).is_ok());
    // Two and two do not fit one window: the second turns out to be one window later than it seemed.
    let mut line = [2, 2].map(|n| Task::in_line(shaper.acquire_n_within(n, 15 * SECOND)));
    clock.set(10 * SECOND);
    assert!(line[0].leaves() && line[1].waits());
    clock.set(15 * SECOND - NANOSECOND);
    assert!(line[1].waits());
    clock.set(15 * SECOND);
    assert_eq!(line[1].refusal(), Refused::DeadlineTooSoon { wait: 5 * SECOND });
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn one_that_gives_up_leaves_no_hole() {
    let (clock, shaper) = fixed(1);
    let mut crowd = Crowd::default();
    for _ in 0..6 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0]);
    crowd.cancel(1);
    crowd.cancel(3);
    assert_eq!(crowd.granted_while(&clock, SECOND, 40), [(2, 10), (4, 20), (5, 30)]);
}

#[test]
fn a_grant_that_is_not_collected_goes_to_the_next() {
    let (clock, shaper) = fixed(1);
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..3).map(|_| Task::in_line(shaper.acquire())).collect();
    clock.set(10 * SECOND);
    // Granted by this look, and never polled.
    assert_eq!(shaper.waiting(), 2);
    line.remove(0);
    assert!(line[0].leaves() && line[1].waits());
    clock.set(20 * SECOND);
    assert!(line[1].leaves());
}

#[test]
fn a_try_does_not_overtake() {
    let (clock, shaper) = fixed(3);
    assert!(shaper.try_acquire_n(2).is_ok());
    let mut two = Task::in_line(shaper.acquire_n(2));
    // One would fit, and waits behind the two.
    assert_eq!(
        shaper.try_acquire().unwrap_err(),
        Refused::TooSoon { asked: 1, remaining: 0, retry_after: 10 * SECOND }
    );
    assert_eq!(shaper.acquire_up_to(5).permits(), 0);
    clock.set(10 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    assert!(two.leaves());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn close_ends_all_waits() {
    let (_, shaper) = sliding(1);
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..3).map(|_| Task::in_line(shaper.acquire())).collect();
    shaper.close();
    for waiter in &mut line {
        assert!(waiter.wakes() > 0);
        assert_eq!(waiter.refusal(), Refused::Closed);
    }
}

#[test]
fn a_full_line_tells_the_wait() {
    let limiter = FixedWindow::with_clock(ten_seconds(1), ManualClock::new());
    let (_, shaper) = over_with(limiter, |builder| builder.queue(1));
    assert!(shaper.try_acquire().is_ok());
    let _waiter = Task::in_line(shaper.acquire());
    let full = Refused::QueueFull { waiting: 1, estimated_wait: Some(20 * SECOND) };
    assert_eq!(Task::new(shaper.acquire()).refusal(), full);
}

#[test]
fn another_limit_reaches_those_who_wait() {
    let (clock, shaper) = fixed(3);
    let mut crowd = Crowd::default();
    for n in [3, 3, 1, 1, 1] {
        crowd.push(shaper.acquire_n(n));
    }
    assert_eq!(crowd.granted(), [0]);
    clock.set(SECOND);
    // Three were taken of now five, so two are there; then of one, and the second asks for too much.
    shaper.set_quota(ten_seconds(5));
    assert_eq!(crowd.granted(), []);
    shaper.set_quota(ten_seconds(1));
    let answers = crowd.run();
    assert!(matches!(answers[..], [(1, Err(Refused::ExceedsCapacity { asked: 3, capacity: 1 }))]), "{answers:?}");
    assert_eq!(crowd.granted_while(&clock, SECOND, 40), [(2, 9), (3, 19), (4, 29)]);
}

#[test]
fn another_window_reaches_those_who_wait() {
    let (clock, shaper) = fixed(3);
    let mut crowd = Crowd::default();
    for _ in 0..7 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0, 1, 2]);
    clock.set(SECOND);
    // The window from 0 to 4 s starts with the three that count.
    shaper.set_quota(Quota::new(2, 4 * SECOND).unwrap());
    assert_eq!(crowd.granted_while(&clock, SECOND, 10), [(3, 3), (4, 3), (5, 7), (6, 7)]);
    shaper.set_quota(Quota::UNLIMITED);
    assert!((0..100).all(|_| shaper.try_acquire().is_ok()));
}

#[test]
fn a_sliding_counter_refuses_a_limit_that_it_cannot_keep() {
    let (_, shaper) = sliding(1);
    assert!(shaper.set_quota(ten_seconds(1 << 29)).is_err());
    assert_eq!(shaper.quota(), ten_seconds(1));
    assert!(shaper.set_quota(ten_seconds(2)).is_ok());
    assert!(shaper.try_acquire_n(2).is_ok());
}

#[test]
fn a_pause_holds_all_and_keeps_what_was_left() {
    let (clock, shaper) = fixed(3);
    assert!(shaper.try_acquire_n(2).is_ok());
    clock.set(2 * SECOND);
    shaper.pause_until(25 * SECOND);
    let mut crowd = Crowd::default();
    for _ in 0..5 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    assert_eq!(shaper.estimated_wait(1), Some(38 * SECOND));
    // One was left, and the window in which the pause ends has begun at 20 s.
    assert_eq!(crowd.granted_while(&clock, SECOND, 50), [(0, 23), (1, 28), (2, 28), (3, 28), (4, 38)]);
}

#[test]
fn a_pause_that_is_ended_lets_the_next_leave() {
    let (clock, shaper) = sliding(3);
    assert!(shaper.try_acquire_n(2).is_ok());
    shaper.pause_until(HOUR);
    let mut line: Vec<_> = (0..2).map(|_| Task::in_line(shaper.acquire())).collect();
    clock.set(5 * SECOND);
    shaper.resume();
    assert!(line[0].leaves() && line[1].waits());
    // Three were counted in the window that 5 s lies in; they fade from 10 s on.
    clock.set(10 * SECOND + Duration::from_nanos(3_333_333_334));
    assert!(line[1].leaves());
}

#[test]
fn a_permit_is_given_back_while_it_is_the_last_one() {
    let (_, shaper) = fixed(2);
    let (first, last) = (shaper.try_acquire().unwrap(), shaper.try_acquire().unwrap());
    let mut waiter = Task::in_line(shaper.acquire());
    first.give_back();
    assert!(waiter.waits());
    last.give_back();
    assert!(waiter.leaves());
}

#[test]
fn a_permit_that_no_longer_counts_in_full_is_not_given_back_through_a_change() {
    // Granted in the window before, of which half still counts at 15 s: 5 and 5, of which 5 count.
    let (clock, shaper) = sliding(10);
    assert!(shaper.try_acquire_n(5).is_ok());
    let permit = shaper.try_acquire_n(5).unwrap();
    clock.set(15 * SECOND);
    shaper.set_quota(Quota::new(10, 100 * SECOND).unwrap()).unwrap();
    permit.give_back();
    assert_eq!(shaper.acquire_up_to(10).permits(), 5);
    // Granted in this window, it counts in full.
    let (clock, shaper) = sliding(10);
    assert!(shaper.try_acquire_n(5).is_ok());
    let permit = shaper.try_acquire_n(5).unwrap();
    clock.set(5 * SECOND);
    shaper.set_quota(Quota::new(10, 100 * SECOND).unwrap()).unwrap();
    permit.give_back();
    assert_eq!(shaper.acquire_up_to(10).permits(), 5);
}

#[test]
fn one_who_never_looks_costs_those_behind_no_window() {
    let (clock, shaper) = fixed(2);
    assert!(shaper.try_acquire_n(2).is_ok());
    let _forgotten = Task::in_line(shaper.acquire());
    let mut line: Vec<_> = (0..2).map(|_| Task::in_line(shaper.acquire())).collect();
    clock.set(10 * SECOND);
    assert!(line[0].wakes() > 0);
    assert!(line[0].leaves() && line[1].waits());
    clock.set(20 * SECOND);
    assert!(line[1].leaves());
}

#[test]
fn a_late_timer_moves_nobody_to_a_window_that_is_over() {
    let (clock, shaper) = fixed(2);
    assert!(shaper.try_acquire_n(2).is_ok());
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire())).collect();
    // The window from 10 s on has passed unused; two leave in this one, as the law has it.
    clock.set(29 * SECOND);
    assert!(line[0].leaves() && line[1].leaves() && line[2].waits());
    clock.set(30 * SECOND);
    assert!(line[2].leaves() && line[3].leaves() && line[4].waits());
}

#[test]
fn a_clock_that_is_set_back_admits_nothing_extra_and_wedges_nobody() {
    let (clock, shaper) = fixed(1);
    clock.set(35 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    clock.set(3 * SECOND);
    let mut waiter = Task::in_line(shaper.acquire());
    assert_eq!(shaper.estimated_wait(1), Some(47 * SECOND));
    clock.set(40 * SECOND);
    assert!(waiter.leaves());
}

#[test]
fn waits_beyond_all_time_stay_and_the_next_quota_counts() {
    let century = 36_500 * 24 * HOUR;
    let limiter = FixedWindow::with_clock(Quota::new(1, 10 * century).unwrap(), ManualClock::new());
    let (clock, shaper) = over(limiter);
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    assert_eq!(shaper.estimated_wait(1), Some(20 * century));
    clock.set(century);
    assert!(waiter.waits());
    shaper.set_quota(Quota::new(2, 10 * century).unwrap());
    assert!(waiter.leaves());
}

#[test]
fn the_origin_moves_under_those_who_wait() {
    // Counts of 28 bits leave 3 for the window.
    let limit = 1 << 27;
    let limiter = SlidingCounter::with_clock(Quota::new(limit, MILLISECOND).unwrap(), ManualClock::new()).unwrap();
    let (clock, shaper) = over(limiter);
    let mut crowd = Crowd::default();
    for _ in 0..40 {
        crowd.push(shaper.acquire_n(limit));
    }
    let left = crowd.granted_while(&clock, MILLISECOND, 100);
    assert_eq!(left, (0..40).map(|of| (of, 2 * of as u64)).collect::<Vec<_>>());
}
