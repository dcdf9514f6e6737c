//! Refunds of a shaper: who waits moves up, nothing beyond the burst comes back, and nothing comes back twice.

use std::time::Duration;

use tollgate::{Quota, Refused, Shaper};

use crate::tasks::{Crowd, Task, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND, quota};

/// How many pass at this instant.
fn pass(shaper: &Shaper) -> usize {
    std::iter::repeat_with(|| shaper.try_acquire()).take_while(Result::is_ok).count()
}

#[test]
fn who_waits_moves_up_at_once() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let mut crowd = Crowd::default();
    for _ in 0..4 {
        crowd.push(shaper.acquire());
    }
    clock.set(SECOND / 4);
    assert_eq!(crowd.granted(), []);
    shaper.refund(1);
    assert_eq!(shaper.waiting(), 3);
    // 0.25 s had accrued towards the second permit, and are beyond full.
    assert_eq!(crowd.granted_while(&clock, SECOND / 4, 20), [(0, 0), (1, 4), (2, 8), (3, 12)]);
}

#[test]
fn a_refund_wakes_the_first_two_and_the_others_as_they_come_to_the_front() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_n(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire())).collect();
    for _ in 0..2 {
        shaper.refund(3);
        // Whoever was woken and has not looked yet is not woken again.
        assert_eq!(line.iter().map(Task::wakes).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    }
    assert!(line.iter_mut().all(Task::waits));
    clock.set(4 * SECOND - NANOSECOND);
    assert!(line[0].waits());
    for waiter in &mut line {
        clock.set(clock.now().saturating_add(NANOSECOND));
        assert!(waiter.leaves());
        clock.advance(SECOND - NANOSECOND);
    }
}

#[test]
fn a_refund_of_part_of_a_debt_brings_the_next_that_much_nearer() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    clock.set(150 * MILLISECOND);
    let mut waiter = Task::in_line(shaper.acquire());
    shaper.refund(4);
    assert!(waiter.waits());
    assert_eq!(shaper.estimated_wait(1), Some(550 * MILLISECOND));
    clock.set(600 * MILLISECOND - NANOSECOND);
    assert!(waiter.waits());
    clock.set(600 * MILLISECOND);
    assert!(waiter.leaves());
}

#[test]
fn refunds_grant_those_who_wait_in_order_as_far_as_they_go() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 5));
    assert_eq!(pass(&shaper), 5);
    let mut crowd = Crowd::default();
    for n in [1, 3, 1, 1] {
        crowd.push(shaper.acquire_n(n));
    }
    assert_eq!(crowd.granted(), []);
    // Two are there, and the second, who wants three, is not overtaken.
    shaper.refund(3);
    assert_eq!(crowd.granted(), [0]);
    assert_eq!(shaper.acquire_up_to(5).permits(), 0);
    shaper.refund(1);
    assert_eq!(crowd.granted(), [1]);
    shaper.refund(2);
    assert_eq!(crowd.granted(), [2, 3]);
    assert_eq!(pass(&shaper), 0);
}

#[test]
fn nothing_comes_back_beyond_full() {
    for n in [1, 5, 6, 1 << 56, u64::MAX] {
        let (clock, shaper) = by_hand(quota(1, SECOND, 5));
        clock.set(HOUR);
        assert_eq!(pass(&shaper), 5);
        for _ in 0..10 {
            shaper.refund(n);
        }
        assert_eq!(pass(&shaper), 5, "refund of {n}");
        // Nor is it saved up.
        clock.advance(HOUR);
        shaper.refund(n);
        assert_eq!(pass(&shaper), 5, "refund of {n}");
        assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    }
}

