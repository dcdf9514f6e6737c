//! Tables of keys under load, with exact books.
//!
//! ```text
//! cargo run --release --example keys                                   each of the three, briefly
//! cargo run --release --example keys -- stress --seconds 600 --threads 8
//! cargo run --release --example keys -- flood --keys 10000000 --places 100000
//! cargo run --release --example keys -- placement --tables 1000
//! ```
//!
//! - `stress`: threads with disordered times do to a table of each law what can be done to it, while far more keys come than there
//!   are places and the time steps forwards and back. No key ever has more than its law gives, none is refused what it gives, and
//!   when all have gone every key has exactly that. ([`stress`])
//! - `flood`: keys that are never seen again come through a small table. The process does not grow, a client in debt stays in debt,
//!   newcomers are treated as documented. ([`flood`])
//! - `placement`: tables of several sizes are filled to the last place with random keys. How many newcomers find no place
//!   although there are some? ([`placement`])

#![allow(clippy::arithmetic_side_effects, reason = "counts and times of a run of a day are far from any edge")]

mod books;
mod flood;
#[path = "../soak/memory.rs"]
mod memory;
mod placement;
mod stress;
mod subject;
mod times;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

const DETAILS: &str = "\
Exit code:
  0 if all held, 1 if something did not (standard error says what), 2 for arguments that are refused. Times of calls are printed
  and not judged: they are the machine's.";

/// Puts tables of keys under load, and checks what they promise.
#[derive(Clone, Copy, Debug, Parser)]
#[command(name = "keys", after_long_help = DETAILS)]
struct Args {
    /// What all random choices start from; the same seed makes the same choices, but not the same interleaving.
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// All three, briefly, if none is named.
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum What {
    /// Threads with disordered times at a table of each law.
    Stress(stress::Args),
    /// Keys that are never seen again, through a small table.
    Flood(flood::Args),
    /// Tables that are filled to the last place.
    Placement(placement::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let start = Instant::now();
    let all = match args.what {
        Some(What::Stress(args)) => stress::run(args, seed),
        Some(What::Flood(args)) => flood::run(args, seed),
        Some(What::Placement(args)) => placement::run(args, seed),
        None => stress::run(stress::Args::BRIEF, seed)
            .and_then(|()| flood::run(flood::Args::BRIEF, seed))
            .and_then(|()| placement::run(placement::Args::BRIEF, seed)),
    };
    match all {
        Ok(()) => {
            println!("all held, after {}", seconds(start.elapsed()));
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("VIOLATION with seed {seed}: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

/// Finds that two figures differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}")) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        for arguments in ["keys", "keys stress --threads 8", "keys flood --keys 10 --seed 3", "keys placement"] {
            assert!(Args::try_parse_from(arguments.split(' ')).is_ok(), "{arguments}");
        }
        for arguments in ["keys stress --threads 1", "keys stress --threads 9", "keys stress --seconds 0", "keys sweep"]
        {
            assert!(Args::try_parse_from(arguments.split(' ')).is_err(), "{arguments}");
        }
    }
}
