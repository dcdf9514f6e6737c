//! Time limits: answered on arrival where they can't be kept, and at the deadline at the latest.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tollgate::{Quota, Refused};

use crate::tasks::{Task, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND};

// resilience4j/resilience4j#2194.
#[test]
fn a_limit_shorter_than_the_wait_is_refused_on_the_first_poll() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    assert!(Task::new(shaper.acquire()).leaves());
    let mut b = Task::new(shaper.acquire_within(SECOND));
    assert_eq!(b.refusal(), Refused::DeadlineTooSoon { wait: 10 * SECOND });
    assert_eq!(shaper.waiting(), 0);
    let mut c = Task::in_line(shaper.acquire_within(15 * SECOND));
    clock.set(10 * SECOND);
    assert!(c.leaves());
}

#[test]
fn exactly_the_limit_is_in_time() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    assert!(shaper.try_acquire().is_ok());
    let wait = 10 * SECOND;
    assert_eq!(Task::new(shaper.acquire_within(wait - NANOSECOND)).refusal(), Refused::DeadlineTooSoon { wait });
    let mut in_time = Task::in_line(shaper.acquire_within(wait));
    // The next place is at 20 s, for whoever asks.
    let wait = 20 * SECOND;
    assert_eq!(Task::new(shaper.acquire_within(wait - NANOSECOND)).refusal(), Refused::DeadlineTooSoon { wait });
    assert_eq!(Task::new(shaper.acquire_within(Duration::ZERO)).refusal(), Refused::DeadlineTooSoon { wait });
    let mut second = Task::in_line(shaper.acquire_within(wait));
    clock.set(10 * SECOND);
    assert!(in_time.leaves());
    clock.set(20 * SECOND);
    assert!(second.leaves());
}

#[test]
fn the_limit_counts_from_the_first_poll() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    let (mut early, mut late) =
        (Task::new(shaper.acquire_within(4 * SECOND)), Task::new(shaper.acquire_within(SECOND)));
    clock.set(HOUR);
    assert!(shaper.try_acquire().is_ok());
    clock.set(HOUR + 6 * SECOND);
    assert!(early.waits());
    assert_eq!(late.refusal(), Refused::DeadlineTooSoon { wait: 14 * SECOND });
    clock.set(HOUR + 10 * SECOND);
    assert!(early.leaves());
}

#[test]
fn a_limit_of_zero_is_granted_what_is_there() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    assert!(Task::new(shaper.acquire_within(Duration::ZERO)).leaves());
    assert_eq!(Task::new(shaper.acquire_within(Duration::ZERO)).refusal(), Refused::DeadlineTooSoon { wait: SECOND });
}

#[test]
fn a_slot_in_time_is_granted_however_late_it_is_told() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) =
        (Task::in_line(shaper.acquire_within(SECOND)), Task::in_line(shaper.acquire_within(5 * SECOND / 2)));
    clock.set(HOUR);
    // The slots were at 1 s; b's has moved to an hour and a second by now, since so long a delay is not made up for.
    assert!(a.leaves());
    assert!(matches!(b.refusal(), Refused::DeadlineTooSoon { .. }));
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn a_place_that_moves_back_is_answered_at_the_deadline() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut a = Task::in_line(shaper.acquire_within(5 * SECOND / 2));
    let mut b = Task::in_line(shaper.acquire());
    clock.set(SECOND / 2);
    shaper.set_quota(Quota::every(100 * SECOND).unwrap());
    clock.set(SECOND);
    // The old timer: it is set anew, for the deadline.
    assert!(a.wakes() > 0);
    assert!(a.waits());
    let wakes = a.wakes();
    clock.set(5 * SECOND / 2 - NANOSECOND);
    assert_eq!(a.wakes(), wakes);
    assert!(a.waits());
    clock.set(5 * SECOND / 2);
    assert_eq!(a.wakes(), wakes + 1);
    assert_eq!(a.refusal(), Refused::DeadlineTooSoon { wait: 48 * SECOND });
    // It has left no trace: b has its place, and is woken to see that.
    assert!(b.waits());
    clock.set(50_500 * MILLISECOND - NANOSECOND);
    assert!(b.waits());
    clock.set(50_500 * MILLISECOND);
    assert!(b.leaves());
}