#[test]
fn a_refund_of_nothing_changes_nothing() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    let permit = shaper.try_acquire().unwrap();
    let waiter = Task::in_line(shaper.acquire());
    shaper.refund(0);
    assert_eq!((waiter.wakes(), shaper.waiting(), shaper.estimated_wait(1)), (0, 1, Some(2 * SECOND)));
    permit.give_back();
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn the_largest_refund_pays_all_debts() {
    let (_clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_n(1_000_000));
    assert!(shaper.try_acquire_n(1_000_000).is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    shaper.refund(u64::MAX);
    assert!(waiter.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn at_rate_zero_what_was_refunded_leaves_and_no_more() {
    let (clock, shaper) = by_hand(Quota::per_second(0).burst(3));
    assert_eq!(pass(&shaper), 3);
    let mut crowd = Crowd::default();
    for _ in 0..4 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted_while(&clock, HOUR, 3), []);
    shaper.refund(2);
    assert_eq!(crowd.granted_while(&clock, HOUR, 3), [(0, 0), (1, 0)]);
    shaper.refund(100);
    assert_eq!(crowd.granted(), [2, 3]);
    assert_eq!(pass(&shaper), 1);
}

#[test]
fn without_a_limit_and_after_close_a_refund_changes_nothing() {
    let (_clock, shaper) = by_hand(Quota::UNLIMITED);
    shaper.refund(5);
    assert!(shaper.try_acquire_n(1_000_000).is_ok());
    shaper.reset();
    shaper.set_quota(Quota::per_second(1));
    assert_eq!(pass(&shaper), 0);
    shaper.close();
    shaper.refund(5);
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::Closed);
    assert_eq!(shaper.acquire_up_to(5).permits(), 0);
}

#[test]
fn a_refund_while_the_clock_is_back_gives_no_more_than_it_says() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    clock.set(1000 * SECOND);
    assert_eq!(pass(&shaper), 5);
    clock.set(900 * SECOND);
    shaper.refund(2);
    assert_eq!(pass(&shaper), 0);
    clock.set(1000 * SECOND);
    assert_eq!(pass(&shaper), 2);
}

#[test]
fn reset_fills_the_bucket_and_grants_those_who_wait_from_it() {
    let (clock, shaper) = by_hand_with(quota(1, SECOND, 3), |builder| builder.max_n(100));
    assert!(shaper.try_acquire_n(100).is_ok());
    let mut crowd = Crowd::default();
    for _ in 0..5 {
        crowd.push(shaper.acquire());
    }
    clock.set(SECOND / 2);
    assert_eq!(crowd.granted(), []);
    shaper.reset();
    assert_eq!(crowd.granted_while(&clock, SECOND, 5), [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)]);
}

#[test]
fn a_reset_fills_the_bucket_even_if_a_clock_set_back_owes_more_than_2_to_the_64_permits() {
    let (clock, shaper) = by_hand(Quota::per_second(1 << 60).burst(5));
    clock.set(24 * HOUR);
    assert!(shaper.try_acquire_n(5).is_ok());
    clock.set(Duration::ZERO);
    shaper.reset();
    assert!(shaper.try_acquire_n(5).is_ok());
}

#[test]
fn reset_of_a_full_bucket_changes_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    for at in [Duration::ZERO, HOUR] {
        clock.set(at);
        shaper.reset();
        shaper.reset();
        assert_eq!(pass(&shaper), 1);
    }
}

#[test]
fn reset_during_a_pause_fills_the_bucket_and_the_pause_goes_on() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert_eq!(pass(&shaper), 3);
    shaper.pause_for(10 * SECOND);
    let mut crowd = Crowd::default();
    for _ in 0..5 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    clock.set(SECOND);
    shaper.reset();
    assert_eq!(shaper.acquire_up_to(1).permits(), 0);
    assert_eq!(crowd.granted_while(&clock, SECOND, 12), [(0, 9), (1, 9), (2, 9), (3, 10), (4, 11)]);
}

#[test]
fn a_refund_during_a_pause_counts_at_its_end() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire_n(10).is_ok());
    shaper.pause_for(10 * SECOND);
    let mut waiter = Task::in_line(shaper.acquire());
    assert_eq!(shaper.estimated_wait(1), Some(11_100 * MILLISECOND));
    shaper.refund(6);
    assert_eq!(waiter.wakes(), 1);
    assert!(waiter.waits());
    assert_eq!(shaper.estimated_wait(1), Some(10_500 * MILLISECOND));
    // Not more than full at the end.
    shaper.refund(100);
    assert!(waiter.waits());
    clock.set(10 * SECOND);
    assert!(waiter.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(100 * MILLISECOND));
}

