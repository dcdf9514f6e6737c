//! Everybody at one shaper: tasks of two runtimes, and threads without one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tollgate::{Permit, Quota, Refused, Shaper};

use crate::Run;
use crate::director::{CATCH_UP, Director, FASTEST, MOST_BURST, MOST_N};
use crate::ledger::Request;
use crate::rest;
use crate::violation::{Violation, same};

/// Tasks of a runtime with two workers.
const TASKS: u64 = 200;
/// Tasks of a runtime with a single thread.
const TASKS_OF_A_THREAD: u64 = 50;
/// Threads without a runtime.
const THREADS: u64 = 2;

/// Lets all of them ask in every way there is while the quota changes, then finds the shaper at rest, and closes it.
pub(crate) fn run(run: &Arc<Run>) -> Result<String, Violation> {
    let mut rng = Rng::with_seed(run.seed ^ 2);
    let many = runtime(Builder::new_multi_thread().worker_threads(2))?;
    let single = runtime(&mut Builder::new_current_thread())?;
    let shaper = Arc::new(Shaper::builder(FASTEST).catch_up(CATCH_UP).build());
    let stop = Arc::new(AtomicBool::new(false));
    let caller = Caller { shaper: Arc::clone(&shaper), run: Arc::clone(run), stop: Arc::clone(&stop) };

    // A request larger than what is there leaves early and pays afterwards.
    let mut director = Director::new(&*shaper, &run.churn, FASTEST, MOST_BURST + MOST_N);
    thread::scope(|scope| {
        for (runtime, tasks) in [(many, TASKS), (single, TASKS_OF_A_THREAD)] {
            let tasks: Vec<_> = (0..tasks).map(|_| caller.clone().go_on(rng.fork())).collect();
            scope.spawn(move || runtime.block_on(async { tasks.into_iter().collect::<JoinSet<_>>().join_all().await }));
        }
        for _ in 0..THREADS {
            let (caller, rng) = (caller.clone(), rng.fork());
            scope.spawn(move || caller.go_on_without_a_runtime(rng));
        }
        let mut direct = || {
            while !run.is_over() {
                for _ in 0..20 {
                    thread::sleep(Duration::from_micros(rng.u64(..5_000)));
                    director.change(&mut rng);
                    director.check()?;
                }
                let_all_go(&mut director, &shaper)?;
            }
            let_all_go(&mut director, &shaper)
        };
        let directed = direct();
        stop.store(true, Ordering::Relaxed);
        if directed.is_err() {
            // Who is stuck would never see that it is over.
            shaper.close();
        }
        directed
    })?;
    director.check()?;
    run.churn.close()?;
    same("waiting after all were answered", shaper.waiting(), 0)?;
    let summary = run.churn.summary(director.most());
    at_rest(&shaper)?;
    close(&shaper)?;
    Ok(summary)
}

/// Ends pauses and sets the fastest quota, under which nobody waits for longer than all who may be in line need, and what may be
/// owed.
fn let_all_go(director: &mut Director<'_, Shaper>, shaper: &Shaper) -> Result<(), Violation> {
    director.resume();
    director.set_quota(FASTEST);
    let permits = (TASKS + TASKS_OF_A_THREAD + THREADS + 1) * MOST_N + MOST_N;
    let most = FASTEST.period().mul_f64(permits as f64 / FASTEST.permits() as f64);
    match shaper.estimated_wait(1) {
        Some(wait) if wait <= most => Ok(()),
        wait => Err(Violation::new(format!("the wait for a permit is {wait:?}, where {most:?} is the most it can be"))),
    }
}

pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, Violation> {
    builder.enable_time().build().map_err(|error| Violation::new(format!("no runtime: {error}")))
}

/// One who asks the shaper over and over.
#[derive(Clone, Debug)]
struct Caller {
    shaper: Arc<Shaper>,
    run: Arc<Run>,
    stop: Arc<AtomicBool>,
}

