//! Pauses: until the end nobody leaves and nothing accrues; then the schedule goes on where it stopped.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, Refused, Shaper};

use crate::tasks::{Crowd, Task, assert_law, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND, YEAR, quota};

/// How many pass at this instant.
fn pass(shaper: &Shaper) -> usize {
    std::iter::repeat_with(|| shaper.try_acquire()).take_while(Result::is_ok).count()
}

/// 10 a second, burst 1: one has left at 0, and `waiting` wait.
fn ten_a_second(shaper: &Shaper, waiting: usize) -> Crowd<'_> {
    let mut crowd = Crowd::default();
    for _ in 0..=waiting {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), [0]);
    crowd
}

// The pause of M14 in other crates: all at its end.
#[test]
fn fifty_who_wait_leave_one_by_one_after_a_pause_of_10_s() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let mut crowd = ten_a_second(&shaper, 50);
    clock.set(40 * MILLISECOND);
    shaper.pause_for(10 * SECOND);
    // 60 ms were left of the interval of the first. Counted from 40 ms.
    let expected: Vec<_> = (1..51).zip((0..).map(|slot| 10_060 + 100 * slot)).collect();
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 15_100), expected);
    // To come, for the timer of before the pause, and to leave.
    assert!(crowd.polls() <= 3 * 51, "{} polls", crowd.polls());
}

#[test]
fn a_pause_ends_to_the_nanosecond() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND / 4);
    shaper.pause_until(10 * SECOND);
    for at in [SECOND, 2 * SECOND, 10 * SECOND, 10_750 * MILLISECOND - NANOSECOND] {
        clock.set(at);
        assert!(a.waits() && b.waits());
    }
    clock.set(10_750 * MILLISECOND);
    assert!(a.leaves() && b.waits());
    clock.set(11_750 * MILLISECOND - NANOSECOND);
    assert!(b.waits());
    clock.set(11_750 * MILLISECOND);
    assert!(b.leaves());
}

#[test]
fn without_anybody_before_it_the_first_leaves_at_the_end_itself() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(HOUR);
    shaper.pause_for(10 * SECOND);
    let mut a = Task::in_line(shaper.acquire());
    clock.advance(10 * SECOND - NANOSECOND);
    assert!(a.waits());
    clock.advance(NANOSECOND);
    assert_eq!(a.wakes(), 1);
    assert!(a.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_later_pause_replaces_an_earlier_one() {
    for (first, then, end) in [(10, 3, 3), (3, 10, 10), (5, 5, 5)] {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.try_acquire().is_ok());
        clock.set(SECOND / 2);
        shaper.pause_until(Nanos::from_secs(first));
        clock.set(SECOND);
        shaper.pause_until(Nanos::from_secs(then));
        let mut waiter = Task::in_line(shaper.acquire());
        // Half an interval was left when the first began.
        clock.set(Nanos::from_secs(end).saturating_add(SECOND / 2 - NANOSECOND));
        assert!(waiter.waits(), "{first} s, then {then} s");
        clock.advance(NANOSECOND);
        assert!(waiter.leaves(), "{first} s, then {then} s");
    }
}

#[test]
fn a_shortened_pause_wakes_those_whose_turn_came_nearer() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    shaper.pause_until(100 * SECOND);
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire())).collect();
    let impatient = shaper.acquire_within(SECOND);
    assert!(matches!(Task::new(impatient).refusal(), Refused::Paused { .. }));
    shaper.pause_until(HOUR);
    assert!(line.iter().all(|waiter| waiter.wakes() == 0), "a longer pause wakes nobody");
    for times in 1..3 {
        // Whoever was woken and has not looked yet is not woken again.
        shaper.pause_until(Nanos::from_secs(50 - times));
        assert!(line.iter().all(|waiter| waiter.wakes() == 1));
    }
    assert!(line.iter_mut().all(Task::waits));
    clock.set(49 * SECOND);
    for waiter in &mut line {
        assert!(waiter.leaves());
        clock.advance(SECOND);
    }
}