#[test]
fn an_absent_head_past_its_deadline_takes_no_slot() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut absent = Task::in_line(shaper.acquire_within(2 * SECOND));
    let mut b = Task::in_line(shaper.acquire());
    shaper.set_quota(Quota::every(10 * SECOND).unwrap());
    clock.set(10 * SECOND);
    assert!(b.leaves());
    assert!(matches!(absent.refusal(), Refused::DeadlineTooSoon { .. }));
    assert_eq!(shaper.estimated_wait(1), Some(10 * SECOND));
}

#[test]
fn a_refused_one_in_the_middle_lets_those_behind_move_up() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_n(10));
    assert!(shaper.try_acquire().is_ok());
    let mut head = Task::in_line(shaper.acquire());
    let mut large = Task::in_line(shaper.acquire_n_within(10, 3 * SECOND));
    let mut last = Task::in_line(shaper.acquire());
    shaper.set_quota(Quota::every(2 * SECOND).unwrap());
    clock.set(2 * SECOND);
    assert!(head.leaves());
    clock.set(3 * SECOND);
    // Its slot is at 4 s now.
    assert_eq!(large.refusal(), Refused::DeadlineTooSoon { wait: SECOND });
    assert!(last.wakes() > 0);
    assert!(last.waits());
    clock.set(4 * SECOND);
    assert!(last.leaves());
}

#[test]
fn a_wait_that_never_ends_is_refused_at_once() {
    let (_clock, shaper) = by_hand(Quota::per_second(0));
    assert!(shaper.try_acquire().is_ok());
    for limit in [Duration::ZERO, HOUR, 500 * crate::YEAR] {
        assert_eq!(Task::new(shaper.acquire_within(limit)).refusal(), Refused::Never { asked: 1, remaining: 0 });
    }
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn the_longest_limit_is_none() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(HOUR);
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire_within(Duration::MAX));
    clock.advance(SECOND);
    assert!(waiter.leaves());
}

#[test]
fn owned_waits_have_limits_too() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    let shaper = Arc::new(shaper);
    assert!(shaper.try_acquire().is_ok());
    let owned = |limit| Task::new(Arc::clone(&shaper).acquire_owned().within(limit)).poll();
    assert!(matches!(owned(SECOND - NANOSECOND), Poll::Ready(Err(Refused::DeadlineTooSoon { wait: SECOND }))));
    assert!(owned(SECOND).is_pending());
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Record, until_waiting};
    use tollgate::Shaper;

    // resilience4j/resilience4j#2194.
    #[tokio::test(start_paused = true)]
    async fn a_limit_shorter_than_the_wait_is_refused_without_a_wait() {
        let shaper = Shaper::new(Quota::every(10 * SECOND).unwrap());
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        assert!(shaper.acquire_within(SECOND).await.is_err());
        assert_eq!(record.now(), 0);
        assert!(shaper.acquire_within(15 * SECOND).await.is_ok());
        assert_eq!(record.now(), 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_moves_back_is_answered_at_the_deadline() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let waiter = tokio::spawn(Arc::clone(&shaper).acquire_owned().within(1500 * MILLISECOND));
        until_waiting(&shaper, 1).await;
        record.until(500).await;
        shaper.set_quota(Quota::every(100 * SECOND).unwrap());
        let refused = waiter.await.unwrap().unwrap_err();
        assert_eq!(refused, Refused::DeadlineTooSoon { wait: 49 * SECOND });
        assert_eq!(record.now(), 1500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_between_two_ticks_of_the_timer_is_kept() {
        // T = 1.5 ms: the slot is in time, tokio tells of it half a millisecond later.
        let shaper = Shaper::new(Quota::new(2, 3 * MILLISECOND).unwrap());
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        assert!(shaper.acquire_within(Duration::from_micros(1500)).await.is_ok());
        assert_eq!(record.now(), 2);
    }
}
