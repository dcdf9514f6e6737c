//! Threads with disordered times at a table, while far more keys come than there are places.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use clap::value_parser;
use fastrand::Rng;
use tollgate::{Nanos, Refused};

use crate::books::{Book, Brought, Call, Changes, Sums};
use crate::same;
use crate::subject::{Kind, Subject, Terms};

/// Keys whose calls are made one at a time, then keys that are called often by all threads at once, then all the others.
const WATCHED: u64 = 16;
const HOT: u64 = 16;
const KEYS: u64 = 20_000;
const PLACES: usize = 1_000;

/// The first time.
const FIRST: u64 = 1_000_000_000;
/// How far the times of threads are apart.
const DISORDER: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// How long it runs, all laws together.
    #[arg(long, default_value_t = 60, value_parser = value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many threads call.
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u64).range(2..=8))]
    threads: u64,
}

impl Args {
    pub(crate) const BRIEF: Self = Self { seconds: 2, threads: 4 };
}

/// Each law in each form: with one quota, with quotas of the keys' own, and with one that changes.
pub(crate) fn run(args: Args, seed: u64) -> Result<(), String> {
    let laws = [Kind::Bucket, Kind::Window, Kind::Counter, Kind::Log, Kind::Queue].map(Terms::new);
    let forms = [(false, true), (true, true), (false, false), (true, false)];
    let each = Duration::from_secs(args.seconds) / u32::try_from(laws.len() * forms.len()).unwrap_or(1);
    for terms in laws {
        for (plans, fixed) in forms {
            let table = terms.table(PLACES, plans).map_err(|error| error.to_string())?;
            let form = format!(
                "{:?}{}{}",
                terms.kind,
                if plans { ", quotas by key" } else { "" },
                if fixed { "" } else { ", quota changes" }
            );
            let stress = Stress::new(&*table, terms, fixed, Instant::now() + each);
            let summary = stress.run(args.threads, seed).map_err(|violation| format!("{form}: {violation}"))?;
            println!("stress  {form:40} {summary}");
        }
    }
    Ok(())
}

struct Stress<'a> {
    table: &'a dyn Subject,
    terms: Terms,
    /// Whether the quota stays the same.
    fixed: bool,
    end: Instant,
    over: AtomicBool,
    /// The time around which those of the threads lie.
    time: AtomicU64,
    /// The latest and the first time that was given to the table.
    latest: AtomicU64,
    first: AtomicU64,
    changes: Mutex<Changes>,
    books: Vec<Mutex<Book>>,
    sums: Vec<Sums>,
    calls: AtomicU64,
    no_room: AtomicU64,
}

impl<'a> Stress<'a> {
    fn new(table: &'a dyn Subject, terms: Terms, fixed: bool, end: Instant) -> Self {
        Self {
            table,
            terms,
            fixed,
            end,
            over: AtomicBool::new(false),
            time: AtomicU64::new(FIRST),
            latest: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            changes: Mutex::default(),
            books: (0..WATCHED).map(|_| Mutex::new(Book::new(terms, fixed))).collect(),
            sums: (0..KEYS - WATCHED).map(|_| Sums::default()).collect(),
            calls: AtomicU64::new(0),
            no_room: AtomicU64::new(0),
        }
    }

