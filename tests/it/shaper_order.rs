//! First come, first served: who leaves when, with weights and bursts too, and what is told beforehand.

use std::task::Poll;
use std::time::Duration;

use tollgate::{Nanos, Quota, Refused};

use crate::tasks::{Crowd, Task, by_hand, by_hand_with};
use crate::{MILLISECOND, NANOSECOND, SECOND, quota};

// mjpieters/aiolimiter#200.
#[test]
fn twenty_tasks_on_a_burst_of_ten_leave_in_order() {
    let (clock, shaper) = by_hand(quota(10, 60 * SECOND, 10));
    let mut crowd = Crowd::default();
    for _ in 0..20 {
        crowd.push(shaper.acquire());
    }
    let expected: Vec<_> = (0..20).map(|task: usize| (task, (task as u64).saturating_sub(9) * 6)).collect();
    assert_eq!(crowd.granted_while(&clock, SECOND, 60), expected);
}

/// weights 1, 4, 1, 3, 1, 1 at T = 10 ms.
#[test]
fn weights_are_paid_after_they_leave() {
    let (clock, shaper) = by_hand_with(Quota::per_second(100), |builder| builder.max_n(4));
    let mut crowd = Crowd::default();
    for n in [1, 4, 1, 3, 1, 1] {
        crowd.push(shaper.acquire_n(n));
    }
    let left = crowd.granted_while(&clock, MILLISECOND, 120);
    assert_eq!(left, [(0, 0), (1, 10), (2, 50), (3, 60), (4, 90), (5, 100)]);
}

#[test]
fn weights_within_the_burst_leave_when_they_are_there() {
    // T = 10 ms, burst 5. The first takes 3 of 5; then 4 are there at 20 ms, 2 at 40 ms. 9 are more than the burst: they leave
    // with a full bucket, at 90 ms, and the next pays for four of them.
    let (clock, shaper) = by_hand(quota(100, SECOND, 5));
    let mut crowd = Crowd::default();
    for n in [3, 4, 2, 9, 1] {
        crowd.push(shaper.acquire_n(n));
    }
    let left = crowd.granted_while(&clock, MILLISECOND, 200);
    assert_eq!(left, [(0, 0), (1, 20), (2, 40), (3, 90), (4, 140)]);
}

#[test]
fn a_large_request_is_neither_starved_nor_overtaken() {
    // Twenty who come back at once whenever they have left, against one who asks for ten. Each round is 20 + 10 permits.
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.max_n(10));
    let mut crowd = Crowd::default();
    let (mut small, mut large) = (0, Vec::new());
    let mut big = Vec::new();
    for task in 0..21 {
        let of = crowd.push(shaper.acquire_n(if task == 20 { 10 } else { 1 }));
        if task == 20 {
            big.push(of);
        }
    }
    for ms in 0..2010 {
        for (of, answer) in crowd.run() {
            if big.contains(&of) {
                assert_eq!(answer.expect("granted").permits(), 10);
                large.push(ms);
                big.push(crowd.push(shaper.acquire_n(10)));
            } else {
                small += 1;
                crowd.push(shaper.acquire());
            }
        }
        clock.advance(MILLISECOND);
    }
    // The first leaves behind 20 small ones, and each later one 30 permits after it: its own ten, and twenty small ones.
    assert_eq!(large, (0..67).map(|round| 20 + 30 * round).collect::<Vec<_>>());
    assert_eq!(small + 10 * large.len(), 2010);
}

#[test]
fn one_request_of_k_costs_what_k_single_ones_cost() {
    for k in [1, 2, 7, 50] {
        let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.max_n(50));
        let _permit = shaper.try_acquire_n(k);
        let (other_clock, other) = by_hand(Quota::per_second(1000));
        let mut crowd = Crowd::default();
        for _ in 0..k {
            crowd.push(other.acquire());
        }
        crowd.granted_while(&other_clock, MILLISECOND, k - 1);
        clock.set(other_clock.now());
        assert_eq!(shaper.estimated_wait(1), other.estimated_wait(1));
        assert_eq!(shaper.estimated_wait(1), Some(MILLISECOND));
    }
}

#[test]
fn nothing_asked_is_free_and_never_waits() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    assert!(Task::new(shaper.acquire_n(0)).leaves());
    assert!(shaper.try_acquire_n(0).is_ok());
    // Nothing was used, and with none left, and with others in line, it is free all the same.
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    assert_eq!(shaper.try_acquire_n(0).map(|permit| permit.permits()), Ok(0));
    assert!(Task::new(shaper.acquire_n(0)).leaves());
    assert!(Task::new(shaper.acquire_n_within(0, Duration::ZERO)).leaves());
    assert_eq!(shaper.estimated_wait(0), Some(Duration::ZERO));
    assert!(waiter.waits());
    assert_eq!(shaper.estimated_wait(1), Some(2 * SECOND));
}

