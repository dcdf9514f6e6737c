//! Waiters whose tasks don't run: one costs those behind it an interval at most, and nobody freezes.
//!
//! The slot of an absent head is given when somebody calls: at the latest when the next in line wakes for its own place, one
//! interval later. From there the schedule goes on, less the 5 ms that may be made up for.

use tollgate::Quota;

use crate::tasks::{Crowd, Task, by_hand};
use crate::{MILLISECOND, SECOND};

// udoprog/leaky-bucket#35.
#[test]
fn a_head_that_is_not_polled_costs_its_own_slot_only() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(Task::new(shaper.acquire()).leaves());
    let mut b = Task::in_line(shaper.acquire());
    let mut crowd = Crowd::default();
    let (c, d) = (crowd.push(shaper.acquire()), crowd.push(shaper.acquire()));
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 4000), [(c, 2995), (d, 3995)]);
    // Its permit is there whenever it looks.
    assert!(b.leaves());
}

#[test]
fn a_forgotten_head_costs_its_own_slot_only() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    std::mem::forget(Task::in_line(shaper.acquire()));
    let mut crowd = Crowd::default();
    for _ in 0..3 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 5000), [(0, 2995), (1, 3995), (2, 4995)]);
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn who_comes_in_between_gives_an_absent_head_its_slot_in_time() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    std::mem::forget(Task::in_line(shaper.acquire()));
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    clock.set(SECOND);
    assert!(shaper.try_acquire().is_err());
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 1000), [(0, 1000)]);
}

#[test]
fn nobody_freezes_behind_many_who_were_forgotten() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    for _ in 0..10 {
        std::mem::forget(Task::in_line(shaper.acquire()));
    }
    let mut crowd = Crowd::default();
    for _ in 0..10 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    let mut left = Vec::new();
    for _ in 0..100 {
        clock.advance(SECOND);
        left.extend(crowd.granted());
    }
    assert_eq!(left, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_forgotten_head_does_not_hide_that_those_behind_it_moved_up() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    std::mem::forget(Task::in_line(shaper.acquire()));
    let mut crowd = Crowd::default();
    for _ in 0..6 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted_while(&clock, SECOND / 2, 1), []);
    // The timers of those who stay were set for their places in a longer line.
    for gone in 0..4 {
        crowd.cancel(gone);
    }
    assert_eq!(crowd.granted_while(&clock, SECOND / 2, 8), [(4, 5), (5, 7)]);
}

#[test]
fn a_forgotten_head_does_not_hide_a_faster_quota() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    assert!(shaper.try_acquire().is_ok());
    std::mem::forget(Task::in_line(shaper.acquire()));
    let mut crowd = Crowd::default();
    for _ in 0..3 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(crowd.granted_while(&clock, MILLISECOND, 5000), [(0, 2995), (1, 3995), (2, 4995)]);
}

#[test]
fn two_forgotten_heads_do_not_hide_a_faster_quota() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    assert!(shaper.try_acquire().is_ok());
    for _ in 0..2 {
        std::mem::forget(Task::in_line(shaper.acquire()));
    }
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    shaper.set_quota(Quota::per_second(1));
    // Long before 30 s, for which its timer was set.
    let left = crowd.granted_while(&clock, SECOND, 10);
    assert_eq!(left.len(), 1);
}

#[test]
fn one_forgotten_in_the_middle_or_at_the_end_costs_its_own_slot() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let mut crowd = Crowd::default();
    crowd.push(shaper.acquire());
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), [0]);
    std::mem::forget(Task::in_line(shaper.acquire()));
    crowd.push(shaper.acquire());
    assert_eq!(crowd.granted(), []);
    std::mem::forget(Task::in_line(shaper.acquire()));
    assert_eq!(crowd.granted_while(&clock, SECOND, 6), [(1, 1), (2, 4)]);
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn any_call_grants_what_is_due() {
    for call in 0..6 {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        let permit = shaper.try_acquire().unwrap();
        let (mut a, b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
        clock.set(SECOND);
        let wakes = a.wakes();
        match call {
            0 => drop(shaper.try_acquire()),
            1 => assert_eq!(shaper.waiting(), 1),
            2 => assert_eq!(shaper.estimated_wait(1), Some(2 * SECOND)),
            3 => shaper.set_quota(Quota::per_second(2)),
            4 => permit.give_back(),
            _ => drop(b),
        }
        // Once more than by its own timer.
        assert_eq!(a.wakes(), wakes + 1, "call {call}");
        clock.set(SECOND + MILLISECOND);
        assert!(a.leaves());
    }
}

#[test]
fn forgotten_heads_cost_an_interval_each() {
    for forgotten in 1..6 {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.try_acquire().is_ok());
        for _ in 0..forgotten {
            std::mem::forget(Task::in_line(shaper.acquire()));
        }
        let mut crowd = Crowd::default();
        crowd.push(shaper.acquire());
        let left = crowd.granted_while(&clock, SECOND, 50);
        // Its place in line, and an interval for each of those who are absent.
        assert_eq!(left.len(), 1);
        assert!(left[0].1 <= 1 + 2 * forgotten, "behind {forgotten}: {} s", left[0].1);
    }
}
