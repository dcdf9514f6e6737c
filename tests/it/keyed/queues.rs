//! Queues by key that tell when: each key has a schedule of its own.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use tollgate::{Keyed, LeakyQueue, LeakyQueueLaw, ManualClock, Nanos, Quota, Refused};

use super::tables::{Hash, PLACES};
use crate::{HOUR, SECOND, quota};

type Queues = Keyed<u64, LeakyQueueLaw, ManualClock, Hash>;

fn queues(quota: Quota, max_keys: usize) -> Queues {
    let builder = Keyed::<u64>::leaky_queue(quota).max_keys(max_keys).hasher(Hash::Spread);
    builder.clock(ManualClock::new()).build().unwrap()
}

#[test]
fn each_key_is_told_starts_of_its_own() {
    let table = queues(quota(2, SECOND, 3), 100);
    for key in [1, 2, 3] {
        let starts = [0; 4].map(|now| table.schedule_at(&key, now));
        let told = [0, 500, 1_000].map(|millis| Ok(Nanos::from(Duration::from_millis(millis))));
        assert_eq!(starts[..3], told, "{key}");
        let wait = Duration::from_nanos(1);
        assert_eq!(starts[3], Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after: wait }), "{key}");
        // Nothing asked is told when a request would start.
        assert_eq!(table.schedule_n_at(&key, 0, 0), Ok(Nanos::from(Duration::from_millis(1_500))), "{key}");
    }
    assert_eq!(table.schedule_n_at(&4, 0, 7), Ok(Nanos::new(7)));
    assert_eq!((table.len_at(0), table.len_at(Duration::from_millis(1_500))), (3, 0));
}

#[test]
fn a_start_that_was_told_stands_through_any_change_for_all_keys() {
    let table = queues(quota(1, SECOND, 10), 100);
    for key in 1..=3 {
        assert_eq!(table.schedule_n_at(&key, key, 0), Ok(Nanos::new(0)));
    }
    for change in 0..40 {
        table.set_quota_at(quota(if change % 2 == 0 { 5 } else { 1 }, SECOND, 10), 0).unwrap();
    }
    for key in 1..=3 {
        assert_eq!(table.schedule_at(&key, 0), Ok(Nanos::from(Duration::from_secs(key))));
    }
}

#[test]
fn threads_are_told_starts_that_are_one_interval_apart() {
    for round in 0..50 {
        let table = queues(quota(1_000, SECOND, 400), 1);
        let mut starts: Vec<Nanos> = thread::scope(|scope| {
            let ask = || (0..100).filter_map(|_| table.schedule_at(&round, 0).ok()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        starts.sort();
        let all: Vec<Nanos> = (0..400).map(|slot| Nanos::new(slot * 1_000_000)).collect();
        assert_eq!(starts, all);
    }
}

/// `SEED` sets which calls are made.
#[test]
fn a_table_of_queues_answers_as_a_map_of_queues() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let quotas = [quota(2, SECOND, 3), quota(7, SECOND, 5), quota(1, HOUR, 2), quota(100, SECOND, 1)];
    for run in 0..if cfg!(debug_assertions) { 200 } else { 2_000 } {
        let mut random = fastrand::Rng::with_seed(seed + run);
        let mut quota = quotas[random.usize(..4)];
        // For one key there are as many places.
        let table = queues(quota, 1);
        let mut alone: HashMap<u64, LeakyQueue<ManualClock>> = HashMap::new();
        // The time until a request would start at once.
        let backlog = |queue: &LeakyQueue<ManualClock>, now: u64| queue.schedule_n_at(0, now).unwrap().get() - now;
        let mut now = 0;
        for step in 0..200 {
            now += [0, 0, 0, 1_000_000, 500_000_000, 3_600_000_000_000][random.usize(..6)] * random.u64(0..4);
            let said = || format!("SEED={} step {step} at {now}", seed + run);
            alone.retain(|_, queue| backlog(queue, now) > 0);
            if random.u8(..12) == 0 {
                quota = quotas[random.usize(..4)];
                table.set_quota_at(quota, now).unwrap();
                alone.values().for_each(|queue| queue.set_quota_at(quota, now));
            }
            let (key, n) = (random.u64(..24), random.u64(0..4));
            let is_full = alone.len() == PLACES && !alone.contains_key(&key);
            let queue = alone.entry(key).or_insert_with(|| LeakyQueue::with_clock(quota, ManualClock::new()));
            assert_eq!(table.snapshot_at(&key, now), queue.snapshot_at(now), "{}", said());
            let told = table.schedule_n_at(&key, n, now);
            if is_full && n > 0 && queue.peek_at(n, now).is_ok() {
                alone.remove(&key);
                let first = alone.values().map(|queue| Duration::from_nanos(backlog(queue, now))).min();
                assert_eq!(told, Err(Refused::NoRoom { max_keys: 1, retry_after: first }), "{}", said());
            } else {
                assert_eq!(told, queue.schedule_n_at(n, now), "{}", said());
            }
            alone.retain(|_, queue| backlog(queue, now) > 0);
            assert_eq!(table.len_at(now), alone.len(), "{}", said());
        }
    }
}
