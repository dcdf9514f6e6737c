//! Waiting on a key: the same for every law that can be waited on, whether its keys are in a slot table or in a map.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use tollgate::{Keyed, ManualClock, Quota, Refused, WhenFull};

use crate::tasks::{Task, Wakes};
use crate::{HOUR, NANOSECOND, SECOND, YEAR, quota};

/// What every law promises to those who wait. `table` makes a table on a clock, with configuration, under a quota by which a permit
/// of each key leaves every `step`, the first at once.
macro_rules! laws {
    ($($law:ident: $build:expr, every $step:expr $(, $told:ident)?;)*) => {$(
        mod $law {
            use super::*;

            const STEP: Duration = $step;
            /// Whether a place behind others is told exactly.
            const TOLD: bool = [$(stringify!($told).len(),)? 0][0] == 0;

            /// Whether it is so many steps to a place, or less where a place may be told too early.
            fn is_place(wait: Duration, steps: u32) -> bool {
                // A step is rounded up to a nanosecond.
                let exact = STEP * steps - NANOSECOND * steps;
                wait <= STEP * steps && (wait > exact || !TOLD)
            }

            #[test]
            fn those_who_wait_on_a_key_leave_in_order_one_by_one() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(Task::new(table.acquire(&1)).leaves());
                let mut line: Vec<_> = (0..5).map(|_| Task::in_line(table.acquire(&1))).collect();
                assert_eq!(table.waiting(&1), 5);
                for step in 1..=5 {
                    clock.set(STEP * step - NANOSECOND);
                    // The last in line is asked first, and gets nothing by that.
                    assert!(line.iter_mut().rev().all(Task::waits), "{step}");
                    clock.set(STEP * step);
                    let mut first = line.remove(0);
                    assert!(line.iter_mut().rev().all(Task::waits), "{step}");
                    assert!(first.leaves(), "{step}");
                }
                assert_eq!(table.waiting(&1), 0);
            }

            #[test]
            fn keys_wait_for_themselves_alone() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                for key in 0..20 {
                    assert!(Task::new(table.acquire(&key)).leaves());
                }
                let mut line: Vec<_> = (0..20).map(|key| Task::in_line(table.acquire(&key))).collect();
                let _one_more = Task::in_line(table.acquire(&7));
                assert!(Task::new(table.acquire(&20)).leaves());
                assert!(table.try_acquire(&21).is_ok());
                assert_eq!([6, 7, 20, 22].map(|key| table.waiting(&key)), [1, 2, 0, 0]);
                clock.set(STEP);
                assert!(line.iter_mut().all(Task::leaves));
            }

            #[test]
            fn a_try_does_not_overtake() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let mut waits = Task::in_line(table.acquire(&1));
                let behind = table.try_acquire(&1);
                assert!(matches!(behind, Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after }) if is_place(retry_after, 2)));
                assert_eq!(table.peek(&1, 1), behind);
                let seen = table.snapshot(&1);
                assert_eq!((seen.limit, seen.remaining, seen.retry_after), (1, 0, behind.unwrap_err().retry_after()));
                clock.set(STEP);
                let after = table.try_acquire(&1);
                assert!(matches!(after, Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after }) if STEP - retry_after <= NANOSECOND));
                assert!(waits.leaves());
                assert_eq!(table.try_acquire(&1), after, "as ever");
            }

            #[test]
            fn what_has_waited_owes_what_it_would_without_a_wait() {
                let clock = ManualClock::new();
                let (table, other) = ($build.clock(clock.clone()).build().unwrap(), $build.clock(clock.clone()).build().unwrap());
                for step in 0..20 {
                    clock.set(STEP * step);
                    assert!(other.try_acquire(&1).is_ok());
                    let mut one = Task::new(table.acquire(&1));
                    assert!(one.leaves(), "{step}");
                    let mut next = Task::in_line(table.acquire(&1));
                    clock.set(STEP * step + STEP / 2);
                    assert!(next.waits());
                    drop(next);
                    assert_eq!(table.snapshot(&1), other.snapshot(&1), "{step}");
                    assert_eq!(table.peek(&1, 1), other.peek(&1, 1), "{step}");
                }
                assert_eq!(table.len(), 1);
                clock.advance(3 * STEP);
                assert_eq!((table.len(), table.snapshot(&1)), (0, other.snapshot(&1)));
            }

            #[test]
            fn a_queue_is_there_while_somebody_waits_and_no_longer() {
                let clock = ManualClock::new();
                let table = $build.max_keys(100).clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let (memory, wakes) = (table.memory(), Arc::new(Wakes::default()));
                for _ in 0..1_000 {
                    let mut waits = Task::new(table.acquire(&1));
                    assert!(waits.poll_with(&Waker::from(Arc::clone(&wakes))).is_pending());
                    assert!(table.memory() > memory);
                    assert_eq!(table.len(), 1);
                }
                let many: Vec<_> = (0..1_000).map(|_| Task::in_line(table.acquire(&1))).collect();
                assert_eq!(table.waiting(&1), 1_000);
                drop(many);
                assert_eq!((table.memory(), table.waiting(&1)), (memory, 0));
                assert_eq!(Arc::strong_count(&wakes), 1);
                let mut waits = Task::in_line(table.acquire(&1));
                clock.set(STEP);
                assert!(waits.leaves());
                assert_eq!(table.memory(), memory);
            }

            #[test]
            fn those_behind_one_who_gives_up_move_up() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let mut line: Vec<_> = (0..3).map(|_| Task::in_line(table.acquire(&1))).collect();
                clock.set(STEP / 2);
                drop(line.remove(0));
                assert!(line.iter_mut().all(Task::waits));
                clock.set(STEP);
                assert!(line.remove(0).leaves());
                assert!(line[0].waits());
                clock.set(2 * STEP);
                assert!(line[0].leaves());
            }

            #[test]
            fn a_permit_that_is_not_collected_goes_to_the_next() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let first = Task::in_line(table.acquire(&1));
                let mut second = Task::in_line(table.acquire(&1));
                clock.set(STEP);
                assert_eq!(table.waiting(&1), 1, "granted");
                drop(first);
                assert!(second.leaves());
                assert!(table.try_acquire(&1).is_err());
                // The last one in line, too.
                let last = Task::in_line(table.acquire(&1));
                clock.set(2 * STEP);
                assert_eq!(table.waiting(&1), 0, "granted");
                drop(last);
                assert!(table.try_acquire(&1).is_ok());
                assert!(table.try_acquire(&1).is_err());
            }

            #[test]
            fn what_was_waited_for_and_given_back_is_not_there_again_by_a_clock_that_is_behind() {
                let clock = ManualClock::at(STEP);
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let wait = Task::in_line(table.acquire(&1));
                clock.set(2 * STEP);
                assert_eq!(table.waiting(&1), 0, "granted");
                drop(wait);
                // One is there, and not one for each of the two instants.
                let behind = [STEP, STEP, 2 * STEP].map(|now| table.try_acquire_at(&1, now).is_ok());
                assert_eq!(behind.iter().filter(|granted| **granted).count(), 1, "{behind:?}");
            }

            #[test]
            fn a_permit_that_is_not_collected_counts_if_a_later_one_has_left() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let first = Task::in_line(table.acquire(&1));
                let mut second = Task::in_line(table.acquire(&1));
                clock.set(STEP);
                assert!(second.waits());
                clock.set(2 * STEP);
                assert!(second.leaves());
                drop(first);
                assert!(table.try_acquire(&1).is_err());
            }

            #[test]
            fn a_deadline_is_answered_on_arrival() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let memory = table.memory();
                let soon = Task::new(table.acquire_within(&1, STEP - NANOSECOND)).refusal();
                assert_eq!(soon, Refused::DeadlineTooSoon { wait: STEP });
                assert_eq!((table.waiting(&1), table.memory()), (0, memory));
                let mut in_time = Task::in_line(table.acquire_within(&1, STEP));
                if TOLD {
                    let second = Task::new(table.acquire_within(&1, STEP * 2 - NANOSECOND * 2)).refusal();
                    assert!(matches!(second, Refused::DeadlineTooSoon { wait } if is_place(wait, 2)));
                }
                assert_eq!(table.waiting(&1), 1);
                let mut late = Task::in_line(table.acquire_n_within(&1, 1, STEP * 2));
                clock.set(STEP);
                assert!(in_time.leaves());
                // The slot is in time, however late it is looked at.
                clock.set(STEP * 5 / 2);
                assert!(late.leaves());
            }

            #[test]
            fn permits_given_back_go_to_those_who_wait() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                for give_back in [|table: &_, key| Keyed::refund(table, key, 1), |table: &_, key| Keyed::reset(table, key)] {
                    assert!(Task::new(table.acquire(&1)).leaves());
                    let mut first = Task::in_line(table.acquire(&1));
                    let mut second = Task::in_line(table.acquire(&1));
                    give_back(&table, &1);
                    assert_eq!((first.wakes(), table.waiting(&1)), (1, 1));
                    assert!(second.waits());
                    assert!(first.leaves());
                    drop(second);
                    clock.advance(4 * STEP);
                }
            }

            #[test]
            fn a_waiter_that_nobody_polls_costs_those_behind_an_interval() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let _absent = Task::in_line(table.acquire(&1));
                let mut line: Vec<_> = (0..2).map(|_| Task::in_line(table.acquire(&1))).collect();
                let mut left = Vec::new();
                for half in 0..9 {
                    clock.set(STEP / 2 * half);
                    // As an executor does: who is woken is polled.
                    line.retain_mut(|task| {
                        let done = task.wakes() > 0 && task.leaves();
                        left.extend(done.then_some(half));
                        !done
                    });
                }
                assert!(left[0] <= 6 && left[1] <= 8, "{left:?}");
            }

            #[test]
            fn what_is_never_admitted_or_has_no_place_is_refused_at_once() {
                let clock = ManualClock::new();
                let table = $build.max_keys(0).clock(clock.clone()).build().unwrap();
                assert_eq!(Task::new(table.acquire_n(&1, 2)).refusal(), Refused::ExceedsCapacity { asked: 2, capacity: 1 });
                let no_room = Refused::NoRoom { max_keys: 0, retry_after: None };
                assert_eq!(Task::new(table.acquire(&1)).refusal(), no_room);
                assert_eq!(Task::new(table.acquire_within(&1, HOUR)).refusal(), no_room);
                assert!(Task::new(table.acquire_n(&1, 0)).leaves());
                assert_eq!(table.waiting(&1), 0);
            }

            #[test]
            fn keys_without_a_place_wait_in_one_line() {
                let clock = ManualClock::new();
                let table = $build.max_keys(0).when_full(WhenFull::Share).clock(clock.clone()).build().unwrap();
                let memory = table.memory();
                assert!(Task::new(table.acquire(&1)).leaves());
                let mut line: Vec<_> = (2..5).map(|key| Task::in_line(table.acquire(&key))).collect();
                let behind = table.try_acquire(&6);
                assert!(matches!(behind, Err(Refused::TooSoon { retry_after, .. }) if is_place(retry_after, 4)));
                assert_eq!(table.peek(&7, 1), behind);
                assert_eq!([1, 2, 6].map(|key| table.waiting(&key)), [3; 3]);
                for step in 1..4 {
                    clock.set(STEP * step);
                    assert!(line.remove(0).leaves(), "{step}");
                    assert!(line.iter_mut().all(Task::waits), "{step}");
                }
                assert!(table.try_acquire(&8).is_err());
                assert!(table.memory() <= memory + 2_500);
                assert_eq!(table.waiting(&1), 0);
            }

            #[test]
            fn a_key_keeps_its_place_while_somebody_waits_and_gives_it_up_at_rest() {
                let clock = ManualClock::new();
                let table = $build.max_keys(1).clock(clock.clone()).build().unwrap();
                let newcomers = |keys: std::ops::Range<u64>| keys.filter(|key| table.try_acquire(key).is_ok()).count();
                let admitted = 1 + newcomers(1..1_000);
                assert!(table.try_acquire(&0).is_err(), "a newcomer, or nothing left");
                let keys: Vec<_> = (0..1_000).filter(|key| table.available(key) == 0).collect();
                assert!(!keys.is_empty() && keys.len() <= admitted);
                let line: Vec<_> = keys.iter().map(|key| Task::in_line(table.acquire(key))).collect();
                clock.advance(STEP / 2);
                assert_eq!((newcomers(1_000..2_000), table.len()), (0, keys.len()));
                drop(line);
                clock.advance(STEP * 3);
                assert_eq!((newcomers(2_000..3_000), table.len()), (keys.len(), keys.len()));
            }

            #[test]
            fn no_more_wait_on_a_key_than_may() {
                let clock = ManualClock::new();
                let table = $build.queue(2).clock(clock.clone()).build().unwrap();
                assert!(table.try_acquire(&1).is_ok());
                let line: Vec<_> = (0..2).map(|_| Task::in_line(table.acquire(&1))).collect();
                let full = Task::new(table.acquire(&1)).refusal();
                assert!(matches!(full, Refused::QueueFull { waiting: 2, estimated_wait: Some(wait) } if is_place(wait, 3)));
                assert!(Task::new(table.acquire(&2)).leaves());
                drop(line);
                let _again = Task::in_line(table.acquire(&1));
            }

            #[test]
            fn a_waker_may_call_whatever_it_likes() {
                let clock = ManualClock::new();
                let table = Arc::new($build.clock(clock.clone()).build().unwrap());
                let calls = {
                    let table = Arc::clone(&table);
                    move || {
                        for key in [1, 2, 3] {
                            let _ = (table.try_acquire(&key), table.peek(&key, 1), table.snapshot(&key));
                            let _ = (table.len(), table.waiting(&key), table.memory());
                            table.refund(&key, 1);
                            let _ = Task::new(table.acquire(&key)).poll();
                            table.set_quota(table.quota()).unwrap();
                            table.reset(&key);
                        }
                    }
                };
                let waker = Waker::from(Arc::new(Calls(Mutex::new(calls), Wakes::default().into())));
                // Woken by a move of the clock, by one who gives up, by permits given back, and by another quota.
                for round in 0..4 {
                    let mut line = Vec::new();
                    for key in [1, 2] {
                        while table.try_acquire(&key).is_ok() {}
                        line.extend((0..3).map(|_| Task::new(table.acquire(&key))));
                    }
                    assert!(line.iter_mut().all(|task| task.poll_with(&waker).is_pending()));
                    match round {
                        0 => clock.advance(STEP * 2),
                        1 => drop(line.remove(0)),
                        2 => table.refund(&1, 1),
                        _ => table.set_quota(Quota::UNLIMITED).unwrap(),
                    }
                    drop(line);
                    clock.advance(STEP * 4);
                    assert_eq!([1, 2].map(|key| table.waiting(&key)), [0, 0]);
                }
            }

            #[test]
            fn unlimited_lets_all_go_and_whoever_waits_longer_than_any_clock_is_dropped_with_ease() {
                let clock = ManualClock::new();
                let table = $build.clock(clock.clone()).build().unwrap();
                let quota = table.quota();
                assert!(table.try_acquire(&1).is_ok());
                let mut line: Vec<_> = (0..10).map(|_| Task::in_line(table.acquire(&1))).collect();
                table.set_quota(Quota::UNLIMITED).unwrap();
                assert!(line.iter_mut().all(Task::leaves));
                table.set_quota(quota).unwrap();
                while table.try_acquire(&1).is_ok() {}
                drop(Task::in_line(table.acquire(&1)));
                clock.advance(1_000 * YEAR);
                assert!(Task::new(table.acquire(&2)).leaves());
                drop(Task::in_line(table.acquire(&2)));
            }
        }
    )*};
}