#[test]
fn a_shortened_pause_wakes_nobody_whose_timer_ends_in_time() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    // Their timers were set before the pause, for 1 to 5 s.
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire())).collect();
    shaper.pause_until(20 * SECOND);
    shaper.pause_until(10 * SECOND);
    shaper.resume();
    assert!(line.iter().all(|waiter| waiter.wakes() == 0));
    for waiter in &mut line {
        clock.advance(SECOND);
        assert!(waiter.leaves());
    }
}

#[test]
fn resume_ends_a_pause_and_wakes_those_who_came_in_it() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let mut crowd = ten_a_second(&shaper, 20);
    clock.set(30 * MILLISECOND);
    shaper.pause_for(HOUR);
    let mut left = crowd.granted_while(&clock, MILLISECOND, 3000);
    assert_eq!(left, []);
    let polls = crowd.polls();
    shaper.resume();
    left.extend(crowd.granted_while(&clock, MILLISECOND, 2000));
    // 70 ms were left, and nothing accrued.
    let expected: Vec<_> = (1..21).zip((0..).map(|slot| 70 + 100 * slot)).collect();
    assert_eq!(left, expected);
    // One for the wake-up and one to leave.
    assert!(crowd.polls() - polls <= 2 * 20, "{} polls", crowd.polls() - polls);
}

#[test]
fn resume_without_a_pause_changes_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.resume();
    let permit = shaper.try_acquire().unwrap();
    let mut waiter = Task::in_line(shaper.acquire());
    for end in [0, 1, 250_000_000] {
        clock.set(SECOND / 4);
        shaper.resume();
        shaper.pause_until(end);
        shaper.pause_for(Duration::ZERO);
    }
    assert_eq!((waiter.wakes(), shaper.estimated_wait(1)), (0, Some(1750 * MILLISECOND)));
    clock.set(SECOND);
    assert!(waiter.leaves());
    drop(permit);
    // Also when a pause has ended by itself: the lateness of whom it held is not forgotten.
    shaper.pause_for(SECOND);
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(3_004 * MILLISECOND);
    shaper.resume();
    assert!(waiter.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(996 * MILLISECOND));
}

#[test]
fn at_a_pause_beyond_the_deadline_the_answer_comes_at_the_deadline() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut held = Task::in_line(shaper.acquire_within(5 * SECOND / 2));
    let mut patient = Task::in_line(shaper.acquire());
    // The pause is over at its deadline, its slot is not.
    let mut late = Task::in_line(shaper.acquire_within(10_500 * MILLISECOND));
    clock.set(SECOND / 2);
    shaper.pause_until(10 * SECOND);
    clock.set(5 * SECOND / 2 - NANOSECOND);
    assert!(held.waits());
    let wakes = held.wakes();
    clock.advance(NANOSECOND);
    assert_eq!(held.wakes(), wakes + 1);
    assert_eq!(held.refusal(), Refused::Paused { asked: 1, retry_after: 8 * SECOND });
    // It has left no trace.
    clock.set(10_500 * MILLISECOND);
    assert!(patient.leaves());
    assert_eq!(late.refusal(), Refused::DeadlineTooSoon { wait: SECOND });
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn a_newcomer_who_would_be_too_late_is_told_at_once() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_n(3));
    assert!(shaper.try_acquire().is_ok());
    clock.set(SECOND / 2);
    shaper.pause_for(10 * SECOND);
    let refusal = |limit| Task::new(shaper.acquire_n_within(3, limit)).refusal();
    let paused = Refused::Paused { asked: 3, retry_after: 10_500 * MILLISECOND };
    for limit in [Duration::ZERO, SECOND, 10 * SECOND - NANOSECOND] {
        assert_eq!(refusal(limit), paused);
    }
    // The pause is over then, and half an interval is still owed.
    for limit in [10 * SECOND, 10_500 * MILLISECOND - NANOSECOND] {
        assert_eq!(refusal(limit), Refused::DeadlineTooSoon { wait: 10_500 * MILLISECOND });
    }
    assert_eq!(shaper.waiting(), 0);
    let mut in_time = Task::in_line(shaper.acquire_within(10_500 * MILLISECOND));
    clock.advance(10_500 * MILLISECOND);
    assert!(in_time.leaves());
}

