//! Threads that wait: in one line with tasks, by the same rules, without a runtime.
//!
//! A thread is in line when [`Shaper::waiting`] says so; only then does a test move the clock. Where a thread is expected to leave, it
//! is joined: one that does not leave lets the test hang.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use tollgate::{ManualClock, Nanos, Quota, Refused, Shaper, Timer};

use crate::tasks::{Answer, Random, Task, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, MINUTE, NANOSECOND, SECOND, YEAR, quota};

type Waiter<'scope, 'env> = ScopedJoinHandle<'scope, Answer<'env>>;

/// A thread that has made `wait`, and stands in line.
fn in_line<'scope, 'env, W>(scope: &'scope Scope<'scope, 'env>, shaper: &'env Shaper, wait: W) -> Waiter<'scope, 'env>
where
    W: FnOnce(&'env Shaper) -> Answer<'env> + Send + 'scope,
{
    let before = shaper.waiting();
    let thread = scope.spawn(move || wait(shaper));
    until(|| shaper.waiting() > before || thread.is_finished());
    assert_eq!(shaper.waiting(), before + 1, "it did not line up");
    thread
}

/// Lets other threads run until `there`.
fn until(there: impl Fn() -> bool) {
    while !there() {
        thread::yield_now();
    }
}

fn granted(thread: Waiter<'_, '_>) -> bool {
    thread.join().unwrap().is_ok()
}

fn refusal(thread: Waiter<'_, '_>) -> Refused {
    thread.join().unwrap().expect_err("refused")
}

#[test]
fn a_free_permit_is_granted_at_once() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 8));
    assert!(shaper.acquire_blocking().is_ok());
    assert_eq!(shaper.acquire_blocking_n(3).unwrap().permits(), 3);
    assert!(shaper.acquire_blocking_within(Duration::ZERO).is_ok());
    assert_eq!(shaper.acquire_blocking_n_within(3, SECOND).unwrap().permits(), 3);
    assert!(shaper.try_acquire().is_err());
    assert_eq!(shaper.acquire_blocking_n(0).unwrap().permits(), 0);
}

#[test]
fn threads_and_tasks_leave_in_the_order_in_which_they_came() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    thread::scope(|scope| {
        let line: Vec<_> = (0..20)
            .map(|place| match place % 2 {
                0 => Ok(in_line(scope, &shaper, Shaper::acquire_blocking)),
                _ => Err(Task::in_line(shaper.acquire())),
            })
            .collect();
        for (place, waiter) in line.into_iter().enumerate() {
            clock.advance(SECOND);
            // One has left since, and this one it was.
            assert_eq!(shaper.waiting(), 19 - place);
            assert!(match waiter {
                Ok(thread) => granted(thread),
                Err(mut task) => task.leaves(),
            });
        }
    });
}

// mjpieters/aiolimiter#200.
#[test]
fn beyond_the_burst_threads_leave_in_order_one_an_interval() {
    let (clock, shaper) = by_hand(quota(10, MINUTE, 10));
    thread::scope(|scope| {
        for _ in 0..10 {
            assert!(shaper.acquire_blocking().is_ok());
        }
        let line: Vec<_> = (0..10).map(|_| in_line(scope, &shaper, Shaper::acquire_blocking)).collect();
        for thread in line {
            clock.advance(6 * SECOND - NANOSECOND);
            assert!(!thread.is_finished());
            clock.advance(NANOSECOND);
            assert!(granted(thread));
        }
        assert_eq!(clock.now(), Nanos::from_secs(60));
    });
}

#[test]
fn try_acquire_does_not_overtake_a_thread() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.try_acquire().is_ok());
    thread::scope(|scope| {
        let thread = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.advance(SECOND);
        assert!(shaper.try_acquire().is_err());
        assert!(granted(thread));
    });
}

// udoprog/leaky-bucket#35, first part.
#[test]
fn large_requests_of_three_threads_leave_when_they_are_paid_for() {
    let (clock, shaper) = by_hand(quota(100, SECOND, 100));
    assert!(shaper.acquire_blocking_n(80).is_ok());
    thread::scope(|scope| {
        let line: Vec<_> = (0..2).map(|_| in_line(scope, &shaper, |shaper| shaper.acquire_blocking_n(80))).collect();
        for (thread, at) in line.into_iter().zip([600, 1400]) {
            clock.set(Nanos::from_millis(at).saturating_sub(NANOSECOND));
            assert!(!thread.is_finished());
            clock.set(Nanos::from_millis(at));
            assert!(granted(thread));
        }
    });
}