#[test]
fn giving_nothing_back_gives_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    let nothing = [shaper.try_acquire_n(0).unwrap(), shaper.try_acquire_n(0).unwrap()];
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::in_line(shaper.acquire());
    nothing.into_iter().for_each(tollgate::Permit::give_back);
    assert!(waiter.waits());
    clock.set(SECOND);
    assert!(waiter.leaves());
}

#[test]
fn a_try_does_not_overtake_and_says_what_is_behind_those_who_wait() {
    let (clock, shaper) = by_hand_with(Quota::per_second(10), |builder| builder.max_n(10));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = [1, 3, 1].into_iter().map(|n| Task::in_line(shaper.acquire_n(n))).collect();
    let refused = |asked, ms| Refused::TooSoon { asked, remaining: 0, retry_after: Duration::from_millis(ms) };
    // Slots at 100, 200 and 500 ms are taken; the next is at 600 ms.
    for ms in [0, 1, 50, 99] {
        clock.set(Duration::from_millis(ms));
        assert_eq!(shaper.try_acquire().unwrap_err(), refused(1, 600 - ms));
        assert_eq!(shaper.try_acquire_n(4).unwrap_err(), refused(4, 600 - ms));
    }
    // A slot is due, and belongs to the head; the try grants it and stays behind the others.
    clock.set(100 * MILLISECOND);
    assert_eq!(shaper.try_acquire().unwrap_err(), refused(1, 500));
    assert!(line[0].wakes() > 0);
    assert_eq!((line[1].wakes(), line[2].wakes()), (0, 0));
    assert!(line[0].leaves());
    clock.set(200 * MILLISECOND);
    assert!(line[1].leaves());
    clock.set(500 * MILLISECOND);
    assert!(line[2].leaves());
    clock.set(600 * MILLISECOND - NANOSECOND);
    assert_eq!(shaper.try_acquire().unwrap_err(), Refused::TooSoon { asked: 1, remaining: 0, retry_after: NANOSECOND });
    clock.set(600 * MILLISECOND);
    assert!(shaper.try_acquire().is_ok());
    assert_eq!(shaper.try_acquire().unwrap_err(), refused(1, 100));
}

#[test]
fn a_try_is_refused_while_a_forgotten_waiter_has_the_slot_and_not_for_ever() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    std::mem::forget(Task::in_line(shaper.acquire()));
    clock.set(SECOND);
    assert_eq!(shaper.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    assert_eq!(shaper.waiting(), 0);
    clock.set(2 * SECOND);
    assert!(shaper.try_acquire().is_ok());
}

#[test]
fn an_estimated_wait_is_the_real_one() {
    let line = [1, 4, 1, 3, 9, 2, 1];
    for burst in [1, 3, 5] {
        for taken in 0..=burst {
            let (clock, shaper) = by_hand_with(quota(100, SECOND, burst), |builder| builder.max_n(9));
            if taken > 0 {
                assert!(shaper.try_acquire_n(taken).is_ok());
            }
            let mut crowd = Crowd::default();
            let mut expected = Vec::new();
            let mut left = Vec::new();
            for n in line {
                // What was told holds at whatever instant it is asked.
                clock.advance(MILLISECOND);
                let wait = shaper.estimated_wait(n).expect("in time");
                expected.push((expected.len(), clock.now().saturating_add(wait)));
                crowd.push(shaper.acquire_n(n));
                left.extend(crowd.granted().into_iter().map(|of| (of, clock.now())));
            }
            while left.len() < line.len() {
                assert!(clock.now() < Nanos::from_secs(1));
                clock.advance(MILLISECOND);
                left.extend(crowd.granted().into_iter().map(|of| (of, clock.now())));
            }
            assert_eq!(left, expected, "burst {burst}, {taken} taken");
        }
    }
}

#[test]
fn an_estimated_wait_leaves_out_those_who_have_left_the_line() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    assert_eq!(shaper.estimated_wait(1), Some(Duration::ZERO));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..9).map(|_| Task::in_line(shaper.acquire())).collect();
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (9, Some(10 * SECOND)));
    line.drain(2..6);
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (5, Some(6 * SECOND)));
    line.clear();
    assert_eq!((shaper.waiting(), shaper.estimated_wait(1)), (0, Some(SECOND)));
}

#[test]
fn without_a_limit_all_leave_at_once_and_in_order() {
    let (_clock, shaper) = by_hand(Quota::per_hour(1));
    assert!(shaper.try_acquire().is_ok());
    let mut crowd = Crowd::default();
    for _ in 0..100 {
        crowd.push(shaper.acquire());
    }
    assert_eq!(crowd.granted(), []);
    shaper.set_quota(Quota::UNLIMITED);
    assert_eq!(shaper.waiting(), 0);
    assert_eq!(crowd.granted(), (0..100).collect::<Vec<_>>());
    for n in [1, u64::from(u32::MAX)] {
        assert!(shaper.try_acquire_n(n).is_ok());
        assert!(Task::new(shaper.acquire_n(n)).leaves());
    }
}

