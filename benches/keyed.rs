//! What a decision by key costs, beside the floor: one random exchange in an array of the same bytes.
//!
//! ```text
//! cargo bench --bench keyed
//! ```
//!
//! Ids are `subject/keys/distribution/type/threads`. The time is that of one operation of one thread. A table of millions of keys
//! does not fit into a cache, so there it is the memory that is measured: look at the floor of the same line.

use std::hash::{BuildHasher, Hash, RandomState};
use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use fastrand::Rng;
use tollgate::{Clock, DefaultClock, Keyed, Quota};

/// How many keys are drawn in advance, so that drawing them costs next to nothing; and no more of a large table is in a cache than
/// of the table of somebody who asks for other keys.
fn drawn(keys: usize) -> usize {
    (4 * keys).min(1 << 20)
}

/// So much that no run uses up one key's.
fn plenty() -> Quota {
    Quota::per_second(1).burst(1 << 32)
}

/// The clock, the hash, and one exchange of a word that lies anywhere in as many bytes as a table has.
struct Floor {
    words: Vec<AtomicU64>,
    hasher: RandomState,
}

impl Floor {
    fn new(keys: usize) -> Self {
        Self { words: (0..4 * keys).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }

    fn exchange(&self, key: &impl Hash) -> bool {
        let (now, hash) = (DefaultClock.now().get(), self.hasher.hash_one(key));
        let index = (u128::from(hash) * self.words.len() as u128) >> 64;
        let word = &self.words[usize::try_from(index).unwrap_or(0)];
        let seen = word.load(Ordering::Acquire);
        word.compare_exchange(seen, now.max(seen.wrapping_add(1)), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The keys of a run, in the order in which they are asked for.
fn uniform(keys: usize) -> Vec<usize> {
    let mut rng = Rng::with_seed(1);
    (0..drawn(keys)).map(|_| rng.usize(..keys)).collect()
}

/// The same by Zipf's law (exponent 1): the k-th key comes in proportion to 1/k.
fn zipf(keys: usize) -> Vec<usize> {
    let mut sums = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for key in 1..=keys {
        sum += 1.0 / key as f64;
        sums.push(sum);
    }
    let mut rng = Rng::with_seed(2);
    (0..drawn(keys)).map(|_| sums.partition_point(|upto| *upto < rng.f64() * sum).min(keys - 1)).collect()
}

/// Runs `operation` `each` times on each thread at once, with keys one after the other; the time from start to the last end.
fn together<K: Sync>(threads: usize, each: u64, keys: &[K], operation: &(impl Fn(&K) -> bool + Sync)) -> Duration {
    let run = |offset: usize| {
        for key in keys.iter().cycle().skip(offset).take(usize::try_from(each).unwrap_or(usize::MAX)) {
            black_box(operation(key));
        }
    };
    if threads == 1 {
        let start = Instant::now();
        run(0);
        return start.elapsed();
    }
    let (start, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (run, start, end) = (&run, &start, &end);
            scope.spawn(move || {
                start.wait();
                run(thread * keys.len() / threads);
                end.wait();
            });
        }
        start.wait();
        let started = Instant::now();
        end.wait();
        started.elapsed()
    })
}

/// Known keys of one type: each has taken a permit before.
fn hits<K: Hash + Clone + Sync>(c: &mut Criterion, count: usize, name: &str, make: impl Fn(usize) -> K) {
    let mut group = c.benchmark_group("keyed");
    let table = Keyed::<K>::token_bucket(plenty()).max_keys(count).build().expect("memory for the keys");
    (0..count).for_each(|key| assert!(table.try_acquire(&make(key)).is_ok()));
    let floor = Floor::new(count);
    for (distribution, indexes) in [("uniform", uniform(count)), ("zipf", zipf(count))] {
        let keys: Vec<K> = indexes.into_iter().map(&make).collect();
        for threads in [1, 2] {
            group.bench_function(format!("floor/{count}/{distribution}/{name}/{threads}"), |b| {
                b.iter_custom(|each| together(threads, each, &keys, &|key| floor.exchange(key)));
            });
            group.bench_function(format!("hit/{count}/{distribution}/{name}/{threads}"), |b| {
                b.iter_custom(|each| together(threads, each, &keys, &|key| table.try_acquire(key).is_ok()));
            });
        }
    }
    group.finish();
}

/// Keys that are new. A table is filled to half of its `max_keys`, and then another takes its place; the time for that is not
/// counted.
fn first_sights(c: &mut Criterion, count: usize) {
    let mut group = c.benchmark_group("keyed");
    let new = || Keyed::<u64>::token_bucket(plenty()).max_keys(count).build().expect("memory for the keys");
    let next = AtomicUsize::new(0);
    for threads in [1u64, 2] {
        group.bench_function(format!("first_sight/{count}/uniform/u64/{threads}"), |b| {
            b.iter_custom(|each| {
                let (mut spent, mut left) = (Duration::ZERO, each);
                while left > 0 {
                    let (table, some) = (new(), left.min((count as u64 / 2 / threads).max(1)));
                    let threads = usize::try_from(threads).unwrap_or(1);
                    spent += together(threads, some, &[()], &|()| {
                        table.try_acquire(&(next.fetch_add(1, Ordering::Relaxed) as u64)).is_ok()
                    });
                    left -= some;
                }
                spent
            });
        });
    }
    group.finish();
}

/// All threads ask for the same key.
fn hot(c: &mut Criterion) {
    let mut group = c.benchmark_group("keyed");
    let table = Keyed::<u64>::token_bucket(plenty()).build().expect("memory for the keys");
    let floor = Floor::new(1);
    for threads in [1, 2] {
        group.bench_function(format!("floor_hot/1/one/u64/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &[7u64], &|key| floor.exchange(key)));
        });
        group.bench_function(format!("hit_hot/1/one/u64/{threads}"), |b| {
            b.iter_custom(|each| together(threads, each, &[7u64], &|key| table.try_acquire(key).is_ok()));
        });
    }
    group.finish();
}

fn keyed(c: &mut Criterion) {
    // Only once through, the large tables would take most of the time to be filled.
    let brief = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if brief { &[1_000] } else { &[1_000, 1_000_000, 5_000_000] };
    hot(c);
    for &count in sizes {
        first_sights(c, count);
        hits(c, count, "u64", |key| key as u64);
        hits(c, count, "string", |key| format!("customer-{key:08}"));
        hits(c, count, "ip", |key| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | (key as u128) << 64)));
    }
}

criterion_group!(benches, keyed);
criterion_main!(benches);