#[test]
fn whole_permits_are_taken_up_to_what_is_there() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    assert_eq!(shaper.acquire_up_to(0).permits(), 0);
    assert_eq!(shaper.acquire_up_to(2).permits(), 2);
    assert_eq!(shaper.acquire_up_to(10).permits(), 3);
    assert_eq!(shaper.acquire_up_to(10).permits(), 0);
    // What is not whole stays.
    clock.set(2_750 * MILLISECOND);
    assert_eq!(shaper.acquire_up_to(u64::MAX).permits(), 2);
    assert_eq!(shaper.estimated_wait(1), Some(250 * MILLISECOND));
    // Bounded by the largest n of one request as well.
    let (_clock, shaper) = by_hand_with(quota(1, SECOND, 5), |builder| builder.max_n(2));
    for left in [2, 2, 1, 0] {
        assert_eq!(shaper.acquire_up_to(10).permits(), left);
    }
}

#[test]
fn taking_up_to_some_never_makes_a_debt() {
    let (_clock, shaper) = by_hand(Quota::per_second(10));
    // A request of ten would leave at once and pay afterwards.
    assert_eq!(shaper.acquire_up_to(10).permits(), 1);
    assert_eq!(shaper.estimated_wait(1), Some(100 * MILLISECOND));
    let (_clock, shaper) = by_hand(Quota::per_second(1).burst(0));
    assert_eq!(shaper.acquire_up_to(10).permits(), 0);
    let (_clock, shaper) = by_hand(Quota::UNLIMITED);
    assert_eq!(shaper.acquire_up_to(1_000_000).permits(), 1_000_000);
}

#[test]
fn taking_up_to_some_never_overtakes() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    assert_eq!(pass(&shaper), 5);
    let mut large = Task::in_line(shaper.acquire_n(3));
    clock.set(2_999 * MILLISECOND);
    assert_eq!(shaper.acquire_up_to(2).permits(), 0);
    // It grants the head, who is due, and takes what is left behind it.
    clock.set(5 * SECOND);
    assert_eq!(shaper.acquire_up_to(5).permits(), 2);
    assert!(large.leaves());
}

#[test]
fn who_was_forgotten_does_not_keep_it_from_taking_for_ever() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 2));
    assert_eq!(pass(&shaper), 2);
    for _ in 0..3 {
        std::mem::forget(Task::in_line(shaper.acquire()));
    }
    let mut taken = Vec::new();
    for _ in 0..6 {
        clock.advance(SECOND);
        taken.push(shaper.acquire_up_to(2).permits());
    }
    assert_eq!(taken, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn what_was_taken_up_to_some_can_be_given_back() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 5));
    let permit = shaper.acquire_up_to(10);
    let nothing = shaper.acquire_up_to(10);
    assert_eq!((permit.permits(), nothing.permits()), (5, 0));
    nothing.give_back();
    assert_eq!(pass(&shaper), 0);
    permit.give_back();
    assert_eq!(pass(&shaper), 5);
}

#[test]
fn a_permit_is_given_back_beside_a_refund_of_another() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    clock.set(HOUR);
    let permits: Vec<_> = (0..5).map(|_| shaper.try_acquire().unwrap()).collect();
    shaper.refund(1);
    // Only the last is known not to have a later one: the others count as used.
    for permit in permits {
        permit.give_back();
    }
    assert_eq!(pass(&shaper), 2);
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_permit_whose_place_a_refund_gave_to_another_counts_as_used() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    clock.set(HOUR);
    let first = shaper.try_acquire().unwrap();
    // The word is that of after the first again, when the second has left.
    shaper.refund(1);
    let second = shaper.try_acquire().unwrap();
    first.give_back();
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    second.give_back();
    assert_eq!(pass(&shaper), 1);
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_permit_of_before_a_refund_a_pause_and_a_quota_is_given_back_once() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 5));
    clock.set(HOUR);
    let early = shaper.try_acquire().unwrap();
    let last = shaper.try_acquire_n(3).unwrap();
    shaper.refund(1);
    shaper.pause_for(10 * SECOND);
    shaper.set_quota(quota(1, 2 * SECOND, 5));
    clock.advance(10 * SECOND);
    // Three are owed of the four that had left.
    assert_eq!(shaper.estimated_wait(5), Some(6 * SECOND));
    early.give_back();
    assert_eq!(shaper.estimated_wait(5), Some(6 * SECOND));
    last.give_back();
    assert_eq!(shaper.estimated_wait(5), Some(Duration::ZERO));
    assert_eq!(pass(&shaper), 5);
}