// udoprog/leaky-bucket#35, second part.
#[test]
fn a_task_that_is_not_polled_costs_the_threads_behind_it_an_interval() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.acquire_blocking().is_ok());
    let mut absent = Task::in_line(shaper.acquire());
    thread::scope(|scope| {
        let (c, d) =
            (in_line(scope, &shaper, Shaper::acquire_blocking), in_line(scope, &shaper, Shaper::acquire_blocking));
        // Its alarm at 1 s, and its grant once c has looked at 2 s.
        clock.set(SECOND);
        clock.set(2 * SECOND);
        until(|| absent.wakes() == 2);
        clock.set(2995 * MILLISECOND);
        assert!(granted(c));
        clock.set(3995 * MILLISECOND);
        assert!(granted(d));
    });
    assert!(absent.leaves());
}

// thomhurst/Kevlar#15.
#[test]
fn tasks_that_give_up_between_threads_leave_no_hole() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let (mut threads, mut tasks) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            tasks.push(Task::in_line(shaper.acquire()));
            threads.push(in_line(scope, &shaper, Shaper::acquire_blocking));
        }
        clock.set(SECOND / 2);
        drop(tasks);
        assert_eq!(shaper.waiting(), 4);
        for thread in threads {
            clock.advance(SECOND / 2);
            assert!(granted(thread));
            clock.advance(SECOND / 2);
        }
    });
}

// thomhurst/Kevlar#15, with a thread that gives up at its deadline.
#[test]
fn a_thread_that_gives_up_leaves_no_debt() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1), |builder| builder.queue(1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let b = in_line(scope, &shaper, |shaper| shaper.acquire_blocking_within(SECOND));
        shaper.set_quota(Quota::per_hour(1));
        clock.set(SECOND);
        assert!(matches!(refusal(b), Refused::DeadlineTooSoon { .. }));
        shaper.set_quota(Quota::UNLIMITED);
        shaper.set_quota(Quota::per_second(1));
        // Nothing was there on leaving the unlimited, and b's place is free.
        let d = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(2 * SECOND);
        assert!(granted(d));
    });
}

#[test]
fn a_permit_given_back_wakes_the_thread_at_the_head() {
    let (_clock, shaper) = by_hand(Quota::per_second(1));
    let first = shaper.acquire_blocking().unwrap();
    let permit = thread::scope(|scope| {
        let mut permit = first;
        for _ in 0..3 {
            let thread = in_line(scope, &shaper, Shaper::acquire_blocking);
            permit.give_back();
            permit = thread.join().unwrap().unwrap();
        }
        permit
    });
    assert!(shaper.try_acquire().is_err());
    permit.give_back();
    assert!(shaper.try_acquire().is_ok());
}

#[test]
fn a_permit_that_a_task_did_not_collect_goes_to_the_thread_behind_it() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.acquire_blocking().is_ok());
    let task = Task::in_line(shaper.acquire());
    thread::scope(|scope| {
        let thread = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(SECOND);
        assert_eq!(shaper.waiting(), 1);
        drop(task);
        assert!(granted(thread));
    });
    assert_eq!(shaper.estimated_wait(1), Some(SECOND));
}

#[test]
fn a_refund_and_a_reset_wake_the_threads_that_move_up() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 3));
    assert!(shaper.acquire_blocking_n(3).is_ok());
    thread::scope(|scope| {
        let line: Vec<_> = (0..4).map(|_| in_line(scope, &shaper, Shaper::acquire_blocking)).collect();
        let mut line = line.into_iter();
        shaper.refund(1);
        assert!(granted(line.next().unwrap()));
        assert_eq!(shaper.waiting(), 3);
        shaper.reset();
        assert!(line.all(granted));
    });
}

