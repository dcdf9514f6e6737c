//! What rate is delivered, and how evenly.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::waiters::{OfWaiters, contender, contenders};
use super::{Emit, Size};
use crate::machine::ProcessorTime;
use crate::peers::{Law, Wait};
use crate::record::{Case, Row};
use crate::report::{Highlight, number};
use crate::rounds::in_turns;
use crate::stats::{most_within, quantile};

pub(crate) const HIGHLIGHTS: &[Highlight] = &[
    Highlight { case: "100_per_s_50_tasks", metric: "delivered", heading: "delivered, %: 100/s, 50 tasks" },
    Highlight { case: "1000_per_s_1_tasks", metric: "delivered", heading: "1,000/s, 1 task" },
    Highlight { case: "1000_per_s_50_tasks", metric: "delivered", heading: "1,000/s, 50 tasks" },
    Highlight { case: "5000_per_s_1_tasks", metric: "delivered", heading: "5,000/s, 1 task" },
    Highlight { case: "5000_per_s_50_tasks", metric: "delivered", heading: "5,000/s, 50 tasks" },
    Highlight { case: "20000_per_s_50_tasks", metric: "delivered", heading: "20,000/s, 50 tasks" },
    Highlight { case: "1000_per_s_50_tasks", metric: "spacing_p99", heading: "p99 of spacing, T: 1,000/s, 50 tasks" },
    Highlight { case: "5000_per_s_50_tasks", metric: "cpu", heading: "cpu, %: 5,000/s, 50 tasks" },
];

pub(crate) const RATES: [u32; 5] = [100, 500, 1_000, 5_000, 20_000];
pub(crate) const TASKS: [usize; 3] = [1, 16, 50];

pub(crate) const CONTROL: &str = "anchored control (no limiter)";

pub(crate) fn name(rate: u32, tasks: usize) -> String {
    format!("{rate}_per_s_{tasks}_tasks")
}

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    for rate in RATES {
        for tasks in TASKS {
            emit(case(size, rate, tasks))?;
        }
    }
    Ok(())
}

/// The schedule that no limiter can better: slots counted from one start, and tokio's timer.
struct Anchored {
    start: tokio::time::Instant,
    slot: AtomicU64,
    law: Law,
}

fn anchored(law: Law) -> Anchored {
    Anchored { start: tokio::time::Instant::now(), slot: AtomicU64::new(0), law }
}

impl Wait for Anchored {
    async fn wait(&self, n: u32) {
        let slot = self.slot.fetch_add(n.into(), Ordering::Relaxed);
        let nanos = u128::from(slot) * self.law.period.as_nanos() / u128::from(self.law.permits);
        tokio::time::sleep_until(self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))).await;
    }
}

#[derive(Clone)]
struct Pace {
    rate: u32,
    tasks: usize,
    span: Duration,
}

struct Departures {
    delivered: Option<f64>,
    /// The shortest but for 1 in 100, the middle, the longest but for 1 in 100, and the longest.
    spacing: Option<[f64; 4]>,
    most: usize,
    cpu: Option<f64>,
}

impl OfWaiters for Pace {
    type Found = Departures;

    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Departures {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
        let departures = Arc::new(Mutex::new(Vec::new()));
        let (took, cpu) = runtime.block_on(async {
            let limiter = Arc::new(make(Law::per_second(self.rate)));
            let (started, before) = (Instant::now(), ProcessorTime::now());
            for _ in 0..self.tasks {
                let (limiter, departures) = (Arc::clone(&limiter), Arc::clone(&departures));
                tokio::spawn(async move {
                    loop {
                        limiter.wait(1).await;
                        let at = started.elapsed();
                        departures.lock().expect("no panic").push(at);
                    }
                });
            }
            tokio::time::sleep(self.span).await;
            (started.elapsed(), ProcessorTime::now().since(&before))
        });
        runtime.shutdown_background();
        let departures = departures.lock().expect("no panic");
        let inside = departures.iter().filter(|&&at| at <= self.span);
        let mut times: Vec<f64> = inside.map(|at| at.as_secs_f64() * f64::from(self.rate)).collect();
        times.sort_by(f64::total_cmp);
        Departures { cpu: cpu.map(|cpu| 100.0 * cpu as f64 / took.as_nanos() as f64), ..evaluate(&times) }
    }
}

