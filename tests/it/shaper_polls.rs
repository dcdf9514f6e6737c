//! What waiting costs in polls, and wakers that misbehave.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use tollgate::{AcquireOwned, ManualClock, Quota, Shaper};

use crate::tasks::{Crowd, Task, Wakes, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, SECOND};

#[test]
fn spurious_polls_change_nothing() {
    let (clock, shaper) = by_hand(Quota::per_second(100));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..5).map(|_| Task::in_line(shaper.acquire())).collect();
    for left in 0..5 {
        for _ in 0..9 {
            clock.advance(MILLISECOND);
            for _ in 0..3 {
                assert!(line[left..].iter_mut().all(Task::waits));
            }
        }
        clock.advance(MILLISECOND);
        assert!(line[left].leaves());
    }
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn the_waker_of_the_last_poll_is_the_one_that_counts() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (mut a, mut b) = (Task::in_line(shaper.acquire()), Task::in_line(shaper.acquire()));
    let (old, new) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    for waker in [&old, &new] {
        assert!(a.poll_with(&Waker::from(Arc::clone(waker))).is_pending());
        assert!(b.poll_with(&Waker::from(Arc::clone(waker))).is_pending());
    }
    // By its own timer, and by another's look.
    clock.set(SECOND);
    assert!(new.count() > 0);
    assert!(a.leaves());
    let before = new.count();
    shaper.set_quota(Quota::UNLIMITED);
    assert_eq!(new.count(), before + 1);
    assert_eq!((old.count(), a.wakes(), b.wakes()), (0, 0, 0));
    assert!(b.leaves());
}

#[test]
fn no_waker_is_kept_after_the_end() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut line: Vec<_> = (0..4).map(|_| Task::new(shaper.acquire())).collect();
    for waiter in &mut line {
        assert!(waiter.poll_with(&waker).is_pending());
    }
    // One leaves, one gives up, one is granted unseen and given up, one is closed out.
    clock.set(SECOND);
    assert!(line[0].poll_with(&waker).is_ready());
    line.remove(1);
    clock.set(2 * SECOND);
    assert_eq!(shaper.waiting(), 1);
    line.remove(1);
    shaper.close();
    for mut waiter in line.drain(1..) {
        assert!(waiter.poll_with(&waker).is_ready());
    }
    drop((line, waker));
    assert_eq!(Arc::strong_count(&wakes), 1);
}

/// Panics when it is woken.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

/// Runs `work` without the message of a panic on the screen, and tells whether one came out.
fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

#[test]
fn a_waker_that_panics_costs_neither_the_others_nor_the_caller_its_permit() {
    // All are due at one instant, and the caller's poll grants them all.
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(HOUR));
    assert!(shaper.try_acquire().is_ok());
    let mut line: Vec<_> = (0..5).map(|_| Task::new(shaper.acquire())).collect();
    let waker = Waker::from(Arc::new(Panics));
    for (place, waiter) in line.iter_mut().enumerate() {
        let pending = if place % 2 == 0 { waiter.poll() } else { waiter.poll_with(&waker) };
        assert!(pending.is_pending());
    }
    let _ = panics(|| clock.set(5 * MILLISECOND));
    let woken: Vec<_> = line.iter().map(Task::wakes).collect();
    assert!(woken[0] > 0 && woken[2] > 0 && woken[4] > 0, "{woken:?}");
    assert!(line[0].leaves());
    assert_eq!(shaper.waiting(), 0);
    assert!(line.iter_mut().skip(1).all(Task::leaves));
    assert_eq!(shaper.estimated_wait(1), Some(MILLISECOND));
}