#[test]
fn a_slot_at_the_end_of_a_pause_is_in_time() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.pause_for(10 * SECOND);
    let mut in_time = Task::in_line(shaper.acquire_within(10 * SECOND));
    clock.set(10 * SECOND + MILLISECOND);
    assert!(in_time.leaves());
}

#[test]
fn a_burst_saved_before_a_pause_is_there_after_it_and_no_more() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    assert!(shaper.try_acquire_n(3).is_ok());
    clock.set(SECOND / 2);
    shaper.pause_for(HOUR);
    let mut crowd = Crowd::default();
    for _ in 0..4 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    clock.advance(HOUR - NANOSECOND);
    assert_eq!(crowd.granted(), []);
    // Two and a half were left.
    clock.advance(NANOSECOND);
    assert_eq!(crowd.granted_while(&clock, SECOND / 2, 3), [(0, 0), (1, 0), (2, 1), (3, 3)]);
    assert_eq!(shaper.estimated_wait(5), Some(5 * SECOND));
}

#[test]
fn an_empty_bucket_is_as_empty_after_a_pause() {
    for burst in [1, 3] {
        let (clock, shaper) = by_hand(quota(1, SECOND, burst));
        assert!(shaper.try_acquire_n(burst).is_ok());
        shaper.pause_for(HOUR);
        clock.set(HOUR);
        let refused = Refused::TooSoon { asked: 1, remaining: 0, retry_after: SECOND };
        assert_eq!(shaper.try_acquire().unwrap_err(), refused);
        clock.advance(SECOND);
        assert_eq!(pass(&shaper), 1);
    }
}

#[test]
fn a_debt_is_owed_after_a_pause_still() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    clock.set(300 * MILLISECOND);
    shaper.pause_for(5 * SECOND);
    assert_eq!(shaper.estimated_wait(10), Some(5_700 * MILLISECOND));
    clock.set(5_999 * MILLISECOND);
    assert_eq!(pass(&shaper), 0);
    clock.set(6 * SECOND);
    assert!(shaper.try_acquire_n(10).is_ok());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_retry_after_of_31_years_is_cut_to_the_longest_pause() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_pause(SECOND * 60));
    clock.set(HOUR);
    let longest = Some(60 * SECOND);
    shaper.pause_for(31 * YEAR);
    assert_eq!(shaper.estimated_wait(1), longest);
    shaper.resume();
    shaper.pause_until(Nanos::MAX);
    assert_eq!(shaper.estimated_wait(1), longest);
    // Counted from each call.
    clock.advance(50 * SECOND);
    shaper.pause_for(Duration::MAX);
    assert_eq!(shaper.estimated_wait(1), longest);
    shaper.pause_for(5 * SECOND);
    assert_eq!(shaper.estimated_wait(1), Some(5 * SECOND));
    // A quota set meanwhile does not lift the bound, and keeps the pause.
    shaper.set_quota(Quota::per_second(2));
    assert_eq!(shaper.estimated_wait(1), Some(5 * SECOND));
    shaper.pause_for(YEAR);
    assert_eq!(shaper.estimated_wait(1), longest);
}

#[test]
fn without_a_bound_31_years_are_believed() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.pause_for(31 * YEAR);
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(31 * YEAR - NANOSECOND);
    assert!(waiter.waits());
    clock.set(31 * YEAR);
    assert!(waiter.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn no_pause_at_all_is_allowed_by_a_bound_of_zero() {
    let (_clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_pause(Duration::ZERO));
    shaper.pause_for(HOUR);
    assert_eq!(pass(&shaper), 1);
}

#[test]
fn a_pause_to_the_end_of_time_is_ended_by_resume_only() {
    type Pause = fn(&Shaper);
    let pauses: [Pause; 2] = [|shaper| shaper.pause_until(Nanos::MAX), |shaper| shaper.pause_for(Duration::MAX)];
    for pause in pauses {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.try_acquire().is_ok());
        pause(&shaper);
        let mut waiter = Task::in_line(shaper.acquire());
        let mut limited = Task::in_line(shaper.acquire_within(Duration::MAX));
        for at in [SECOND, YEAR, 500 * YEAR] {
            clock.set(at);
            assert!(waiter.waits() && limited.waits());
        }
        assert!(shaper.estimated_wait(1) >= Some(84 * YEAR));
        assert!(matches!(shaper.try_acquire(), Err(Refused::Paused { asked: 1, .. })));
        shaper.resume();
        assert!(waiter.wakes() > 0 && limited.wakes() > 0);
        assert!(waiter.waits());
        clock.advance(SECOND);
        assert!(waiter.leaves() && limited.waits());
        clock.advance(SECOND);
        assert!(limited.leaves());
    }
}