/// What sorted departures tell, whose times are in units of T.
fn evaluate(times: &[f64]) -> Departures {
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    let spacing = [0.01, 0.5, 0.99, 1.0].map(|q| quantile(&gaps, q));
    // From the second departure to the last, one interval fewer than departures: the first waits for no timer.
    let waited = times.get(1..).unwrap_or_default();
    let spent = waited.last().zip(waited.first()).map_or(0.0, |(last, first)| last - first);
    Departures {
        delivered: (spent > 0.0).then(|| 100.0 * (waited.len() as f64 - 1.0) / spent),
        spacing: match spacing {
            [Some(p1), Some(p50), Some(p99), Some(max)] => Some([p1, p50, p99, max]),
            _ => None,
        },
        most: most_within(times, 10.0),
        cpu: None,
    }
}

fn case(size: Size, rate: u32, tasks: usize) -> Case {
    // The slower, the longer, so that there is something to count.
    let brief = if rate <= 100 { 400 } else { 220 };
    let span = Duration::from_millis(size.choose(1_000, brief, 10));
    let measure = Pace { rate, tasks, span };
    let mut systems = contenders(&measure);
    systems.push(contender(CONTROL, &measure, anchored));
    let outcomes = in_turns(size.choose(3, 1, 1), || size.limit(span + Duration::from_secs(5)), systems);
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => {
            let spacing = |index: usize| found.iter().filter_map(move |run| Some(run.spacing?[index]));
            Row::new(system)
                .spread("delivered", "%", found.iter().filter_map(|run| run.delivered))
                .spread("spacing_p1", "T", spacing(0))
                .spread("spacing_p50", "T", spacing(1))
                .spread("spacing_p99", "T", spacing(2))
                .spread("spacing_max", "T", spacing(3))
                .spread("most_in_10_T", "", found.iter().map(|run| run.most as f64))
                .spread("cpu", "%", found.iter().filter_map(|run| run.cpu))
        }
        Err(failure) => Row::failed(system, failure),
    });
    let tasks_word = if tasks == 1 { "task" } else { "tasks" };
    Case {
        name: name(rate, tasks),
        about: format!(
            "{tasks} {tasks_word} in a loop, {} permits a second, burst 1, a runtime of two threads; T is the time between two permits, cpu is of one core.",
            number(rate.into())
        ),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::tiny;

    #[test]
    fn departures_tell_rate_and_spacing() {
        let even: Vec<f64> = (0..101).map(f64::from).collect();
        let found = evaluate(&even);
        assert_eq!((found.delivered, found.spacing, found.most), (Some(100.0), Some([1.0; 4]), 10));
        // Two at a time, every second T.
        let bunched: Vec<f64> = (0..101).map(|at| f64::from(at / 2 * 2)).collect();
        let found = evaluate(&bunched);
        assert_eq!((found.spacing, found.most), (Some([0.0, 2.0, 2.0, 2.0]), 10));
        let slow: Vec<f64> = (0..50).map(|at| f64::from(at) * 2.0).collect();
        assert_eq!(evaluate(&slow).delivered, Some(50.0));
        assert_eq!((evaluate(&[3.0]).delivered, evaluate(&[3.0, 4.0]).delivered), (None, None));
        assert_eq!(evaluate(&[]).most, 0);
    }

    #[test]
    fn every_system_is_measured_beside_the_control() {
        let cases = tiny(run);
        assert_eq!(cases.len(), RATES.len() * TASKS.len());
        for case in &cases {
            assert_eq!(case.rows.len(), 11);
            for row in &case.rows {
                assert!(row.get("failed").is_none(), "{}: {row:?}", case.name);
                assert!(row.get("most_in_10_T").is_some(), "{}: {row:?}", case.name);
            }
        }
    }
}
