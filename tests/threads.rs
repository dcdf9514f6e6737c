//! The threads that the crate has, counted by the operating system.
//!
//! A binary of its own, and a single test, since the threads of a process are counted.
#![cfg(target_os = "linux")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::{CoarseClock, ManualClock, Quota, Shaper, Timer, TokenBucket};

#[test]
fn threads_are_there_only_while_they_are_needed_and_shared_by_all() {
    let [.., others] = threads();
    let shapers: Vec<_> = [Timer::Runtime, Timer::Precise, Timer::Manual(ManualClock::new())]
        .iter()
        .cycle()
        .take(999)
        .map(|timer| Shaper::builder(Quota::per_hour(1)).timer(timer.clone()).build())
        .collect();
    let buckets: Vec<_> = (0..1_000).map(|_| TokenBucket::new(Quota::per_hour(1))).collect();
    assert!(shapers.iter().all(|shaper| shaper.try_acquire().is_ok()));
    assert!(buckets.iter().all(|bucket| bucket.try_acquire().is_ok()));
    assert_eq!(threads(), [0, 0, others], "many limiters and shapers, nobody waits");

    let mut waits: Vec<_> = shapers.iter().map(|shaper| Box::pin(shaper.acquire())).collect();
    for wait in &mut waits {
        assert!(is_pending(wait.as_mut()));
    }
    wait_until([1, 0, others], "outside a runtime all waits share one thread");
    drop(waits);
    wait_until([0, 0, others], "the thread ends some time after the last wait");

    // Once more: it starts anew.
    let mut wait = Box::pin(shapers[1].acquire());
    assert!(is_pending(wait.as_mut()));
    wait_until([1, 0, others], "a later wait has a thread again");
    drop(wait);

    let interval = Duration::from_secs(3_600);
    let clocks: Vec<_> = (0..100).map(|_| CoarseClock::new(interval)).collect();
    let other = CoarseClock::new(Duration::from_millis(1));
    wait_until([0, 2, others], "one thread for each interval of a coarse clock");
    drop(other);
    wait_until([0, 1, others], "the thread of a coarse clock ends with the last one");
    drop(clocks);
    wait_until([0, 0, others], "however long its interval is");
    drop((shapers, buckets));
}

fn is_pending<F: Future>(wait: Pin<&mut F>) -> bool {
    wait.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// Waits, with no limit of its own, until these threads are there and no others.
fn wait_until(wanted: [usize; 3], why: &str) {
    println!("waiting for {wanted:?}: {why}");
    while threads() != wanted {
        std::thread::yield_now();
    }
}

/// How many timer threads, clock threads and others there are. A thread has its name some time after its start, and until
/// then that of the one that started it.
fn threads() -> [usize; 3] {
    let mut counts = [0; 3];
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread may end while the list is read.
        let Ok(name) = std::fs::read_to_string(task.unwrap().path().join("comm")) else { continue };
        counts[match name.trim_end() {
            "tollgate-timer" => 0,
            "tollgate-clock" => 1,
            _ => 2,
        }] += 1;
    }
    counts
}