#[test]
fn a_quota_set_during_a_pause_takes_over_what_was_left_and_the_end() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut a = Task::in_line(shaper.acquire());
    clock.set(SECOND / 4);
    shaper.pause_until(10 * SECOND);
    clock.set(5 * SECOND);
    let wakes = a.wakes();
    // Three quarters of a permit are owed, which is 75 s now.
    shaper.set_quota(Quota::every(100 * SECOND).unwrap());
    assert_eq!((a.wakes(), shaper.estimated_wait(1)), (wakes, Some(180 * SECOND)));
    assert!(a.waits());
    // And 75 ms now.
    shaper.set_quota(Quota::per_second(10));
    assert_eq!(a.wakes(), wakes + 1);
    assert!(a.waits());
    clock.set(10_075 * MILLISECOND - NANOSECOND);
    assert!(a.waits());
    clock.set(10_075 * MILLISECOND);
    assert!(a.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(100 * MILLISECOND));
}

#[test]
fn whose_n_is_too_large_for_a_quota_set_during_a_pause_ends_at_once() {
    let (_clock, shaper) = by_hand(Quota::per_second(10));
    shaper.pause_for(HOUR);
    let (mut large, small) = (Task::in_line(shaper.acquire_n(10)), Task::in_line(shaper.acquire()));
    shaper.set_quota(Quota::per_second(5));
    assert_eq!((large.wakes(), small.wakes(), shaper.waiting()), (1, 1, 1));
    assert_eq!(large.refusal(), Refused::ExceedsCapacity { asked: 10, capacity: 5 });
    assert_eq!(shaper.estimated_wait(1), Some(HOUR + 200 * MILLISECOND));
}

#[test]
fn close_during_a_pause_ends_all_waits_at_once() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.pause_for(HOUR);
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire_within(2 * HOUR))).collect();
    shaper.close();
    for waiter in &mut line {
        assert_eq!(waiter.wakes(), 1);
        assert_eq!(waiter.refusal(), Refused::Closed);
    }
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (0, None));
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Closed);
    assert_eq!(shaper.acquire_up_to(5).permits(), 0);
    for end in [Nanos::ZERO, Nanos::from_secs(5), Nanos::MAX] {
        shaper.pause_until(end);
        shaper.resume();
        clock.advance(HOUR);
        assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Closed);
    }
}

#[test]
fn during_a_pause_every_question_is_answered_with_its_end() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    shaper.pause_for(10 * SECOND);
    clock.set(4 * SECOND);
    let paused = |asked, retry_after| Refused::Paused { asked, retry_after };
    assert_eq!(shaper.try_acquire().unwrap_err(), paused(1, 6 * SECOND));
    assert_eq!(shaper.try_acquire_n(3).unwrap_err(), paused(3, 6 * SECOND));
    assert_eq!(shaper.try_acquire_n(4).unwrap_err(), Refused::ExceedsCapacity { asked: 4, capacity: 3 });
    assert_eq!(shaper.acquire_up_to(3).permits(), 0);
    assert_eq!(shaper.estimated_wait(3), Some(6 * SECOND));
    // Nothing is free, and costs nothing.
    assert!(shaper.try_acquire_n(0).is_ok());
    assert_eq!(shaper.estimated_wait(0), Some(Duration::ZERO));
    assert!(Task::new(shaper.acquire_n(0)).leaves());
    // Behind two who wait one is left at the end.
    let mut first = Task::in_line(shaper.acquire_n(2));
    assert_eq!(shaper.try_acquire_n(2).unwrap_err(), paused(2, 7 * SECOND));
    assert_eq!(shaper.estimated_wait(1), Some(6 * SECOND));
    assert_eq!(shaper.waiting(), 1);
    assert_eq!(shaper.acquire_up_to(3).permits(), 0);
    // To the nanosecond.
    clock.set(10 * SECOND - NANOSECOND);
    assert_eq!(shaper.try_acquire().unwrap_err(), paused(1, NANOSECOND));
    clock.set(10 * SECOND);
    assert_eq!(shaper.acquire_up_to(3).permits(), 1);
    assert!(first.leaves());
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::TooSoon { asked: 1, remaining: 0, retry_after: SECOND });
}

