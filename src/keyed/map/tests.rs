//! The map as its table of keys sees it, single-threaded against laws that are never evicted, and with threads.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::*;
use crate::algorithm::{FixedWindowLaw, Gcra, SlidingCounterLaw, SlidingLogLaw};

thread_local! {
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a look at the instant at which a law rests.
pub(super) fn count_look() {
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

/// How many such looks `run` takes.
fn looks(run: impl FnOnce()) -> usize {
    let before = LOOKS.with(Cell::get);
    run();
    LOOKS.with(Cell::get) - before
}

fn key(fingerprint: u64) -> Asked {
    Asked { fingerprint, quota: None }
}

fn under(fingerprint: u64, quota: Quota) -> Asked {
    Asked { fingerprint, quota: Some(quota) }
}

fn at(nanos: u64) -> Nanos {
    Nanos::new(nanos)
}

fn secs(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

fn per(permits: u64, nanos: u64) -> Quota {
    Quota::new(permits, Duration::from_nanos(nanos)).unwrap()
}

impl<A: Algorithm + Queued> Map<A> {
    fn strict(quota: Quota, max_keys: usize) -> Self {
        Self::with_shards(4, quota, max_keys, WhenFull::Refuse)
    }

    fn sharing(quota: Quota, max_keys: usize) -> Self {
        Self::with_shards(4, quota, max_keys, WhenFull::Share)
    }

    fn entries(&self) -> usize {
        self.given.load(Ordering::Relaxed).wrapping_sub(self.left.load(Ordering::Relaxed))
    }
}

impl<A: Waitable> Map<A> {
    fn admits(&self, key: Asked, n: u64, now: Nanos) -> bool {
        self.try_acquire(key, n, now).is_ok()
    }
}

/// A law for each key, none of which is ever evicted: what the map must look like from outside.
struct Reference<A> {
    laws: HashMap<u64, (Option<Quota>, A)>,
    quota: Quota,
    max_keys: usize,
}

impl<A: Waitable> Reference<A> {
    fn is_busy(law: &A, now: Nanos) -> bool {
        law.rests_from().is_none_or(|rest| rest > now)
    }

    /// A key at rest begins anew with another quota, one in debt carries its permits.
    fn set(law: &mut A, quota: Quota, now: Nanos) {
        if law.quota() == quota {
        } else if Self::is_busy(law, now) {
            law.set_quota(quota, now);
        } else {
            *law = A::start(quota, None, Duration::MAX, || now);
        }
    }

    fn law(&mut self, key: Asked, now: Nanos) -> &A {
        let quota = key.quota.unwrap_or(self.quota);
        let fresh = || (key.quota, A::start(quota, None, Duration::MAX, || now));
        let (plan, law) = self.laws.entry(key.fingerprint).or_insert_with(fresh);
        if *plan != key.quota {
            *plan = key.quota;
            Self::set(law, quota, now);
        }
        law
    }

    fn set_quota(&mut self, quota: Quota, now: Nanos) {
        self.quota = quota;
        for (_, law) in self.laws.values_mut().filter(|(plan, _)| plan.is_none()) {
            Self::set(law, quota, now);
        }
    }

    fn len(&self, now: Nanos) -> usize {
        self.laws.values().filter(|(_, law)| Self::is_busy(law, now)).count()
    }

    /// What a request of `n` is answered for want of room.
    fn no_room(&mut self, key: Asked, n: u64, now: Nanos) -> Option<Refused> {
        let law = self.law(key, now);
        let needs_place = !Self::is_busy(law, now) && n > 0 && law.peek(n, now).is_ok() && !law.quota().is_unlimited();
        let busy = self.laws.values().filter(|(_, law)| Self::is_busy(law, now));
        let rests: Vec<_> = busy.map(|(_, law)| law.rests_from()).collect();
        (needs_place && rests.len() >= self.max_keys).then(|| {
            let retry_after = rests.iter().flatten().min().map(|rest| rest.saturating_since(now));
            Refused::NoRoom { max_keys: self.max_keys, retry_after }
        })
    }
}

/// At rest from an instant on, a law answers as a new one, and before it does not. A copy of it answers as it does.
fn rests_when_the_whole_limit_is_there<A: Waitable>(quota: Quota, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let law = A::start(quota, None, Duration::MAX, || Nanos::ZERO);
    assert_eq!(law.rests_from(), Some(Nanos::ZERO));
    let mut now = at(0);
    for _ in 0..200 {
        match random.u8(0..8) {
            0 => law.refund(random.u64(0..4), now),
            1 => law.reset(now),
            2..5 => _ = law.try_acquire(random.u64(0..4), now),
            _ => now = at(now.get() + random.u64(0..15)),
        }
        let (rest, copied) = (law.rests_from(), law.copied());
        for later in 0..100 {
            let now = at(now.get() + later);
            assert_eq!(copied.snapshot(now), law.snapshot(now));
            let whole = law.snapshot(now).reset_after == Some(Duration::ZERO);
            assert_eq!(rest.is_some_and(|rest| rest <= now), whole, "{quota:?}, {now}");
        }
    }
}

#[test]
fn a_law_is_at_rest_when_the_whole_limit_is_there() {
    for seed in 0..5 {
        for quota in [per(3, 10), per(5, 10), per(2, 25), per(7, 7)] {
            rests_when_the_whole_limit_is_there::<FixedWindowLaw>(quota, seed);
            rests_when_the_whole_limit_is_there::<SlidingCounterLaw>(quota, seed);
            rests_when_the_whole_limit_is_there::<SlidingLogLaw>(quota, seed);
            rests_when_the_whole_limit_is_there::<Gcra>(quota.burst(4), seed);
        }
        rests_when_the_whole_limit_is_there::<Gcra>(per(0, 1).burst(20), seed);
    }
}

fn agrees_with_laws_that_are_never_evicted<A: Waitable>(quotas: &[Quota], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let quota = quotas[0];
    let max_keys = random.usize(1..12);
    let map = Map::<A>::with_shards(4, quota, max_keys, WhenFull::Refuse);
    let mut reference = Reference::<A> { laws: HashMap::new(), quota, max_keys };
    let mut now = at(random.u64(0..100));
    for step in 0..600 {
        if random.u8(0..3) == 0 {
            let most = [3, 12, 60][random.usize(0..3)];
            now = at(now.get() + random.u64(0..most));
        }
        let plan = (random.u8(0..6) == 0).then(|| quotas[random.usize(0..quotas.len())]);
        let key = Asked { fingerprint: random.u64(0..16), quota: plan };
        let n = random.u64(0..4);
        let call = random.u8(0..20);
        let what = format!("seed {seed}, step {step}: call {call}, {key:?}, n {n}, now {now}, {:?}", map.quota());
        match call {
            0 => {
                let quota = quotas[random.usize(0..quotas.len())];
                map.set_quota(quota, now);
                reference.set_quota(quota, now);
            }
            1 => {
                map.refund(key, n, now);
                reference.law(key, now).refund(n, now);
            }
            2 => {
                map.reset(key, now);
                reference.law(key, now).reset(now);
            }
            3..6 => {
                let expected = match reference.no_room(key, n, now) {
                    Some(no_room) => Err(no_room),
                    None => reference.law(key, now).peek(n, now),
                };
                assert_eq!(map.peek(key, n, now), expected, "peek, {what}");
            }
            6..8 => {
                let expected = reference.law(key, now).snapshot(now);
                assert_eq!(map.snapshot(key, now), expected, "{what}");
            }
            // Nothing is asked for: the key is not looked at.
            _ if n == 0 => assert_eq!(map.try_acquire(key, n, now), Ok(()), "{what}"),
            _ => {
                let expected = match reference.no_room(key, n, now) {
                    Some(no_room) => Err(no_room),
                    None => reference.law(key, now).try_acquire(n, now),
                };
                assert_eq!(map.try_acquire(key, n, now), expected, "{what}");
            }
        }
        assert_eq!(map.len(now), reference.len(now), "{what}");
        assert!(map.entries() <= max_keys, "{what}");
        assert_eq!(map.quota(), reference.quota);
    }
}

#[test]
fn a_map_is_as_good_as_laws_that_are_never_evicted() {
    let windows = [per(3, 10), per(5, 10), per(2, 25), per(0, 10), Quota::UNLIMITED, per(1, 7)];
    let buckets = [
        per(1, 4).burst(3),
        per(2, 7).burst(4),
        per(1, 9).burst(1),
        per(0, 5).burst(3),
        Quota::UNLIMITED,
        per(3, 20).burst(0),
    ];
    for seed in 0..30 {
        agrees_with_laws_that_are_never_evicted::<Gcra>(&buckets, seed);
        agrees_with_laws_that_are_never_evicted::<FixedWindowLaw>(&windows, seed);
        agrees_with_laws_that_are_never_evicted::<SlidingCounterLaw>(&windows, seed);
        agrees_with_laws_that_are_never_evicted::<SlidingLogLaw>(&windows, seed);
    }
}

#[test]
fn only_keys_at_rest_are_evicted() {
    // LemmyNet/lemmy, pull request 4560: an inverted test of "is it full?" dropped every bucket.
    let map = Map::<Gcra>::strict(per(1, 60_000_000_000).burst(3), 1_000);
    assert!(map.admits(key(1), 3, secs(0)) && map.admits(key(2), 1, secs(0)));
    let sweep = |from, now| (from..from + 200).for_each(|newcomer| assert!(map.admits(key(newcomer), 1, now)));
    sweep(1_000, secs(1));
    assert!(!map.admits(key(1), 1, secs(1)));
    sweep(2_000, secs(61));
    assert_eq!([(); 2].map(|()| map.admits(key(1), 1, secs(61))), [true, false]);
    assert_eq!(map.len(secs(400)), 0);
    sweep(3_000, secs(400));
    assert_eq!(map.len(secs(400)), 200);
    assert_eq!([(); 4].map(|()| map.admits(key(1), 1, secs(400))), [true, true, true, false]);
}

#[test]
fn what_has_come_to_rest_leaves_with_the_keys_that_come() {
    let map = Map::<SlidingLogLaw>::strict(per(5, 1_000), 100_000);
    let empty = map.memory();
    (0..10_000).for_each(|newcomer| assert!(map.admits(key(newcomer), 1, at(0))));
    let full = map.memory();
    assert!(full > empty + 10_000 * size_of::<SlidingLogLaw>());
    (10_000..15_000).for_each(|newcomer| assert!(map.admits(key(newcomer), 1, at(1_000))));
    assert_eq!(map.entries(), 5_000);
    assert!(map.memory() < full * 2 / 3);
}

#[test]
fn what_leaves_no_debt_makes_no_entry() {
    let map = Map::<SlidingLogLaw>::strict(per(5, 1_000), 10);
    let now = at(7);
    assert_eq!(map.try_acquire(key(1), 6, now), Err(Refused::ExceedsCapacity { asked: 6, capacity: 5 }));
    assert_eq!(map.try_acquire(key(1), 0, now), Ok(()));
    assert_eq!(map.peek(key(1), 5, now), Ok(()));
    assert_eq!(map.snapshot(key(1), now).remaining, 5);
    map.refund(key(1), 3, now);
    map.reset(key(1), now);
    assert!(map.admits(under(1, Quota::UNLIMITED), 1_000, now));
    assert_eq!((map.entries(), map.len(now)), (0, 0));
}

#[test]
fn a_refusal_for_want_of_room_tells_when_the_first_is_at_rest() {
    let map = Map::<Gcra>::strict(per(1, 10).burst(5), 3);
    for (busy, n) in [(1, 3), (2, 2), (3, 5)] {
        assert!(map.admits(key(busy), n, at(0)));
    }
    let no_room = |wait| Err(Refused::NoRoom { max_keys: 3, retry_after: Some(Duration::from_nanos(wait)) });
    assert_eq!(map.try_acquire(key(4), 1, at(5)), no_room(15));
    assert_eq!(map.peek(key(4), 1, at(5)), no_room(15));
    // The first is another one now.
    assert!(map.admits(key(2), 3, at(5)));
    assert_eq!(map.try_acquire(key(4), 1, at(29)), no_room(1));
    assert_eq!(map.peek(key(4), 1, at(30)), Ok(()));
    assert!(map.admits(key(4), 1, at(30)));
    assert_eq!(map.entries(), 3);
    // What is given back brings rest forward.
    assert_eq!(map.try_acquire(key(5), 1, at(31)), no_room(9));
    map.refund(key(3), 1, at(31));
    map.refund(key(2), 2, at(31));
    assert_eq!(map.try_acquire(key(5), 1, at(31)), Ok(()));
}

#[test]
fn a_table_where_nobody_ever_rests_says_so() {
    let map = Map::<Gcra>::strict(Quota::per_second(0).burst(1), 2);
    assert!(map.admits(key(1), 1, at(0)) && map.admits(key(2), 1, at(0)));
    let never = Err(Refused::NoRoom { max_keys: 2, retry_after: None });
    for now in [Nanos::ZERO, Nanos::MAX] {
        assert_eq!(map.try_acquire(key(3), 1, now), never);
        assert_eq!(map.peek(key(3), 1, now), never);
    }
    map.reset(key(2), at(0));
    assert_eq!(map.try_acquire(key(3), 1, at(0)), Ok(()));
    // Nor does who comes at the end of time send them away.
    let map = Map::<Gcra>::with_shards(1, Quota::per_second(0).burst(1), 9, WhenFull::Refuse);
    (1..9).for_each(|busy| assert!(map.admits(key(busy), 1, at(0))));
    assert!(map.admits(key(9), 1, Nanos::MAX));
    assert_eq!((map.len(Nanos::MAX), map.entries()), (9, 9));
}

#[test]
fn a_flood_of_newcomers_looks_at_few_keys() {
    let map = Map::<Gcra>::strict(per(1, 1_000).burst(100), 1_000);
    (0..1_000).for_each(|busy| assert!(map.admits(key(busy), 1, at(0))));
    // All are listed too early.
    (0..1_000).for_each(|busy| assert!(map.admits(key(busy), 50, at(0))));
    let flood = |now| looks(|| (5_000..6_000).for_each(|newcomer| assert!(!map.admits(key(newcomer), 1, at(now)))));
    let first = flood(2_000);
    assert!((1_000..10_000).contains(&first), "{first}");
    assert!(flood(2_000) <= 2_000);
    assert!(flood(50_000) <= 2_000);
}

#[test]
fn a_key_that_left_is_not_new_to_a_clock_that_is_behind() {
    let length = 1_000;
    let map = Map::<FixedWindowLaw>::strict(per(5, length), 1);
    assert!(map.admits(key(1), 5, at(0)));
    // The only place goes to another once the first is at rest.
    assert!(map.admits(key(2), 1, at(length)));
    map.reset(key(2), at(length));
    // What it takes with a clock that is behind, it takes of the window in which it was at rest.
    assert!(map.admits(key(1), 5, at(length / 2)));
    for now in [0, length / 2, length, 2 * length - 1] {
        assert!(!map.admits(key(1), 1, at(now)), "{now}");
    }
    assert!(map.admits(key(1), 5, at(2 * length)));
}

#[test]
fn another_plan_carries_permits_and_a_key_at_rest_starts_anew() {
    let (fast, slow) = (Quota::per_second(100).burst(10), Quota::per_second(1).burst(10));
    let map = Map::<Gcra>::strict(Quota::per_second(5).burst(7), 10);
    assert!(map.admits(under(1, fast), 5, secs(0)));
    assert_eq!(map.snapshot(under(1, slow), secs(0)).remaining, 5);
    assert!(!map.admits(under(1, slow), 6, secs(0)));
    assert_eq!(map.snapshot(under(1, slow), secs(2)).remaining, 7);
    // The quota of the map is a plan as any other.
    assert_eq!(map.snapshot(key(1), secs(2)).remaining, 7);
    assert!(map.admits(key(1), 7, secs(2)));
    assert_eq!(map.snapshot(under(1, fast), secs(2)).remaining, 0);
    // At rest, a larger burst is there at once.
    assert!(map.admits(under(2, fast), 10, secs(0)));
    assert_eq!(map.snapshot(under(2, fast.burst(50)), secs(1)).remaining, 50);
}

#[test]
fn a_change_of_the_quota_reaches_every_key_without_a_plan() {
    let plan = Quota::per_hour(4);
    let map = Map::<Gcra>::strict(Quota::per_second(100).burst(10), 5_000);
    (0..2_000).for_each(|busy| assert!(map.admits(key(busy), 1 + busy % 9, secs(0))));
    assert!(map.admits(under(9_999, plan), 3, secs(0)));
    map.set_quota(Quota::per_second(1).burst(10), secs(0));
    // Those at rest later have the new burst at once.
    for busy in 0..2_000 {
        assert_eq!(map.snapshot(key(busy), secs(0)).remaining, 9 - busy % 9);
    }
    map.set_quota(Quota::per_second(1).burst(20), secs(1));
    for busy in 0..2_000 {
        let left = if busy % 9 == 0 { 20 } else { 10 - busy % 9 };
        assert_eq!(map.snapshot(key(busy), secs(1)).remaining, left);
    }
    assert_eq!(map.snapshot(under(9_999, plan), secs(1)).remaining, 1);
}

#[test]
fn newcomers_without_a_place_share_one_limit() {
    let map = Map::<SlidingLogLaw>::sharing(per(5, 100), 1);
    assert!(map.admits(key(1), 1, at(0)));
    assert!(map.admits(key(2), 3, at(10)));
    let refused = Refused::TooSoon { asked: 3, remaining: 2, retry_after: Duration::from_nanos(100) };
    assert_eq!(map.peek(key(3), 3, at(10)), Err(refused));
    assert_eq!(map.try_acquire(key(3), 3, at(10)), Err(refused));
    assert!(map.admits(key(3), 2, at(10)));
    assert_eq!((map.entries(), map.len(at(10))), (1, 1));
    // A change of the quota counts for it too.
    map.set_quota(per(6, 100), at(10));
    assert_eq!([(); 2].map(|()| map.admits(key(4), 1, at(10))), [true, false]);
    assert!(map.admits(key(1), 5, at(10)));
}

#[test]
fn who_shared_has_not_the_whole_limit_again_in_a_place_of_his_own() {
    let map = Map::<SlidingLogLaw>::sharing(per(5, 100), 1);
    assert!(map.admits(key(1), 1, at(0)));
    assert!(map.admits(key(2), 4, at(99)));
    // The place is free, and the key may have been one of those who shared.
    assert_eq!(map.peek(key(2), 2, at(100)).unwrap_err().retry_after(), Some(Duration::from_nanos(99)));
    assert_eq!(map.snapshot(key(2), at(100)).remaining, 1);
    assert!(map.admits(key(2), 1, at(100)));
    assert_eq!(map.entries(), 1);
    assert!(!map.admits(key(2), 1, at(198)));
    assert_eq!([4, 1].map(|n| map.admits(key(2), n, at(199))), [true, false]);
    assert!(map.admits(key(2), 1, at(200)));
    // With nothing taken of what they share, it is the whole limit.
    map.reset(key(2), at(200));
    assert!(map.admits(key(3), 5, at(200)));
}

#[test]
fn what_was_shared_is_carried_to_another_quota_and_back() {
    let map = Map::<FixedWindowLaw>::sharing(per(5, 100), 1);
    assert!(map.admits(key(1), 1, at(0)));
    assert!(map.admits(key(2), 5, at(0)));
    map.set_quota(per(3, 100), at(0));
    map.reset(key(1), at(0));
    // It has taken more than the limit allows: under none that follows is that less.
    assert_eq!(map.snapshot(key(2), at(0)).remaining, 0);
    assert_eq!(map.snapshot(under(2, per(7, 100)), at(0)).remaining, 2);
    assert!(map.admits(under(2, per(7, 100)), 1, at(0)));
    map.set_quota(per(6, 100), at(0));
    assert_eq!(map.snapshot(key(2), at(0)).remaining, 0);
    assert_eq!(map.entries(), 1);
}

#[test]
fn what_a_plan_admits_is_not_beyond_a_shared_limit_that_does_not() {
    let map = Map::<Gcra>::sharing(per(1, 10).burst(2), 1);
    assert!(map.admits(key(1), 1, at(0)));
    let no_room = Refused::NoRoom { max_keys: 1, retry_after: Some(Duration::from_nanos(10)) };
    assert_eq!(map.try_acquire(under(2, per(1, 10).burst(9)), 9, at(0)), Err(no_room));
    assert!(map.admits(under(2, per(1, 10).burst(9)), 9, at(10)));
}

#[test]
fn a_queue_by_key_tells_starts_and_keeps_them_under_another_plan() {
    let map = Map::<LeakyQueueLaw>::strict(per(1, 10).burst(3), 2);
    let start = |key, now| map.schedule(key, 1, at(now)).map(Nanos::get);
    assert_eq!([(); 3].map(|()| start(key(1), 0)), [Ok(0), Ok(10), Ok(20)]);
    assert!(start(key(1), 0).is_err());
    assert_eq!(start(key(2), 5), Ok(5));
    // Under no limit what was told before is still done first, and keeps its place.
    map.set_quota(Quota::UNLIMITED, at(5));
    assert_eq!((start(key(1), 5), start(key(3), 5)), (Ok(30), Ok(5)));
    assert_eq!(map.len(at(29)), 1);
    assert_eq!(map.len(at(30)), 0);
}

#[test]
fn threads_that_see_a_key_first_make_one_law() {
    for round in 0..100 {
        let (map, barrier) = (Map::<SlidingLogLaw>::strict(per(3, 1_000), 1), Barrier::new(8));
        let admitted = thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                map.try_acquire(key(round), 1, at(0))
            };
            let threads = [(); 8].map(|()| scope.spawn(ask));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(admitted.iter().filter(|answer| answer.is_ok()).count(), 3);
        assert!(admitted.iter().all(|answer| matches!(answer, Ok(()) | Err(Refused::TooSoon { .. }))), "{admitted:?}");
        assert_eq!(map.entries(), 1);
    }
}

#[test]
fn places_that_are_given_up_are_given_to_all_who_come() {
    let (threads, keys) = (8, 6);
    let map = Map::<FixedWindowLaw>::strict(per(2, 1_000), keys);
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (map, barrier) = (&map, &barrier);
            scope.spawn(move || {
                for round in 0..100 {
                    barrier.wait();
                    // As many keys as there are places, each asked by all, at an instant at which all others are at rest.
                    for index in 0..keys {
                        let fingerprint = round * 1_000 + ((index + thread) % keys) as u64;
                        let answer = map.try_acquire(key(fingerprint), 1, at(round * 1_000));
                        assert!(!matches!(answer, Err(Refused::NoRoom { .. })), "{answer:?}");
                    }
                    barrier.wait();
                    assert_eq!(map.len(at(round * 1_000)), keys);
                }
            });
        }
    });
}

