//! Threads that race get exactly what one caller would.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollgate::{ManualClock, TokenBucket};

use crate::{MILLISECOND, bucket, quota};

const THREADS: usize = 8;
const ROUNDS: u64 = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

/// Runs `work` in all threads at once; the sum of what they return.
fn sum_of_all(work: impl Fn() -> u64 + Sync) -> u64 {
    let start = Barrier::new(THREADS);
    let (start, work) = (&start, &work);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(move || {
                    start.wait();
                    work()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

fn granted(bucket: &TokenBucket<ManualClock>, tries: u64) -> u64 {
    (0..tries).map(|_| u64::from(bucket.try_acquire().is_ok())).sum()
}

// praxis-proxy/praxis#1116
#[test]
fn threads_that_race_for_a_burst_get_exactly_the_burst() {
    let bucket = bucket(1, MILLISECOND, 1_000);
    assert_eq!(sum_of_all(|| granted(&bucket, 10_000)), 1_000);
}

#[test]
fn threads_that_are_granted_all_the_time_get_exactly_the_burst() {
    // All but the last tries are grants, so that the threads meet at the exchange of the word again and again.
    let burst = 100 * ROUNDS;
    let bucket = bucket(1, MILLISECOND, burst);
    assert_eq!(sum_of_all(|| granted(&bucket, burst / 8 + 1)), burst);
    assert!(bucket.try_acquire().is_err());
}

// praxis-proxy/praxis#1116
#[test]
fn one_refilled_permit_goes_to_exactly_one_thread() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(quota(1, MILLISECOND, 1), clock.clone());
    assert_eq!(bucket.try_acquire(), Ok(()));
    let mut wrong = None;
    let (start, end, taken) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    // Relaxed: read only after the barrier.
                    taken.fetch_add(granted(&bucket, 1), Ordering::Relaxed);
                    end.wait();
                }
            });
        }
        for round in 1..=ROUNDS {
            clock.advance(MILLISECOND);
            start.wait();
            end.wait();
            // Relaxed: the barrier orders it after the additions.
            let taken = taken.load(Ordering::Relaxed);
            if taken != round {
                wrong.get_or_insert((round, taken));
            }
        }
    });
    assert_eq!(wrong, None, "the first round after which the sum is not its number");
}

#[test]
fn what_comes_in_while_threads_race_is_given_out_exactly_once() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(quota(1, MILLISECOND, ROUNDS), clock.clone());
    assert_eq!(bucket.try_acquire_n(ROUNDS), Ok(()));
    let advanced = AtomicU64::new(0);
    let during = sum_of_all(|| {
        let mut taken = 0;
        // Relaxed: a count of turns and nothing else.
        while advanced.fetch_add(1, Ordering::Relaxed) < ROUNDS {
            clock.advance(MILLISECOND);
            taken += granted(&bucket, 3);
        }
        taken
    });
    assert_eq!(during + granted(&bucket, ROUNDS + 1), ROUNDS);
}

#[test]
fn a_quota_set_again_while_threads_race_mints_and_loses_nothing() {
    let bucket = bucket(1, MILLISECOND, 1_000);
    let done = AtomicBool::new(false);
    let taken = thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: only ends the loop.
            while !done.load(Ordering::Relaxed) {
                bucket.set_quota(quota(1, MILLISECOND, 1_000));
                bucket.set_quota(quota(3, MILLISECOND, 1_000));
            }
        });
        let taken = sum_of_all(|| granted(&bucket, 5_000));
        // Relaxed: see above.
        done.store(true, Ordering::Relaxed);
        taken
    });
    assert_eq!(taken + bucket.available(), 1_000);
}
