//! Measures tollgate beside other rate limiters, in one run on one machine.
//!
//! ```text
//! cargo run --release -p peers -- decisions
//! cargo run --release -p peers -- all --quick --json
//! cargo run --release -p peers -- all --markdown --charts docs/charts
//! ```
//!
//! # Who takes part where
//!
//! `decisions`: all. `keyed`: those that have keys: governor, throttle-net, rate-net, and with strings trypema and throttlecrab too,
//! beside a map behind a mutex. `pacing` and `waiting`: those that let tasks wait, or tell how long to sleep; trypema and
//! throttlecrab do neither. `faults`: in each case those that have the feature. Where `trypema` knows windows only, it has the
//! same most at once.
//!
//! # Reading the code
//!
//! [`peers`] has the limiters, one a file, and [`suites`] what is measured of them. [`rounds`] lets systems take turns, [`isolate`]
//! survives one that panics or hangs, [`stats`] sums up, [`record`] and [`report`] tell what was found, and
//! [`pictures`] draws it. [`machine`] and [`versions`] are the head of the output.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures for people, far from any limit")]

mod args;
#[expect(dead_code, unused_imports, reason = "the examples draw more kinds of marks")]
#[path = "../../../examples/chart/mod.rs"]
mod chart;
mod isolate;
mod machine;
mod peers;
mod pictures;
mod record;
mod report;
mod rounds;
mod stats;
mod suites;
mod versions;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, panic, thread};

use clap::Parser;

use crate::args::{Args, Suite};
use crate::chart::Chart;
use crate::record::Case;
use crate::report::Highlight;
use crate::suites::{Emit, Size, decisions, faults, keyed, pacing, waiting};

fn main() -> ExitCode {
    // What a measured limiter panics with stands in the outcome.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some(isolate::THREAD) {
            usual(info);
        }
    }));
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let head = machine::head();
    if args.json || args.markdown {
        report::head(&mut io::stderr(), &head)?;
    } else {
        report::head(&mut out, &head)?;
        out.flush()?;
    }
    for suite in args.suite.each() {
        let mut cases: Vec<Case> = Vec::new();
        let mut emit = |case: Case| {
            match (args.json, args.markdown) {
                (true, _) => report::json(&mut out, suite.name(), &case)?,
                (_, true) => eprintln!("{}: {} is done", suite.name(), case.name),
                _ => report::table(&mut out, suite.name(), &case)?,
            }
            cases.push(case);
            Ok(())
        };
        let size = if args.quick { Size::quick() } else { Size::Full };
        measure(suite, size, &mut emit)?;
        if let (Some(folder), Some(draw)) = (&args.charts, picture(suite)) {
            write(folder, suite, &draw(&cases))?;
        }
        if args.markdown {
            writeln!(out, "`{}`: {}.\n", suite.name(), machine::line())?;
            match suite {
                Suite::Faults => report::verdicts(&mut out, &cases)?,
                _ => report::markdown(&mut out, highlights(suite), &cases)?,
            }
        }
    }
    Ok(())
}

fn measure(suite: Suite, size: Size, emit: Emit<'_>) -> io::Result<()> {
    match suite {
        Suite::Decisions => decisions::run(size, emit),
        Suite::Keyed => keyed::run(size, emit),
        Suite::Pacing => pacing::run(size, emit),
        Suite::Waiting => waiting::run(size, emit),
        Suite::Faults => faults::run(size, emit),
        Suite::All => Ok(()),
    }
}

/// What draws the picture of a suite that has one.
fn picture(suite: Suite) -> Option<fn(&[Case]) -> Chart> {
    match suite {
        Suite::Keyed => Some(pictures::keyed),
        Suite::Pacing => Some(pictures::pacing),
        _ => None,
    }
}

fn write(folder: &Path, suite: Suite, picture: &Chart) -> io::Result<()> {
    let file = folder.join(format!("{}.svg", suite.name()));
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let text = chart::svg(picture).map_err(|error| told(io::Error::other(error.to_string())))?;
    fs::create_dir_all(folder).and_then(|()| fs::write(&file, text)).map_err(told)
}

fn highlights(suite: Suite) -> &'static [Highlight] {
    match suite {
        Suite::Decisions => decisions::HIGHLIGHTS,
        Suite::Keyed => keyed::HIGHLIGHTS,
        Suite::Pacing => pacing::HIGHLIGHTS,
        Suite::Waiting => waiting::HIGHLIGHTS,
        _ => &[],
    }
}