#[test]
fn a_change_of_the_quota_leaves_no_key_behind_that_is_seen_meanwhile() {
    let quotas = [per(1, 1 << 40).burst(100), per(1, 1 << 41).burst(90)];
    let map = Map::<Gcra>::strict(quotas[0], 1 << 20);
    for round in 0..8 {
        thread::scope(|scope| {
            for thread in 0..3 {
                let map = &map;
                let of_round = (round * 3 + thread) * 300..(round * 3 + thread + 1) * 300;
                scope.spawn(move || of_round.for_each(|newcomer| assert!(map.admits(key(newcomer), 1, at(0)))));
            }
            for quota in quotas {
                let map = &map;
                scope.spawn(move || (0..3).for_each(|_| map.set_quota(quota, at(0))));
            }
        });
        let limit = map.quota().policing_burst();
        for known in 0..(round + 1) * 900 {
            assert_eq!(map.snapshot(key(known), at(0)).limit, limit);
        }
    }
}

#[test]
fn every_call_beside_every_other_ends_and_no_key_has_more_than_its_limit() {
    // arkavo-org/arkavo-edge, pull request 599: eviction under a guard of the same map hung.
    let (threads, keys, counted, limit, length) = (8, 40, 20, 5, 1_000);
    for when_full in [WhenFull::Refuse, WhenFull::Share] {
        let map = Map::<FixedWindowLaw>::with_shards(2, per(limit, length), 12, when_full);
        for round in 0..20 {
            let now = at(round * length);
            let granted = thread::scope(|scope| {
                let run = |thread: u64| {
                    let map = &map;
                    move || {
                        let mut random = fastrand::Rng::with_seed(round * 100 + thread);
                        let mut granted = vec![0; keys];
                        for _ in 0..300 {
                            let index = random.usize(0..keys);
                            let plan = (random.u8(0..4) == 0).then(|| per(limit - 1, length));
                            let key = Asked { fingerprint: index as u64, quota: plan };
                            match random.u8(0..40) {
                                0 => map.set_quota(per(limit - random.u64(0..3), length), now),
                                // Shard by shard: others come and go meanwhile, but each key has one shard.
                                1 => assert!(map.len(now) <= keys),
                                2 => assert!(map.memory() > 0),
                                3 => _ = map.peek(key, 1, now),
                                4 => _ = map.snapshot(key, now),
                                // The others are there to give room.
                                5..20 if index >= counted => map.reset(key, now),
                                _ => granted[index] += u64::from(map.admits(key, 1, now)),
                            }
                        }
                        granted
                    }
                };
                let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            for index in 0..counted {
                let of_key: u64 = granted.iter().map(|granted| granted[index]).sum();
                assert!(of_key <= limit, "{of_key} of key {index} in round {round}, {when_full:?}");
            }
            assert!(map.entries() <= 12);
        }
    }
}