// base/infra PR 45.
#[test]
fn closing_ends_the_waits_of_threads_and_tasks_at_once() {
    for quota in [Quota::per_hour(1), Quota::per_second(0).burst(1), Quota::every(Duration::MAX).unwrap()] {
        let (_clock, shaper) = by_hand(quota);
        assert!(shaper.acquire_blocking().is_ok());
        thread::scope(|scope| {
            let line: Vec<_> = (0..10).map(|_| in_line(scope, &shaper, Shaper::acquire_blocking)).collect();
            let mut task = Task::in_line(shaper.acquire());
            shaper.close();
            for thread in line {
                assert_eq!(refusal(thread), Refused::Closed);
            }
            assert_eq!(task.refusal(), Refused::Closed);
        });
        assert_eq!(shaper.waiting(), 0);
        assert_eq!(shaper.acquire_blocking().unwrap_err(), Refused::Closed);
        assert_eq!(shaper.acquire_blocking_n(0).unwrap_err(), Refused::Closed);
    }
}

// resilience4j/resilience4j#2194.
#[test]
fn a_limit_shorter_than_the_wait_is_refused_at_once() {
    let (clock, shaper) = by_hand(Quota::every(10 * SECOND).unwrap());
    assert!(shaper.acquire_blocking().is_ok());
    let wait = 10 * SECOND;
    let refused = |limit| shaper.acquire_blocking_within(limit).unwrap_err();
    assert_eq!(refused(SECOND), Refused::DeadlineTooSoon { wait });
    assert_eq!(refused(wait - NANOSECOND), Refused::DeadlineTooSoon { wait });
    assert_eq!(shaper.waiting(), 0);
    thread::scope(|scope| {
        let in_time = in_line(scope, &shaper, |shaper| shaper.acquire_blocking_within(15 * SECOND));
        // The next place is at 20 s, and exactly that is in time.
        let exactly = in_line(scope, &shaper, |shaper| shaper.acquire_blocking_within(20 * SECOND));
        clock.set(10 * SECOND);
        assert!(granted(in_time));
        clock.set(20 * SECOND);
        assert!(granted(exactly));
    });
}

#[test]
fn a_place_that_moves_back_is_answered_at_the_deadline() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let a = in_line(scope, &shaper, |shaper| shaper.acquire_blocking_n_within(1, 5 * SECOND / 2));
        let b = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(SECOND / 2);
        shaper.set_quota(Quota::every(100 * SECOND).unwrap());
        clock.set(5 * SECOND / 2 - NANOSECOND);
        assert_eq!(shaper.waiting(), 2);
        clock.set(5 * SECOND / 2);
        assert_eq!(refusal(a), Refused::DeadlineTooSoon { wait: 48 * SECOND });
        // It has left no trace: b has its place.
        clock.set(50_500 * MILLISECOND - NANOSECOND);
        assert_eq!(shaper.waiting(), 1);
        clock.set(50_500 * MILLISECOND);
        assert!(granted(b));
    });
}

// juju/ratelimit#4.
#[test]
fn a_faster_quota_reaches_a_thread_that_sleeps() {
    let (clock, shaper) = by_hand(quota(1, 100 * SECOND, 1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let a = in_line(scope, &shaper, Shaper::acquire_blocking);
        let b = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(10 * SECOND);
        shaper.set_quota(quota(1, SECOND, 1));
        clock.set(10_900 * MILLISECOND - NANOSECOND);
        assert_eq!(shaper.waiting(), 2);
        clock.set(10_900 * MILLISECOND);
        assert!(granted(a));
        clock.set(11_900 * MILLISECOND);
        assert!(granted(b));
    });
}

// juju/ratelimit#4, the other way round.
#[test]
fn a_slower_quota_reaches_a_thread_that_sleeps() {
    let (clock, shaper) = by_hand(quota(1, SECOND, 1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let a = in_line(scope, &shaper, Shaper::acquire_blocking);
        let b = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(SECOND / 2);
        shaper.set_quota(quota(1, 100 * SECOND, 1));
        for second in 1..=50 {
            clock.set(second * SECOND);
            assert_eq!(shaper.waiting(), 2);
        }
        clock.set(50_500 * MILLISECOND);
        assert!(granted(a));
        clock.set(150_500 * MILLISECOND - NANOSECOND);
        assert_eq!(shaper.waiting(), 1);
        clock.set(150_500 * MILLISECOND);
        assert!(granted(b));
    });
}

#[test]
fn at_rate_0_a_thread_waits_for_another_quota() {
    let (clock, shaper) = by_hand(Quota::per_second(0).burst(1));
    assert!(shaper.acquire_blocking().is_ok());
    assert_eq!(shaper.acquire_blocking_within(YEAR).unwrap_err(), Refused::Never { asked: 1, remaining: 0 });
    thread::scope(|scope| {
        let a = in_line(scope, &shaper, Shaper::acquire_blocking);
        let b = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.advance(100 * YEAR);
        assert_eq!(shaper.waiting(), 2);
        shaper.set_quota(Quota::per_second(1));
        clock.advance(SECOND);
        assert!(granted(a));
        shaper.set_quota(Quota::UNLIMITED);
        assert!(granted(b));
    });
}

