//! Waiting on a key with tokio's timer, on a paused clock: order, pace, and runtimes that go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tollgate::{Clock, DefaultClock, Keyed, Quota, Refused, StdClock, TokioClock};

use crate::tasks::Record;
use crate::{HOUR, MILLISECOND, SECOND, quota};

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn tasks_leave_each_key_in_order_and_at_its_pace() {
    let table = Arc::new(Keyed::<usize>::token_bucket(quota(10, SECOND, 3)).clock(TokioClock).build().unwrap());
    let record = Record::begin();
    let tasks: Vec<_> = (0..60)
        .map(|who| {
            let (table, record) = (Arc::clone(&table), record.clone());
            tokio::spawn(async move {
                table.acquire(&(who % 2)).await.unwrap();
                record.note(who);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for key in 0..2 {
        let left: Vec<_> = record.lines().into_iter().filter(|(who, _)| who % 2 == key).collect();
        let expected: Vec<_> =
            (0..30usize).map(|place| (place * 2 + key, 100 * place.saturating_sub(2) as u64)).collect();
        assert_eq!(left, expected);
    }
    assert_eq!(table.waiting(&0), 0);
}

// alibaba/Sentinel#1615, as a wait.
#[tokio::test(start_paused = true)]
async fn a_rate_beyond_the_timers_grain_loses_what_the_timer_is_late_at_most() {
    let table = Keyed::<u8>::token_bucket(quota(5_000, SECOND, 10)).clock(TokioClock).build().unwrap();
    let record = Record::begin();
    for _ in 0..50_010 {
        table.acquire(&0).await.unwrap();
    }
    assert_eq!(record.now(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_answered_before_any_time_passes() {
    let table = Keyed::<u8>::token_bucket(quota(1, 10 * SECOND, 1)).clock(TokioClock).build().unwrap();
    let record = Record::begin();
    table.acquire(&0).await.unwrap();
    assert!(matches!(table.acquire_within(&0, SECOND).await, Err(Refused::DeadlineTooSoon { .. })));
    assert_eq!(record.now(), 0);
    table.acquire_within(&0, 10 * SECOND).await.unwrap();
    assert_eq!(record.now(), 10_000);
}

// base/infra#45: shutdown with waiters pending.
#[test]
fn a_runtime_that_goes_takes_its_waiters_along_and_no_place_of_others() {
    let table = Arc::new(Keyed::<u8>::token_bucket(quota(1, HOUR, 1)).clock(StdClock).build().unwrap());
    table.try_acquire(&0).unwrap();
    let memory = table.memory();
    let one = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for _ in 0..10 {
        let table = Arc::clone(&table);
        one.spawn(async move { table.acquire(&0).await });
    }
    while table.waiting(&0) < 10 {
        std::thread::yield_now();
    }
    drop(one);
    assert_eq!((table.waiting(&0), table.memory()), (0, memory));
    table.set_quota(Quota::per_second(1_000).burst(1)).unwrap();
    let two = Builder::new_current_thread().enable_time().build().unwrap();
    two.block_on(table.acquire(&0)).unwrap();
}

#[test]
fn a_wait_goes_on_in_another_runtime_with_another_clock() {
    let table = Keyed::<u8>::token_bucket(quota(1, SECOND, 1)).clock(StdClock).build().unwrap();
    table.try_acquire(&0).unwrap();
    let (one, two) = (paused(), paused());
    one.block_on(tokio::time::advance(HOUR));
    let mut wait = Box::pin(table.acquire(&0));
    one.block_on(async {
        tokio::select! {
            biased;
            _ = &mut wait => unreachable!("a second has not passed"),
            () = std::future::ready(()) => {}
        }
    });
    drop(one);
    two.block_on(wait).unwrap();
}

/// A clock that runs by itself under a runtime whose clock is paused.
#[test]
fn a_clock_that_does_not_follow_a_paused_runtime_is_waited_for_without_a_spin() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Clock for Counted<'_> {
        fn now(&self) -> tollgate::Nanos {
            self.0.fetch_add(1, Ordering::Relaxed);
            DefaultClock.now()
        }
    }
    let readings = AtomicUsize::new(0);
    let table = Keyed::<u8>::token_bucket(quota(1, 20 * MILLISECOND, 1)).clock(Counted(&readings)).build().unwrap();
    let start = Instant::now();
    paused().block_on(async {
        for _ in 0..3 {
            table.acquire(&0).await.unwrap();
        }
    });
    assert!(start.elapsed() >= Duration::from_millis(39));
    // At most one look a millisecond for as long as it took, and those at the beginning and the end of each wait.
    let most = start.elapsed().as_millis() as usize * 3 + 30;
    let readings = readings.load(Ordering::Relaxed);
    assert!(readings <= most, "{readings} readings");
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_keys_that_are_free_yields_to_the_runtime() {
    let table = Arc::new(Keyed::<u64>::token_bucket(Quota::per_second(1)).clock(TokioClock).build().unwrap());
    let other = tokio::spawn(async {});
    for key in 0..1_000 {
        table.acquire(&key).await.unwrap();
    }
    assert!(other.is_finished());
}
