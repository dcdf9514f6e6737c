//! Changes of the quota under those who wait on a key, requests of several permits, and two keys in one task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tollgate::{AcquireKey, Gcra, Keyed, ManualClock, PerKey, Quota, Refused, SlidingLogLaw, WhenFull};

use crate::tasks::Task;
use crate::{MILLISECOND, NANOSECOND, SECOND, YEAR, quota};

// juju/ratelimit#4
#[test]
fn a_faster_quota_reaches_those_who_wait_with_what_has_accrued() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(quota(1, 100 * SECOND, 1)).clock(clock.clone()).build().unwrap();
    for key in 0..100 {
        table.try_acquire(&key).unwrap();
    }
    let mut line: Vec<_> = (0..100).map(|key| Task::in_line(table.acquire(&key))).collect();
    clock.set(10 * SECOND);
    table.set_quota(Quota::per_second(1)).unwrap();
    assert!(line.iter().all(|task| task.wakes() == 1));
    clock.set(10 * SECOND + 900 * MILLISECOND - NANOSECOND);
    assert!(line.iter_mut().all(Task::waits));
    clock.set(10 * SECOND + 900 * MILLISECOND);
    assert!(line.iter_mut().all(Task::leaves));
    assert_eq!(table.available(&0), 0);
    clock.advance(SECOND);
    assert_eq!(table.available(&0), 1);
}

// The same report, in reverse.
#[test]
fn a_slower_quota_reaches_those_who_wait() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(1)).clock(clock.clone()).build().unwrap();
    table.try_acquire(&1).unwrap();
    let mut first = Task::in_line(table.acquire(&1));
    let mut second = Task::in_line(table.acquire(&1));
    clock.set(SECOND / 2);
    table.set_quota(quota(1, 100 * SECOND, 1)).unwrap();
    clock.set(50 * SECOND + SECOND / 2 - NANOSECOND);
    assert!(first.waits());
    clock.set(50 * SECOND + SECOND / 2);
    assert!(second.waits());
    assert!(first.leaves());
    clock.advance(100 * SECOND);
    assert!(second.leaves());
}

#[test]
fn changes_in_a_row_leave_every_key_with_the_last() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(quota(1, YEAR, 2)).clock(clock.clone()).build().unwrap();
    table.try_acquire_n(&1, 2).unwrap();
    table.try_acquire_n(&2, 2).unwrap();
    let mut waits = Task::in_line(table.acquire(&1));
    for change in 0..100 {
        table.set_quota(quota(1, YEAR / (1 + change % 3), 2)).unwrap();
        assert_eq!((table.available(&2), table.waiting(&1)), (0, 1), "{change}");
    }
    table.set_quota(Quota::per_second(1).burst(2)).unwrap();
    clock.advance(SECOND);
    assert!(waits.leaves());
    clock.advance(SECOND);
    assert_eq!((table.available(&1), table.available(&2)), (1, 2));
}

#[test]
fn at_rate_0_who_waits_stays_until_that_changes() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(quota(0, SECOND, 1)).clock(clock.clone()).build().unwrap();
    assert!(Task::new(table.acquire(&1)).leaves());
    let mut waits = Task::in_line(table.acquire(&1));
    assert_eq!(Task::new(table.acquire_within(&1, YEAR)).refusal(), Refused::Never { asked: 1, remaining: 0 });
    clock.advance(YEAR);
    assert!(waits.waits());
    table.set_quota(Quota::per_second(1)).unwrap();
    clock.advance(SECOND - NANOSECOND);
    assert!(waits.waits());
    clock.advance(NANOSECOND);
    assert!(waits.leaves());
}

// tokio-rs/tokio#5183
#[test]
fn a_wait_of_centuries_is_a_wait() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(quota(1, 400 * YEAR, 1)).clock(clock.clone()).build().unwrap();
    table.try_acquire(&1).unwrap();
    let mut waits = Task::in_line(table.acquire(&1));
    drop(Task::in_line(table.acquire(&1)));
    clock.set(400 * YEAR - SECOND);
    assert!(waits.waits());
    clock.set(400 * YEAR + SECOND);
    assert!(waits.leaves());
    let mut waits = Task::in_line(table.acquire(&1));
    table.set_quota(Quota::per_second(1)).unwrap();
    clock.advance(SECOND);
    assert!(waits.leaves());
}

