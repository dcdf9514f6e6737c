//! What a yes or a no costs, on one thread and on two, with every system's own clock and with coarse ones.

use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::CoarseClock;

use super::{Emit, Size};
use crate::peers::{
    Decide, Law, better_bucket, floor, governor, leaky_bucket, mutex, rate_net, ratelimit, semaphore, throttle_net,
    throttlecrab, tollgate as ours, trypema,
};
use crate::record::{Case, Row};
use crate::report::Highlight;
use crate::rounds::{Contender, in_turns};

pub(crate) const HIGHLIGHTS: &[Highlight] = &[
    Highlight { case: "granted", metric: "ns", heading: "granted, ns" },
    Highlight { case: "granted", metric: "ratio_to_floor", heading: "to the floor" },
    Highlight { case: "refused", metric: "ns", heading: "refused, ns" },
    Highlight { case: "granted_contended", metric: "ns", heading: "granted, 2 threads, ns" },
    Highlight { case: "refused_contended", metric: "ns", heading: "refused, 2 threads, ns" },
    Highlight { case: "granted_coarse", metric: "ns", heading: "granted, coarse clock, ns" },
];

/// So much that no run uses it up: a permit a nanosecond, and a second of burst.
const PLENTY: Law = Law::per_second(1_000_000_000).burst(1 << 30);

/// So little that, once taken, nothing comes back.
const NOTHING: Law = Law { permits: 1, period: Duration::from_secs(86_400), burst: 2 };

/// Operations between two looks at the time that a measurement has taken.
const CHUNK: u64 = 256;

const FLOOR: &str = "tollgate's floor (clock, load, exchange)";

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    for (name, about, threads, answer) in [
        ("granted", "A permit is there: one thread, each system's own clock.", 1, true),
        ("refused", "No permit is there: one thread, each system's own clock.", 1, false),
        (
            "granted_contended",
            "A permit is there: two threads on one limiter; time of one call of one thread.",
            2,
            true,
        ),
        (
            "refused_contended",
            "No permit is there: two threads on one limiter; time of one call of one thread.",
            2,
            false,
        ),
    ] {
        emit(case(name, about, size, own_clocks(size, threads, answer)))?;
    }
    let about = "A permit is there: one thread, clocks that a thread moves on once a millisecond; governor with its own beside.";
    emit(case("granted_coarse", about, size, coarse_clocks(size)))
}

/// All that decide, set to the law that gives that answer.
fn own_clocks(size: Size, threads: usize, answer: bool) -> Vec<Contender<f64>> {
    let law = if answer { PLENTY } else { NOTHING };
    let mut contenders = vec![
        contender("tollgate", size, threads, answer, move || ours::bucket(law)),
        contender("governor", size, threads, answer, move || governor::bucket(law)),
        contender("throttle-net", size, threads, answer, move || throttle_net::throttle(law)),
        contender("better-bucket", size, threads, answer, move || better_bucket::bucket(law)),
        contender("rate-net", size, threads, answer, move || rate_net::direct(law)),
        contender("leaky-bucket", size, threads, answer, move || leaky_bucket::limiter(law)),
        contender("ratelimit", size, threads, answer, move || ratelimit::bucket(law)),
        contender("trypema (window)", size, threads, answer, move || trypema::absolute(law)),
        contender("throttlecrab (in a mutex)", size, threads, answer, move || throttlecrab::mutexed(law)),
        contender("tokio Semaphore (no clock)", size, threads, answer, move || semaphore::permits(law)),
        contender("mutexed bucket", size, threads, answer, move || mutex::bucket(law)),
    ];
    if answer {
        contenders.push(contender(FLOOR, size, threads, true, floor::floor));
    }
    contenders
}

fn coarse_clocks(size: Size) -> Vec<Contender<f64>> {
    vec![
        contender("tollgate", size, 1, true, || ours::coarse(PLENTY)),
        contender("governor", size, 1, true, || governor::coarse(PLENTY)),
        contender("governor (its own clock)", size, 1, true, || governor::bucket(PLENTY)),
        contender("rate-net", size, 1, true, || rate_net::coarse(PLENTY)),
        contender(FLOOR, size, 1, true, || floor::with_clock(CoarseClock::new(Duration::from_millis(1)))),
    ]
}

fn contender<D: Decide>(
    system: &'static str,
    size: Size,
    threads: usize,
    answer: bool,
    make: impl Fn() -> D + Send + Sync + 'static,
) -> Contender<f64> {
    let span = Duration::from_micros(size.choose(20_000, 8_000, 50));
    Contender::new(system, move || {
        let limiter = make();
        if !answer {
            // Takes what is there at the start.
            while limiter.decide() {}
        }
        nanoseconds(&limiter, threads, span, answer)
    })
}

/// The time of one call, in nanoseconds, with so many threads at once.
fn nanoseconds<D: Decide>(limiter: &D, threads: usize, span: Duration, answer: bool) -> f64 {
    let start = Barrier::new(threads);
    let measure = || {
        // Caches and predictors are warm before the time counts.
        for _ in 0..CHUNK {
            black_box(limiter.decide());
        }
        start.wait();
        let (started, mut calls, mut other) = (Instant::now(), 0u64, 0u64);
        loop {
            for _ in 0..CHUNK {
                other += u64::from(black_box(limiter.decide()) != answer);
            }
            calls += CHUNK;
            let spent = started.elapsed();
            if spent >= span {
                assert_eq!(other, 0, "{other} of {calls} calls were answered otherwise");
                return spent.as_nanos() as f64 / calls as f64;
            }
        }
    };
    let sum: f64 = if threads == 1 {
        measure()
    } else {
        thread::scope(|scope| {
            let measured: Vec<_> = (0..threads).map(|_| scope.spawn(measure)).collect();
            measured
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .sum()
        })
    };
    sum / threads as f64
}

fn case(name: &str, about: &str, size: Size, contenders: Vec<Contender<f64>>) -> Case {
    let outcomes = in_turns(size.choose(31, 9, 1), || size.limit(Duration::from_secs(10)), contenders);
    let floor = outcomes.iter().find(|(system, _)| *system == FLOOR).and_then(|(_, outcome)| outcome.clone().ok());
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(measured) => {
            // A ratio compares two measurements of the same round.
            let ratios: Vec<f64> = floor.iter().flatten().zip(&measured).map(|(floor, own)| own / floor).collect();
            Row::new(system).spread("ns", "ns", measured).spread("ratio_to_floor", "", ratios)
        }
        Err(failure) => Row::failed(system, failure),
    });
    Case { name: name.to_owned(), about: about.to_owned(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::tiny;

    #[test]
    fn every_system_answers_as_the_case_expects() {
        let cases = tiny(run);
        assert_eq!(cases.iter().map(|case| case.rows.len()).collect::<Vec<_>>(), [12, 11, 12, 11, 5]);
        for case in &cases {
            for row in &case.rows {
                assert!(row.median("ns").is_some_and(|ns| ns > 0.0), "{}: {row:?}", case.name);
            }
        }
    }

    #[test]
    fn a_limiter_that_answers_otherwise_gives_no_figure() {
        struct Never;
        impl Decide for Never {
            fn decide(&self) -> bool {
                false
            }
        }
        let outcomes = in_turns(1, || Duration::from_secs(60), vec![contender("never", Size::Tiny, 2, true, || Never)]);
        let failure = outcomes[0].1.as_ref().unwrap_err().to_string();
        assert!(failure.contains("calls were answered otherwise"), "{failure}");
    }
}
