//! A service that falls over when it is called too fast, and a shaper that keeps it standing.
//!
//! ```text
//! cargo run --release --example fragile_service
//! ```
//!
//! The service is a real HTTP server on a loopback port. It bears so many calls a second. Called faster, it falls over and
//! answers `503 Service Unavailable` for a second. Fifty tasks call it as fast as they can, in one phase after the other:
//!
//! - `unlimited`: nothing holds them back. The service falls over, again and again.
//! - `shaped`: they share one `Arc<Shaper>` and take a permit before each call. The service must never fall over.
//! - `deadlines`: the same with callers that have no time. Each waits for a random short time (`acquire_within`), some drop
//!   their wait before it is over, and those who were refused come back when they were told. Midway the service answers one
//!   call `429` with `Retry-After: 1`. Who gets that pauses the shaper, for all. Nobody may call meanwhile, nobody leaves in a
//!   burst when the second is over, and the service must never fall over. The phase takes that second longer than the others.
//!
//! Progress goes to standard error, the table (or with `--json` one object a phase) to standard output. A picture of what the
//! service saw goes to `fragile_service/arrivals.svg` in cargo's target folder, or where `--charts` says; `--help` tells what the
//! columns and the picture mean. The run ends by itself within 20 seconds. The exit code is 0 if the service stood through every shaped phase, 1 if it fell over in one (or no call
//! was served there, or the run could not be made), and 2 for arguments that make no sense.
//!
//! All that a program of your own needs is in [`pace`]: build a shaper, share it, wait for a permit, call.
//!
//! # The law of the service, and its tolerance
//!
//! The service judges what arrives at it, with code of its own ([`law`]) that knows nothing of the limiter: in **every** span of
//! time W, at most `rate * W + allowance` calls, with
//!
//! ```text
//! allowance = tasks + 1 + rate * 5 ms          53.5 calls with the defaults, what the rate brings in 107 ms
//! ```
//!
//! That is just what a shaped caller can be held to, whatever the machine does in between:
//!
//! - `1 + rate * 5 ms`: the shaper lets at most `1 + catch_up * rate + rate * W` permits go in a span W. With 5 ms of
//!   `catch_up` it makes good for timers that fire late.
//! - `tasks`: a permit goes at one instant and its call arrives at a later one. Between the two lie a task that waits to be
//!   scheduled, a socket, and the server's own task. A task makes one call at a time, so at most `tasks` calls are under way
//!   when a span begins. All others that arrive in it got their permits in it.
//!
//! Hence a stall of the machine, however long, cannot topple the shaped phase: it makes at most `tasks` calls arrive at once.
//! Callers that are too fast for good use up the allowance soon: at twice the rate, within 107 ms.
//!
//! What a stall costs is seen in the delivered rate: the shaper makes good for 5 ms and loses the rest on purpose, since to make
//! it up would be to call too fast. The busier the machine, the further the delivered rate is below the configured one.
//!
//! While it asks for peace, a second law holds for the calls of that second: `tasks + 1 + rate * 505 ms` in all, 303.5 with the
//! defaults. `tasks` were under way at most, and `1 + rate * 5 ms + rate * 500 ms` is what a shaper lets go within half a
//! second. So half a second is the time that the 429 may take to be heard: it must travel to its caller, and that task must be
//! scheduled. A stall of the whole process counts little, since the shaper grants nothing in it. Callers that do not hear the
//! answer use that up in 607 ms; with a rate of less than twice the tasks they cannot, and this law says little.
//!
//! The unlimited phase falls over as long as the machine can call faster than `--rate`, which are tens of thousands of calls a
//! second even on two cores. Above that nothing falls, and a line says so.
//!
//! # Reading the code
//!
//! [`phase`] runs one phase; a further one is a variant of its enum. [`client`] calls, at the pace of [`pace`]. [`server`] speaks
//! HTTP for [`service`], which falls over when the judge of [`law`] says so. [`report`] turns what happened into the table and
//! [`picture`] into a chart, which [`chart`] draws; [`progress`] is the bar on a terminal.

#![allow(clippy::arithmetic_side_effects, reason = "counts and times of a run of seconds are far from any edge")]

mod args;
#[path = "../chart/mod.rs"]
mod chart;
mod client;
mod failure;
mod law;
mod pace;
mod phase;
mod picture;
mod progress;
mod report;
mod server;
mod service;

use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use clap::Parser;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::args::{Args, WHOLE_RUN};
use crate::failure::Failure;
use crate::phase::Phase;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            report::say(
                "a shaped phase failed: the service fell over, or no call was served, or it did not come to its 429",
            );
            ExitCode::FAILURE
        }
        Err(failure) => {
            report::say(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Runs all phases, prints their outcomes, draws their picture, and says whether all went as they must.
fn run(args: &Args) -> Result<bool, Failure> {
    let charts = args.charts();
    // First of all: a folder that cannot be made should not be found out at the end.
    fs::create_dir_all(&charts).map_err(|error| Failure::Picture(charts.clone(), error))?;

    let runtime = Runtime::new().map_err(Failure::Runtime)?;
    let phases = async {
        let (mut outcomes, mut seen) = (Vec::new(), Vec::new());
        for phase in Phase::ALL {
            let (outcome, calls) = phase.run(args).await?;
            outcomes.push(outcome);
            seen.push((phase, calls));
        }
        Ok((outcomes, seen))
    };
    // Arguments that would take longer are refused, so only a machine that hardly runs gets here. A second is left to end in.
    let limit = WHOLE_RUN.saturating_sub(Duration::from_secs(1));
    let (outcomes, seen) =
        runtime.block_on(async { timeout(limit, phases).await }).map_err(|_| Failure::Late(limit))??;

    report::print(&outcomes, args.json).map_err(Failure::Print)?;
    let path = charts.join("arrivals.svg");
    let svg = chart::svg(&picture::picture(args, &seen)).map_err(io::Error::other);
    svg.and_then(|svg| fs::write(&path, svg)).map_err(|error| Failure::Picture(path.clone(), error))?;
    report::say(&format!("picture: {} (what it and the columns mean: --help)", path.display()));
    Ok(Phase::ALL.iter().zip(&outcomes).all(|(phase, outcome)| phase.passed(outcome)))
}
