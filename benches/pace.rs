//! What a shaper delivers in real time, with either timer: the rate in percent of the configured one, the spacing of departures
//! relative to T, polls per permit, the processor time of the whole process in percent of one core, and pairs out of order. A
//! plain program, since these are ratios within one run and no times of an operation.
//!
//! `cargo bench --bench pace` takes two seconds a line; `-- --test` runs everything once, briefly; `-- --seconds N` takes N.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures for people")]

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tollgate::{Quota, Shaper, Timer};

/// One departure: when, and how often its task was polled for it.
struct Departure {
    at: Duration,
    polls: u32,
}

struct Measured {
    delivered: f64,
    gaps: [f64; 3],
    polls: f64,
    /// Where the system tells it.
    cpu: Option<f64>,
}

/// `tasks` callers in a loop on one shaper of `rate` per second.
fn run(timer: Timer, rate: u64, tasks: usize, span: Duration) -> Measured {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let departures = Arc::new(Mutex::new(Vec::new()));
    let shaper = Arc::new(Shaper::builder(Quota::per_second(rate)).timer(timer).build());
    let (started, cpu) = (Instant::now(), processor_time());
    runtime.block_on(async {
        let callers: Vec<_> = (0..tasks)
            .map(|_| {
                let (shaper, departures) = (Arc::clone(&shaper), Arc::clone(&departures));
                tokio::spawn(async move {
                    while started.elapsed() < span {
                        let polls = counted(&shaper).await;
                        let at = started.elapsed();
                        departures.lock().expect("no panic").push(Departure { at, polls });
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("no panic");
        }
    });
    let took = started.elapsed();
    let cpu =
        processor_time().zip(cpu).map(|(after, before)| 100.0 * (after - before).as_secs_f64() / took.as_secs_f64());
    let departures = departures.lock().expect("no panic");
    let interval = 1.0 / rate as f64;
    let mut gaps: Vec<f64> =
        departures.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at).as_secs_f64() / interval).collect();
    gaps.sort_by(f64::total_cmp);
    let quantile = |q: f64| gaps.get((gaps.len() as f64 * q) as usize).copied().unwrap_or(f64::NAN);
    let inside: Vec<&Departure> = departures.iter().filter(|departure| departure.at <= span).collect();
    let polls: u32 = departures.iter().map(|departure| departure.polls).sum();
    // From the first departure to the last: one interval fewer than departures.
    let spent = inside.last().zip(inside.first()).map_or(0.0, |(last, first)| (last.at - first.at).as_secs_f64());
    Measured {
        delivered: 100.0 * (inside.len() as f64 - 1.0) * interval / spent,
        gaps: [quantile(0.01), quantile(0.5), quantile(0.99)],
        polls: f64::from(polls) / departures.len() as f64,
        cpu,
    }
}

/// The processor time that this process has used, to a hundredth of a second; where there is no `/proc`, none.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may hold anything; user and system time are the 12th and 13th number after it.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = numbers.next()?.parse().ok()?;
    let system: u64 = numbers.next()?.parse().ok()?;
    Some(Duration::from_millis(10 * (ticks + system)))
}

/// `waiters` tasks at once, spawned in order on one thread: polls per permit, and neighbours that left in another order.
fn crowd(timer: Timer, rate: u64, waiters: usize) -> (f64, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let shaper = Arc::new(Shaper::builder(Quota::per_second(rate)).timer(timer).build());
    let left = Arc::new(Mutex::new(Vec::new()));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..waiters)
            .map(|place| {
                let (shaper, left) = (Arc::clone(&shaper), Arc::clone(&left));
                tokio::spawn(async move {
                    let polls = counted(&shaper).await;
                    left.lock().expect("no panic").push((place, polls));
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    let left = left.lock().expect("no panic");
    let polls: u32 = left.iter().map(|(_, polls)| polls).sum();
    let inverted = left.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    (f64::from(polls) / waiters as f64, inverted)
}

/// Waits for a permit and counts the polls that it takes.
async fn counted(shaper: &Shaper) -> u32 {
    let (mut wait, mut polls) = (pin!(shaper.acquire()), 0);
    let granted = std::future::poll_fn(|cx| {
        polls += 1;
        wait.as_mut().poll(cx)
    });
    let _permit = granted.await.expect("neither bounded nor closed");
    polls
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let brief = arguments.iter().any(|word| word == "--test");
    let seconds =
        arguments.iter().position(|word| word == "--seconds").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let span = if brief { Duration::from_millis(50) } else { Duration::from_secs(seconds.unwrap_or(2)) };
    println!(
        "{:>8} {:>8} {:>6} {:>11} {:>22} {:>13} {:>6}",
        "timer", "rate/s", "tasks", "delivered %", "gap/T p1   p50    p99", "polls/permit", "cpu %"
    );
    for rate in [100, 1_000, 5_000, 20_000] {
        for tasks in [1, 50] {
            for (name, timer) in timers() {
                let Measured { delivered, gaps: [p1, p50, p99], polls, cpu } = run(timer, rate, tasks, span);
                let cpu = cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.1}"));
                println!(
                    "{name:>8} {rate:>8} {tasks:>6} {delivered:>11.2} {p1:>8.2} {p50:>6.2} {p99:>6.2} {polls:>13.2} {cpu:>6}"
                );
            }
        }
    }
    let waiters = if brief { 100 } else { 2_000 };
    for rate in [2_000, 20_000] {
        for (name, timer) in timers() {
            let (polls, inverted) = crowd(timer, rate, waiters);
            println!(
                "{name}: {waiters} at once, {rate}/s: {polls:.3} polls per permit, {inverted} neighbours out of order"
            );
        }
    }
}

fn timers() -> [(&'static str, Timer); 2] {
    [("runtime", Timer::Runtime), ("precise", Timer::Precise)]
}
