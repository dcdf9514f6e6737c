//! What waiting costs, and in which order the waiters leave.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::waiters::{OfWaiters, contenders, counting_polls};
use super::{Emit, Size};
use crate::peers::{Law, Wait};
use crate::record::{Case, Row};
use crate::report::{Highlight, number};
use crate::rounds::in_turns;
use crate::stats::inversions;

pub(crate) const HIGHLIGHTS: &[Highlight] = &[
    Highlight { case: "100_waiters", metric: "polls_per_permit", heading: "polls per permit, 100 waiters" },
    Highlight { case: "2000_waiters", metric: "polls_per_permit", heading: "2,000 waiters" },
    Highlight { case: "2000_waiters", metric: "inversions_share", heading: "pairs out of order, %" },
    Highlight { case: "memory", metric: "bytes_per_waiter", heading: "bytes per waiter" },
    Highlight { case: "weight_10_among_20", metric: "share_of_the_large", heading: "share of a weight-10 waiter, %" },
    Highlight { case: "100000_waiters", metric: "delivered", heading: "delivered with 100,000 waiting, %" },
];

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    for waiters in [100, 500, 2_000] {
        emit(crowd(size, waiters))?;
    }
    emit(memory(size))?;
    emit(weights(size))?;
    emit(multitude(size))
}

/// One thread, so that tasks begin to wait in the order in which they were spawned.
fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[derive(Clone)]
struct Crowd {
    law: Law,
    waiters: usize,
}

struct Left {
    polls: u64,
    inversions: u64,
}

impl OfWaiters for Crowd {
    type Found = Left;

    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Left {
        let order = Arc::new(Mutex::new(Vec::new()));
        let polls = Arc::new(AtomicU64::new(0));
        one_thread().block_on(async {
            let limiter = Arc::new(make(self.law));
            let tasks: Vec<_> = (0..self.waiters)
                .map(|place| {
                    let (limiter, order, polls) = (Arc::clone(&limiter), Arc::clone(&order), Arc::clone(&polls));
                    tokio::spawn(async move {
                        let own = counting_polls(&*limiter, 1).await;
                        polls.fetch_add(own.into(), Ordering::Relaxed);
                        order.lock().expect("no panic").push(place);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a wait that ends");
            }
        });
        let order = order.lock().expect("no panic");
        Left { polls: polls.load(Ordering::Relaxed), inversions: inversions(&order) }
    }
}

fn crowd(size: Size, waiters: usize) -> Case {
    let rate = size.choose(1_000, 5_000, 20_000);
    let waiting = size.choose(waiters, waiters, 20);
    let limit = || size.limit(Duration::from_secs(30));
    let outcomes =
        in_turns(size.choose(3, 1, 1), limit, contenders(&Crowd { law: Law::per_second(rate), waiters: waiting }));
    let pairs = (waiting * (waiting - 1) / 2) as f64;
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => Row::new(system)
            .spread("polls_per_permit", "", found.iter().map(|left| left.polls as f64 / waiting as f64))
            .spread("inversions", "", found.iter().map(|left| left.inversions as f64))
            .spread("inversions_share", "%", found.iter().map(|left| 100.0 * left.inversions as f64 / pairs)),
        Err(failure) => Row::failed(system, failure),
    });
    Case {
        name: format!("{waiters}_waiters"),
        about: format!(
            "So many tasks wait at once for a permit each, {}/s, one thread; inversions are pairs that left in another order than they came.",
            number(rate.into())
        ),
        rows: rows.collect(),
    }
}

#[derive(Clone)]
struct Memory {
    waiters: usize,
}

struct Bytes {
    future: usize,
    beside: i64,
}

impl OfWaiters for Memory {
    type Found = Bytes;

    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Bytes {
        one_thread().block_on(async {
            let limiter = make(Law { permits: 1, period: Duration::from_secs(3_600), burst: 1 });
            limiter.wait(1).await;
            let mut waits: Vec<_> = (0..self.waiters).map(|_| Box::pin(limiter.wait(1))).collect();
            let future =
                waits.first().map_or(0, |wait| size_of_val::<dyn Future<Output = ()>>(Pin::as_ref(wait).get_ref()));
            let counted = allocation_counter::measure(|| {
                let mut context = Context::from_waker(Waker::noop());
                for wait in &mut waits {
                    assert!(wait.as_mut().poll(&mut context).is_pending(), "nothing is free for an hour");
                }
            });
            Bytes { future, beside: counted.bytes_current }
        })
    }
}

fn memory(size: Size) -> Case {
    let waiters = size.choose(10_000, 10_000, 100);
    let outcomes = in_turns(1, || size.limit(Duration::from_secs(30)), contenders(&Memory { waiters }));
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => Row::new(system)
            .spread("bytes_per_waiter", "bytes", found.iter().map(|bytes| bytes.beside as f64 / waiters as f64))
            .spread("future", "bytes", found.iter().map(|bytes| bytes.future as f64)),
        Err(failure) => Row::failed(system, failure),
    });
    Case {
        name: "memory".to_owned(),
        about: "10,000 waiters: what a counting allocator saw allocated while they began to wait, per waiter; the future is part of the caller's own task.".to_owned(),
        rows: rows.collect(),
    }
}

/// Twenty tasks that take 1 in a loop, and one that takes 10.
#[derive(Clone)]
pub(crate) struct Weights {
    pub(crate) span: Duration,
}