#[test]
fn a_wait_that_outlasts_the_field_of_the_table_leaves_what_a_try_would() {
    macro_rules! outlasts {
        ($table:expr, $quota:expr, $later:expr) => {
            let clock = ManualClock::new();
            let build = || $table($quota).clock(clock.clone()).build().unwrap();
            let (waited, tried) = (build(), build());
            let most = waited.available(&1);
            for table in [&waited, &tried] {
                table.try_acquire_n(&1, most).unwrap();
            }
            let mut waits = Task::in_line(waited.acquire_n(&1, most));
            clock.set($later);
            // The first grant after the end of the field is that of one who waited.
            assert!(waits.leaves());
            tried.try_acquire_n(&1, most).unwrap();
            for table in [&waited, &tried] {
                table.try_acquire_n(&2, most).unwrap();
            }
            for part in 0..8 {
                for key in [1, 2] {
                    assert_eq!(waited.snapshot(&key), tried.snapshot(&key), "{key} after {part} parts");
                }
                clock.advance($quota.period() / 3);
            }
        };
    }
    outlasts!(Keyed::<u64>::token_bucket, Quota::per_second(1).burst(2), 30 * YEAR);
    outlasts!(Keyed::<u64>::token_bucket, quota(7, SECOND, 7), 30 * YEAR);
    outlasts!(Keyed::<u64>::token_bucket, quota(100, SECOND * 21, 100), 300 * YEAR);
    outlasts!(Keyed::<u64>::fixed_window, quota(1 << 40, MILLISECOND, 1), 300 * SECOND);
    outlasts!(Keyed::<u64>::sliding_counter, quota(1 << 20, MILLISECOND, 1), 600 * SECOND);
    outlasts!(Keyed::<u64>::sliding_log, quota(5, SECOND, 1), 30 * YEAR);
}

#[test]
fn a_smaller_burst_ends_the_waits_of_those_who_ask_for_more() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(3)).clock(clock.clone()).build().unwrap();
    table.try_acquire_n(&1, 3).unwrap();
    let mut large = Task::in_line(table.acquire_n(&1, 3));
    let mut small = Task::in_line(table.acquire_n(&1, 2));
    table.set_quota(Quota::per_second(1).burst(2)).unwrap();
    assert_eq!(large.refusal(), Refused::ExceedsCapacity { asked: 3, capacity: 2 });
    let exceeds = Refused::ExceedsCapacity { asked: 3, capacity: 2 };
    assert_eq!((Task::new(table.acquire_n(&1, 3)).refusal(), table.try_acquire_n(&1, 3)), (exceeds, Err(exceeds)));
    clock.advance(2 * SECOND);
    assert!(small.leaves());
    table.set_quota(Quota::per_second(1).burst(5)).unwrap();
    let mut larger = Task::in_line(table.acquire_n(&1, 5));
    assert_eq!(Task::new(table.acquire_n(&1, 6)).refusal(), Refused::ExceedsCapacity { asked: 6, capacity: 5 });
    clock.advance(5 * SECOND);
    assert!(larger.leaves());
}

#[test]
fn the_most_that_can_be_asked_for_is_the_burst_whether_somebody_waits_or_not() {
    let table = Keyed::<u64>::token_bucket(Quota::per_second(10).burst(2)).clock(ManualClock::new()).build().unwrap();
    let exceeds = Refused::ExceedsCapacity { asked: 3, capacity: 2 };
    assert_eq!(table.try_acquire_n(&1, 3), Err(exceeds));
    table.try_acquire_n(&1, 2).unwrap();
    let _waits = Task::in_line(table.acquire_n(&1, 2));
    assert_eq!([table.try_acquire_n(&1, 3), table.peek(&1, 3)], [Err(exceeds); 2]);
    assert_eq!((Task::new(table.acquire_n(&1, 3)).refusal(), table.snapshot(&1).limit), (exceeds, 2));
}

