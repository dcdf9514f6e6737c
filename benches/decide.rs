//! What one decision costs on one thread, beside the floor and a bucket behind a mutex.

mod common;
#[path = "common/windows.rs"]
mod windows;

use std::hint::black_box;
use std::time::Duration;

use common::{Floor, MutexBucket};
use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{
    Clock, CoarseClock, DefaultClock, FixedWindow, LeakyQueue, Quota, Shaper, SlidingCounter, SlidingLog, TokenBucket,
};

/// So much that no run of a benchmark uses it up.
fn plenty() -> Quota {
    Quota::per_second(1_000_000_000).burst(1 << 40)
}

fn decide(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide");
    group.bench_function("clock/1", |b| b.iter(|| black_box(DefaultClock.now())));

    let floor = Floor::default();
    group.bench_function("floor/1", |b| b.iter(|| black_box(floor.exchange())));

    let bucket = TokenBucket::new(plenty());
    group.bench_function("granted/1", |b| b.iter(|| black_box(bucket.try_acquire().is_ok())));

    let third = TokenBucket::new(Quota::per_second(300_000_000).burst(1 << 40));
    group.bench_function("granted_inexact_ns/1", |b| b.iter(|| black_box(third.try_acquire().is_ok())));

    let empty = TokenBucket::builder(Quota::per_day(1)).initial(0).build();
    group.bench_function("refused/1", |b| b.iter(|| black_box(empty.try_acquire().is_ok())));

    group.bench_function("peek/1", |b| b.iter(|| black_box(bucket.peek(1).is_ok())));

    let coarse = CoarseClock::new(Duration::from_millis(1));
    group.bench_function("coarse_clock/1", |b| b.iter(|| black_box(coarse.now())));

    let bucket = TokenBucket::with_clock(plenty(), coarse);
    group.bench_function("granted_coarse/1", |b| b.iter(|| black_box(bucket.try_acquire().is_ok())));

    let shaper = Shaper::new(plenty());
    group.bench_function("shaper_granted/1", |b| b.iter(|| black_box(shaper.try_acquire().is_ok())));

    let mutexed = MutexBucket::new(1, 1 << 40);
    group.bench_function("mutex/1", |b| b.iter(|| black_box(mutexed.try_acquire())));

    let window = FixedWindow::new(windows::long());
    group.bench_function("fixed_window_granted/1", |b| b.iter(|| black_box(window.try_acquire().is_ok())));
    let counter = SlidingCounter::new(windows::long()).expect("a limit that it takes");
    group.bench_function("sliding_counter_granted/1", |b| b.iter(|| black_box(counter.try_acquire().is_ok())));
    let log = SlidingLog::new(windows::short()).expect("a limit that it takes");
    group.bench_function("sliding_log_granted/1", |b| b.iter(|| black_box(log.try_acquire().is_ok())));
    let queue = LeakyQueue::new(plenty());
    group.bench_function("leaky_queue_told/1", |b| b.iter(|| black_box(queue.schedule().is_ok())));

    let none = Quota::per_day(1);
    let window = FixedWindow::builder(none).initial(0).build();
    group.bench_function("fixed_window_refused/1", |b| b.iter(|| black_box(window.try_acquire().is_ok())));
    let counter = SlidingCounter::builder(none).initial(0).build().expect("a small limit");
    group.bench_function("sliding_counter_refused/1", |b| b.iter(|| black_box(counter.try_acquire().is_ok())));
    let log = SlidingLog::builder(none).initial(0).build().expect("a small limit");
    group.bench_function("sliding_log_refused/1", |b| b.iter(|| black_box(log.try_acquire().is_ok())));

    // Without the clock: what the law itself costs.
    let bucket = TokenBucket::new(plenty());
    let mut now = 0u64;
    group.bench_function("granted_at/1", |b| {
        b.iter(|| {
            now = now.wrapping_add(2);
            black_box(bucket.try_acquire_at(black_box(now)).is_ok())
        });
    });
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
