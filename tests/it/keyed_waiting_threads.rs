//! Threads that ask, wait and give up on the same keys, so that states move into queues and back under their hands: nothing is lost,
//! and nothing granted twice.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tollgate::{Keyed, ManualClock, Quota};

use crate::tasks::{Random, Task};
use crate::{SECOND, quota};

const KEYS: u64 = 3;

macro_rules! threads {
    ($($law:ident: $table:expr, $steps:expr;)*) => {$(
        mod $law {
            use super::*;

            // udoprog/leaky-bucket#39
            #[test]
            fn whoever_races_and_gives_up_leaves_exactly_what_was_not_taken() {
                const BURST: u64 = 400;
                let (one, other) = (quota(BURST, SECOND, BURST), quota(BURST, 2 * SECOND, BURST));
                let table = $table(one).clock(ManualClock::new()).build().unwrap();
                let (done, start) = (AtomicBool::new(false), Barrier::new(4));
                let taken: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
                let race = |seed| {
                    let mut random = Random::new(seed);
                    start.wait();
                    for _ in 0..2_000 {
                        let key = random.below(KEYS);
                        let granted = if random.once_in(3) {
                            table.try_acquire(&key).is_ok()
                        } else {
                            let mut wait = Task::new(table.acquire(&key));
                            (0..=random.below(3)).any(|_| wait.poll().is_ready())
                        };
                        taken[usize::try_from(key).unwrap()].fetch_add(granted.into(), Ordering::Relaxed);
                    }
                };
                std::thread::scope(|scope| {
                    let (race, done, start, table) = (&race, &done, &start, &table);
                    let racing: Vec<_> = (0..3).map(|seed| scope.spawn(move || race(seed))).collect();
                    scope.spawn(move || {
                        start.wait();
                        while !done.load(Ordering::Relaxed) {
                            table.set_quota(other).unwrap();
                            table.set_quota(one).unwrap();
                        }
                    });
                    let raced: Vec<_> = racing.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
                    done.store(true, Ordering::Relaxed);
                    assert!(raced.iter().all(Result::is_ok));
                });
                for key in 0..KEYS {
                    let taken = taken[usize::try_from(key).unwrap()].load(Ordering::Relaxed);
                    assert_eq!((taken + table.available(&key), table.waiting(&key)), (BURST, 0), "{key}");
                }
            }

            #[test]
            fn each_permit_that_comes_is_granted_once_and_at_once() {
                const STEP: Duration = SECOND;
                const PERMITS: u64 = 500;
                let clock = ManualClock::new();
                let table = $table(quota(1, STEP / $steps, 1)).clock(clock.clone()).build().unwrap();
                let (done, taken) = (AtomicBool::new(false), AtomicU64::new(0));
                table.try_acquire(&1).unwrap();
                std::thread::scope(|scope| {
                    for seed in 0..3 {
                        let (done, taken, table) = (&done, &taken, &table);
                        scope.spawn(move || {
                            let mut random = Random::new(seed);
                            while !done.load(Ordering::Relaxed) {
                                let mut wait = Task::new(table.acquire(&1));
                                // One in line that gives up is not granted, or its permit goes to others.
                                let patience = if random.once_in(2) { u64::MAX } else { random.below(3) };
                                let mut polls = 0;
                                while polls < patience && !done.load(Ordering::Relaxed) {
                                    polls += 1;
                                    if let Poll::Ready(granted) = wait.poll() {
                                        granted.unwrap();
                                        taken.fetch_add(1, Ordering::Relaxed);
                                        break;
                                    }
                                    std::thread::yield_now();
                                }
                            }
                        });
                    }
                    for permit in 1..=PERMITS {
                        clock.advance(STEP);
                        while taken.load(Ordering::Relaxed) < permit {
                            std::thread::yield_now();
                        }
                    }
                    done.store(true, Ordering::Relaxed);
                });
                assert_eq!(taken.load(Ordering::Relaxed), PERMITS);
                assert_eq!((table.waiting(&1), table.available(&1)), (0, 0));
                clock.advance(STEP);
                assert_eq!(table.available(&1), 1);
            }
        }
    )*};
}

threads! {
    token_bucket: Keyed::<u64>::token_bucket, 1;
    fixed_window: Keyed::<u64>::fixed_window, 1;
    sliding_counter: Keyed::<u64>::sliding_counter, 2;
    sliding_log: Keyed::<u64>::sliding_log, 1;
    bucket_with_plans: |quota| Keyed::<u64>::token_bucket(quota).quota_for(|_| None::<Quota>), 1;
}