#[test]
fn a_pause_holds_threads_and_its_end_lets_them_go_one_by_one() {
    let (clock, shaper) = by_hand(Quota::per_second(1));
    assert!(shaper.acquire_blocking().is_ok());
    thread::scope(|scope| {
        let mut line =
            (0..4).map(|_| in_line(scope, &shaper, Shaper::acquire_blocking)).collect::<Vec<_>>().into_iter();
        shaper.pause_for(10 * SECOND);
        let paused = shaper.acquire_blocking_within(SECOND).unwrap_err();
        assert_eq!(paused, Refused::Paused { asked: 1, retry_after: 15 * SECOND });
        clock.set(10 * SECOND);
        assert_eq!(shaper.waiting(), 4);
        clock.set(11 * SECOND);
        assert!(granted(line.next().unwrap()));
        clock.set(12 * SECOND);
        assert!(granted(line.next().unwrap()));
        shaper.pause_for(HOUR);
        clock.set(13 * SECOND);
        assert_eq!(shaper.waiting(), 2);
        // The interval had just begun when the pause did.
        shaper.resume();
        clock.set(14 * SECOND);
        assert!(granted(line.next().unwrap()));
        clock.set(15 * SECOND);
        assert!(granted(line.next().unwrap()));
    });
}

#[test]
fn a_full_line_and_a_request_too_large_are_refused_at_once() {
    let (clock, shaper) = by_hand_with(Quota::per_second(10), |builder| builder.queue(1));
    assert!(shaper.acquire_blocking_n(5).is_ok());
    assert_eq!(shaper.acquire_blocking_n(11).unwrap_err(), Refused::ExceedsCapacity { asked: 11, capacity: 10 });
    thread::scope(|scope| {
        let large = in_line(scope, &shaper, |shaper| shaper.acquire_blocking_n(10));
        let estimated_wait = Some(1500 * MILLISECOND);
        assert_eq!(shaper.acquire_blocking().unwrap_err(), Refused::QueueFull { waiting: 1, estimated_wait });
        // The largest n falls below that of the one who waits.
        shaper.set_quota(Quota::per_second(5));
        assert_eq!(refusal(large), Refused::ExceedsCapacity { asked: 10, capacity: 5 });
        let small = in_line(scope, &shaper, Shaper::acquire_blocking);
        clock.set(SECOND);
        assert!(granted(small));
    });
}

// udoprog/leaky-bucket#39.
#[test]
fn after_a_race_of_tries_threads_and_cancels_nothing_is_stuck() {
    for seed in 0..50 {
        let (clock, shaper) = by_hand(quota(1000, SECOND, 10));
        let (passed, running) = (AtomicU64::new(0), AtomicUsize::new(16));
        thread::scope(|scope| {
            for thread in 0..16 {
                let (shaper, passed, running) = (&shaper, &passed, &running);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 16 + thread);
                    for _ in 0..60 {
                        let n = 1 + random.below(3);
                        let answer = match random.below(5) {
                            0 => shaper.try_acquire_n(n),
                            1 => shaper.acquire_blocking_n_within(n, 20 * MILLISECOND),
                            2 => match Task::new(shaper.acquire_n(n)).poll() {
                                Poll::Ready(answer) => answer,
                                // It gives up.
                                Poll::Pending => continue,
                            },
                            _ => Ok(shaper.acquire_blocking_n(n).expect("granted")),
                        };
                        match answer {
                            Ok(permit) if random.once_in(8) => permit.give_back(),
                            Ok(_) => drop(passed.fetch_add(n, Ordering::Relaxed)),
                            Err(_) => {}
                        }
                    }
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            // Whoever waits does so for the clock alone, so all come to an end while it moves.
            while running.load(Ordering::Acquire) > 0 {
                clock.advance(MILLISECOND);
                thread::yield_now();
            }
        });
        // At most the burst and a permit a millisecond, and what is made up for.
        let most = 10 + clock.now().get() / 1_000_000 + 5;
        assert!(passed.into_inner() <= most, "seed {seed}");
        assert_eq!(shaper.waiting(), 0);
        clock.advance(SECOND);
        for _ in 0..10 {
            assert!(shaper.try_acquire().is_ok(), "seed {seed}");
        }
        assert!(shaper.try_acquire().is_err());
    }
}