#[test]
fn a_full_line_is_refused_with_the_wait_until_after_the_pause() {
    let (_clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(1));
    shaper.pause_for(10 * SECOND);
    let _first = Task::in_line(shaper.acquire());
    let refused = Refused::QueueFull { waiting: 1, estimated_wait: Some(11 * SECOND) };
    assert_eq!(Task::new(shaper.acquire()).refusal(), refused);
}

#[test]
fn a_pause_wakes_nobody_and_costs_one_poll_each() {
    let (clock, shaper) = by_hand(Quota::per_second(100));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..20).map(|_| Task::in_line(shaper.acquire())).collect();
    for seconds in [1, 2, 3] {
        shaper.pause_for(Duration::from_secs(seconds));
        assert!(line.iter().all(|waiter| waiter.wakes() == 0));
    }
    // Their timers of before the pause.
    clock.set(SECOND);
    for waiter in &mut line {
        assert_eq!(waiter.wakes(), 1);
        assert!(waiter.waits());
    }
    clock.set(3 * SECOND);
    assert!(line.iter().all(|waiter| waiter.wakes() == 1));
    for waiter in &mut line {
        clock.advance(10 * MILLISECOND);
        assert_eq!(waiter.wakes(), 2);
        assert!(waiter.leaves());
    }
}

#[test]
fn lateness_is_not_made_up_for_beyond_the_end_of_a_pause() {
    // T = 1 ms. One leaves at 0; the pause begins at 0.4 ms, so the first slot is 0.6 ms after its end.
    let micros = Duration::from_micros;
    for (late, leave) in [(500, 0), (600, 1), (1_600, 2), (5_000, 5), (80_000, 80)] {
        let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(HOUR));
        let mut crowd = Crowd::default();
        for _ in 0..101 {
            crowd.push(shaper.acquire());
        }
        assert_eq!(crowd.granted(), [0]);
        clock.set(micros(400));
        shaper.pause_until(10 * SECOND);
        clock.set(10 * SECOND + micros(late));
        assert_eq!(crowd.granted(), (1..=leave).collect::<Vec<_>>(), "{late} us after the end");
    }
}

#[test]
fn what_was_behind_at_a_pause_is_behind_no_more_at_its_end() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(SECOND));
    assert_eq!(pass(&shaper), 1);
    let mut late = Task::in_line(shaper.acquire());
    clock.set(50 * MILLISECOND);
    assert!(late.leaves());
    shaper.pause_for(10 * SECOND);
    clock.advance(10 * SECOND);
    assert_eq!(pass(&shaper), 1);
    assert_eq!(shaper.estimated_wait(1), Some(MILLISECOND));
    // Nor when it is resumed in the instant in which it began.
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(SECOND));
    assert_eq!(pass(&shaper), 1);
    let mut late = Task::in_line(shaper.acquire());
    clock.set(50 * MILLISECOND);
    assert!(late.leaves());
    shaper.pause_for(10 * SECOND);
    shaper.resume();
    assert_eq!(pass(&shaper), 1);
}