#[test]
fn a_large_request_at_the_head_is_not_overtaken_and_never_in_debt() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(3)).clock(clock.clone()).build().unwrap();
    table.try_acquire_n(&1, 2).unwrap();
    let mut large = Task::in_line(table.acquire_n(&1, 3));
    let mut small = Task::in_line(table.acquire(&1));
    clock.set(2 * SECOND - NANOSECOND);
    assert!(small.waits() && table.try_acquire(&1).is_err());
    clock.set(2 * SECOND);
    assert!(large.leaves());
    assert_eq!(table.available(&1), 0);
    clock.set(3 * SECOND);
    assert!(small.leaves());
}

#[test]
fn one_task_waits_for_two_keys_at_once() {
    let clock = ManualClock::new();
    let table = Keyed::<str>::token_bucket(Quota::per_second(1).burst(1)).clock(clock.clone()).build().unwrap();
    for key in ["a", "b"] {
        table.try_acquire(key).unwrap();
    }
    let both = async {
        let (mut a, mut b) = (pin!(table.acquire("a")), pin!(table.acquire_n("b", 1)));
        let (mut has_a, mut has_b) = (false, false);
        poll_fn(move |cx| {
            has_a = has_a || a.as_mut().poll(cx) == Poll::Ready(Ok(()));
            has_b = has_b || b.as_mut().poll(cx) == Poll::Ready(Ok(()));
            if has_a && has_b { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    };
    let mut both = Task::in_line(both);
    clock.set(SECOND);
    assert!(both.wakes() > 0 && both.leaves());
}

#[test]
fn a_future_borrows_no_key_and_can_go_to_any_thread() {
    fn goes<T: Send + Sync>() {}
    goes::<AcquireKey<'_>>();
    goes::<AcquireKey<'_, SlidingLogLaw, ManualClock>>();
    goes::<AcquireKey<'_, PerKey<Gcra>>>();
    let table = Keyed::<String>::token_bucket(Quota::per_second(1)).clock(ManualClock::new()).build().unwrap();
    let acquire = {
        let key = "ann".to_owned();
        table.acquire(&key)
    };
    assert_eq!(format!("{acquire:?}"), "AcquireKey { permits: 1, .. }");
    assert!(Task::new(acquire).leaves());
}

#[test]
fn who_names_another_plan_for_a_key_changes_it_for_those_who_wait() {
    let clock = ManualClock::new();
    let plan = std::sync::Arc::new(std::sync::Mutex::new(Some(quota(1, 100 * SECOND, 1))));
    let named = std::sync::Arc::clone(&plan);
    let table = Keyed::<u64>::token_bucket(quota(1, 7 * SECOND, 1))
        .quota_for(move |key| named.lock().unwrap().filter(|_| *key == 1))
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(Task::new(table.acquire(&1)).leaves());
    let mut waits = Task::in_line(table.acquire(&1));
    clock.set(10 * SECOND);
    // The quota of the table is none of its business.
    table.set_quota(quota(1, SECOND / 2, 1)).unwrap();
    assert_eq!(waits.wakes(), 0);
    *plan.lock().unwrap() = Some(quota(1, SECOND, 1));
    // Whoever asks next names the new one.
    assert!(table.peek(&1, 1).is_err());
    assert_eq!(waits.wakes(), 1);
    clock.advance(900 * MILLISECOND - NANOSECOND);
    assert!(waits.waits());
    clock.advance(NANOSECOND);
    assert!(waits.leaves());
    // And from the table's own to one of its own and back, while somebody waits.
    *plan.lock().unwrap() = None;
    let mut waits = Task::in_line(table.acquire(&1));
    clock.advance(SECOND / 4);
    *plan.lock().unwrap() = Some(quota(1, 100 * SECOND, 1));
    let mut next = Task::in_line(table.acquire(&1));
    clock.advance(SECOND);
    assert!(waits.waits());
    *plan.lock().unwrap() = None;
    assert_eq!(table.waiting(&1), 2);
    clock.advance(SECOND / 2);
    assert!(waits.leaves());
    clock.advance(SECOND / 2);
    assert!(next.leaves());
    assert_eq!(table.available(&1), 0);
    clock.advance(SECOND / 2);
    assert_eq!(table.available(&1), 1);
}

#[test]
fn what_a_plan_admits_is_not_beyond_a_line_that_keys_without_a_place_share() {
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(2))
        .quota_for(|_| Some(Quota::per_second(1).burst(5)))
        .max_keys(0)
        .when_full(WhenFull::Share)
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let no_room = Refused::NoRoom { max_keys: 0, retry_after: None };
    let refusals = || [table.try_acquire_n(&1, 3).unwrap_err(), table.peek(&1, 3).unwrap_err()];
    assert_eq!(refusals(), [no_room; 2]);
    table.try_acquire_n(&1, 2).unwrap();
    let _waits = Task::in_line(table.acquire_n(&2, 2));
    assert_eq!(refusals(), [no_room; 2]);
    assert_eq!(Task::new(table.acquire_n(&1, 3)).refusal(), no_room);
    assert_eq!(table.try_acquire_n(&1, 6), Err(Refused::ExceedsCapacity { asked: 6, capacity: 5 }));
}

#[test]
fn a_time_limit_is_counted_from_the_first_poll() {
    let clock = ManualClock::new();
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(1)).clock(clock.clone()).build().unwrap();
    table.try_acquire(&1).unwrap();
    let mut waits = Task::new(table.acquire(&1).within(Duration::from_millis(500)));
    clock.set(SECOND / 2);
    assert!(waits.waits());
    // The place moves back; the answer comes at the deadline.
    table.set_quota(quota(1, YEAR, 1)).unwrap();
    clock.set(SECOND - NANOSECOND);
    assert!(waits.waits());
    clock.set(SECOND);
    assert!(waits.wakes() > 0);
    assert!(matches!(waits.refusal(), Refused::DeadlineTooSoon { wait } if wait > SECOND));
}

#[test]
fn a_clock_set_back_beyond_what_the_unit_of_a_quota_tells_stops_nobody() {
    // 128ths of a nanosecond, which tell of 52 days.
    let fine = |burst| quota(128, 1_001 * NANOSECOND, burst);
    for changed_beside in [false, true] {
        let clock = ManualClock::at(2 * YEAR);
        let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(1)).clock(clock.clone()).build().unwrap();
        table.try_acquire(&1).unwrap();
        clock.set(SECOND);
        table.set_quota(fine(1)).unwrap();
        let mut waits = Task::in_line(table.acquire(&1));
        if changed_beside {
            table.set_quota(fine(2)).unwrap();
            assert!(waits.waits());
        }
        drop(waits);
        assert_eq!((table.available(&1), table.len()), (0, 1));
        table.try_acquire(&2).unwrap();
        clock.set(3 * YEAR);
        table.try_acquire(&1).unwrap();
    }
}

#[test]
fn at_the_last_instant_of_a_clock_a_wait_with_a_limit_is_refused() {
    let (quota, clock) = (Quota::per_second(1).burst(1), ManualClock::at(u64::MAX));
    macro_rules! refuses {
        ($builder:expr) => {
            for (places, when_full) in [(2, WhenFull::Refuse), (0, WhenFull::Share)] {
                let table = $builder.max_keys(places).when_full(when_full).clock(clock.clone()).build().unwrap();
                table.try_acquire(&1).unwrap();
                for limit in [Duration::ZERO, SECOND, Duration::MAX] {
                    let refused = Task::new(table.acquire_within(&1, limit)).refusal();
                    assert!(matches!(refused, Refused::DeadlineTooSoon { .. }), "{refused:?}");
                }
                assert_eq!(table.waiting(&1), 0);
            }
        };
    }
    refuses!(Keyed::<u64>::token_bucket(quota));
    refuses!(Keyed::<u64>::fixed_window(quota));
    refuses!(Keyed::<u64>::sliding_log(quota));
    refuses!(Keyed::<u64>::token_bucket(quota).quota_for(move |_| quota));
}
