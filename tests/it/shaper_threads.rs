//! Many threads at one shaper, on a clock that the test steps.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tollgate::{Quota, Refused};

use crate::tasks::{Random, by_hand, by_hand_with};
use crate::{MILLISECOND, SECOND, quota};

const THREADS: usize = 8;

// praxis-proxy/praxis#1116, first part.
#[test]
fn on_a_clock_that_stands_exactly_the_burst_passes() {
    let (_clock, shaper) = by_hand(quota(1, SECOND, 1000));
    let (passed, start) = (AtomicU64::new(0), Barrier::new(THREADS));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..10_000 {
                    passed.fetch_add(u64::from(shaper.try_acquire().is_ok()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 1000);
}

// praxis-proxy/praxis#1116, second part.
#[test]
fn of_eight_who_try_at_once_exactly_one_passes_per_interval() {
    const ROUNDS: usize = 10_000;
    let (clock, shaper) = by_hand(quota(1000, SECOND, 1000));
    assert!(shaper.try_acquire_n(1000).is_ok());
    // Nobody waits for a lock here: each thread spins until the clock has come to its round.
    let (round, done, passed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for mine in 1..=ROUNDS {
                    while round.load(Ordering::Acquire) < mine {
                        std::thread::yield_now();
                    }
                    passed.fetch_add(usize::from(shaper.try_acquire().is_ok()), Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Release);
                }
            });
        }
        for next in 1..=ROUNDS {
            clock.advance(MILLISECOND);
            round.store(next, Ordering::Release);
            while done.load(Ordering::Acquire) < next * THREADS {
                std::thread::yield_now();
            }
            let passed = passed.load(Ordering::Relaxed);
            if passed != next {
                // The others wait for rounds that would not come.
                round.store(ROUNDS, Ordering::Release);
                panic!("{passed} passed in {next} rounds");
            }
        }
    });
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` until it is done, or `polls` times.
fn poll_up_to<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    for poll in 1.. {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return Some(output),
            Poll::Pending if poll >= polls => break,
            Poll::Pending => std::thread::park(),
        }
    }
    None
}

// udoprog/leaky-bucket#39.
#[test]
fn after_a_race_of_tries_waits_and_cancels_nothing_is_stuck() {
    for seed in 0..100 {
        let (clock, shaper) = by_hand(quota(1000, SECOND, 10));
        let (passed, running) = (AtomicU64::new(0), AtomicUsize::new(16));
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (shaper, passed, running) = (&shaper, &passed, &running);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 16 + thread);
                    for _ in 0..60 {
                        let n = 1 + random.below(3);
                        let granted = match random.below(4) {
                            0 => shaper.try_acquire_n(n).is_ok(),
                            // One that gives up after one or two polls.
                            1 => poll_up_to(shaper.acquire_n(n), 1 + random.below(2)).is_some(),
                            2 => poll_up_to(shaper.acquire_n_within(n, 20 * MILLISECOND), u64::MAX)
                                .is_some_and(|answer| answer.is_ok()),
                            _ => poll_up_to(shaper.acquire_n(n), u64::MAX).is_some_and(|answer| answer.is_ok()),
                        };
                        if granted {
                            passed.fetch_add(n, Ordering::Relaxed);
                        }
                    }
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            // Whoever waits does so for the clock alone, so all come to an end while it moves.
            while running.load(Ordering::Acquire) > 0 {
                clock.advance(MILLISECOND);
                std::thread::yield_now();
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

#[test]
fn threads_that_wait_pass_at_the_pace_and_all_of_them() {
    let (clock, shaper) = by_hand(Quota::per_second(1000));
    let (passed, running) = (AtomicU64::new(0), AtomicUsize::new(THREADS));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..250 {
                    assert!(poll_up_to(shaper.acquire(), u64::MAX).is_some_and(|answer| answer.is_ok()));
                    let passed = 1 + passed.fetch_add(1, Ordering::Relaxed);
                    // The clock may have moved on since, never back.
                    assert!(passed <= 1 + 5 + clock.now().get() / 1_000_000);
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            clock.advance(MILLISECOND);
            std::thread::yield_now();
        }
    });
    assert_eq!((passed.into_inner(), shaper.waiting()), (2000, 0));
}

#[test]
fn quotas_set_in_a_race_end_with_the_last_one() {
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.max_n(3));
    let running = AtomicUsize::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (shaper, running) = (&shaper, &running);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..200 {
                    let answer = poll_up_to(shaper.acquire_n(1 + random.below(3)), u64::MAX);
                    assert!(answer.is_some_and(|answer| answer.is_ok()));
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        let mut random = Random::new(99);
        while running.load(Ordering::Acquire) > 0 {
            clock.advance(MILLISECOND);
            shaper.set_quota(Quota::per_second(random.pick(&[100, 1000, 3000])).burst(random.pick(&[1, 5])));
            std::thread::yield_now();
        }
    });
    shaper.set_quota(quota(1000, SECOND, 4));
    clock.advance(SECOND);
    assert_eq!(shaper.quota(), quota(1000, SECOND, 4));
    assert_eq!(std::iter::repeat_with(|| shaper.try_acquire()).take_while(Result::is_ok).count(), 4);
}

#[test]
fn closed_in_a_race_all_come_to_an_end() {
    for _ in 0..50 {
        let (clock, shaper) = by_hand(Quota::per_second(1000));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            if let Some(Err(refused)) = poll_up_to(shaper.acquire(), u64::MAX) {
                                return refused;
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..20 {
                clock.advance(MILLISECOND);
                std::thread::yield_now();
            }
            shaper.close();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Refused::Closed);
            }
        });
        assert_eq!(shaper.waiting(), 0);
    }
}
