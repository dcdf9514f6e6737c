//! Runtimes that end, several of them, and none at all.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tollgate::{ManualClock, Quota, Refused, Shaper, Timer};

use crate::tasks::{Task, by_hand};
use crate::{HOUR, SECOND};

/// Runs `future` on this thread, outside any runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn hourly(clock: &ManualClock) -> Arc<Shaper> {
    Arc::new(Shaper::builder(Quota::per_hour(1)).clock(clock.clone()).build())
}

/// Spawns ten that wait, and returns when all are in line.
fn ten_in_line(runtime: &Runtime, shaper: &Arc<Shaper>) {
    for _ in 0..10 {
        runtime.spawn(Arc::clone(shaper).acquire_owned());
    }
    while shaper.waiting() < 10 {
        // A current-thread runtime runs its tasks only here.
        runtime.block_on(tokio::task::yield_now());
    }
}

#[test]
fn threads_wait_without_a_runtime() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..5)
            .map(|place| {
                let thread = scope.spawn(|| block_on(shaper.acquire()).map(|_| clock.now()));
                while shaper.waiting() <= place {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        for (thread, second) in threads.into_iter().zip(1..) {
            clock.advance(SECOND);
            assert_eq!(thread.join().unwrap().map(|now| now.get()), Ok(second * 1_000_000_000));
        }
    });
}

#[test]
fn building_and_trying_need_no_runtime() {
    let shaper = Shaper::new(Quota::per_hour(1));
    assert!(shaper.try_acquire().is_ok());
    assert!(matches!(shaper.try_acquire(), Err(Refused::TooSoon { .. })));
    let mut waiter = Task::in_line(shaper.acquire());
    assert_eq!(shaper.waiting(), 1);
    shaper.set_quota(Quota::UNLIMITED);
    assert!(waiter.leaves());
}

// base/infra PR 45.
#[test]
fn a_runtime_with_waiters_can_be_dropped() {
    let multi_thread = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for runtime in [current_thread(), multi_thread] {
        let shapers = [hourly(&ManualClock::new()), Arc::new(Shaper::new(Quota::per_hour(1)))];
        for shaper in &shapers {
            assert!(shaper.try_acquire().is_ok());
            ten_in_line(&runtime, shaper);
        }
        let start = Instant::now();
        runtime.shutdown_timeout(SECOND);
        assert!(start.elapsed() < SECOND);
        for shaper in shapers {
            assert_eq!((shaper.waiting(), Arc::strong_count(&shaper)), (0, 1));
        }
    }
}

// base/infra PR 45.
#[test]
fn another_runtime_goes_on_where_a_dead_one_left() {
    let clock = ManualClock::new();
    let shaper = hourly(&clock);
    let one = current_thread();
    assert!(one.block_on(shaper.acquire()).is_ok());
    ten_in_line(&one, &shaper);
    clock.set(HOUR / 2);
    drop(one);
    assert_eq!(shaper.waiting(), 0);
    let two = current_thread();
    let next = two.spawn(Arc::clone(&shaper).acquire_owned());
    while shaper.waiting() < 1 {
        two.block_on(tokio::task::yield_now());
    }
    clock.set(HOUR);
    assert!(two.block_on(next).unwrap().is_ok());
}

// base/infra PR 45, on tokio's own clocks. Those of two runtimes are not in step, so the time is not exact.
#[test]
fn another_runtime_goes_on_by_its_own_timer() {
    let paused = || Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let shaper = Arc::new(Shaper::new(Quota::per_hour(1)));
    let (one, two) = (paused(), paused());
    assert!(one.block_on(shaper.acquire()).is_ok());
    ten_in_line(&one, &shaper);
    drop(one);
    let waited = two.block_on(async {
        let start = tokio::time::Instant::now();
        assert!(shaper.acquire().await.is_ok());
        start.elapsed()
    });
    assert!(waited > HOUR - 60 * SECOND && waited <= HOUR + SECOND, "{waited:?}");
}

#[test]
fn a_wait_outlives_the_runtime_that_polled_it_first() {
    let paused = || Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let shaper = Shaper::new(Quota::per_hour(1));
    assert!(shaper.try_acquire().is_ok());
    let mut waits = [Box::pin(shaper.acquire()), Box::pin(shaper.acquire())];
    {
        let one = paused();
        let _in_runtime = one.enter();
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
    }
    let [first, mut second] = waits;
    let two = paused();
    // The first is never polled again, which costs the second an interval at most.
    let waited = two.block_on(async {
        let start = tokio::time::Instant::now();
        assert!(second.as_mut().await.is_ok());
        start.elapsed()
    });
    assert!(waited > 3 * HOUR - 60 * SECOND && waited <= 3 * HOUR, "{waited:?}");
    drop(first);
    assert_eq!(shaper.waiting(), 0);
}

#[test]
fn waiters_of_several_runtimes_and_of_none_stand_in_one_line() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    let (one, two) = (current_thread(), current_thread());
    let mut line: Vec<_> = (0..9).map(|_| Task::new(shaper.acquire())).collect();
    let mut poll = |of: usize| {
        let _in_runtime = [Some(&one), Some(&two), None][of % 3].map(Runtime::enter);
        line[of].poll()
    };
    for of in 0..9 {
        assert!(poll(of).is_pending());
    }
    for of in 0..9 {
        clock.advance(SECOND);
        assert!(matches!(poll(of), Poll::Ready(Ok(_))));
    }
}