#[test]
fn joined_in_one_task_all_are_served() {
    // udoprog/leaky-bucket#35: three requests of 80 in one task, on 100 a second with burst 100.
    let (clock, shaper) = by_hand(Quota::per_second(100).burst(100));
    let start = clock.now();
    let mut joined = Task::new(async {
        let timed = async || shaper.acquire_n(80).await.map(|_| clock.now().saturating_since(start).as_millis());
        let (mut one, mut two, mut three) = (Box::pin(timed()), Box::pin(timed()), Box::pin(timed()));
        let mut times = [None; 3];
        std::future::poll_fn(move |cx| {
            for (time, request) in times.iter_mut().zip([&mut one, &mut two, &mut three]) {
                if time.is_none() {
                    if let Poll::Ready(answer) = request.as_mut().poll(cx) {
                        *time = Some(answer.expect("granted"));
                    }
                }
            }
            match times {
                [Some(one), Some(two), Some(three)] => Poll::Ready([one, two, three]),
                _ => Poll::Pending,
            }
        })
        .await
    });
    assert!(joined.poll().is_pending());
    let mut wakes = 0;
    for _ in 0..1400 {
        clock.advance(MILLISECOND);
        if joined.wakes() > wakes {
            wakes = joined.wakes();
            if let Poll::Ready(times) = joined.poll() {
                assert_eq!(times, [0, 600, 1400]);
                return;
            }
        }
    }
    panic!("frozen");
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Costs, Record, Watched, until_waiting};
    use std::sync::Arc;
    use tollgate::Shaper;

    // mjpieters/aiolimiter#200.
    #[tokio::test(start_paused = true)]
    async fn a_thousand_leave_in_order_each_in_its_millisecond_and_woken_twice_at_most() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1000)));
        let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
        for who in 0..1000 {
            let (record, acquire) = (record.clone(), Arc::clone(&shaper).acquire_owned());
            let acquire = Watched::new(acquire, &costs);
            tokio::spawn(async move {
                let _permit = acquire.await.expect("granted");
                record.note(who);
            });
        }
        until_waiting(&shaper, 999).await;
        assert_eq!(record.now(), 0);
        record.until(1000).await;
        assert_eq!(record.lines(), (0..1000).map(|who| (who, who as u64)).collect::<Vec<_>>());
        // The first passes; all others are polled when they come and when they leave.
        assert_eq!(costs.polls(), 1999);
        assert!(costs.wakes() <= 2 * 1000, "{} wakes", costs.wakes());
    }

    // mjpieters/aiolimiter#200.
    #[tokio::test(start_paused = true)]
    async fn twenty_tasks_on_a_burst_of_ten_leave_in_order() {
        let shaper = Arc::new(Shaper::new(quota(10, 60 * SECOND, 10)));
        let record = Record::begin();
        for who in 0..20 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 10).await;
        record.until(60_000).await;
        tokio::task::yield_now().await;
        let expected: Vec<_> = (0..20).map(|who: usize| (who, (who as u64).saturating_sub(9) * 6000)).collect();
        assert_eq!(record.lines(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_request_keeps_its_place_among_small_ones() {
        let shaper = Arc::new(Shaper::builder(Quota::per_second(100)).max_n(10).build());
        let record = Record::begin();
        for (who, n) in [1, 1, 10, 1, 5, 1].into_iter().enumerate() {
            record.spawn(who, &shaper, n);
        }
        until_waiting(&shaper, 5).await;
        record.until(1000).await;
        assert_eq!(record.lines(), [(0, 0), (1, 10), (2, 20), (3, 120), (4, 130), (5, 180)]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_share_a_millisecond_leave_in_order_too() {
        // Five a millisecond: tokio's timer is the coarser one. Nobody is early, and nobody a millisecond late.
        let shaper = Arc::new(Shaper::new(Quota::per_second(5000)));
        let record = Record::begin();
        for who in 0..500 {
            record.spawn(who, &shaper, 1);
        }
        until_waiting(&shaper, 499).await;
        record.until(101).await;
        let expected: Vec<_> = (0..500).map(|who: usize| (who, (who as u64).div_ceil(5))).collect();
        assert_eq!(record.lines(), expected);
    }

    // udoprog/leaky-bucket#35.
    #[tokio::test(start_paused = true)]
    async fn joined_in_one_task_all_are_served() {
        let shaper = Shaper::new(Quota::per_second(100).burst(100));
        let record = Record::begin();
        let request = async |who| {
            let _permit = shaper.acquire_n(80).await.expect("granted");
            record.note(who);
        };
        tokio::join!(request(0), request(1), request(2));
        assert_eq!(record.lines(), [(0, 0), (1, 600), (2, 1400)]);
    }
}
