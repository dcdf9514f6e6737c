//! What waiting costs: a free permit, a place in line and its grant, a cancelled wait; beside the floor and a bucket behind a
//! mutex.

mod common;

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::{Floor, MutexBucket};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tollgate::{Acquire, ManualClock, Quota, Shaper};

fn poll(wait: &mut Pin<Box<Acquire<'_>>>) -> bool {
    matches!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
}

/// A shaper of 1,000 per second on a clock of its own, with `waiting` in line.
fn with_waiting(shaper: &Shaper, waiting: usize) -> Vec<Pin<Box<Acquire<'_>>>> {
    let mut line: Vec<_> = (0..waiting).map(|_| Box::pin(shaper.acquire())).collect();
    for wait in &mut line {
        black_box(poll(wait));
    }
    line
}

fn shaper(c: &mut Criterion) {
    let mut group = c.benchmark_group("shaper");
    let floor = Floor::default();
    group.bench_function("floor/1", |b| b.iter(|| black_box(floor.exchange())));
    let mutexed = MutexBucket::new(1, 1 << 40);
    group.bench_function("mutex/1", |b| b.iter(|| black_box(mutexed.try_acquire())));

    let free = Shaper::new(Quota::per_second(1_000_000_000).burst(1 << 40));
    group.bench_function("acquire_free/1", |b| {
        b.iter(|| {
            let mut wait = std::pin::pin!(free.acquire());
            black_box(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
        });
    });

    group.bench_function("acquire_blocking_free/1", |b| b.iter(|| black_box(free.acquire_blocking().is_ok())));

    let empty = Shaper::builder(Quota::per_day(1)).clock(ManualClock::new()).build();
    let _ = empty.try_acquire();
    for waiting in [0usize, 10_000] {
        let _line = with_waiting(&empty, waiting);
        group.bench_function(format!("enter_and_cancel_behind_{waiting}/1"), |b| {
            b.iter_batched(|| Box::pin(empty.acquire()), |mut wait| black_box(poll(&mut wait)), BatchSize::SmallInput);
        });
    }

    group.bench_function("enter_and_grant_2000/1", |b| {
        b.iter_custom(|rounds| {
            let mut spent = Duration::ZERO;
            for _ in 0..rounds {
                let clock = ManualClock::new();
                let shaper = Shaper::builder(Quota::per_second(1_000)).clock(clock.clone()).build();
                let started = Instant::now();
                let mut line = with_waiting(&shaper, 2_000);
                for wait in &mut line {
                    black_box(poll(wait));
                    clock.advance(Duration::from_millis(1));
                }
                spent = spent.saturating_add(started.elapsed());
            }
            spent
        });
    });
    group.finish();
}

criterion_group!(benches, shaper);
criterion_main!(benches);
