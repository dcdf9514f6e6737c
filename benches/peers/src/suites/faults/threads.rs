//! Races of threads, on real clocks.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{case, verdict};
use crate::isolate::isolated;
use crate::peers::{
    Decide, Law, better_bucket, governor, leaky_bucket, mutex, rate_net, ratelimit, semaphore, throttle_net,
    throttlecrab, tollgate, trypema,
};
use crate::record::{Case, Row};
use crate::suites::{Emit, Size};

const THREADS: usize = 8;
const LIMIT: Duration = Duration::from_secs(20);

type Make = fn(Law) -> Box<dyn Decide>;

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    emit(at_once(size))?;
    emit(afterwards(size))
}

/// Eight threads want a hundred permits: the worst of many trials.
fn at_once(size: Size) -> Case {
    const SYSTEMS: [(&str, Make); 11] = [
        ("tollgate", |law| Box::new(tollgate::bucket(law))),
        ("governor", |law| Box::new(governor::bucket(law))),
        ("throttle-net", |law| Box::new(throttle_net::throttle(law))),
        ("better-bucket", |law| Box::new(better_bucket::bucket(law))),
        ("rate-net", |law| Box::new(rate_net::direct(law))),
        ("leaky-bucket", |law| Box::new(leaky_bucket::limiter(law))),
        ("ratelimit", |law| Box::new(ratelimit::bucket(law))),
        ("trypema (window)", |law| Box::new(trypema::absolute(law))),
        ("throttlecrab (in a mutex)", |law| Box::new(throttlecrab::mutexed(law))),
        ("tokio Semaphore (no clock)", |law| Box::new(semaphore::permits(law))),
        ("mutexed bucket", |law| Box::new(mutex::bucket(law))),
    ];
    let law = Law { permits: 100, period: Duration::from_secs(86_400), burst: 100 };
    let trials = size.choose(2_000, 400, 3);
    let rows = SYSTEMS.map(|(system, make)| {
        let worst = isolated(size.limit(LIMIT), move || {
            let counts = (0..trials).map(|_| contended(&*make(law)));
            // Too few is as wrong as too many.
            counts.max_by_key(|count| count.abs_diff(100)).unwrap_or(0)
        });
        verdict(system, &(100..=100), worst)
    });
    let about = format!("100 a day, burst 100, eight threads at once: the worst of {trials} trials.");
    case("threads", &about, rows.into())
}

/// What eight threads are granted together.
fn contended(limiter: &dyn Decide) -> u64 {
    let (start, granted) = (Barrier::new(THREADS), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                let own = (0..40).filter(|_| limiter.decide()).count();
                granted.fetch_add(own as u64, Ordering::Relaxed);
            });
        }
    });
    granted.into_inner()
}

/// Whether a limiter still grants after threads were refused by it many times.
fn afterwards(size: Size) -> Case {
    const SYSTEMS: [(&str, Make); 8] = [
        ("tollgate", |law| Box::new(tollgate::bucket(law))),
        ("governor", |law| Box::new(governor::bucket(law))),
        ("throttle-net", |law| Box::new(throttle_net::throttle(law))),
        ("better-bucket", |law| Box::new(better_bucket::bucket(law))),
        ("rate-net", |law| Box::new(rate_net::direct(law))),
        ("leaky-bucket", |law| Box::new(leaky_bucket::limiter(law))),
        ("leaky-bucket (unfair)", |law| Box::new(leaky_bucket::unfair(law))),
        ("ratelimit", |law| Box::new(ratelimit::bucket(law))),
    ];
    let law = Law::per_second(1_000);
    let runs = size.choose(60, 12, 2);
    let rows: Vec<Row> = SYSTEMS
        .map(|(system, make)| {
            let admitted =
                isolated(size.limit(LIMIT), move || (0..runs).filter(|_| recovers(&*make(law))).count() as u64);
            verdict(system, &(runs..=runs), admitted)
        })
        .into();
    let about = format!(
        "1,000/s. Eight threads ask five times for a millisecond, 50 ms of idling, then five tries over 15 ms: in how many of {runs} runs one of them was granted."
    );
    case("after_contention", &about, rows)
}

fn recovers(limiter: &dyn Decide) -> bool {
    for _ in 0..5 {
        refuse(limiter);
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(50));
    (0..5).any(|_| {
        thread::sleep(Duration::from_millis(3));
        limiter.decide()
    })
}

/// Eight threads ask, for a millisecond.
fn refuse(limiter: &dyn Decide) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    limiter.decide();
                }
            });
        }
        thread::sleep(Duration::from_millis(1));
        over.store(true, Ordering::Relaxed);
    });
}
