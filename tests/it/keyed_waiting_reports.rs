//! What users of other limiters have reported about waiting, on one key of a table.

use std::time::Duration;

use tollgate::{AcquireKey, Keyed, ManualClock, Quota, Refused};

use crate::tasks::Task;
use crate::{HOUR, MILLISECOND, MINUTE, NANOSECOND, SECOND, YEAR, quota};

type Table = Keyed<u64, tollgate::Gcra, ManualClock>;
type Waiter<'a> = Task<AcquireKey<'a, tollgate::Gcra, ManualClock>>;

/// A table on a clock that stands at 0.
fn table(permits: u64, period: Duration, burst: u64) -> (ManualClock, Table) {
    let clock = ManualClock::new();
    let table = Keyed::token_bucket(quota(permits, period, burst)).clock(clock.clone()).build().unwrap();
    (clock, table)
}

/// Polls those that were woken until nobody is, and tells who left, in order. Nobody may be refused.
fn woken(line: &mut [(Option<Waiter<'_>>, usize)]) -> Vec<usize> {
    let mut left = Vec::new();
    loop {
        let mut asked = false;
        for (who, (waiter, wakes)) in line.iter_mut().enumerate() {
            let Some(task) = waiter.as_mut().filter(|task| task.wakes() > *wakes) else { continue };
            (*wakes, asked) = (task.wakes(), true);
            if task.poll().map(Result::unwrap).is_ready() {
                *waiter = None;
                left.push(who);
            }
        }
        if !asked {
            return left;
        }
    }
}

// bucket4j/bucket4j#220
#[test]
fn nobody_waits_for_more_than_a_key_can_ever_have() {
    let (_clock, table) = table(3, 2 * SECOND, 3);
    let beyond = Refused::ExceedsCapacity { asked: 4, capacity: 3 };
    assert_eq!(Task::new(table.acquire_n(&7, 4)).refusal(), beyond);
    assert_eq!(Task::new(table.acquire_n_within(&7, 4, HOUR)).refusal(), beyond);
    assert_eq!((table.waiting(&7), table.len()), (0, 0));
    assert_eq!(table.try_acquire_n(&7, 3), Ok(()));
}

// golang/go#47221
#[test]
fn at_rate_zero_a_key_is_waited_for_until_the_quota_changes() {
    let (clock, table) = table(0, SECOND, 1);
    assert!(Task::new(table.acquire(&7)).leaves());
    let mut second = Task::in_line(table.acquire(&7));
    clock.advance(HOUR);
    assert!(second.waits());
    assert_eq!(Task::new(table.acquire_within(&7, HOUR)).refusal(), Refused::Never { asked: 1, remaining: 0 });
    table.set_quota(quota(1, SECOND, 1)).unwrap();
    clock.advance(SECOND - NANOSECOND);
    assert!(second.waits());
    clock.advance(NANOSECOND);
    assert!(second.leaves());
}

// thomhurst/Kevlar#15, dotnet/runtime#64078
#[test]
fn those_who_gave_up_on_a_key_leave_no_debt_and_no_place() {
    let clock = ManualClock::new();
    let bounded = Keyed::<u64>::token_bucket(quota(1, SECOND, 1)).queue(1).clock(clock.clone()).build().unwrap();
    assert!(Task::new(bounded.acquire(&7)).leaves());
    let b = Task::in_line(bounded.acquire(&7));
    clock.set(SECOND / 2);
    drop(b);
    for _ in 0..1_000 {
        drop(Task::in_line(bounded.acquire(&7)));
    }
    let mut d = Task::in_line(bounded.acquire(&7));
    clock.set(SECOND - NANOSECOND);
    assert!(d.waits());
    clock.set(SECOND);
    assert!(d.leaves());

    let (clock, table) = table(1, SECOND, 1);
    assert!(Task::new(table.acquire(&7)).leaves());
    let b = Task::in_line(table.acquire(&7));
    let mut c = Task::in_line(table.acquire(&7));
    clock.set(SECOND / 2);
    drop(b);
    clock.set(SECOND);
    assert!(c.leaves());
}

// udoprog/leaky-bucket#35
#[test]
fn large_requests_of_a_key_in_one_task_do_not_block_each_other() {
    let (clock, table) = table(100, SECOND, 100);
    let mut line: Vec<_> = (0..3).map(|_| Task::new(table.acquire_n(&7, 80))).collect();
    assert!(line.remove(0).leaves());
    assert!(line.iter_mut().all(Task::waits));
    for due in [600, 1_400] {
        clock.set(due * MILLISECOND - NANOSECOND);
        assert!(line.iter_mut().all(Task::waits), "before {due}");
        clock.set(due * MILLISECOND);
        assert!(line.remove(0).leaves(), "at {due}");
    }
}

// mjpieters/aiolimiter#200
#[test]
fn those_who_wait_on_a_key_leave_in_the_order_in_which_they_came() {
    let (clock, table) = table(10, MINUTE, 10);
    assert!((0..10).all(|_| Task::new(table.acquire(&7)).leaves()));
    let mut line: Vec<_> = (0..10).map(|_| (Some(Task::in_line(table.acquire(&7))), 0)).collect();
    for who in 0..10 {
        clock.advance(6 * SECOND - NANOSECOND);
        assert!(woken(&mut line).is_empty(), "before the turn of {who}");
        clock.advance(NANOSECOND);
        assert_eq!(woken(&mut line), [who]);
    }
}

// mjpieters/aiolimiter#73
#[test]
fn a_permit_of_a_key_costs_two_calls_of_a_waker_at_most() {
    let (clock, table) = table(1_000, SECOND, 1);
    table.try_acquire(&7).unwrap();
    let mut line: Vec<_> = (0..1_000).map(|_| (Some(Task::in_line(table.acquire(&7))), 0)).collect();
    let mut left = Vec::new();
    for _ in 0..1_000 {
        clock.advance(MILLISECOND);
        left.extend(woken(&mut line));
    }
    assert_eq!(left, (0..1_000).collect::<Vec<_>>());
    let wakes: usize = line.iter().map(|(_, wakes)| wakes).sum();
    assert!(wakes <= 2_000, "{wakes}");
}

// resilience4j/resilience4j#2194
#[test]
fn a_time_limit_that_cannot_be_kept_is_refused_at_once_and_takes_no_slot() {
    let (clock, table) = table(1, 10 * SECOND, 1);
    assert!(Task::new(table.acquire(&7)).leaves());
    let late = Task::new(table.acquire_within(&7, SECOND)).refusal();
    assert_eq!(late, Refused::DeadlineTooSoon { wait: 10 * SECOND });
    let mut c = Task::in_line(table.acquire_within(&7, 15 * SECOND));
    clock.set(10 * SECOND);
    assert!(c.leaves());
}

// tokio-rs/tokio#5183
#[test]
fn no_wait_on_a_key_is_too_long_to_be_waited() {
    for period in [400 * YEAR, 584 * YEAR, 10_000 * YEAR, Duration::MAX] {
        let (clock, table) = table(1, period, 1);
        table.try_acquire(&7).unwrap();
        let mut waits = Task::in_line(table.acquire(&7));
        drop(Task::in_line(table.acquire(&7)));
        clock.advance(YEAR);
        assert!(waits.waits(), "{period:?}");
        assert!(Task::new(table.acquire_within(&8, Duration::MAX)).leaves(), "{period:?}");
        table.set_quota(Quota::per_second(1).burst(1)).unwrap();
        clock.advance(SECOND);
        assert!(waits.leaves(), "{period:?}");
    }
    let (clock, table) = table(1, 5 * YEAR, 1);
    table.try_acquire(&7).unwrap();
    let mut waits = Task::in_line(table.acquire(&7));
    clock.advance(5 * YEAR - NANOSECOND);
    assert!(waits.waits());
    clock.advance(NANOSECOND);
    assert!(waits.leaves());
}