impl Caller {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    async fn go_on(self, mut rng: Rng) {
        while self.goes_on() {
            let (request, n) = (self.run.churn.ask(), rng.u64(1..=MOST_N));
            let limit = Duration::from_micros(rng.u64(..20_000));
            let answer = match rng.u8(..8) {
                0 => self.shaper.try_acquire_n(n),
                1 => Ok(self.shaper.acquire_up_to(n)),
                2 => self.shaper.acquire_n(n).await,
                3 | 4 => match timeout(limit, self.shaper.acquire_n(n)).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        drop(request);
                        continue;
                    }
                },
                _ => self.shaper.acquire_n_within(n, limit).await,
            };
            if !settle(request, answer, &self.shaper, &mut rng) {
                tokio::time::sleep(Duration::from_micros(rng.u64(..2_000))).await;
            }
        }
    }

    fn go_on_without_a_runtime(self, mut rng: Rng) {
        while self.goes_on() {
            let (request, n) = (self.run.churn.ask(), rng.u64(1..=MOST_N));
            let limit = Duration::from_micros(rng.u64(..5_000));
            let answer = match rng.u8(..4) {
                0 => self.shaper.try_acquire_n(n),
                1 => block_on(self.shaper.acquire_n(n)),
                2 => {
                    let mut wait = pin!(self.shaper.acquire_n(n));
                    match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(answer) => answer,
                        Poll::Pending => {
                            // Dropped in line, or after it was granted.
                            thread::sleep(limit);
                            drop(request);
                            continue;
                        }
                    }
                }
                _ => block_on(self.shaper.acquire_n_within(n, limit)),
            };
            if !settle(request, answer, &self.shaper, &mut rng) {
                thread::sleep(Duration::from_micros(rng.u64(..2_000)));
            }
        }
    }
}

/// Ends a request as its answer says; one in eight permits comes back. Says whether there was one.
fn settle(request: Request<'_>, answer: Result<Permit<'_>, Refused>, shaper: &Shaper, rng: &mut Rng) -> bool {
    match answer {
        Ok(permit) if permit.permits() > 0 => {
            let n = permit.permits();
            match rng.u8(..16) {
                0 => request.given_back(n, || permit.give_back()),
                1 => request.given_back(n, || shaper.refund(n)),
                _ => request.granted(n),
            }
            true
        }
        Ok(_) | Err(_) => {
            request.refused();
            false
        }
    }
}

/// Finds what a shaper holds when nobody asks any more.
fn at_rest(shaper: &Shaper) -> Result<(), Violation> {
    shaper.resume();
    shaper.set_quota(Quota::per_second(0).burst(10));
    shaper.reset();
    let permit = shaper.acquire_up_to(u64::MAX);
    same("a shaper that was filled holds", permit.permits(), 10)?;
    same("after that it holds", shaper.acquire_up_to(1).permits(), 0)?;
    permit.give_back();
    same("after all were given back it holds", shaper.acquire_up_to(u64::MAX).permits(), 10)?;
    rest::carries_what_is_left(shaper, |shaper, n| shaper.acquire_up_to(n).permits())?;
    rest::grants_exactly_what_is_there(shaper, |shaper| shaper.try_acquire().is_ok())?;
    rest::fills_at_the_rate(shaper, |shaper| shaper.acquire_up_to(u64::MAX).permits())
}

/// Closes a shaper that holds permits, and finds that it grants none.
fn close(shaper: &Shaper) -> Result<(), Violation> {
    shaper.reset();
    shaper.close();
    same("a closed shaper says", shaper.try_acquire().map(drop), Err(Refused::Closed))?;
    same("a closed shaper says", block_on(shaper.acquire()).map(drop), Err(Refused::Closed))?;
    same("a closed shaper holds", shaper.acquire_up_to(1).permits(), 0)?;
    same("waiting at a closed shaper", shaper.waiting(), 0)
}

/// Waits on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
