//! How full a table gets before a newcomer finds no place.

use std::hash::{BuildHasher, Hasher};

use clap::value_parser;
use fastrand::Rng;
use tollgate::{Keyed, Quota, Refused};

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many keys are put into tables of each size, all in all.
    #[arg(long, default_value_t = 20_000_000, value_parser = value_parser!(u64).range(1..))]
    keys: u64,
}

impl Args {
    pub(crate) const BRIEF: Self = Self { keys: 500_000 };
}

/// The same fingerprints for the same seed, on every machine.
#[derive(Clone, Copy)]
struct Same;

#[derive(Default)]
struct Itself(u64);

impl BuildHasher for Same {
    type Hasher = Itself;

    fn build_hasher(&self) -> Itself {
        Itself::default()
    }
}

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, _: &[u8]) {}
}

/// Fills tables of several sizes with random keys up to `max_keys`.
pub(crate) fn run(args: Args, seed: u64) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    for size in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let tables = (args.keys / size).max(1);
        if size > args.keys {
            continue;
        }
        let mut early = 0;
        let mut fullest = 0;
        for _ in 0..tables {
            let table = table(size)?;
            early += (0..size).filter(|_| !takes_in(&table, rng.u64(..))).count() as u64;
            if size <= 10_000 {
                // How many a table takes until it has to say no: more than was promised.
                let further = (0..).take_while(|_: &u64| takes_in(&table, rng.u64(..))).count() as u64;
                fullest += size + further;
            }
        }
        let beyond = if fullest > 0 {
            format!("; the first no came at {:.2} x max_keys", fullest as f64 / (tables * size) as f64)
        } else {
            String::new()
        };
        println!(
            "placement  max_keys {size:7}: {early} of {} newcomers found no place while filling {tables} tables{beyond}",
            tables * size
        );
        // One in a million; by chance more than that is out of the question at the sizes that are run.
        if early > 2 + tables * size / 1_000_000 {
            return Err(format!("{early} early refusals in {tables} tables of {size}"));
        }
    }
    Ok(())
}

fn table(size: u64) -> Result<Keyed<u64, tollgate::Gcra, tollgate::DefaultClock, Same>, String> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    Keyed::<u64>::token_bucket(Quota::per_day(1)).max_keys(size).hasher(Same).build().map_err(|error| error.to_string())
}

fn takes_in<S: BuildHasher>(table: &Keyed<u64, tollgate::Gcra, tollgate::DefaultClock, S>, key: u64) -> bool {
    !matches!(table.try_acquire_at(&key, 0), Err(Refused::NoRoom { .. }))
}
