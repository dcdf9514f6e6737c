//! Those who give up: before and after their permit was granted, one by one and in bulk.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tollgate::{Quota, Refused};

use crate::tasks::{Crowd, Task, by_hand, by_hand_with};
use crate::{MILLISECOND, SECOND, quota};

// thomhurst/Kevlar#15, first part.
#[test]
fn the_slot_of_one_who_gave_up_goes_to_the_next() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(1));
    assert!(Task::new(shaper.acquire()).leaves());
    let b = Task::in_line(shaper.acquire());
    clock.set(SECOND / 2);
    drop(b);
    let mut d = Task::in_line(shaper.acquire());
    clock.set(SECOND - MILLISECOND);
    assert!(d.waits());
    clock.set(SECOND);
    assert!(d.leaves());
}

// thomhurst/Kevlar#15, second part.
#[test]
fn a_thousand_who_give_up_leave_no_debt() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(1));
    assert!(Task::new(shaper.acquire()).leaves());
    for _ in 0..1000 {
        clock.advance(MILLISECOND / 2);
        drop(Task::in_line(shaper.acquire()));
    }
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (0, Some(SECOND / 2)));
    let mut real = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert!(real.leaves());
}

// thomhurst/Kevlar#15, third part.
#[test]
fn those_behind_one_who_gave_up_move_up() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(Task::new(shaper.acquire()).leaves());
    let b = Task::in_line(shaper.acquire());
    let mut c = Task::in_line(shaper.acquire());
    clock.set(SECOND / 2);
    drop(b);
    // Woken to set its timer anew, since it would have come at 2 s.
    assert_eq!(c.wakes(), 1);
    assert!(c.waits());
    clock.set(SECOND);
    assert_eq!(c.wakes(), 2);
    assert!(c.leaves());
}

#[test]
fn one_who_was_never_polled_has_no_place() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let unpolled = Task::new(shaper.acquire());
    let mut polled = Task::in_line(shaper.acquire());
    assert_eq!(shaper.waiting(), 1);
    drop(unpolled);
    assert_eq!(shaper.waiting(), 1);
    clock.set(SECOND);
    assert!(polled.leaves());
}

#[test]
fn whoever_gives_up_in_line_the_others_leave_one_by_one() {
    for gone in 0..5 {
        let (clock, shaper) = by_hand(Quota::per_second(10));
        let mut crowd = Crowd::default();
        crowd.push(shaper.acquire());
        for _ in 0..5 {
            crowd.push(shaper.acquire());
        }
        assert_eq!(crowd.granted(), [0]);
        clock.advance(50 * MILLISECOND);
        crowd.cancel(gone + 1);
        assert_eq!(shaper.waiting(), 4);
        let rest: Vec<_> = (1..6).filter(|of| *of != gone + 1).zip((0..4).map(|slot| 5 + 10 * slot)).collect();
        assert_eq!(crowd.granted_while(&clock, 10 * MILLISECOND, 40), rest, "without {}", gone + 1);
    }
}

#[test]
fn the_last_to_give_up_opens_the_way_for_newcomers() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let line = [Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire())];
    clock.set(SECOND / 2);
    drop(line);
    clock.set(SECOND);
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn granted_and_dropped_unseen_goes_to_the_next_at_that_instant() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.catch_up(Duration::ZERO));
    assert!(shaper.try_acquire().is_ok());
    let (b, mut c) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    clock.set(SECOND);
    // A look at the shaper grants b; it is dropped before it has seen that.
    assert_eq!(shaper.waiting(), 1);
    clock.set(SECOND + SECOND / 4);
    drop(b);
    assert_eq!(shaper.waiting(), 0);
    assert!(c.wakes() > 0);
    assert!(c.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn granted_and_dropped_unseen_with_nobody_behind_is_there_again() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let b = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert_eq!(shaper.waiting(), 0);
    assert!(shaper.try_acquire().is_err());
    drop(b);
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn granted_and_dropped_unseen_after_a_later_grant_counts_as_used() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (b, mut c) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    let mut d = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert_eq!(shaper.waiting(), 2);
    clock.set(2 * SECOND);
    assert!(c.leaves());
    // Were b's slot given to d now, two would have left in one second.
    clock.set(2 * SECOND + SECOND / 2);
    drop(b);
    assert!(d.waits());
    clock.set(3 * SECOND - MILLISECOND);
    assert!(d.waits());
    clock.set(3 * SECOND);
    assert!(d.leaves());
}

