//! Threads that race for a key, for a place or for a quota get exactly what one caller would.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollgate::{Quota, Refused};

use super::tables::{Hash, LAWS, PLACES, Setup, Shape, Table, all_laws};
use crate::{HOUR, MILLISECOND, SECOND, quota};

const THREADS: u64 = 8;
const ROUNDS: u64 = if cfg!(debug_assertions) { 300 } else { 3_000 };
const MS: u64 = 1_000_000;

/// Runs `work` in all threads at once, told which it is; the sum of what they return.
fn sum_of_all(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    let (start, work) = (&start, &work);
    thread::scope(|scope| {
        let spawned = (0..THREADS).map(|thread| {
            scope.spawn(move || {
                start.wait();
                work(thread)
            })
        });
        let threads: Vec<_> = spawned.collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

/// Many rounds of the same, in threads that meet before each and after it.
fn rounds(work: impl Fn(u64, u64) -> u64 + Sync, mut check: impl FnMut(u64, u64)) {
    let (start, end) = (&Barrier::new(9), &Barrier::new(9));
    let (work, sum) = (&work, &AtomicU64::new(0));
    let mut sums = Vec::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    start.wait();
                    // Relaxed: read only after the barrier.
                    sum.fetch_add(work(thread, round), Ordering::Relaxed);
                    end.wait();
                }
            });
        }
        for _ in 0..ROUNDS {
            start.wait();
            end.wait();
            sums.push(sum.swap(0, Ordering::Relaxed));
        }
    });
    (0..ROUNDS).zip(sums).for_each(|(round, sum)| check(round, sum));
}

/// Runs `beside` again and again while `work` is done.
fn beside<T>(beside: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    /// Ends the loop, even if the work has panicked.
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            // Relaxed: only ends the loop.
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: see above.
            while !done.load(Ordering::Relaxed) {
                beside();
            }
        });
        let _done = Done(&done);
        work()
    })
}

fn granted(table: &dyn Table, key: u64, tries: u64, now: u64) -> u64 {
    (0..tries).map(|_| u64::from(table.takes_at(key, now))).sum()
}

// praxis-proxy/praxis#1116: first sight of a key is a race of its own.
#[test]
fn threads_that_see_a_key_first_at_the_same_instant_share_one_budget() {
    for law in all_laws() {
        let setup = Setup::new(quota(5, HOUR, 5)).max_keys(usize::try_from(ROUNDS).unwrap() * 2);
        for hash in [Hash::Spread, Hash::Identity] {
            let table = law.table(setup.hash(hash));
            rounds(
                |_, round| granted(&*table, round, 2, 0),
                |round, sum| assert_eq!(sum, 5, "{law:?} in round {round}"),
            );
            assert_eq!(table.len_at(0) as u64, ROUNDS, "{law:?}");
        }
    }
}

// praxis-proxy/praxis#1116
#[test]
fn threads_that_race_for_the_burst_of_a_key_get_exactly_the_burst() {
    for law in all_laws() {
        let table = law.table(Setup::new(quota(1_000, HOUR, 1_000)));
        assert_eq!(sum_of_all(|_| granted(&*table, 7, 10_000, 0)), 1_000, "{law:?}");
    }
}

#[test]
fn threads_that_are_granted_all_the_time_get_exactly_the_burst_of_a_key() {
    for law in LAWS {
        // All but the last tries are grants, so that the threads meet at the exchange of the word again and again.
        let burst = 300 * ROUNDS;
        let table = law.table(Setup::new(quota(burst, HOUR, burst)));
        assert_eq!(sum_of_all(|_| granted(&*table, 7, burst / THREADS + 1, 0)), burst, "{law:?}");
    }
}

// praxis-proxy/praxis#1116
#[test]
fn one_permit_that_comes_back_to_a_key_goes_to_exactly_one_thread() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(1, MILLISECOND, 1)));
        // Two windows on nothing counts.
        let step = law.all_back(MS);
        rounds(
            |_, round| granted(&*table, 7, 1, round * step),
            |round, sum| assert_eq!(sum, 1, "{law:?} in round {round}"),
        );
    }
}

#[test]
fn as_many_newcomers_as_there_are_places_find_one() {
    for law in all_laws() {
        // After an hour or two all is at rest again.
        let table = law.small(Setup::new(quota(1, HOUR, 1)));
        let step = 3 * 3_600_000 * MS;
        rounds(
            |thread, round| (0..3).map(|key| granted(&*table, 100 * round + 10 * key + thread, 1, round * step)).sum(),
            |round, sum| assert_eq!(sum, PLACES as u64, "{law:?} in round {round}"),
        );
    }
}

#[test]
fn threads_whose_times_differ_get_no_more_of_a_key_than_the_law_for_the_whole_span() {
    for law in LAWS {
        // So few places that all keys lose theirs whenever they are at rest.
        let table = law.small(Setup::new(quota(4, 4 * MILLISECOND, 4)));
        let span = ROUNDS / 4;
        // Each goes on by steps of its own, and back by some of them.
        let time = |thread: u64, step: u64| (step * 5 + thread * 7 + (step % 3) * 11) % (span * 4) * MS / 4;
        for key in [1, 2] {
            let steps = AtomicU64::new(0);
            let flood = || {
                // Relaxed: a count.
                let step = steps.fetch_add(1, Ordering::Relaxed);
                table.takes_at(100 + step % 30, time(9, step));
            };
            let of_thread = |thread| (0..ROUNDS).map(|step| granted(&*table, key, 2, time(thread, step))).sum();
            let sum = beside(flood, || sum_of_all(of_thread));
            let most = match law.shape {
                Shape::Bucket | Shape::Queue => 4 + span,
                Shape::Fixed | Shape::Counter | Shape::Log => 4 * span.div_ceil(4),
            };
            assert!(sum <= most, "{law:?}: {sum}");
        }
        // Once all is at rest, everything is there again.
        let later = (span + 100) * MS;
        assert_eq!(granted(&*table, 1, 10, later), 4, "{law:?}");
    }
}