/// What else runs on a thread, and may disturb its wait or be disturbed by it.
mod surroundings {
    use super::*;

    #[test]
    fn a_token_of_the_thread_is_neither_taken_nor_left() {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.acquire_blocking().is_ok());
        thread::scope(|scope| {
            let thread = in_line(scope, &shaper, |shaper| {
                thread::current().unpark();
                let answer = shaper.acquire_blocking();
                // It would take its full time, were the token gone.
                let start = Instant::now();
                thread::park_timeout(MINUTE);
                assert!(start.elapsed() < MINUTE);
                answer
            });
            clock.set(SECOND);
            assert!(granted(thread));
        });
    }

    #[test]
    fn threads_that_are_unparked_for_no_reason_wait_on() {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.acquire_blocking().is_ok());
        thread::scope(|scope| {
            let thread = in_line(scope, &shaper, Shaper::acquire_blocking);
            for millis in 1..1000 {
                thread.thread().unpark();
                clock.set(Nanos::from_millis(millis));
                assert_eq!(shaper.waiting(), 1);
            }
            clock.set(SECOND);
            assert!(granted(thread));
        });
    }

    /// Waits in its `wake`, if a thread of that name calls it.
    struct WaitsInside(Shaper);

    impl WaitsInside {
        const CALLER: &str = "waits twice";
    }

    impl Wake for WaitsInside {
        fn wake(self: Arc<Self>) {
            if thread::current().name() == Some(Self::CALLER) {
                assert!(self.0.acquire_blocking().is_ok());
            }
        }
    }

    #[test]
    fn a_wait_inside_a_wait_does_not_hear_what_is_meant_for_the_outer_one() {
        let (inner_clock, inner) = by_hand(Quota::per_second(1));
        let inside = Arc::new(WaitsInside(inner));
        assert!(inside.0.acquire_blocking().is_ok());
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.acquire_blocking().is_ok());
        let mut task = Task::new(shaper.acquire());
        assert!(task.poll_with(&Waker::from(Arc::clone(&inside))).is_pending());
        clock.set(SECOND);
        thread::scope(|scope| {
            let caller = thread::Builder::new().name(WaitsInside::CALLER.to_owned());
            // As it lines up it grants the task its permit, and so calls its waker.
            let outer = caller.spawn_scoped(scope, || shaper.acquire_blocking().map(drop)).unwrap();
            until(|| inside.0.waiting() == 1);
            shaper.close();
            inner_clock.set(SECOND);
            assert_eq!(outer.join().unwrap(), Err(Refused::Closed));
        });
        assert!(task.leaves());
    }

    struct PanicsOnWake;

    impl Wake for PanicsOnWake {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("woken"));
        }
    }

    #[test]
    fn a_waker_that_panics_in_the_thread_that_calls_it_costs_nobody_a_permit() {
        let (clock, shaper) = by_hand(Quota::per_second(10).burst(2));
        assert!(shaper.acquire_blocking_n(2).is_ok());
        let mut task = Task::new(shaper.acquire());
        assert!(task.poll_with(&Waker::from(Arc::new(PanicsOnWake))).is_pending());
        thread::scope(|scope| {
            let thread = in_line(scope, &shaper, Shaper::acquire_blocking);
            clock.set(SECOND);
            assert!(granted(thread));
        });
        assert!(task.leaves());
        assert!(shaper.try_acquire().is_err());
    }

    #[test]
    fn a_thread_that_panics_with_a_permit_in_hand_disturbs_nobody() {
        let (clock, shaper) = by_hand(Quota::per_second(1));
        assert!(shaper.acquire_blocking().is_ok());
        thread::scope(|scope| {
            let panics = in_line(scope, &shaper, |shaper| {
                let _permit = shaper.acquire_blocking();
                std::panic::resume_unwind(Box::new("at work"));
            });
            let behind = in_line(scope, &shaper, Shaper::acquire_blocking);
            clock.set(SECOND);
            assert!(panics.join().is_err());
            clock.set(2 * SECOND);
            assert!(granted(behind));
        });
    }

    #[test]
    fn a_thread_that_is_ending_can_still_wait() {
        /// Waits when its thread ends.
        struct AtTheEnd(Option<(Arc<Shaper>, mpsc::Sender<Answered>)>);
        type Answered = Result<u64, Refused>;
        impl Drop for AtTheEnd {
            fn drop(&mut self) {
                if let Some((shaper, answers)) = self.0.take() {
                    answers.send(shaper.acquire_blocking().map(|permit| permit.permits())).unwrap();
                }
            }
        }
        // Memory of a thread is freed in an order of its own, so one is there before the first wait and one after.
        thread_local!(static EARLY: RefCell<AtTheEnd> = const { RefCell::new(AtTheEnd(None)) });
        thread_local!(static LATE: RefCell<AtTheEnd> = const { RefCell::new(AtTheEnd(None)) });
        let clock = ManualClock::new();
        let shaper = Arc::new(Shaper::builder(Quota::per_second(1)).clock(clock.clone()).build());
        let (sender, answers) = mpsc::channel();
        let thread = thread::spawn({
            let shaper = Arc::clone(&shaper);
            move || {
                EARLY.set(AtTheEnd(Some((Arc::clone(&shaper), sender.clone()))));
                assert!(shaper.acquire_blocking().is_ok());
                assert!(shaper.acquire_blocking().is_ok());
                LATE.set(AtTheEnd(Some((shaper, sender))));
            }
        });
        for _ in 0..3 {
            until(|| shaper.waiting() == 1);
            clock.advance(SECOND);
        }
        thread.join().unwrap();
        assert_eq!(answers.iter().collect::<Vec<_>>(), [Ok(1), Ok(1)]);
    }
}