#[test]
fn of_a_bunch_granted_at_one_instant_the_last_can_be_given_back() {
    // Burst 3, all taken at 0; at 3 s three are granted by one look.
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert!(shaper.try_acquire_n(3).is_ok());
    let mut line: Vec<_> = (0..4).map(|_| Task::in_line(shaper.acquire())).collect();
    clock.set(3 * SECOND);
    assert_eq!(shaper.waiting(), 1);
    drop(line.remove(2));
    assert_eq!(shaper.waiting(), 0);
    assert!(line.iter_mut().all(Task::leaves));
    // The first of the bunch has others behind it, and stays used.
    let (clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert!(shaper.try_acquire_n(3).is_ok());
    let mut line: Vec<_> = (0..4).map(|_| Task::in_line(shaper.acquire())).collect();
    clock.set(3 * SECOND);
    drop(line.remove(0));
    assert_eq!(shaper.waiting(), 1);
    clock.set(4 * SECOND);
    assert!(line.iter_mut().all(Task::leaves));
}

#[test]
fn refused_and_dropped_unseen_changes_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    assert!(shaper.try_acquire().is_ok());
    let large = Task::in_line(shaper.acquire_n(10));
    let mut small = Task::in_line(shaper.acquire());
    // The largest n is 5 now: the large one is refused, and is dropped before it has seen that.
    shaper.set_quota(Quota::per_second(5));
    assert_eq!((shaper.waiting(), large.wakes()), (1, 1));
    drop(large);
    assert_eq!(shaper.waiting(), 1);
    clock.set(200 * MILLISECOND);
    assert!(small.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(200 * MILLISECOND));
}

#[test]
fn after_its_end_a_wait_can_be_dropped() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let mut first = Task::new(shaper.acquire());
    assert!(first.leaves());
    let mut second = Task::in_line(shaper.acquire());
    clock.set(SECOND);
    assert!(second.leaves());
    let mut third = Task::new(shaper.acquire_within(SECOND / 2));
    assert_eq!(third.refusal(), Refused::DeadlineTooSoon { wait: SECOND });
    drop((first, second, third));
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (0, Some(SECOND)));
    clock.set(2 * SECOND);
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn a_permit_given_back_lets_the_next_leave_at_once() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.catch_up(Duration::ZERO));
    let permit = shaper.try_acquire().unwrap();
    let mut waiter = Task::in_line(shaper.acquire());
    clock.set(SECOND / 4);
    permit.give_back();
    assert_eq!(waiter.wakes(), 1);
    let permit = waiter.permit();
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    // And again with a permit that was waited for.
    let mut next = Task::in_line(shaper.acquire());
    permit.give_back();
    assert!(next.leaves());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_permit_given_back_after_a_later_grant_counts_as_used() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let first = shaper.try_acquire().unwrap();
    clock.set(SECOND);
    let second = shaper.try_acquire().unwrap();
    first.give_back();
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    second.give_back();
    assert_eq!(shaper.estimated_wait(1), Some(Duration::ZERO));
    assert!(shaper.try_acquire().is_ok());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn permits_are_given_back_from_the_last_to_the_first() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 5));
    let permits: Vec<_> = (0..5).map(|_| shaper.try_acquire().unwrap()).collect();
    permits.into_iter().rev().for_each(tollgate::Permit::give_back);
    assert!(shaper.try_acquire_n(5).is_ok());
    assert!(shaper.try_acquire().is_err());
}

#[test]
fn a_large_permit_given_back_is_whole() {
    let (clock, shaper) = by_hand_with(Quota::per_second(10), |builder| builder.max_n(10));
    let mut large = Task::new(shaper.acquire_n(10));
    let permit = large.permit();
    assert_eq!(permit.permits(), 10);
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
    clock.set(SECOND / 2);
    permit.give_back();
    assert!(shaper.try_acquire().is_ok());
    assert_eq!(shaper.estimated_wait(1), Some(SECOND / 10));
}

#[test]
fn a_permit_survives_the_change_of_the_quota_before_it_is_given_back() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let permit = shaper.try_acquire().unwrap();
    clock.set(SECOND / 2);
    shaper.set_quota(Quota::new(1, 10 * SECOND).unwrap());
    assert_eq!(shaper.estimated_wait(1), Some(5 * SECOND));
    permit.give_back();
    assert!(shaper.try_acquire().is_ok());
    assert_eq!(shaper.estimated_wait(1), Some(10 * SECOND));
}