#[test]
fn a_quota_set_while_threads_race_mints_and_loses_nothing_of_a_busy_key() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(1_000, HOUR, 1_000)));
        // What is at rest has the new burst at once, so the key is busy before.
        assert!(table.takes_at(7, 0));
        let change = || {
            table.set_quota_at(quota(1_000, 3 * HOUR, 1_000), 0);
            table.set_quota_at(quota(1_000, HOUR, 1_000), 0);
        };
        let taken = beside(change, || sum_of_all(|_| granted(&*table, 7, 5 * ROUNDS, 0)));
        assert_eq!(1 + taken + table.available_at(7, 0), 1_000, "{law:?}");
    }
}

#[test]
fn a_quota_set_while_threads_see_keys_first_leaves_each_one_budget() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(5, HOUR, 5)).max_keys(usize::try_from(ROUNDS).unwrap() * 2));
        let change = || {
            table.set_quota_at(quota(5, 3 * HOUR, 5), 0);
            table.set_quota_at(quota(5, HOUR, 5), 0);
        };
        beside(change, || {
            rounds(
                |_, round| granted(&*table, round, 2, 0),
                |round, sum| assert_eq!(sum, 5, "{law:?} in round {round}"),
            );
        });
    }
}

#[test]
fn what_threads_give_back_is_there_exactly_once() {
    for law in LAWS {
        let table = law.small(Setup::new(quota(1_000, HOUR, 1_000)));
        table.try_n_at(7, 500, 0).unwrap();
        // Others want the place all the time, and the key is never at rest.
        let flood = || (100..120).for_each(|key| _ = table.takes_at(key, 0));
        let kept = beside(flood, || {
            sum_of_all(|_| {
                let mut kept = 0;
                for step in 0..ROUNDS * 3 {
                    if table.try_n_at(7, 3, 0).is_ok() {
                        let back = if step % 8 == 0 { 2 } else { 3 };
                        table.refund_at(7, back, 0);
                        kept += 3 - back;
                    }
                }
                kept
            })
        });
        assert_eq!(kept + 500 + table.available_at(7, 0), 1_000, "{law:?}");
    }
}

// udoprog/leaky-bucket#39
#[test]
fn after_threads_have_raced_a_key_has_all_that_it_should() {
    for law in LAWS {
        let table = law.small(Setup::new(quota(10, 10 * MILLISECOND, 10)));
        for round in 1..20 {
            let began = round * 1_000 * MS;
            sum_of_all(|thread| {
                (0..ROUNDS).fold(0, |sum, step| {
                    let now = began + (step * MS / 50).saturating_sub(thread * MS);
                    match step % 5 {
                        4 => table.refund_at(7, 1, now),
                        _ if thread == 3 => _ = table.takes_at(step, now),
                        _ => return sum + granted(&*table, 7, 1, now),
                    }
                    sum
                })
            });
            let idle = began + 900 * MS;
            assert_eq!(granted(&*table, 7, 20, idle), 10, "{law:?} in round {round}");
        }
    }
}

// arkavo-org/arkavo-edge PR 599
#[test]
fn nothing_hangs_under_churn_with_walks_and_changes_beside_it() {
    for law in all_laws() {
        // So that keys share one stripe as well.
        for hash in [Hash::Spread, Hash::High, Hash::Bits(6), Hash::Constant] {
            let table = law.table(Setup::new(quota(3, MILLISECOND, 3)).max_keys(500).hash(hash));
            let calls = AtomicU64::new(0);
            let walk = || {
                let now = calls.load(Ordering::Relaxed) * MS / 1_000;
                assert!(table.len_at(now) <= 2_000);
                table.set_quota_at(quota(3, MILLISECOND, 3), now);
            };
            beside(walk, || {
                sum_of_all(|thread| {
                    for step in 0..ROUNDS * 10 {
                        // Relaxed: a time, roughly.
                        let now = calls.fetch_add(1, Ordering::Relaxed) * MS / 1_000;
                        let key = (step * 7 + thread * 1_250) % 10_000;
                        let answer = table.try_n_at(key, 1 + step % 3, now);
                        assert!(matches!(answer, Ok(()) | Err(Refused::TooSoon { .. } | Refused::NoRoom { .. })));
                        if step % 16 == 0 {
                            table.reset_at(key, now);
                        }
                    }
                    0
                });
            });
            let later = (calls.into_inner() + 1_000_000) * MS;
            assert_eq!(table.len_at(later), 0, "{law:?} by {hash:?}");
        }
    }
}

#[test]
fn entering_and_leaving_no_limit_while_threads_race_hangs_nobody_and_ends_in_the_last_quota() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(5, HOUR, 5)).max_keys(100));
        let change = || {
            table.set_quota_at(Quota::UNLIMITED, 0);
            table.set_quota_at(quota(5, HOUR, 5), 0);
        };
        beside(change, || sum_of_all(|thread| (0..ROUNDS).map(|step| granted(&*table, step % 50, thread, 0)).sum()));
        table.set_quota_at(Quota::UNLIMITED, 0);
        assert_eq!(table.len_at(0), 0, "{law:?}");
        table.set_quota_at(quota(5, SECOND, 5), 0);
        assert_eq!(granted(&*table, 7, 10, 0), 5, "{law:?}");
    }
}