/// On the clocks that run by themselves: only what can't come too early, and ends.
mod on_its_own_clock {
    use super::*;

    const TIMERS: [Timer; 2] = [Timer::Runtime, Timer::Precise];

    #[test]
    fn threads_wait_without_a_runtime_and_none_is_early() {
        for timer in TIMERS {
            let shaper = Shaper::builder(Quota::per_second(1000)).catch_up(Duration::ZERO).timer(timer).build();
            let start = Instant::now();
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            assert!(shaper.acquire_blocking().is_ok());
                        }
                    });
                }
            });
            assert!(start.elapsed() >= 19 * MILLISECOND);
            assert_eq!(shaper.waiting(), 0);
        }
    }

    #[test]
    fn waits_of_centuries_end_when_the_quota_changes_or_the_shaper_is_closed() {
        for interval in [400 * YEAR, 580 * YEAR, 10_000 * YEAR, Duration::MAX] {
            for closed in [false, true] {
                let timer = TIMERS[usize::from(closed)].clone();
                let shaper = Shaper::builder(Quota::every(interval).unwrap()).timer(timer).build();
                assert!(shaper.acquire_blocking().is_ok());
                thread::scope(|scope| {
                    let line = [
                        in_line(scope, &shaper, Shaper::acquire_blocking),
                        in_line(scope, &shaper, |shaper| shaper.acquire_blocking_within(Duration::MAX)),
                    ];
                    match closed {
                        true => shaper.close(),
                        false => shaper.set_quota(Quota::UNLIMITED),
                    }
                    for thread in line {
                        assert_eq!(thread.join().unwrap().err(), closed.then_some(Refused::Closed));
                    }
                });
            }
        }
    }

    #[test]
    fn a_place_that_moves_back_is_answered_at_the_deadline() {
        let shaper = Shaper::new(Quota::every(20 * MILLISECOND).unwrap());
        assert!(shaper.acquire_blocking().is_ok());
        thread::scope(|scope| {
            // If it is granted, the quota came too late for it.
            let start = Instant::now();
            let thread = scope.spawn(|| shaper.acquire_blocking_within(30 * MILLISECOND));
            until(|| shaper.waiting() == 1 || thread.is_finished());
            shaper.set_quota(Quota::per_hour(1));
            if let Err(refused) = thread.join().unwrap() {
                assert!(matches!(refused, Refused::DeadlineTooSoon { .. }), "{refused}");
                assert!(start.elapsed() >= 30 * MILLISECOND);
            }
        });
        assert_eq!(shaper.waiting(), 0);
    }
}

#[cfg(feature = "tokio")]
mod in_tokio {
    use super::*;
    use tokio::runtime::{Builder, Runtime};