#[test]
fn an_owned_permit_can_be_given_back_too() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    let shaper = Arc::new(shaper);
    let Poll::Ready(Ok(permit)) = Task::new(Arc::clone(&shaper).acquire_owned()).poll() else { panic!("not granted") };
    assert!(shaper.try_acquire().is_err());
    permit.give_back();
    assert!(shaper.try_acquire().is_ok());
}

/// The quota is set so often that the versions which a word can name come round.
#[test]
fn a_permit_held_through_many_changes_is_not_taken_for_a_later_one() {
    for changes in 0..20 {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        let early = shaper.try_acquire().unwrap();
        clock.set(SECOND);
        for _ in 0..changes {
            shaper.set_quota(Quota::per_second(1));
        }
        let _later = shaper.try_acquire().unwrap();
        early.give_back();
        assert!(shaper.try_acquire().is_err(), "two left at one instant, after {changes} changes");
    }
}

#[test]
fn a_wait_granted_before_many_changes_is_not_taken_for_a_later_one() {
    for changes in 0..20 {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.try_acquire().is_ok());
        let unseen = Task::in_line(shaper.acquire());
        clock.set(SECOND);
        assert_eq!(shaper.waiting(), 0);
        clock.set(2 * SECOND);
        for _ in 0..changes {
            shaper.set_quota(Quota::per_second(1));
        }
        clock.set(3 * SECOND);
        let _later = shaper.try_acquire().unwrap();
        drop(unseen);
        assert!(shaper.try_acquire().is_err(), "two left at one instant, after {changes} changes");
    }
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Costs, Record, Watched, until_waiting};
    use std::collections::VecDeque;
    use tollgate::Shaper;

    // thomhurst/Kevlar#15, all three parts on tokio's timer.
    #[tokio::test(start_paused = true)]
    async fn giving_up_leaves_no_debt() {
        let shaper = Arc::new(Shaper::builder(Quota::per_second(1)).queue(1).build());
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let b = record.spawn(1, &shaper, 1);
        until_waiting(&shaper, 1).await;
        record.until(500).await;
        b.abort();
        until_waiting(&shaper, 0).await;
        record.spawn(2, &shaper, 1).await.unwrap().unwrap();
        assert_eq!(record.lines(), [(2, 1000)]);

        for _ in 0..1000 {
            let mut acquire = Task::new(shaper.acquire());
            assert!(acquire.waits());
        }
        record.until(1900).await;
        let _permit = shaper.acquire().await.unwrap();
        assert_eq!(record.now(), 2000);
    }

    /// 21 at 10 a second; at 50 ms ten near the head leave and ten others come.
    #[tokio::test(start_paused = true)]
    async fn cancelled_in_bulk_the_others_leave_one_by_one_and_in_order() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(10)));
        let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
        let spawn = |who| {
            let (record, acquire) = (record.clone(), Arc::clone(&shaper).acquire_owned());
            let acquire = Watched::new(acquire, &costs);
            tokio::spawn(async move {
                let _permit = acquire.await.expect("granted");
                record.note(who);
            })
        };
        let mut tasks: VecDeque<_> = (0..21).map(spawn).collect();
        until_waiting(&shaper, 20).await;
        record.until(50).await;
        tasks.drain(2..12).for_each(|task| task.abort());
        until_waiting(&shaper, 10).await;
        tasks.extend((21..31).map(spawn));
        until_waiting(&shaper, 20).await;
        record.until(2001).await;
        let who = [0, 1].into_iter().chain(12..31);
        let expected: Vec<_> = who.zip((0..21).map(|slot| 100 * slot)).collect();
        assert_eq!(record.lines(), expected);
        // Once each to come and to leave; the ten who leave come; the nine who move up set their timers anew.
        assert!(costs.polls() <= 3 * 21, "{} polls", costs.polls());
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_limit_around_a_wait_gives_its_slot_to_the_next() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let impatient = Arc::clone(&shaper).acquire_owned();
        let impatient = tokio::spawn(tokio::time::timeout(500 * MILLISECOND, impatient));
        until_waiting(&shaper, 1).await;
        record.spawn(1, &shaper, 1).await.unwrap().unwrap();
        assert!(impatient.await.unwrap().is_err());
        assert_eq!(record.lines(), [(1, 1000)]);
    }
}