#[test]
fn a_permit_granted_before_a_pause_stands() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND);
    // The pause itself grants what is due.
    shaper.pause_for(10 * SECOND);
    assert!(a.leaves() && b.waits());
    // Collected late, in a pause, it leaves nothing behind.
    clock.set(12 * SECOND - NANOSECOND);
    assert!(b.waits());
    clock.set(12 * SECOND);
    assert!(b.leaves());
}

#[test]
fn what_is_there_at_rate_zero_is_there_after_a_pause() {
    let (clock, shaper) = by_hand(Quota::per_second(0).burst(3));
    assert_eq!(shaper.acquire_up_to(1).permits(), 1);
    shaper.pause_for(10 * SECOND);
    let mut crowd = Crowd::default();
    for _ in 0..3 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    assert_eq!(shaper.estimated_wait(1), None);
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Never { asked: 1, remaining: 0 });
    assert_eq!(crowd.granted_while(&clock, SECOND, 20), [(0, 10), (1, 10)]);
    assert_eq!(shaper.waiting(), 1);
    shaper.pause_for(HOUR);
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(crowd.granted_while(&clock, SECOND, 3601), [(2, 3601)]);
}

#[test]
fn a_rate_of_zero_during_a_pause_keeps_what_was_left() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert_eq!(pass(&shaper), 3);
    clock.set(3 * SECOND / 2);
    shaper.pause_until(10 * SECOND);
    shaper.set_quota(Quota::per_second(0).burst(3));
    assert_eq!(shaper.estimated_wait(1), Some(17 * SECOND / 2));
    clock.set(9 * SECOND);
    shaper.set_quota(quota(1, SECOND, 3));
    clock.set(10 * SECOND);
    assert_eq!(pass(&shaper), 1);
    // Half a permit was left beside it.
    assert_eq!(shaper.estimated_wait(1), Some(SECOND / 2));
}

#[test]
fn without_a_limit_all_leave_at_the_end_of_a_pause_in_order() {
    let (clock, shaper) = by_hand(Quota::UNLIMITED);
    shaper.pause_for(10 * SECOND);
    let mut crowd = Crowd::default();
    for n in [1, 1_000_000, 1, 5] {
        crowd.push(shaper.acquire_n(n));
    }
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Paused { asked: 1, retry_after: 10 * SECOND });
    assert_eq!(shaper.acquire_up_to(7).permits(), 0);
    let left = crowd.granted_while(&clock, SECOND, 20);
    assert_eq!(left, [(0, 10), (1, 10), (2, 10), (3, 10)]);
    assert_eq!(shaper.acquire_up_to(7).permits(), 7);
    // Lifting the limit does not end a pause.
    shaper.set_quota(Quota::per_second(1));
    shaper.pause_for(10 * SECOND);
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    shaper.set_quota(Quota::UNLIMITED);
    assert_eq!(crowd.granted_while(&clock, SECOND, 20), [(4, 10)]);
}

#[test]
fn a_quota_set_during_a_pause_after_no_limit_starts_empty_at_its_end() {
    let (clock, shaper) = by_hand(Quota::UNLIMITED);
    shaper.pause_for(10 * SECOND);
    shaper.set_quota(quota(1, SECOND, 5));
    clock.set(10 * SECOND);
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(SECOND));
}

#[test]
fn a_clock_set_back_during_a_pause_ends_nothing_and_gains_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(1000 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    shaper.pause_for(10 * SECOND);
    for _ in 0..20 {
        clock.set(500 * SECOND);
        assert!(waiter.waits());
        assert_eq!(shaper.estimated_wait(1), Some(512 * SECOND));
        clock.set(1009 * SECOND);
        assert!(waiter.waits());
    }
    clock.set(1011 * SECOND - NANOSECOND);
    assert!(waiter.waits());
    clock.set(1011 * SECOND);
    assert!(waiter.leaves());
}

#[test]
fn pauses_set_and_ended_while_the_clock_is_back_give_nothing_extra() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    clock.set(1000 * SECOND);
    assert_eq!(pass(&shaper), 5);
    for _ in 0..20 {
        clock.set(900 * SECOND);
        shaper.pause_for(10 * SECOND);
        clock.set(905 * SECOND);
        shaper.resume();
        clock.set(1000 * SECOND);
        shaper.pause_for(SECOND);
        clock.set(990 * SECOND);
        shaper.resume();
        clock.set(1000 * SECOND);
        assert_eq!(pass(&shaper), 0);
    }
}