    fn paused() -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    fn running() -> [Runtime; 3] {
        [
            Builder::new_current_thread().enable_time().build().unwrap(),
            Builder::new_current_thread().build().unwrap(),
            Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap(),
        ]
    }

    #[test]
    fn an_advance_of_a_paused_clock_wakes_threads_and_tasks_in_order() {
        paused().block_on(async {
            let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
            assert!(shaper.try_acquire().is_ok());
            let mut line = Vec::new();
            for place in 0..20 {
                let shaper = Arc::clone(&shaper);
                line.push(match place % 2 {
                    0 => tokio::task::spawn_blocking({
                        let shaper = Arc::clone(&shaper);
                        move || shaper.acquire_blocking().map(drop)
                    }),
                    _ => tokio::spawn({
                        let acquire = Arc::clone(&shaper).acquire_owned();
                        async { acquire.await.map(drop) }
                    }),
                });
                while shaper.waiting() <= place {
                    tokio::task::yield_now().await;
                }
            }
            for (place, waiter) in line.into_iter().enumerate() {
                tokio::time::advance(SECOND - MILLISECOND).await;
                assert_eq!(shaper.waiting(), 20 - place);
                tokio::time::advance(MILLISECOND).await;
                assert_eq!(waiter.await.unwrap(), Ok(()));
                assert_eq!(shaper.waiting(), 19 - place);
            }
        });
    }

    #[test]
    fn a_paused_clock_answers_at_the_deadline() {
        paused().block_on(async {
            let shaper = Arc::new(Shaper::new(Quota::per_second(1)));
            assert!(shaper.try_acquire().is_ok());
            let waiter = tokio::task::spawn_blocking({
                let shaper = Arc::clone(&shaper);
                move || shaper.acquire_blocking_within(HOUR).map(drop)
            });
            while shaper.waiting() < 1 {
                tokio::task::yield_now().await;
            }
            shaper.set_quota(Quota::per_second(0).burst(1));
            tokio::time::advance(HOUR).await;
            assert_eq!(waiter.await.unwrap(), Err(Refused::Never { asked: 1, remaining: 0 }));
        });
    }

    #[test]
    fn a_runtime_whose_own_thread_waits_does_not_keep_it_waiting() {
        for runtime in running() {
            let shaper = Shaper::builder(Quota::per_second(1000)).catch_up(Duration::ZERO).build();
            let start = Instant::now();
            runtime.block_on(async {
                for _ in 0..5 {
                    assert!(shaper.acquire_blocking().is_ok());
                }
            });
            assert!(start.elapsed() >= 4 * MILLISECOND);
            // And a task's wait beside it.
            let shaper = Arc::new(shaper);
            runtime.block_on(async {
                let waits = tokio::spawn({
                    let shaper = Arc::clone(&shaper);
                    async move { shaper.acquire_blocking().map(drop) }
                });
                assert!(shaper.acquire().await.is_ok());
                assert_eq!(waits.await.unwrap(), Ok(()));
            });
        }
    }

    #[test]
    fn the_precise_timer_does_not_wait_for_a_paused_clock() {
        let shaper = Shaper::builder(Quota::per_second(1000)).timer(Timer::Precise).build();
        paused().block_on(async {
            for _ in 0..3 {
                assert!(shaper.acquire_blocking().is_ok());
            }
        });
    }

    // base/infra PR 45.
    #[test]
    fn a_runtime_whose_threads_wait_can_be_shut_down_and_the_shaper_closed_after_it() {
        for runtime in running() {
            let shaper = Arc::new(Shaper::new(Quota::per_hour(1)));
            assert!(shaper.try_acquire().is_ok());
            let (sender, answers) = mpsc::channel();
            for waiting in 1..=10 {
                let (shaper, sender) = (Arc::clone(&shaper), sender.clone());
                runtime.spawn_blocking({
                    let shaper = Arc::clone(&shaper);
                    move || sender.send(shaper.acquire_blocking().map(drop)).unwrap()
                });
                until(|| shaper.waiting() == waiting);
            }
            drop(sender);
            let start = Instant::now();
            runtime.shutdown_background();
            assert!(start.elapsed() < SECOND);
            // Without their runtime they wait on: on their own clock.
            assert_eq!(shaper.waiting(), 10);
            shaper.close();
            assert_eq!(answers.iter().collect::<Vec<_>>(), [Err(Refused::Closed); 10]);
        }
    }
}