#[test]
fn a_waker_that_panics_does_not_take_a_tried_permit_along() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(HOUR));
    assert!(shaper.try_acquire().is_ok());
    let mut waiter = Task::new(shaper.acquire());
    // Two looks: its own timer is spent on the first, so that the grant wakes it.
    assert!(waiter.poll_with(&Waker::from(Arc::new(Panics))).is_pending());
    let _ = panics(|| clock.set(10 * MILLISECOND));
    // The try grants the waiter and then itself.
    assert!(shaper.try_acquire().is_ok());
    assert!(waiter.leaves());
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn wakers_that_panic_leave_the_line_sound_whatever_calls_them() {
    type Call = fn(&ManualClock, &Shaper);
    let calls: [Call; 6] = [
        |_, shaper| shaper.set_quota(Quota::UNLIMITED),
        |_, shaper| shaper.set_quota(Quota::per_second(100_000)),
        |_, shaper| shaper.close(),
        |clock, shaper| {
            clock.set(SECOND);
            assert!(shaper.try_acquire().is_err());
        },
        |clock, shaper| {
            clock.set(SECOND);
            assert_eq!(shaper.waiting(), 9);
        },
        |clock, shaper| {
            clock.set(SECOND);
            drop(Task::in_line(shaper.acquire()));
        },
    ];
    for call in calls {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.try_acquire().is_ok());
        let waker = Waker::from(Arc::new(Panics));
        let mut line: Vec<_> = (0..10).map(|_| Task::new(shaper.acquire())).collect();
        for waiter in &mut line {
            assert!(waiter.poll_with(&waker).is_pending());
        }
        let _ = panics(|| call(&clock, &shaper));
        for waiter in &mut line {
            clock.advance(SECOND);
            assert!(waiter.poll().is_ready());
        }
        assert_eq!(shaper.waiting(), 0);
    }
}

/// Does something when it is woken.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

#[test]
fn a_waker_may_call_the_shaper() {
    let (clock, shaper) = by_hand(Quota::per_second(10));
    let shaper = Arc::new(shaper);
    assert!(shaper.try_acquire().is_ok());
    let calls = Arc::new(Wakes::default());
    let waker = {
        let (shaper, calls): (Weak<Shaper>, _) = (Arc::downgrade(&shaper), Arc::clone(&calls));
        Waker::from(Arc::new(Calls(move || {
            let shaper = shaper.upgrade().expect("alive");
            assert!(shaper.try_acquire().is_err());
            let (waiting, wait) = (shaper.waiting(), shaper.estimated_wait(1));
            assert!(wait > Some(Duration::ZERO) || waiting == 0);
            shaper.set_quota(shaper.quota());
            drop(Task::new(shaper.acquire()).poll());
            Arc::clone(&calls).wake();
        })))
    };
    let mut line: Vec<_> = (0..5).map(|_| Task::new(shaper.acquire())).collect();
    for waiter in &mut line {
        assert!(waiter.poll_with(&waker).is_pending());
    }
    for waiter in &mut line {
        clock.advance(100 * MILLISECOND);
        assert!(matches!(waiter.poll_with(&waker), Poll::Ready(Ok(_))));
    }
    assert!(calls.count() >= 5);
}

#[test]
fn a_waker_may_drop_a_wait() {
    // The first to be woken drops the others: in line, granted, and itself.
    for granted in [false, true] {
        let (clock, shaper) = by_hand(Quota::per_second(10));
        let shaper = Arc::new(shaper);
        assert!(shaper.try_acquire().is_ok());
        let waits: Arc<Mutex<Vec<Task<AcquireOwned>>>> = Arc::default();
        let waker = {
            let waits = Arc::clone(&waits);
            Waker::from(Arc::new(Calls(move || {
                let dropped = waits.try_lock().map(|mut waits| std::mem::take(&mut *waits));
                drop(dropped);
            })))
        };
        {
            let mut waits = waits.lock().unwrap();
            for _ in 0..5 {
                let mut wait = Task::new(Arc::clone(&shaper).acquire_owned());
                assert!(wait.poll_with(&waker).is_pending());
                waits.push(wait);
            }
        }
        if granted {
            shaper.set_quota(Quota::UNLIMITED);
        } else {
            clock.advance(100 * MILLISECOND);
        }
        assert!(waits.lock().unwrap().is_empty());
        assert_eq!(shaper.waiting(), 0);
        shaper.set_quota(Quota::per_second(1));
        clock.advance(SECOND);
        assert!(shaper.try_acquire().is_ok());
    }
}