/// A pause whose end has come lasts again while the clock stands before it. What left after that end counts all the same.
#[test]
fn a_pause_that_lasts_again_since_the_clock_is_back_can_be_ended_without_a_gain() {
    type End = fn(&Shaper);
    let ends: [End; 3] = [
        Shaper::resume,
        |shaper| shaper.pause_for(SECOND),
        |shaper| {
            shaper.set_quota(shaper.quota());
            shaper.resume();
        },
    ];
    for end in ends {
        for burst in [1, 3] {
            for later in 0..5 {
                let rate = quota(1, SECOND, burst);
                let (clock, shaper) = by_hand(rate);
                let mut trace = Vec::new();
                let mut take = |clock: &ManualClock| {
                    trace.extend((0..pass(&shaper)).map(|_| (clock.now(), 1)));
                };
                shaper.pause_until(10 * SECOND);
                for second in 0..=later {
                    clock.set(Nanos::from_secs(10 + second));
                    take(&clock);
                }
                clock.set(5 * SECOND);
                end(&shaper);
                clock.set(Nanos::from_secs(10 + later));
                take(&clock);
                assert_law(&trace, rate, burst, Duration::ZERO);
            }
        }
    }
}

// udoprog/leaky-bucket#35, with a pause.
#[test]
fn a_head_that_is_not_polled_during_a_pause_costs_its_own_slot_only() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut absent = Task::in_line(shaper.acquire());
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    shaper.pause_for(10 * SECOND);
    // The slots of 11 and 12 s, the first given at the time of the second, less the 5 ms that are made up for.
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 14_000), [(0, 12_995), (1, 13_995)]);
    assert!(absent.leaves());
}

#[test]
fn a_forgotten_head_does_not_hide_the_end_of_a_pause() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.pause_for(HOUR);
    std::mem::forget(Task::in_line(shaper.acquire()));
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    clock.set(10 * SECOND);
    shaper.resume();
    // The head left in that instant.
    assert_eq!(crowd.granted_while(&clock, SECOND, 2), [(0, 1), (1, 2)]);
}

#[test]
fn two_forgotten_heads_do_not_hide_that_a_pause_was_shortened() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    shaper.pause_for(HOUR);
    for _ in 0..2 {
        std::mem::forget(Task::in_line(shaper.acquire()));
    }
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    shaper.pause_for(10 * SECOND);
    // Long before an hour, for which its timer was set.
    assert_eq!(crowd.granted_while(&clock, SECOND, 20).len(), 1);
}

#[test]
fn those_who_give_up_during_a_pause_leave_no_trace() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let mut crowd = ten_a_second(&shaper, 20);
    shaper.pause_for(5 * SECOND);
    clock.set(2 * SECOND);
    assert_eq!(crowd.granted(), []);
    for gone in (1..21).filter(|who| who % 3 != 0) {
        crowd.cancel(gone);
    }
    assert_eq!(shaper.waiting(), 6);
    let left = crowd.granted_while(&clock, 100 * MILLISECOND, 100);
    assert_eq!(left, [(3, 31), (6, 32), (9, 33), (12, 34), (15, 35), (18, 36)]);
}

#[test]
fn more_pauses_than_there_are_versions_lose_nothing() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert_eq!(pass(&shaper), 3);
    clock.set(SECOND / 2);
    for _ in 0..1000 {
        shaper.pause_for(HOUR);
        clock.advance(MILLISECOND);
        shaper.resume();
    }
    assert_eq!(shaper.estimated_wait(1), Some(SECOND / 2));
    // Rates whose interval is no whole number of nanoseconds, from pauses to the middle of an interval: each may round up by
    // less than a nanosecond.
    let (clock, shaper) = by_hand(Quota::per_second(7));
    assert_eq!(pass(&shaper), 1);
    for _ in 0..1000 {
        clock.advance(Duration::from_nanos(13));
        shaper.pause_for(Duration::from_nanos(29));
        clock.advance(Duration::from_nanos(29));
    }
    assert_eq!(shaper.estimated_wait(1), Some(Duration::from_nanos(1_000_000_000_u64.div_ceil(7) - 13_000)));
}