    fn run(&self, threads: u64, seed: u64) -> Result<String, String> {
        let mut rng = Rng::with_seed(seed);
        thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|_| {
                    let rng = rng.fork();
                    scope.spawn(move || {
                        let ended = self.hammer(rng);
                        self.over.store(true, Ordering::Relaxed);
                        ended
                    })
                })
                .collect();
            all.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
        })?;
        let (first, latest) = (self.first.load(Ordering::SeqCst), self.latest());
        let brought = self.changes()?.ended();
        let mut hot = (0, 0);
        for (index, sums) in self.sums.iter().enumerate() {
            let (granted, allowed) =
                sums.close(self.terms, first, latest, brought).map_err(|error| format!("key {index}: {error}"))?;
            if (index as u64) < HOT {
                hot = (hot.0 + granted, hot.1 + allowed);
            }
        }
        self.at_rest(&mut rng)?;
        self.race(threads)?;
        let calls = self.calls.load(Ordering::Relaxed);
        let no_room = self.no_room.load(Ordering::Relaxed);
        // Where the time leaps by days, the most that is lawful is out of reach.
        let share = if self.fixed {
            format!(", hot keys got {} % of the most", 100 * hot.0 / hot.1.max(1))
        } else {
            String::new()
        };
        Ok(format!("{calls} calls, {no_room} found no room{share}"))
    }

    /// Calls at random, for as long as the run lasts.
    fn hammer(&self, mut rng: Rng) -> Result<(), String> {
        while Instant::now() < self.end && !self.over.load(Ordering::Relaxed) {
            for _ in 0..1_000 {
                self.step(&mut rng);
                match rng.u8(..10) {
                    0 | 1 => self.watched(&mut rng)?,
                    2..5 => self.unwatched(WATCHED + rng.u64(..HOT), &mut rng),
                    _ => self.unwatched(rng.u64(WATCHED + HOT..KEYS), &mut rng),
                }
            }
            self.calls.fetch_add(1_000, Ordering::Relaxed);
            if !self.fixed && rng.u8(..16) == 0 {
                let now = self.now(&mut rng);
                self.changes()?.begins(now);
                self.table.set_quota(self.terms.quota([1, 2, 5][rng.usize(..3)]), Nanos::new(now))?;
                self.changes()?.ends(now, self.latest());
            }
        }
        Ok(())
    }

    fn latest(&self) -> u64 {
        self.latest.load(Ordering::SeqCst)
    }

    fn changes(&self) -> Result<MutexGuard<'_, Changes>, String> {
        self.changes.lock().map_err(|_| "a thread panicked".to_owned())
    }

    /// Moves the time: mostly on, sometimes back, and where the quota changes by more than a field of a word can hold.
    fn step(&self, rng: &mut Rng) {
        match rng.u32(..200_000) {
            0 if !self.fixed => self.time.fetch_add(rng.u64(1..40) * 86_400_000_000_000, Ordering::Relaxed),
            0..100 => {
                let back = rng.u64(..50_000_000);
                self.time
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |time| {
                        Some(time.saturating_sub(back).max(FIRST))
                    })
                    .unwrap_or(0)
            }
            100..20_000 => self.time.fetch_add(rng.u64(..400_000), Ordering::Relaxed),
            _ => 0,
        };
    }

    /// A time for a call, of which everybody knows from now on.
    fn now(&self, rng: &mut Rng) -> u64 {
        let now = self.time.load(Ordering::Relaxed) + rng.u64(..DISORDER) - DISORDER / 2;
        // Before the call: see `Call::latest`.
        self.first.fetch_min(now, Ordering::SeqCst);
        self.latest.fetch_max(now, Ordering::SeqCst);
        now
    }

    /// A call on a key whose calls are made one at a time.
    fn watched(&self, rng: &mut Rng) -> Result<(), String> {
        let key = rng.u64(..WATCHED);
        let mut book = self.books[usize::try_from(key).unwrap_or(0)].lock().map_err(|_| "a thread panicked")?;
        let (n, now) = (1 + rng.u64(..rng.clone().u64(1..5)), self.now(rng));
        let peeked = (rng.u8(..4) == 0).then(|| self.table.peek(key, n, Nanos::new(now)));
        let remaining = (rng.u8(..4) == 0).then(|| self.table.snapshot(key, Nanos::new(now)).remaining);
        let answer = self.table.take(key, n, Nanos::new(now));
        let latest = self.latest();
        let brought = if self.fixed { Brought::default() } else { self.changes()?.brought(latest) };
        let call = Call { n, now, latest, brought };
        let foretold = peeked == Some(Ok(())) || remaining.is_some_and(|remaining| remaining >= n);
        match answer {
            Ok(start) => {
                book.granted(call, start)?;
                if rng.u8(..8) == 0 && self.table.refund(key, n, Nanos::new(now)) {
                    book.given_back(call);
                }
            }
            Err(Refused::NoRoom { .. }) => {
                self.no_room.fetch_add(1, Ordering::Relaxed);
            }
            Err(refused) if foretold && self.fixed => {
                return Err(format!("{n} of key {key} were there, and refused at once after: {refused:?}"));
            }
            Err(refused) => book.refused(call, refused)?,
        }
        Ok(())
    }

    /// A call on a key on which others may call as well.
    fn unwatched(&self, key: u64, rng: &mut Rng) {
        let sums = &self.sums[usize::try_from(key - WATCHED).unwrap_or(0)];
        let (n, now) = (rng.u64(1..4), Nanos::new(self.now(rng)));
        match self.table.take(key, n, now) {
            Ok(_) => {
                sums.granted(n);
                if rng.u8(..8) == 0 && self.table.refund(key, n, now) {
                    sums.given_back(n);
                }
            }
            Err(Refused::NoRoom { .. }) => {
                self.no_room.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {}
        }
    }

    /// A time at which every key is at rest.
    fn long_after(&self) -> u64 {
        self.latest.fetch_add(10_000_000_000, Ordering::SeqCst) + 10_000_000_000
    }

    /// Finds, when all have gone, that each key has exactly what its law gives.
    fn at_rest(&self, rng: &mut Rng) -> Result<(), String> {
        let Terms { kind, most, span } = self.terms;
        self.table.set_quota(self.terms.quota(1), Nanos::new(self.long_after()))?;
        let far = self.long_after();
        // The beginning of a window, for those that have any.
        let now = far - far % span;
        same("keys that are busy when all have gone", self.table.len(Nanos::new(now)), 0)?;
        for key in (0..WATCHED + HOT).chain((0..100).map(|_| rng.u64(WATCHED + HOT..KEYS))) {
            let takes = |now| self.table.take(key, 1, Nanos::new(now));
            let there = self.table.snapshot(key, Nanos::new(now)).remaining;
            let taken = (0..).map_while(|_: u64| takes(now).ok()).count() as u64;
            // A key that was drawn twice has nothing left.
            if there > 0 || taken > 0 {
                same(&format!("permits of key {key}, and those that it told"), (taken, there), (most, most))?;
            }
            let refused = takes(now).err().and_then(|refused| refused.retry_after());
            let wait = match kind {
                Kind::Bucket | Kind::Window | Kind::Log => span,
                Kind::Counter => span + span / most,
                // Refused from a full backlog on, so as soon as it is not full.
                Kind::Queue => refused.map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
            };
            same(&format!("the wait for one of key {key}"), refused, Some(Duration::from_nanos(wait)))?;
            same(&format!("one of key {key} just before it is due"), takes(now + wait - 1).is_ok(), false)?;
        }
        Ok(())
    }

    /// Lets all threads take of the same new key at the same instant.
    fn race(&self, threads: u64) -> Result<(), String> {
        const ROUNDS: u64 = 200;
        let Terms { kind, most, span } = self.terms;
        let far = self.long_after();
        let now = far - far % span;
        let barrier = Barrier::new(usize::try_from(threads).unwrap_or(1));
        let taken: Vec<_> = (0..2 * ROUNDS).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for round in 0..2 * ROUNDS {
                        // First sight, then one interval later.
                        let (key, now) = (KEYS + round / 2, now + round % 2 * span);
                        barrier.wait();
                        let count =
                            (0..).take_while(|_: &u64| self.table.take(key, 1, Nanos::new(now)).is_ok()).count();
                        taken[usize::try_from(round).unwrap_or(0)].fetch_add(count as u64, Ordering::Relaxed);
                    }
                });
            }
        });
        let taken: Vec<_> = taken.into_iter().map(AtomicU64::into_inner).collect();
        let afterwards = match kind {
            Kind::Bucket | Kind::Queue => 1,
            Kind::Window | Kind::Log => most,
            Kind::Counter => 0,
        };
        for pair in taken.chunks(2) {
            same("permits of a key that threads see first at once, and an interval later", pair, &[most, afterwards])?;
        }
        Ok(())
    }
}