#[test]
fn two_polls_per_permit_by_hand() {
    let (clock, shaper) = by_hand(Quota::per_second(20_000));
    let mut crowd = Crowd::default();
    for _ in 0..2000 {
        crowd.push(shaper.acquire());
    }
    // Coarse steps: twenty permits each.
    let left = crowd.granted_while(&clock, MILLISECOND, 100);
    assert_eq!(left.iter().map(|left| left.0).collect::<Vec<_>>(), (0..2000).collect::<Vec<_>>());
    assert!(crowd.polls() <= 2000 * 21 / 10, "{} polls", crowd.polls());
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::tasks::{Costs, Random, Record, Watched, until_waiting};
    use tokio::task::JoinHandle;

    fn spawn(who: usize, shaper: &Arc<Shaper>, record: &Record, costs: &Arc<Costs>) -> JoinHandle<()> {
        let (record, acquire) = (record.clone(), Watched::new(Arc::clone(shaper).acquire_owned(), costs));
        tokio::spawn(async move {
            let _permit = acquire.await.expect("granted");
            record.note(who);
        })
    }

    #[tokio::test(start_paused = true)]
    async fn two_thousand_waiters_are_polled_twice_each() {
        for rate in [1000, 5000, 20_000] {
            let shaper = Arc::new(Shaper::new(Quota::per_second(rate)));
            let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
            let tasks: Vec<_> = (0..2000).map(|who| spawn(who, &shaper, &record, &costs)).collect();
            for task in tasks {
                task.await.unwrap();
            }
            let order: Vec<_> = record.lines().into_iter().map(|line| line.0).collect();
            assert_eq!(order, (0..2000).collect::<Vec<_>>());
            assert_eq!(record.now(), 1_999_000_u64.div_ceil(rate));
            assert!(costs.polls() <= 2000 * 21 / 10, "{rate} a second: {} polls", costs.polls());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn with_many_who_give_up_three_polls_a_permit_are_enough() {
        for rate in [100, 1000, 5000] {
            let mut random = Random::new(rate);
            let shaper = Arc::new(Shaper::new(Quota::per_second(rate)));
            let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
            let mut tasks: Vec<_> = (0..2000).map(|who| Some(spawn(who, &shaper, &record, &costs))).collect();
            until_waiting(&shaper, 1999).await;
            // What those who give up cost until then is their own.
            let (mut gone, mut left) = (0, tasks.len());
            while shaper.waiting() > 0 {
                tokio::time::sleep(MILLISECOND).await;
                for _ in 0..random.below(2 + rate / 250) {
                    if let Some(task) = tasks[random.index(2000)].take_if(|task| !task.is_finished()) {
                        task.abort();
                        (gone, left) = (gone + 1, left - 1);
                    }
                }
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(MILLISECOND).await;
            assert_eq!(record.lines().len(), left);
            assert!(gone > 100, "{gone}");
            assert!(record.lines().is_sorted_by_key(|line| line.0));
            assert!(
                costs.polls() - gone <= 3 * left,
                "{rate} a second: {} polls, {left} left, {gone} gone",
                costs.polls()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_faster_quota_three_polls_a_permit_are_enough() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(10)));
        let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
        let tasks: Vec<_> = (0..2000).map(|who| spawn(who, &shaper, &record, &costs)).collect();
        until_waiting(&shaper, 1999).await;
        record.until(1000).await;
        shaper.set_quota(Quota::per_second(1000));
        for task in tasks {
            task.await.unwrap();
        }
        assert!(costs.polls() <= 3 * 2000, "{} polls", costs.polls());
        assert!(record.lines().is_sorted_by_key(|line| line.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_is_free_costs_one_poll() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let (record, costs) = (Record::begin(), Arc::new(Costs::default()));
        for who in 0..10 {
            spawn(who, &shaper, &record, &costs).await.unwrap();
            tokio::time::sleep(SECOND).await;
        }
        assert_eq!((costs.polls(), costs.wakes()), (10, 0));
    }
}
