//! What a yes costs for one key of many, and what memory a key takes.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::keys::{Draw, Key};
use super::{Emit, Size};
use crate::peers::{DecideKey, Law, floor, governor, mutex, rate_net, throttle_net, throttlecrab, tollgate, trypema};
use crate::record::{Case, Row};
use crate::report::{Highlight, number};
use crate::rounds::{Contender, Measured, in_turns};

pub(crate) const HIGHLIGHTS: &[Highlight] = &[
    Highlight { case: "hit_u64_1000_uniform_1_threads", metric: "ns", heading: "hit, ns: 1,000 u64" },
    Highlight { case: "hit_u64_1000000_uniform_1_threads", metric: "ns", heading: "1 M u64" },
    Highlight { case: "hit_u64_5000000_uniform_1_threads", metric: "ns", heading: "5 M u64" },
    Highlight { case: "hit_string_1000000_uniform_1_threads", metric: "ns", heading: "1 M strings" },
    Highlight { case: "hot_key_u64_2_threads", metric: "ns", heading: "one key, 2 threads" },
    Highlight { case: "first_sight_u64_1000000_1_threads", metric: "ns", heading: "first sight, ns: 1 M u64" },
    Highlight { case: "first_sight_u64_1000000_1_threads", metric: "bytes_per_key", heading: "bytes per u64 key" },
    Highlight {
        case: "first_sight_string_1000000_1_threads",
        metric: "bytes_per_key",
        heading: "bytes per string key",
    },
];

/// Keys that are asked for in each case.
pub(crate) const SIZES: [usize; 3] = [1_000, 1_000_000, 5_000_000];

/// A permit in ten seconds, so that each key that was asked for is busy until all are, and a burst that not even one key that two
/// threads ask for uses up in a run.
const LAW: Law = Law { permits: 360, period: Duration::from_secs(3_600), burst: 20_000_000 };

/// The law of a limiter that knows windows only: the same most at once.
const WINDOW: Law = Law { permits: 20_000_000, ..LAW };

pub(crate) const FLOOR: &str = "tollgate's floor (clock, one word of an array)";

/// Filling millions of keys is slow on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn name(kind: &str, key: &str, keys: usize, draw: &str, threads: usize) -> String {
    let draw = if draw.is_empty() { String::new() } else { format!("{draw}_") };
    format!("{kind}_{key}_{keys}_{draw}{threads}_threads")
}

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    for keys in SIZES {
        let numbers = size.choose(keys, keys, 300);
        of_keys::<u64>(size, keys, numbers, emit)?;
        // The same for millions of strings.
        if !size.is_quick() || keys <= 1_000_000 {
            of_keys::<String>(size, keys, numbers, emit)?;
        }
    }
    Ok(())
}

/// Builds the tables of a key type, each for so many keys.
type Tables<K> = Vec<(&'static str, fn(usize) -> Box<dyn Table<K>>)>;

/// The systems that take any key type, and beside them those of one.
trait Systems: Key {
    fn systems() -> Tables<Self>;
}

impl Systems for u64 {
    fn systems() -> Tables<Self> {
        vec![
            ("tollgate", |keys| Box::new(tollgate::keyed::<Self>(LAW, keys))),
            ("governor (DashMap)", |_| Box::new(governor::keyed::<Self>(LAW))),
            ("throttle-net (PerKey)", |keys| Box::new(throttle_net::keyed::<Self>(LAW, keys))),
            ("rate-net", |keys| Box::new(rate_net::keyed(LAW, keys))),
            ("mutexed map", |_| Box::new(mutex::map::<Self>(LAW))),
            (FLOOR, |keys| Box::new(floor::table(keys))),
        ]
    }
}

impl Systems for String {
    fn systems() -> Tables<Self> {
        vec![
            ("tollgate", |keys| Box::new(tollgate::keyed::<Self>(LAW, keys))),
            ("governor (DashMap)", |_| Box::new(governor::keyed::<Self>(LAW))),
            ("throttle-net (PerKey)", |keys| Box::new(throttle_net::keyed::<Self>(LAW, keys))),
            ("rate-net", |keys| Box::new(rate_net::keyed(LAW, keys))),
            ("trypema (window)", |_| Box::new(trypema::absolute(WINDOW))),
            ("throttlecrab (in a mutex)", |keys| Box::new(throttlecrab::keyed(LAW, keys))),
            ("mutexed map", |_| Box::new(mutex::map::<Self>(LAW))),
            (FLOOR, |keys| Box::new(floor::table(keys))),
        ]
    }
}

/// A table, asked in loops that are compiled for it, so that no call goes through a pointer.
trait Table<K>: Send + Sync {
    /// Asks for each of the keys once; how many were refused.
    fn ask_each(&self, keys: &[K]) -> usize;
}

impl<K, D: DecideKey<K>> Table<K> for D {
    fn ask_each(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| !black_box(self.decide(key))).count()
    }
}