/// Calls something when it is woken, but not while it does so.
struct Calls<F>(Mutex<F>, Arc<Wakes>);

impl<F: FnMut() + Send + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        if let Ok(mut call) = self.0.try_lock() {
            call();
        }
        self.1.clone().wake();
    }
}

laws! {
    token_bucket: Keyed::<u64>::token_bucket(Quota::per_second(1)), every SECOND;
    leaky_bucket_of_thirds: Keyed::<u64>::leaky_bucket(quota(3, SECOND * 7, 1)), every Duration::from_nanos(2_333_333_334);
    fixed_window: Keyed::<u64>::fixed_window(quota(1, SECOND, 1)), every SECOND;
    sliding_counter: Keyed::<u64>::sliding_counter(quota(1, SECOND, 1)), every Duration::from_secs(2), early;
    sliding_log: Keyed::<u64>::sliding_log(quota(1, SECOND, 1)), every SECOND;
    bucket_with_plans: Keyed::<u64>::token_bucket(Quota::per_second(1)).quota_for(|_| None::<Quota>), every SECOND;
    window_with_plans: Keyed::<u64>::fixed_window(Quota::per_second(1)).quota_for(|_| None::<Quota>), every SECOND;
}

#[test]
fn who_shared_a_place_waits_for_what_is_left_though_there_is_room_by_then() {
    let (quota, clock) = (Quota::per_second(1).burst(1), ManualClock::new());
    macro_rules! waits {
        ($places:expr, $builder:expr) => {
            let table = $builder.max_keys(1).when_full(WhenFull::Share).clock(clock.clone()).build().unwrap();
            (0..$places).for_each(|key| table.try_acquire(&key).unwrap());
            clock.advance(SECOND / 2);
            table.try_acquire(&1_000).unwrap();
            assert!(table.try_acquire(&1_001).is_err(), "it was in a place of its own");
            clock.advance(SECOND / 2);
            // The places are free, and what was shared is not there before half a second is over.
            assert!(table.try_acquire(&1_000).is_err());
            let mut wait = Task::new(table.acquire(&1_000));
            assert!(wait.poll().is_pending());
            clock.advance(SECOND / 2);
            assert!(wait.poll().is_ready());
            clock.advance(10 * SECOND);
        };
    }
    // A table for one key has two pairs of lines.
    waits!(16, Keyed::<u64>::token_bucket(quota));
    waits!(1, Keyed::<u64>::sliding_log(quota));
    waits!(1, Keyed::<u64>::token_bucket(quota).quota_for(move |_| quota));
}

