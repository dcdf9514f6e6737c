//! A soak: threads and runtimes do to a token bucket and to shapers whatever can be done to them, for as long as is wanted.
//!
//! ```text
//! cargo run --release --example soak -- --seconds 60
//! ```
//!
//! Four parts run side by side:
//!
//! - `bucket`: threads take, look and refund, while one thread changes the quota, pauses, resumes and resets. ([`bucket`])
//! - `wild`: the same, but every thread changes quotas and pauses too.
//! - `churn`: tasks of two runtimes and threads without one ask a shaper for permits in every way there is, drop waits, and
//!   give permits back, while its quota changes and pauses come and go. ([`churn`])
//! - `crowd`: 100,000 tasks wait at once, a storm of cancellations comes, the pace changes under those who are left, and all
//!   end; again and again. The last crowd is sent home by `close`. ([`crowd`])
//!
//! What must hold, or the exit code is 1 and a line says what did not:
//!
//! - Never more permits granted than the law allows, from the start to any moment. The bound is kept on the limiter's own clock
//!   by [`allowance`](allowance::Allowance), which reads it before and after each change and assumes the worse. So a machine that
//!   stalls cannot break it.
//! - Each request ended as exactly one of granted, refused, cancelled and given back. Nobody is stuck.
//! - At rest nobody waits, and the bucket holds what its law gives, to the permit.
//! - Memory is flat: with 100,000 waiting, the process is not larger in the last crowd than in the first ones.
//!
//! What it cannot see: one permit too many within a short span, if the total is right. The tests and the models look at that.

#![allow(clippy::arithmetic_side_effects, reason = "counts and times of a run of a day are far from any edge")]

mod allowance;
mod bucket;
mod churn;
mod crowd;
mod director;
mod ledger;
mod memory;
mod rest;
mod violation;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::ledger::Ledger;
use crate::violation::{STUCK, Violation};

const DETAILS: &str = "\
A line a second says what was asked and granted so far, as a part of what the law allows, and how large the process is. The
seed decides who does what; what happens when is up to the machine, so the same seed does not make the same run.

Exit code:
  0 if all held, 1 if something did not (standard error says what), 2 for arguments that are refused. The run ends a few
  seconds after the given time: whoever is on the way is waited for, the last crowd sent home, and the books are closed.";

/// Does to a token bucket and to shapers whatever can be done to them, and checks that their laws hold.
#[derive(Clone, Copy, Debug, Parser)]
#[command(name = "soak", after_long_help = DETAILS)]
struct Args {
    /// How long to go on, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Decides who does what; without it another one each time, which is printed
    #[arg(long)]
    seed: Option<u64>,
}

/// What all parts share.
#[derive(Debug)]
struct Run {
    seed: u64,
    start: Instant,
    end: Instant,
    broken_off: AtomicBool,
    bucket: Ledger,
    wild: Ledger,
    churn: Ledger,
    crowd: Ledger,
}

impl Run {
    /// Whether the time is over, or another part has found a violation.
    fn is_over(&self) -> bool {
        Instant::now() >= self.end || self.broken_off.load(Ordering::Relaxed)
    }

    /// Ends all parts early.
    fn break_off(&self) {
        self.broken_off.store(true, Ordering::Relaxed);
    }
}

/// A part, by its name.
type Part = (&'static str, JoinHandle<Result<String, Violation>>);

fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("soak for {} s, seed {seed}", args.seconds);
    if memory::resident().is_none() {
        println!(
            "the size of the process cannot be read here (no /proc/self/statm): whether memory is flat is not checked"
        );
    }
    let start = Instant::now();
    let run = Arc::new(Run {
        seed,
        start,
        end: start + Duration::from_secs(args.seconds),
        broken_off: AtomicBool::new(false),
        bucket: Ledger::default(),
        wild: Ledger::default(),
        churn: Ledger::default(),
        crowd: Ledger::default(),
    });

    let parts = vec![
        part("bucket", bucket::orderly, &run),
        part("wild", bucket::wild, &run),
        part("churn", churn::run, &run),
        part("crowd", crowd::run, &run),
    ];
    match watch(parts, &run) {
        Ok(()) => {
            println!("all held, after {:.1} s", start.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("VIOLATION with seed {seed}, after {:.1} s: {violation}", start.elapsed().as_secs_f64());
            ExitCode::FAILURE
        }
    }
}

fn part(name: &'static str, work: fn(&Arc<Run>) -> Result<String, Violation>, run: &Arc<Run>) -> Part {
    let run = Arc::clone(run);
    (name, thread::spawn(move || work(&run)))
}

/// Says a line a second until all parts are over, then what came of each. The first violation ends it.
fn watch(mut parts: Vec<Part>, run: &Run) -> Result<(), Violation> {
    let (mut line, mut summaries) = (1, Vec::new());
    while !parts.is_empty() {
        thread::sleep(Duration::from_millis(10));
        if run.start.elapsed() >= Duration::from_secs(line) {
            println!("{line:>5} s  {}", progress(run));
            line += 1;
        }
        while let Some(over) = parts.iter().position(|(_, part)| part.is_finished()) {
            let (name, part) = parts.swap_remove(over);
            let ended = part.join().unwrap_or_else(|_| Err(Violation::new("it panicked")));
            match ended {
                Ok(summary) => summaries.push(format!("{name:<7} {summary}")),
                Err(violation) => {
                    run.break_off();
                    return Err(violation.of(name));
                }
            }
        }
        if Instant::now() > run.end + 2 * STUCK {
            let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
            return Err(Violation::new(format!("not over {:?} after the end: {}", 2 * STUCK, names.join(", "))));
        }
    }
    summaries.sort_unstable();
    summaries.iter().for_each(|summary| println!("{summary}"));
    Ok(())
}

fn progress(run: &Run) -> String {
    let size = memory::resident().map_or_else(String::new, |size| format!("  {} MiB", size >> 20));
    let parts = [("bucket", &run.bucket), ("wild", &run.wild), ("churn", &run.churn), ("crowd", &run.crowd)];
    let parts = parts.map(|(name, ledger)| format!("{name} {}/{}", ledger.permits(), ledger.asked()));
    format!("permits/requests: {}{size}", parts.join("  "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        let help = Args::command().render_long_help().to_string();
        for word in ["--seconds", "--seed", "Exit code"] {
            assert!(help.contains(word), "{word} is missing in:\n{help}");
        }
        for seconds in ["0", "86401", "x"] {
            assert!(Args::try_parse_from(["soak", "--seconds", seconds]).is_err());
        }
    }
}
