//! Waiters that give up, that are held, that have no time, or that want much.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};

use super::{case, verdict};
use crate::isolate::isolated;
use crate::peers::{
    Law, Wait, better_bucket, governor, leaky_bucket, rate_net, ratelimit, semaphore, throttle_net, tollgate,
};
use crate::record::{Case, Row};
use crate::rounds::in_turns;
use crate::stats::most_within;
use crate::suites::waiters::contenders;
use crate::suites::waiting::Weights;
use crate::suites::{Emit, Size};

const LIMIT: Duration = Duration::from_secs(20);

/// A system by name, and a measurement of it.
type Measure = (&'static str, fn() -> u64);

/// One permit every 100 ms, never two at once.
const SMOOTH: Law = Law::per_second(10);

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    emit(cancelled(size))?;
    emit(paused(size))?;
    emit(no_time(size))?;
    emit(starved(size))
}

/// Whose time passes.
#[derive(Clone, Copy)]
enum Time {
    /// tokio's, paused: it jumps from timer to timer.
    Virtual,
    /// For those that read another clock.
    Real,
}

fn runtime(time: Time) -> Runtime {
    let paused = matches!(time, Time::Virtual);
    Builder::new_current_thread().enable_time().start_paused(paused).build().expect("a runtime")
}

/// Grants of one limiter, and when they were, in seconds.
struct Line<W> {
    limiter: Arc<W>,
    started: Instant,
    grants: Arc<Mutex<Vec<f64>>>,
}

impl<W: Wait> Line<W> {
    fn new(limiter: W) -> Self {
        Self { limiter: Arc::new(limiter), started: Instant::now(), grants: Arc::default() }
    }

    /// Lets so many more tasks wait for a permit each, and returns when all of them do.
    async fn join(&self, tasks: usize) -> Vec<JoinHandle<()>> {
        let tasks = (0..tasks).map(|_| {
            let (limiter, grants, started) = (Arc::clone(&self.limiter), Arc::clone(&self.grants), self.started);
            tokio::spawn(async move {
                limiter.wait(1).await;
                let at = started.elapsed().as_secs_f64();
                grants.lock().expect("no panic").push(at);
            })
        });
        let tasks = tasks.collect();
        settle().await;
        tasks
    }

    fn grants(&self) -> Vec<f64> {
        self.grants.lock().expect("no panic").clone()
    }
}

/// Lets all other tasks run until they wait, without letting time pass.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Twenty wait, the first ten of them give up, and ten others come.
fn cancelled(size: Size) -> Case {
    fn most<W: Wait>(time: Time, make: fn(Law) -> W) -> u64 {
        runtime(time).block_on(async {
            let line = Line::new(make(SMOOTH));
            let tasks = line.join(21).await;
            for task in &tasks[1..11] {
                task.abort();
            }
            settle().await;
            let _others = line.join(10).await;
            sleep(Duration::from_millis(2_500)).await;
            most_within(&line.grants(), 1.0) as u64
        })
    }
    let systems: [Measure; 8] = [
        ("tollgate", || most(Time::Virtual, tollgate::shaper)),
        ("governor", || most(Time::Real, governor::bucket)),
        ("throttle-net", || most(Time::Virtual, throttle_net::throttle_on_tokio)),
        ("throttle-net (Queue)", || most(Time::Virtual, throttle_net::queue_on_tokio)),
        ("rate-net", || most(Time::Virtual, rate_net::direct_on_tokio)),
        ("leaky-bucket", || most(Time::Virtual, leaky_bucket::limiter)),
        ("ratelimit (sleep and retry)", || most(Time::Real, ratelimit::bucket)),
        ("tokio Semaphore (refilled)", || most(Time::Virtual, semaphore::refilled)),
    ];
    let rows = systems.map(|(system, measure)| verdict(system, &(9..=11), isolated(size.limit(LIMIT), measure)));
    let about = "10/s, never two at once. 20 wait, the ten at the head give up, ten others come: the most granted in any second.";
    case("cancelled", about, rows.into())
}