#[test]
fn newcomers_wait_in_places_of_their_own_though_others_wait_for_what_is_shared() {
    let (quota, clock) = (Quota::per_second(1).burst(1), ManualClock::new());
    macro_rules! waits {
        ($places:expr, $builder:expr) => {
            let table = $builder.max_keys($places).when_full(WhenFull::Share).clock(clock.clone()).build().unwrap();
            let taken = (0..1_000).filter(|key| table.try_acquire(key).is_ok()).count();
            let mut line = [1_000, 1_001].map(|key| Task::in_line(table.acquire(&key)));
            assert_eq!((table.waiting(&1_000), table.waiting(&1_002)), (2, 2));
            clock.advance(SECOND);
            assert!(line[0].poll().is_ready());
            assert_eq!((table.len(), table.waiting(&1_001), table.waiting(&1_002)), (0, 0, 0));
            // The places are free. What is shared has just been taken, so those who may have taken it wait for a second.
            let mut newcomers = [2_000, 2_001, 2_002].map(|key| {
                let refused = Refused::TooSoon { asked: 1, remaining: 0, retry_after: SECOND };
                assert_eq!((table.peek(&key, 1), table.try_acquire(&key)), (Err(refused), Err(refused)));
                Task::in_line(table.acquire(&key))
            });
            assert_eq!((table.len(), table.waiting(&2_000)), (3, 1));
            clock.advance(SECOND);
            assert!(newcomers.iter_mut().chain(&mut line[1..]).all(|wait| wait.poll().is_ready()), "of {taken}");
            clock.advance(10 * SECOND);
        };
    }
    waits!(3, Keyed::<u64>::token_bucket(quota));
    waits!(3, Keyed::<u64>::fixed_window(quota));
    waits!(3, Keyed::<u64>::sliding_log(quota));
    waits!(3, Keyed::<u64>::token_bucket(quota).quota_for(move |_| quota));
}

#[test]
fn who_would_share_sees_nothing_left_while_others_wait_for_it() {
    let (quota, clock) = (Quota::per_second(2), ManualClock::new());
    macro_rules! sees {
        ($builder:expr) => {
            let table = $builder.max_keys(0).when_full(WhenFull::Share).clock(clock.clone()).build().unwrap();
            table.try_acquire(&1).unwrap();
            let _waits = Task::in_line(table.acquire_n(&2, 2));
            let refused = table.try_acquire(&3).unwrap_err();
            let seen = table.snapshot(&3);
            assert_eq!((seen.remaining, seen.retry_after), (0, refused.retry_after()));
            assert_eq!(table.peek(&3, 1), Err(refused));
            clock.advance(10 * SECOND);
        };
    }
    sees!(Keyed::<u64>::token_bucket(quota));
    sees!(Keyed::<u64>::fixed_window(quota));
    sees!(Keyed::<u64>::sliding_log(quota));
    sees!(Keyed::<u64>::token_bucket(quota).quota_for(move |_| None::<Quota>));
}