#[test]
fn a_runtime_without_timers_is_no_reason_to_panic() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let shaper = Shaper::new(Quota::per_hour(1));
    let (first, second) = runtime.block_on(async {
        assert!(shaper.acquire().await.is_ok());
        let mut waiter = Task::new(shaper.acquire());
        let first = waiter.poll().is_pending();
        shaper.set_quota(Quota::UNLIMITED);
        (first, waiter.leaves())
    });
    assert!(first && second);
}

#[tokio::test(start_paused = true)]
async fn the_precise_timer_keeps_the_pace_by_its_own_clock() {
    let shaper = Arc::new(Shaper::builder(Quota::per_second(5_000)).timer(Timer::Precise).build());
    let (start, paused) = (shaper.now(), tokio::time::Instant::now());
    assert!(shaper.acquire().await.is_ok());
    let left = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (shaper, left) = (Arc::clone(&shaper), Arc::clone(&left));
            tokio::spawn(async move {
                let _permit = shaper.acquire().await.unwrap();
                left.lock().unwrap().push(shaper.now());
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let left = left.lock().unwrap();
    assert_eq!(left.len(), 50);
    for (&at, place) in left.iter().zip(1..) {
        assert!(at >= start.saturating_add(place * Duration::from_micros(200)), "{place} left at {at:?}");
    }
    assert_eq!(paused.elapsed(), Duration::ZERO);
}

#[test]
fn a_loop_over_free_permits_lets_the_other_tasks_run() {
    let shapers = [
        Shaper::new(Quota::UNLIMITED),
        Shaper::new(Quota::per_second(1).burst(1 << 40)),
        Shaper::builder(Quota::UNLIMITED).clock(ManualClock::new()).build(),
    ];
    for shaper in shapers {
        current_thread().block_on(async {
            let other = tokio::spawn(async {});
            for round in 0.. {
                assert!(shaper.acquire().await.is_ok());
                if other.is_finished() {
                    break;
                }
                assert!(round < 1000, "the other task does not get its turn");
            }
        });
    }
}

#[test]
fn a_task_that_yields_is_woken_and_gets_its_permit() {
    current_thread().block_on(async {
        let (_clock, shaper) = by_hand(Quota::per_hour(1).burst(1000));
        let mut yielding = loop {
            let mut wait = Task::new(shaper.acquire());
            if wait.poll().is_pending() {
                break wait;
            }
        };
        tokio::task::yield_now().await;
        assert_eq!(yielding.wakes(), 1);
        assert!(yielding.leaves());
    });
}

#[test]
fn a_permit_dropped_while_its_task_yields_is_given_back() {
    current_thread().block_on(async {
        let (_clock, shaper) = by_hand(Quota::per_hour(1).burst(1000));
        // The budget of this poll is spent by permits that are there.
        let mut taken = 0;
        let yielding = loop {
            let mut wait = Task::new(shaper.acquire());
            if wait.poll().is_pending() {
                break wait;
            }
            taken += 1;
        };
        assert!((1..1000).contains(&taken));
        assert_eq!(shaper.waiting(), 0);
        assert!(shaper.try_acquire_n(1000 - taken).is_err());
        drop(yielding);
        assert!(shaper.try_acquire_n(1000 - taken).is_ok());
        assert!(shaper.try_acquire().is_err());
    });
}

#[test]
fn a_permit_dropped_while_its_task_yields_counts_as_used_after_a_later_one() {
    current_thread().block_on(async {
        let (_clock, shaper) = by_hand(Quota::per_hour(1).burst(1000));
        let mut taken = 0;
        let mut yielding = loop {
            let mut wait = Task::new(shaper.acquire());
            if wait.poll().is_pending() {
                break wait;
            }
            taken += 1;
        };
        // However often it is polled before the budget is back, it takes one only.
        assert!(yielding.waits());
        let later = shaper.try_acquire().unwrap();
        drop(yielding);
        assert!(shaper.try_acquire_n(999 - taken).is_err());
        later.give_back();
        assert!(shaper.try_acquire_n(999 - taken).is_ok());
        assert!(shaper.try_acquire().is_err());
    });
}

#[tokio::test(start_paused = true)]
async fn an_absent_head_costs_an_interval_on_tokios_timer_too() {
    // udoprog/leaky-bucket#35.
    use crate::tasks::{Record, until_waiting};
    for forget in [false, true] {
        let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let mut absent = Some(Task::new(Arc::clone(&shaper).acquire_owned()));
        assert!(absent.as_mut().is_some_and(|absent| absent.poll().is_pending()));
        if forget {
            std::mem::forget(absent.take());
        }
        let (c, d) = (record.spawn(2, &shaper, 1), record.spawn(3, &shaper, 1));
        until_waiting(&shaper, 3).await;
        c.await.unwrap().unwrap();
        d.await.unwrap().unwrap();
        assert_eq!(record.lines(), [(2, 2995), (3, 3995)]);
        assert!(absent.is_none_or(|mut absent| matches!(absent.poll(), Poll::Ready(Ok(_)))));
        assert_eq!(shaper.estimated_wait(1), Some(Duration::from_secs(1)));
    }
}