/// The tables of all systems, full of the same keys, once their first sight was measured.
type Filled<K> = Vec<(&'static str, Arc<Mutex<Option<Arc<dyn Table<K>>>>>)>;

/// All cases of a key type and a number of keys.
fn of_keys<K: Systems>(size: Size, keys: usize, numbers: usize, emit: Emit<'_>) -> io::Result<()> {
    let mut tables = K::systems();
    if size.is_quick() && keys > 1_000_000 {
        // So many keys take most systems too long to be quick.
        tables.retain(|(system, _)| ["tollgate", "governor (DashMap)", FLOOR].contains(system));
    }
    let all: Arc<Vec<K>> = Arc::new((0..numbers).map(K::number).collect());
    let filled: Filled<K> = tables.iter().map(|&(system, _)| (system, Arc::default())).collect();
    emit(first_sight(size, keys, 1, &tables, &all, &filled))?;
    if !size.is_quick() || keys <= 1_000 {
        emit(first_sight(size, keys, 2, &tables, &all, &filled))?;
    }
    for draw in [Draw::Uniform, Draw::Zipf] {
        let drawn = draw.sequence(numbers, size.choose(1 << 20, 1 << 18, 1 << 10));
        let drawn: Arc<Vec<K>> = Arc::new(drawn.into_iter().map(|number| all[number].clone()).collect());
        for threads in [1, 2] {
            let about = format!(
                "{} known {} keys, drawn {}, {threads} thread{}; time of one call of one thread.",
                number(keys as f64),
                K::NAME,
                if draw == Draw::Uniform { "alike" } else { "by Zipf's law" },
                if threads == 1 { "" } else { "s" },
            );
            let name = name("hit", K::NAME, keys, draw.name(), threads);
            emit(hits(&name, about, size, threads, &filled, &drawn))?;
        }
    }
    if keys == 1_000 {
        let one = Arc::new(vec![all[0].clone(); 1 << 10]);
        let about = format!("Two threads ask for one {} key of 1,000; time of one call of one thread.", K::NAME);
        emit(hits(&format!("hot_key_{}_2_threads", K::NAME), about, size, 2, &filled, &one))?;
    }
    Ok(())
}

struct Fill {
    ns: f64,
    bytes: Option<f64>,
    refused: f64,
}

/// Every key once, in tables that were built before the time counts. Tables that one thread filled are kept.
fn first_sight<K: Systems>(
    size: Size,
    keys: usize,
    threads: usize,
    tables: &Tables<K>,
    all: &Arc<Vec<K>>,
    filled: &Filled<K>,
) -> Case {
    // The smaller the table, the less time it takes to fill it again.
    let fills = match keys {
        0..=1_000 => size.choose(31, 9, 1),
        1_001..=1_000_000 => size.choose(3, 1, 1),
        _ => 1,
    };
    let contenders = tables.iter().zip(filled).map(|(&(system, build), (_, kept))| {
        let (all, kept) = (Arc::clone(all), Arc::clone(kept));
        Contender::new(system, move || {
            // What was kept of the round before makes room first.
            let mut kept = kept.lock().expect("no panic");
            if threads == 1 {
                *kept = None;
            }
            let mut outcome = None;
            let counted = allocation_counter::measure(|| {
                let table = build(all.len());
                let (ns, refused) = fill(&*table, &all, threads);
                outcome = Some((table, ns, refused));
            });
            let (table, ns, refused) = outcome.expect("it was measured");
            let bytes = counted.bytes_current as f64 / all.len() as f64;
            if threads == 1 {
                *kept = Some(Arc::from(table));
            }
            // The counting allocator knows the calling thread only.
            Fill { ns, bytes: (threads == 1).then_some(bytes), refused: refused as f64 }
        })
    });
    let outcomes = in_turns(fills, || size.limit(LIMIT), contenders.collect());
    let floor = floor_of(&outcomes, |fill| fill.ns);
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(found) => {
            let ratios = floor.iter().zip(&found).map(|(floor, fill)| fill.ns / floor);
            let row = Row::new(system)
                .spread("ns", "ns", found.iter().map(|fill| fill.ns))
                .spread("ratio_to_floor", "", ratios)
                .spread("refused", "", found.iter().map(|fill| fill.refused));
            row.spread("bytes_per_key", "bytes", found.iter().filter_map(|fill| fill.bytes))
        }
        Err(failure) => Row::failed(system, failure),
    });
    Case {
        name: name("first_sight", K::NAME, keys, "", threads),
        about: format!(
            "{} {} keys, each asked for the first time by {threads} thread{}; bytes are what a counting allocator saw, the keys' own included.",
            number(keys as f64),
            K::NAME,
            if threads == 1 { "" } else { "s" },
        ),
        rows: rows.collect(),
    }
}

