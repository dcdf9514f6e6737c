//! Replays requests through every law and draws what becomes of them.
//!
//! ```text
//! cargo run --release --example compare
//! cargo run --release --example compare -- --limit 5 --window 10 8 8.5 9 9.2 9.5 10 10.2
//! grep -o '^[0-9.]*' access.log | cargo run --release --example compare -- --file -
//! ```
//!
//! Without times it replays the patterns of two articles in which the laws are explained, and the lines are the articles' own. Each
//! pattern becomes a picture too: when requests came, which were admitted and refused by each law, and when the leaky queue
//! serves them, all on one time axis.
//!
//! The limiters are asked with the time given (`try_acquire_at`, `schedule_at`), so nothing waits and every run is the same. Times
//! are read and written as decimal numbers and never become floating point numbers.
//!
//! # What is refused
//!
//! Times must be plain decimal numbers of seconds, at least 0, at most 18446744073.709551615 (a `u64` of nanoseconds), with nine digits
//! behind the point at most, and in order: every law takes times that go back, but a list that does is more likely a mistake. The
//! message says where it stands and why it is refused; the exit code is 2, and nothing is printed or drawn. It is 1 if a picture or
//! the outcome can't be written.
//!
//! # Reading the code
//!
//! [`replay`] asks the laws; all that a program of your own needs is in there. [`pattern`] has the traffic and [`setting`] the limits.
//! [`times`] and [`seconds`] read, [`picture`] and [`scale`] draw.

#![allow(clippy::arithmetic_side_effects, reason = "times are widened where they could overflow, the rest are pixels")]

mod args;
mod pattern;
mod picture;
mod replay;
mod scale;
mod seconds;
mod setting;
mod times;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fmt, fs};

use clap::Parser;
use tollgate::QuotaError;

use crate::args::Args;
use crate::pattern::Pattern;
use crate::replay::Comparison;
use crate::times::BadTimes;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("compare: {failure}");
            failure.code()
        }
    }
}

/// Why nothing came of it.
#[derive(Debug)]
enum Failure {
    /// The file with the times could not be read.
    Read(PathBuf, io::Error),
    /// There is something wrong with the times, in that file if there is one.
    Times(Option<PathBuf>, BadTimes),
    Quota(QuotaError),
    Print(io::Error),
    Picture(PathBuf, io::Error),
}

impl Failure {
    fn code(&self) -> ExitCode {
        match self {
            Self::Read(..) | Self::Times(..) | Self::Quota(_) => ExitCode::from(2),
            Self::Print(_) | Self::Picture(..) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", source(path)),
            Self::Times(Some(path), bad) => write!(f, "{}: {bad}", source(path)),
            Self::Times(None, bad) => write!(f, "{bad}"),
            Self::Quota(error) => write!(f, "{error}"),
            Self::Print(error) => write!(f, "cannot print the outcome: {error}"),
            Self::Picture(path, error) => write!(f, "cannot write the picture {}: {error}", path.display()),
        }
    }
}

/// Replays all patterns, prints what became of the requests, and draws it.
fn run(args: &Args) -> Result<(), Failure> {
    let patterns = patterns(args)?;
    let comparisons =
        patterns.into_iter().map(Comparison::of).collect::<Result<Vec<_>, _>>().map_err(Failure::Quota)?;
    let blocks: Vec<_> = comparisons.iter().map(ToString::to_string).collect();
    io::stdout().write_all(blocks.join("\n").as_bytes()).map_err(Failure::Print)?;

    let charts = args.charts();
    fs::create_dir_all(&charts).map_err(|error| Failure::Picture(charts.clone(), error))?;
    for comparison in &comparisons {
        let path = charts.join(comparison.pattern.name).with_extension("svg");
        let svg = picture::svg(comparison).map_err(io::Error::other);
        svg.and_then(|svg| fs::write(&path, svg)).map_err(|error| Failure::Picture(path.clone(), error))?;
        eprintln!("picture of the {}: {}", comparison.pattern.name, path.display());
    }
    Ok(())
}

/// The traffic that was asked for: times of one's own, or the patterns.
fn patterns(args: &Args) -> Result<Vec<Pattern>, Failure> {
    let times = match &args.file {
        Some(path) => {
            let input = read(path).map_err(|error| Failure::Read(path.clone(), error))?;
            times::from_lines(&input).map_err(|bad| Failure::Times(Some(path.clone()), bad))?
        }
        None if args.times.is_empty() => {
            let patterns = pattern::all().into_iter();
            return Ok(patterns.map(|pattern| Pattern { setting: args.over(pattern.setting), ..pattern }).collect());
        }
        None => times::from_arguments(&args.times).map_err(|bad| Failure::Times(None, bad))?,
    };
    Ok(vec![Pattern { name: "times", title: "Times as given", setting: args.setting(), times }])
}

/// The name of an input.
fn source(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut input = Vec::new();
        io::stdin().read_to_end(&mut input)?;
        return Ok(input);
    }
    fs::read(path)
}