/// A line of fifty is held for ten seconds.
fn paused(size: Size) -> Case {
    async fn granted_after<W: Wait>(limiter: W, hold: impl FnOnce(&W)) -> u64 {
        let line = Line::new(limiter);
        let _tasks = line.join(51).await;
        hold(&line.limiter);
        let end = line.started.elapsed().as_secs_f64() + PAUSE.as_secs_f64();
        sleep(PAUSE + Duration::from_secs(1)).await;
        line.grants().iter().filter(|&&at| at > 0.5 && at <= end + 0.1).count() as u64
    }
    const PAUSE: Duration = Duration::from_secs(10);
    let ours = isolated(size.limit(LIMIT), || {
        runtime(Time::Virtual).block_on(granted_after(tollgate::shaper(SMOOTH), |limiter| limiter.pause_for(PAUSE)))
    });
    let theirs = isolated(size.limit(LIMIT), || {
        runtime(Time::Virtual).block_on(async {
            granted_after(throttle_net::throttle_on_tokio(SMOOTH), |limiter| limiter.pause_for(PAUSE)).await
        })
    });
    let rows =
        [("tollgate", ours), ("throttle-net", theirs)].map(|(system, admitted)| verdict(system, &(0..=2), admitted));
    let about =
        "10/s, never two at once. 50 wait and are held for 10 s: granted until 100 ms after the end of that pause.";
    case("pause", about, rows.into())
}

/// A caller whose place lies ten seconds ahead has three.
fn no_time(size: Size) -> Case {
    const LAW: Law = Law::per_second(1);
    const DEADLINE: Duration = Duration::from_secs(3);
    async fn answered<W: Wait, F: Future<Output = bool>>(limiter: W, within: impl FnOnce(Arc<W>) -> F) -> u64 {
        let line = Line::new(limiter);
        let _tasks = line.join(11).await;
        let asked = Instant::now();
        let granted = within(Arc::clone(&line.limiter)).await;
        let waited = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
        assert!(!granted, "granted before ten that came earlier");
        waited
    }
    let systems: [Measure; 4] = [
        ("tollgate", || {
            runtime(Time::Virtual).block_on(async {
                answered(tollgate::shaper(LAW), |limiter| async move { limiter.acquire_within(DEADLINE).await.is_ok() })
                    .await
            })
        }),
        ("throttle-net", || {
            runtime(Time::Virtual).block_on(async {
                let limiter = throttle_net::throttle_on_tokio(LAW);
                answered(limiter, |limiter| async move { limiter.acquire_timeout(DEADLINE).await.is_ok() }).await
            })
        }),
        ("throttle-net (Queue)", || {
            runtime(Time::Virtual).block_on(async {
                let limiter = throttle_net::queue_on_tokio(LAW);
                answered(limiter, |limiter| async move { limiter.within(DEADLINE).await }).await
            })
        }),
        ("better-bucket (reserve)", || {
            runtime(Time::Virtual).block_on(async {
                let limiter = better_bucket::bucket_on_tokio(LAW);
                answered(limiter, |limiter| async move { limiter.reserve(1, DEADLINE).is_some() }).await
            })
        }),
    ];
    let rows = systems.map(|(system, measure)| match isolated(size.limit(LIMIT), measure) {
        Ok(waited) => Row::new(system).number("waited", "ms", waited as f64).flag("lawful", waited == 0),
        Err(failure) => Row::failed(system, failure),
    });
    let about = "1/s, ten wait ahead, and the caller has 3 s: how many ms until it is told that they are not enough.";
    case("no_time", about, rows.into())
}

/// One that wants ten at a time among twenty that want one.
fn starved(size: Size) -> Case {
    let span = Duration::from_millis(size.choose(3_000, 1_000, 50));
    let outcomes = in_turns(1, || size.limit(LIMIT), contenders(&Weights { span }));
    let law = Weights::LAW;
    let most = u64::try_from(span.as_millis()).unwrap_or(u64::MAX) * u64::from(law.permits) / 10_000 + 2;
    let rows = outcomes.into_iter().map(|(system, outcome)| {
        verdict(system, &(1..=most), outcome.map(|found| found.iter().map(|grants| grants.large).sum()))
    });
    let about = format!(
        "200/s, burst 10. 20 tasks take 1 in a loop, one takes 10: what the one was granted in {} s of real time.",
        span.as_secs_f64()
    );
    case("starved", &about, rows.collect())
}