pub(crate) struct Grants {
    pub(crate) small: u64,
    pub(crate) large: u64,
}

impl Weights {
    pub(crate) const LAW: Law = Law::per_second(200).burst(10);
}

impl OfWaiters for Weights {
    type Found = Grants;

    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Grants {
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let runtime = one_thread();
        runtime.block_on(async {
            let limiter = Arc::new(make(Self::LAW));
            for task in 0..21 {
                let (limiter, counts) = (Arc::clone(&limiter), Arc::clone(&counts));
                // The large one comes in the middle.
                let (n, kind) = if task == 10 { (10, 1) } else { (1, 0) };
                tokio::spawn(async move {
                    loop {
                        limiter.wait(n).await;
                        counts[kind].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            tokio::time::sleep(self.span).await;
        });
        runtime.shutdown_background();
        Grants { small: counts[0].load(Ordering::Relaxed), large: counts[1].load(Ordering::Relaxed) }
    }
}

fn weights(size: Size) -> Case {
    let span = Duration::from_millis(size.choose(2_000, 700, 60));
    let outcomes =
        in_turns(size.choose(3, 1, 1), || size.limit(Duration::from_secs(30)), contenders(&Weights { span }));
    let share = |grants: &Grants| 100.0 * (10 * grants.large) as f64 / (10 * grants.large + grants.small).max(1) as f64;
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => Row::new(system)
            .spread("grants_of_1", "", found.iter().map(|grants| grants.small as f64))
            .spread("grants_of_10", "", found.iter().map(|grants| grants.large as f64))
            .spread("share_of_the_large", "%", found.iter().map(share)),
        Err(failure) => Row::failed(system, failure),
    });
    Case {
        name: "weight_10_among_20".to_owned(),
        about: "20 tasks that take 1 in a loop and one that takes 10; 200/s, burst 10. First come, first served gives the one 33 % of the permits.".to_owned(),
        rows: rows.collect(),
    }
}

#[derive(Clone)]
struct Multitude {
    waiters: usize,
    rate: u32,
    span: Duration,
}

struct Served {
    enter: f64,
    delivered: f64,
    leave: f64,
}

impl OfWaiters for Multitude {
    type Found = Served;

    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Served {
        let (begun, granted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let runtime = one_thread();
        let (enter, delivered) = runtime.block_on(async {
            let limiter = Arc::new(make(Law::per_second(self.rate)));
            let started = Instant::now();
            for _ in 0..self.waiters {
                let (limiter, begun, granted) = (Arc::clone(&limiter), Arc::clone(&begun), Arc::clone(&granted));
                tokio::spawn(async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    limiter.wait(1).await;
                    granted.fetch_add(1, Ordering::Relaxed);
                });
            }
            while begun.load(Ordering::Relaxed) < self.waiters {
                tokio::task::yield_now().await;
            }
            let enter = started.elapsed();
            // What came due meanwhile is caught up with before it is counted what is delivered.
            tokio::time::sleep(self.span / 4).await;
            let (started, before) = (Instant::now(), granted.load(Ordering::Relaxed));
            tokio::time::sleep(self.span).await;
            let grants = granted.load(Ordering::Relaxed) - before;
            (enter, 100.0 * grants as f64 / (started.elapsed().as_secs_f64() * f64::from(self.rate)))
        });
        let left = (self.waiters - granted.load(Ordering::Relaxed)).max(1);
        let started = Instant::now();
        // Dropping the runtime drops every task that waits.
        drop(runtime);
        let nanoseconds = |span: Duration, count: usize| span.as_nanos() as f64 / count as f64;
        Served { enter: nanoseconds(enter, self.waiters), delivered, leave: nanoseconds(started.elapsed(), left) }
    }
}

fn multitude(size: Size) -> Case {
    let measure = Multitude {
        waiters: size.choose(100_000, 100_000, 200),
        rate: 1_000,
        span: Duration::from_millis(size.choose(2_000, 400, 10)),
    };
    let limit = || size.limit(Duration::from_secs(size.choose(60, 6, 30)));
    let outcomes = in_turns(size.choose(3, 1, 1), limit, contenders(&measure));
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => Row::new(system)
            .spread("enter", "ns", found.iter().map(|served| served.enter))
            .spread("delivered", "%", found.iter().map(|served| served.delivered))
            .spread("leave", "ns", found.iter().map(|served| served.leave)),
        Err(failure) => Row::failed(system, failure),
    });
    Case {
        name: "100000_waiters".to_owned(),
        about: "100,000 tasks wait on one thread, 1,000/s: time per task to begin, what is delivered of the rate, and time per task to give up when all do.".to_owned(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::tiny;

    #[test]
    fn every_system_is_measured() {
        let cases = tiny(run);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(
            names,
            ["100_waiters", "500_waiters", "2000_waiters", "memory", "weight_10_among_20", "100000_waiters"]
        );
        for case in &cases {
            assert_eq!(case.rows.len(), 10, "{}", case.name);
            for row in &case.rows {
                assert!(row.get("failed").is_none(), "{}: {row:?}", case.name);
            }
        }
        for case in &cases[..3] {
            let polls = case.rows.iter().map(|row| row.median("polls_per_permit"));
            assert!(polls.into_iter().all(|polls| polls.is_some_and(|polls| polls >= 1.0)), "{}", case.name);
        }
    }
}