#[test]
fn the_last_permit_comes_back_through_a_pause() {
    for during in [false, true] {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        let permit = shaper.try_acquire().unwrap();
        let mut waiter = Task::in_line(shaper.acquire());
        shaper.pause_for(10 * SECOND);
        if during {
            clock.set(5 * SECOND);
            permit.give_back();
            assert!(waiter.waits());
            clock.set(10 * SECOND - NANOSECOND);
            assert!(waiter.waits());
            clock.set(10 * SECOND);
        } else {
            clock.set(10 * SECOND);
            permit.give_back();
        }
        assert!(waiter.leaves());
        assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    }
}

#[test]
fn a_permit_of_before_a_pause_counts_as_used_after_a_later_grant() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let early = shaper.try_acquire().unwrap();
    shaper.pause_for(10 * SECOND);
    clock.set(11 * SECOND);
    let _later = shaper.try_acquire().unwrap();
    early.give_back();
    assert_eq!(pass(&shaper), 0);
}

/// Refunds and pauses are versions, of which a word can name eight.
#[test]
fn a_permit_held_through_many_changes_is_not_taken_for_a_later_one() {
    for changes in 0..40 {
        let (clock, shaper) = by_hand(quota(1, SECOND, 2));
        clock.set(HOUR);
        let early = shaper.try_acquire().unwrap();
        for change in 0..changes {
            match change % 3 {
                0 => shaper.refund(1),
                1 => shaper.pause_for(SECOND),
                _ => shaper.resume(),
            }
        }
        shaper.resume();
        shaper.reset();
        let later = [shaper.try_acquire().unwrap(), shaper.try_acquire().unwrap()];
        early.give_back();
        assert_eq!(pass(&shaper), 0, "after {changes} changes");
        // What really was the last comes back, and then the one before it.
        let [first, last] = later;
        last.give_back();
        assert_eq!(shaper.estimated_wait(2), Some(SECOND), "after {changes} changes");
        first.give_back();
        assert_eq!(pass(&shaper), 2, "after {changes} changes");
    }
}

#[test]
fn the_last_permit_comes_back_after_any_number_of_changes() {
    type Change = fn(&Shaper);
    let changes: [Change; 3] =
        [|shaper| shaper.set_quota(shaper.quota()), |shaper| shaper.refund(1), |shaper| shaper.pause_for(NANOSECOND)];
    for (kind, change) in changes.into_iter().enumerate() {
        for times in 0..40 {
            let (_clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.max_n(100));
            let permit = shaper.try_acquire_n(100).unwrap();
            for _ in 0..times {
                change(&shaper);
            }
            permit.give_back();
            shaper.resume();
            assert!(shaper.try_acquire().is_ok(), "after {times} changes of kind {kind}");
        }
    }
}

#[test]
fn a_permit_given_back_and_refunded_is_not_there_twice() {
    // Burst 1: the bucket holds no more than one, whatever is given back.
    for refund_first in [false, true] {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        clock.set(HOUR);
        let permit = shaper.try_acquire().unwrap();
        if refund_first {
            shaper.refund(1);
            permit.give_back();
        } else {
            permit.give_back();
            shaper.refund(1);
        }
        assert_eq!(pass(&shaper), 1);
        assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    }
}

#[test]
fn a_wait_granted_unseen_is_given_back_after_a_refund() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert_eq!(pass(&shaper), 3);
    let unseen = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert_eq!(shaper.waiting(), 0);
    shaper.refund(1);
    drop(unseen);
    assert_eq!(pass(&shaper), 2);
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Record, until_waiting};
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn refunds_reach_those_who_sleep() {
        let shaper = Arc::new(Shaper::builder(Quota::per_second(1)).max_n(60).build());
        let record = Record::begin();
        assert!(shaper.try_acquire_n(60).is_ok());
        for who in 0..4 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 4).await;
        record.until(1_500).await;
        shaper.refund(50);
        record.until(9_999).await;
        assert_eq!(record.lines(), []);
        record.until(11_500).await;
        assert_eq!(record.lines(), [(0, 10_000), (1, 11_000)]);
        shaper.reset();
        record.until(20_000).await;
        assert_eq!(record.lines()[2..], [(2, 11_500), (3, 12_500)]);
    }
}