/// Asks for every key once, a share of them by each thread; the time of one call of one thread, and how many were refused.
fn fill<K: Key>(table: &dyn Table<K>, all: &[K], threads: usize) -> (f64, usize) {
    if threads == 1 {
        let started = Instant::now();
        let refused = table.ask_each(all);
        return (started.elapsed().as_nanos() as f64 / all.len() as f64, refused);
    }
    let start = Barrier::new(threads);
    let shares: Vec<(f64, usize)> = thread::scope(|scope| {
        let shares: Vec<_> = all
            .chunks(all.len().div_ceil(threads))
            .map(|share| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let started = Instant::now();
                    let refused = table.ask_each(share);
                    (started.elapsed().as_nanos() as f64 / share.len() as f64, refused)
                })
            })
            .collect();
        shares.into_iter().map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let sum: f64 = shares.iter().map(|(ns, _)| ns).sum();
    (sum / shares.len() as f64, shares.iter().map(|(_, refused)| refused).sum())
}

/// Keys that the tables know, in the order of a sequence.
fn hits<K: Key>(
    name: &str,
    about: String,
    size: Size,
    threads: usize,
    filled: &Filled<K>,
    drawn: &Arc<Vec<K>>,
) -> Case {
    let span = Duration::from_micros(size.choose(20_000, 8_000, 50));
    let contenders = filled.iter().map(|(system, table)| {
        let (table, drawn, place) = (Arc::clone(table), Arc::clone(drawn), AtomicUsize::new(0));
        Contender::new(system, move || {
            let table = table.lock().expect("no panic").clone().expect("its first sight failed");
            // Each measurement goes on where the last one ended.
            let (ns, asked) = ask(&*table, &drawn, place.load(Ordering::Relaxed), threads, span);
            place.fetch_add(asked, Ordering::Relaxed);
            ns
        })
    });
    let outcomes = in_turns(size.choose(15, 5, 1), || size.limit(LIMIT), contenders.collect());
    let floor = floor_of(&outcomes, |&ns| ns);
    let rows = outcomes.into_iter().map(|(system, outcome)| match outcome {
        Ok(measured) => {
            let ratios: Vec<f64> = floor.iter().zip(&measured).map(|(floor, own)| own / floor).collect();
            Row::new(system).spread("ns", "ns", measured).spread("ratio_to_floor", "", ratios)
        }
        Err(failure) => Row::failed(system, failure),
    });
    Case { name: name.to_owned(), about, rows: rows.collect() }
}

/// Asks for a time; the time of one call of one thread, and how many calls one thread made.
fn ask<K: Key>(table: &dyn Table<K>, drawn: &[K], from: usize, threads: usize, span: Duration) -> (f64, usize) {
    /// Keys between two looks at the time that it has taken.
    const CHUNK: usize = 256;
    let chunks: Vec<&[K]> = drawn.chunks_exact(CHUNK).collect();
    let start = Barrier::new(threads);
    let measure = |thread: usize| {
        // Threads begin far from each other.
        let mut chunk = from / CHUNK + thread * chunks.len() / threads;
        start.wait();
        let (started, mut asked, mut refused) = (Instant::now(), 0, 0);
        loop {
            refused += table.ask_each(chunks[chunk % chunks.len()]);
            chunk += 1;
            asked += CHUNK;
            let spent = started.elapsed();
            if spent >= span {
                assert!(refused * 1_000 <= asked, "{refused} of {asked} calls were refused");
                return (spent.as_nanos() as f64 / asked as f64, asked);
            }
        }
    };
    if threads == 1 {
        return measure(0);
    }
    let measured: Vec<(f64, usize)> = thread::scope(|scope| {
        let measure = &measure;
        let measured: Vec<_> = (0..threads).map(|thread| scope.spawn(move || measure(thread))).collect();
        measured
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    (measured.iter().map(|(ns, _)| ns).sum::<f64>() / threads as f64, measured[0].1)
}

/// The floor's figure of each round.
fn floor_of<T>(outcomes: &[Measured<T>], figure: impl Fn(&T) -> f64) -> Vec<f64> {
    let floor = outcomes.iter().find(|(system, _)| *system == FLOOR).and_then(|(_, outcome)| outcome.as_ref().ok());
    floor.into_iter().flatten().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::tiny;

    #[test]
    fn every_system_is_measured_with_every_kind_of_key() {
        let cases = tiny(run);
        // Two first sights and four hits for each number and type of keys, and the hot key twice.
        assert_eq!(cases.len(), 3 * 2 * 6 + 2);
        for highlight in HIGHLIGHTS {
            assert!(cases.iter().any(|case| case.name == highlight.case), "{}", highlight.case);
        }
        for case in &cases {
            assert_eq!(case.rows.len(), if case.name.contains("u64") { 6 } else { 8 }, "{}", case.name);
            for row in &case.rows {
                assert!(row.median("ns").is_some_and(|ns| ns > 0.0), "{}: {row:?}", case.name);
            }
        }
    }
}