#[test]
fn the_law_holds_through_pauses() {
    let rate = quota(3, SECOND, 2);
    let (clock, shaper) = by_hand(rate);
    let mut trace = Vec::new();
    for step in 0..5000_u64 {
        clock.advance(Duration::from_millis(37 * (step % 7)));
        match step % 11 {
            0 => shaper.pause_for(Duration::from_millis(step % 501)),
            5 => shaper.resume(),
            _ => trace.extend((0..pass(&shaper)).map(|_| (clock.now(), 1))),
        }
    }
    assert!(trace.len() > 500);
    assert_law(&trace, rate, 2, Duration::ZERO);
}

#[test]
fn a_shared_shaper_is_paused_for_all() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let shaper = Arc::new(shaper);
    Arc::clone(&shaper).pause_for(SECOND);
    let mut owned = Task::new(Arc::clone(&shaper).acquire_owned());
    assert!(owned.poll().is_pending());
    assert_eq!(shaper.now(), Nanos::ZERO);
    clock.set(SECOND);
    assert!(matches!(owned.poll(), std::task::Poll::Ready(Ok(_))));
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Costs, Record, Watched, until_waiting};

    #[tokio::test(start_paused = true)]
    async fn fifty_who_sleep_leave_one_by_one_after_a_pause_of_10_s() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(10)));
        let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
        for who in 0..51 {
            let (record, acquire) = (record.clone(), Watched::new(Arc::clone(&shaper).acquire_owned(), &costs));
            tokio::spawn(async move {
                let _permit = acquire.await.expect("granted");
                record.note(who);
            });
        }
        until_waiting(&shaper, 50).await;
        record.until(40).await;
        shaper.pause_for(10 * SECOND);
        record.until(20_000).await;
        let slots = (0..).map(|slot| 10_100 + 100 * slot);
        let expected: Vec<_> = [(0, 0)].into_iter().chain((1..51).zip(slots)).collect();
        assert_eq!(record.lines(), expected);
        assert!(costs.polls() <= 3 * 51, "{} polls", costs.polls());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_shortened_prolonged_and_resumed_reaches_those_who_sleep() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(10)));
        let record = Record::begin();
        for who in 0..7 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 6).await;
        record.until(30).await;
        shaper.pause_for(1000 * SECOND);
        record.until(500).await;
        shaper.pause_for(1500 * MILLISECOND);
        // The first slot is 70 ms after the end at 2 s.
        record.until(2_100).await;
        assert_eq!(record.lines(), [(0, 0), (1, 2_070)]);
        shaper.pause_for(SECOND);
        shaper.pause_for(Duration::MAX);
        record.until(5_000).await;
        shaper.resume();
        // 70 ms are owed again.
        record.until(5_200).await;
        assert_eq!(record.lines()[2..], [(2, 5_070), (3, 5_170)]);
        shaper.pause_until(shaper.now().saturating_add(HOUR));
        shaper.close();
        record.until(10_000).await;
        assert_eq!((record.lines().len(), shaper.waiting()), (4, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn at_a_pause_beyond_the_deadline_the_answer_comes_at_the_deadline() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let waiter = tokio::spawn(Arc::clone(&shaper).acquire_owned().within(1500 * MILLISECOND));
        until_waiting(&shaper, 1).await;
        record.until(500).await;
        shaper.pause_for(10 * SECOND);
        let refused = waiter.await.unwrap().unwrap_err();
        assert_eq!(refused, Refused::Paused { asked: 1, retry_after: 9_500 * MILLISECOND });
        assert_eq!(record.now(), 1500);
        assert!(shaper.acquire_within(9_500 * MILLISECOND).await.is_ok());
        assert_eq!(record.now(), 11_000);
    }
}
