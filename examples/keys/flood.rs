//! Keys that are never seen again, through a table with a place for one in a hundred.

use std::time::Duration;

use clap::value_parser;
use fastrand::Rng;
use tollgate::{Keyed, Nanos, Quota, Refused, WhenFull};

use crate::memory;
use crate::same;
use crate::times::Times;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many keys come.
    #[arg(long, default_value_t = 10_000_000, value_parser = value_parser!(u64).range(1..))]
    keys: u64,
    /// The table's `max_keys`.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1_000..))]
    places: u64,
}

impl Args {
    pub(crate) const BRIEF: Self = Self { keys: 300_000, places: 3_000 };
}

/// Clients in debt for as long as the flood lasts.
const DEBTORS: u64 = 50;

/// Ten per second, a burst of twenty: one permit makes a key busy for a tenth of a second.
fn quota() -> Quota {
    Quota::per_second(10).burst(20)
}

pub(crate) fn run(args: Args, seed: u64) -> Result<(), String> {
    for policy in [WhenFull::Refuse, WhenFull::Share] {
        // As many come in a tenth of a second as half of the places hold: there is room for all of them.
        passes_by(args, policy)?;
        stands(args, policy, seed)?;
    }
    Ok(())
}

/// Newcomers come slowly enough to be at rest again before the table is full.
fn passes_by(args: Args, policy: WhenFull) -> Result<(), String> {
    let table = table(args, policy)?;
    let apart = 200_000_000 / args.places;
    let time = |count: u64| Nanos::new(1_000_000_000 + count * apart);
    let mut debtors = Debtors::new(&table, time(0))?;
    let before = memory::resident();
    let (memory_before, mut times) = (table.memory(), Times::default());
    for count in 0..args.keys {
        let now = time(count);
        if count % 1_000 == 0 {
            debtors.check(&table, now)?;
        }
        let admitted = times.of(|| table.try_acquire_at(&(DEBTORS + count), now));
        same("a newcomer while there is room", admitted, Ok(()))?;
    }
    let grown = grown_since(before)?;
    same("bytes that the table takes", table.memory(), memory_before)?;
    let busy = table.len_at(time(args.keys + args.places));
    if busy as u64 > DEBTORS {
        return Err(format!("{busy} keys are busy when all are at rest but {DEBTORS}"));
    }
    println!(
        "flood  {:7} keys, {policy:?}, with room: all admitted; {}; {}",
        args.keys,
        told(grown, memory_before),
        times.told()
    );
    Ok(())
}

/// All newcomers come at one instant, so that the table is full and stays so.
fn stands(args: Args, policy: WhenFull, seed: u64) -> Result<(), String> {
    let (table, mut rng) = (table(args, policy)?, Rng::with_seed(seed));
    let now = Nanos::from_secs(1);
    let mut debtors = Debtors::new(&table, now)?;
    let before = memory::resident();
    let (mut admitted, mut no_room, mut shared_no) = (0, 0, 0);
    let mut times = Times::default();
    for count in 0..args.keys {
        match times.of(|| table.try_acquire_at(&(DEBTORS + count), now)) {
            Ok(()) => admitted += 1,
            Err(Refused::NoRoom { max_keys, retry_after }) => {
                same("what a newcomer is told", (max_keys as u64, policy), (args.places, WhenFull::Refuse))?;
                same("when the first is at rest", retry_after, Some(Duration::from_millis(100)))?;
                no_room += 1;
            }
            Err(Refused::TooSoon { .. }) if policy == WhenFull::Share => shared_no += 1,
            Err(refused) => return Err(format!("a newcomer was refused: {refused:?}")),
        }
    }
    // Two slots for each of `max_keys`, and a few spare ones; those who share have a burst for all.
    let most = 2 * args.places + 1_024 + 20;
    if admitted < args.places || admitted > most {
        return Err(format!("{admitted} newcomers admitted, where {} to {most} have a place", args.places));
    }
    debtors.check(&table, now)?;
    for _ in 0..1_000 {
        // Nobody who was admitted has lost what he owes.
        let key = DEBTORS + rng.u64(..args.places / 2);
        let left = table.available_at(&key, now);
        same(&format!("permits of key {key}, one of 20 taken"), left, 19)?;
    }
    let grown = grown_since(before)?;
    println!(
        "flood  {:7} keys, {policy:?}, without: {admitted} admitted, {no_room} found no room, {shared_no} shared in vain; {}; {}",
        args.keys,
        told(grown, table.memory()),
        times.told()
    );
    Ok(())
}

fn table(args: Args, policy: WhenFull) -> Result<Keyed<u64>, String> {
    let places = usize::try_from(args.places).unwrap_or(usize::MAX);
    let table = Keyed::<u64>::token_bucket(quota()).max_keys(places).when_full(policy).build();
    table.map_err(|error| error.to_string())
}

/// Clients who take all they have, again and again.
struct Debtors {
    since: Nanos,
    /// What each has taken.
    taken: u64,
}

impl Debtors {
    /// Lets them take their bursts.
    fn new(table: &Keyed<u64>, since: Nanos) -> Result<Self, String> {
        (0..DEBTORS).try_for_each(|key| same("a client's burst", table.try_acquire_n_at(&key, 20, since), Ok(())))?;
        Ok(Self { since, taken: 20 })
    }

    /// Lets them take what there is, which must be what came since, and nothing for having been forgotten.
    fn check(&mut self, table: &Keyed<u64>, now: Nanos) -> Result<(), String> {
        let tenths = now.saturating_since(self.since).as_millis() / 100;
        let due = 20 + u64::try_from(tenths).unwrap_or(u64::MAX) - self.taken;
        for key in 0..DEBTORS {
            let taken = (0..).take_while(|_: &u64| table.try_acquire_at(&key, now).is_ok()).count() as u64;
            same(&format!("what debtor {key} gets at {now}"), taken, due)?;
        }
        self.taken += due;
        Ok(())
    }
}

/// How much the process has grown, which is next to nothing: the table has all its memory before the flood.
fn grown_since(before: Option<u64>) -> Result<Option<u64>, String> {
    let grown = memory::resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    match grown.filter(|grown| *grown > 2 << 20) {
        Some(grown) => Err(format!("the process has grown by {grown} bytes during the flood")),
        None => Ok(grown),
    }
}

fn told(grown: Option<u64>, table: usize) -> String {
    let grown = grown.map_or_else(|| "unknown".to_owned(), |grown| format!("{} KiB", grown >> 10));
    format!("table {} KiB, process grown by {grown}", table >> 10)
}
