//! What a decision costs while other threads decide on the same limiter. The time is that of one operation of one thread.

mod common;
#[path = "common/windows.rs"]
mod windows;

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::{Floor, MutexBucket};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tollgate::{FixedWindow, LeakyQueue, Quota, SlidingCounter, SlidingLog, TokenBucket};

/// Runs `operation` `each` times on each of `threads` threads at once; the time from the common start to the last end.
fn together(threads: usize, each: u64, operation: &(impl Fn() -> bool + Sync)) -> Duration {
    let (start, end) = (Barrier::new(threads.saturating_add(1)), Barrier::new(threads.saturating_add(1)));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                for _ in 0..each {
                    black_box(operation());
                }
                end.wait();
            });
        }
        start.wait();
        let started = Instant::now();
        end.wait();
        started.elapsed()
    })
}

fn contended(c: &mut Criterion) {
    let mut group = c.benchmark_group("contended");
    let plenty = Quota::per_second(1_000_000_000).burst(1 << 40);
    let floor = Floor::default();
    let bucket = TokenBucket::new(plenty);
    let empty = TokenBucket::builder(Quota::per_day(1)).initial(0).build();
    let window = FixedWindow::new(windows::long());
    let counter = SlidingCounter::new(windows::long()).expect("a limit that it takes");
    let log = SlidingLog::new(windows::short()).expect("a limit that it takes");
    let queue = LeakyQueue::new(plenty);
    let full = SlidingLog::builder(Quota::per_day(1)).initial(0).build().expect("a limit that it takes");
    let mutexed = MutexBucket::new(1, 1 << 40);
    for threads in [1usize, 2] {
        // Throughput is of all threads together.
        group.throughput(Throughput::Elements(threads as u64));
        group.bench_function(format!("floor/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| floor.exchange()));
        });
        group.bench_function(format!("granted/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| bucket.try_acquire().is_ok()));
        });
        group.bench_function(format!("fixed_window_granted/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| window.try_acquire().is_ok()));
        });
        group.bench_function(format!("sliding_counter_granted/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| counter.try_acquire().is_ok()));
        });
        group.bench_function(format!("sliding_log_granted/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| log.try_acquire().is_ok()));
        });
        group.bench_function(format!("leaky_queue_told/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| queue.schedule().is_ok()));
        });
        group.bench_function(format!("sliding_log_refused/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| full.try_acquire().is_ok()));
        });
        group.bench_function(format!("refused/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| empty.try_acquire().is_ok()));
        });
        group.bench_function(format!("mutex/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &|| mutexed.try_acquire()));
        });
    }
    group.finish();
}

criterion_group!(benches, contended);
criterion_main!(benches);
