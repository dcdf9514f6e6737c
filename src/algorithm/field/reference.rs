//! The fields of a table against limiters of their own: they answer the same, but for what a table says of keys at rest.

use std::time::Duration;

use super::{Admission, FieldLaw};
use crate::algorithm::window::Kind;
use crate::algorithm::windowed::Windowed;
use crate::algorithm::{FixedWindowLaw, Gcra, LeakyQueueLaw, Policing, SlidingCounterLaw};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// What a table does, with one key or several, and nothing concurrent.
struct Table<A: Calls> {
    quota: Quota,
    versions: Vec<A::Record>,
    /// The version of each key, and its field.
    keys: Vec<(usize, u64)>,
}

impl<A: Calls> Table<A> {
    fn new(quota: Quota, since: Nanos, keys: usize) -> Self {
        Self { quota, versions: vec![A::version(&quota, since, None)], keys: vec![(0, 0); keys] }
    }

    fn record(&self) -> &A::Record {
        self.versions.last().unwrap()
    }

    fn set_quota(&mut self, quota: Quota, since: Nanos) {
        self.versions.push(A::version(&quota, since, self.versions.last()));
        self.quota = quota;
    }

    /// The key's field, brought forward through all versions since its own.
    fn field(&mut self, key: usize) -> u64 {
        let (version, field) = self.keys[key];
        let field = self.versions[version..]
            .windows(2)
            .fold(field, |field, versions| A::carried(&versions[0], field, &versions[1]));
        self.keys[key] = (self.versions.len() - 1, field);
        field
    }

    /// The answer, and whether the origin had to move.
    fn try_acquire(&mut self, key: usize, n: u64, now: Nanos) -> (Result<A::Told, Refused>, bool) {
        for moved in [false, true] {
            let field = self.field(key);
            let quick = A::admit_in_64_bits(self.record(), field, now, n).filter(|_| n > 0);
            let admission = A::admit(self.record(), field, now, n);
            assert!(quick.is_none() || quick.map(Admission::Granted) == Some(admission), "{quick:?}: {admission:?}");
            match admission {
                Admission::Granted(next) => {
                    self.keys[key].1 = next;
                    return (Ok(A::told(self.record(), field, now)), moved);
                }
                Admission::Refused(refused) => return (Err(refused), moved),
                Admission::Beyond => self.set_quota(self.quota, now),
            }
        }
        panic!("a moved origin has room");
    }

    fn snapshot(&mut self, key: usize, now: Nanos) -> Snapshot {
        let field = self.field(key);
        A::snapshot_of(self.record(), field, now)
    }

    fn lower(&mut self, key: usize, lowered: impl Fn(&A::Record, u64) -> u64) {
        let field = self.field(key);
        let lower = lowered(self.record(), field);
        assert!(lower <= field);
        self.keys[key].1 = lower;
    }
}

/// What a table says of keys that differs from a limiter.
trait Keyed: FieldLaw {
    /// Whether nothing is kept of a key while nothing is limited.
    const FORGETS: bool = true;

    /// The earliest time that counts under a version that begins at `since`.
    fn floor(_quota: &Quota, _since: Nanos) -> Nanos {
        Nanos::ZERO
    }

    /// When a limiter is at rest that counts from `since`.
    fn rest_of(&self, _since: Nanos) -> Option<Nanos> {
        let (record, field) = self.state();
        Self::rest(&record, field)
    }

    /// The instant from which a limiter that counts from `since` does after a change at `now`.
    fn counts_from(&self, now: Nanos, _since: Nanos) -> Nanos {
        now
    }
}

impl Keyed for Gcra {
    fn rest_of(&self, since: Nanos) -> Option<Nanos> {
        let (rate, tat) = self.state();
        // Without a rate a TAT tells no time.
        if tat == 0 && rate.interval.mul == 0 { Some(since) } else { Self::rest(&rate, tat) }
    }

    fn counts_from(&self, now: Nanos, since: Nanos) -> Nanos {
        let (rate, tat) = self.state();
        rate.left(tat, now, rate.capacity, since).since()
    }
}

impl<K: Kind> Keyed for Windowed<K> {
    fn floor(quota: &Quota, since: Nanos) -> Nanos {
        let at = u128::from(since.get());
        Nanos::new(u64::try_from(at - at % quota.period().as_nanos()).unwrap())
    }
}

impl Keyed for LeakyQueueLaw {
    const FORGETS: bool = false;

    fn rest_of(&self, _since: Nanos) -> Option<Nanos> {
        let (rate, free_at) = self.state();
        // Its origin is when all that was told is done.
        if free_at == 0 { Some(rate.origin) } else { Self::rest(&rate, free_at) }
    }
}

/// A limiter for one key. A key at rest has the whole new burst after a change, and times before the version count as its beginning.
struct Single<A: Keyed> {
    law: A,
    since: Nanos,
    floor: Nanos,
    counts_from: Nanos,
}

impl<A: Keyed> Single<A> {
    fn new(quota: Quota, since: Nanos) -> Self {
        let law = A::start(quota, Some(u64::MAX), Duration::MAX, || since);
        Self { law, since, floor: A::floor(&quota, since), counts_from: since }
    }

    fn rests_at(&self, now: Nanos) -> bool {
        self.law.rest_of(self.counts_from).is_some_and(|rest| rest <= now)
    }

    fn judged(&self, now: Nanos) -> Nanos {
        now.max(if self.rests_at(self.since) { self.since.max(self.floor) } else { self.floor })
    }

    fn set_quota(&mut self, quota: Quota, now: Nanos) {
        let before = self.law.quota();
        let forgotten = A::FORGETS && (before.is_unlimited() || quota.is_unlimited());
        if forgotten || self.rests_at(now.max(self.since).max(self.floor)) {
            *self = Self::new(quota, now);
            return;
        }
        let judged = self.judged(now);
        self.counts_from = self.law.counts_from(judged, self.counts_from);
        self.law.set_quota(quota, judged);
        let floor = A::floor(&quota, now);
        self.floor = if quota.period() == before.period() { floor.max(self.floor) } else { floor };
        self.since = now;
    }
}

/// A law as its keys are called.
trait Calls: Keyed {
    /// What a call may answer: nothing, or an instant.
    type Told: Copy + std::fmt::Debug + PartialEq;

    fn ask(&self, n: u64, now: Nanos) -> Result<Self::Told, Refused>;

    /// What is told of a grant at `now`, before which the field was `field`.
    fn told(record: &Self::Record, field: u64, now: Nanos) -> Self::Told;

    /// Gives `n` back, or all.
    fn give_back(&self, n: Option<u64>, now: Nanos);
}

impl<A: Keyed + Policing> Calls for A {
    type Told = ();

    fn ask(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        self.try_acquire(n, now)
    }

    fn told(_: &Self::Record, _: u64, _: Nanos) {}

    fn give_back(&self, n: Option<u64>, now: Nanos) {
        match n {
            Some(n) => self.refund(n, now),
            None => self.reset(now),
        }
    }
}

impl Calls for LeakyQueueLaw {
    type Told = Nanos;

    fn ask(&self, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        self.schedule(n, now)
    }

    fn told(record: &Self::Record, field: u64, now: Nanos) -> Nanos {
        Self::start_of(record, field, now)
    }

    fn give_back(&self, _: Option<u64>, _: Nanos) {}
}

/// Random calls on a few keys at random times, also backwards, that meet several changes of the quota at once.
struct Comparison<A: Calls> {
    table: Table<A>,
    singles: Vec<Single<A>>,
    now: Nanos,
    random: fastrand::Rng,
    moved: bool,
}

impl<A: Calls> Comparison<A> {
    /// Whether the origin had to move.
    fn run(seed: u64, quotas: &[Quota], step: u64) -> bool {
        const KEYS: usize = 3;
        let now = Nanos::new(100);
        let mut comparison = Self {
            table: Table::new(quotas[0], now, KEYS),
            singles: (0..KEYS).map(|_| Single::new(quotas[0], now)).collect(),
            now,
            random: fastrand::Rng::with_seed(seed),
            moved: false,
        };
        let mut history = Vec::new();
        for _ in 0..60 {
            let call = comparison.call(quotas, step);
            history.push(call);
            let (_, _, _, _, ours, theirs) = history.last().unwrap();
            let told = || history.iter().map(|call| format!("{call:?}\n")).collect::<String>();
            assert_eq!(ours, theirs, "seed {seed}:\n{}", told());
        }
        comparison.moved
    }

    /// A call, and what is answered by the table and by the limiter of that key.
    fn call(&mut self, quotas: &[Quota], step: u64) -> (&'static str, usize, u64, Nanos, String, String) {
        let random = &mut self.random;
        let (key, n, span) = (random.usize(..self.singles.len()), random.u64(0..5), random.u64(..step));
        // Now and then so far ahead that the origin must move, under the first quota: counts stay as wide as its are.
        let span = Duration::from_nanos(span);
        self.now = match random.u8(..200) {
            0..4 if self.table.quota == quotas[0] => self.now.saturating_add(Duration::from_nanos(1 << 59)),
            0..50 => self.now.saturating_sub(span),
            _ => self.now.saturating_add(span),
        };
        let now = self.now;
        let judged = self.singles[key].judged(now);
        let done = String::new;
        match random.u8(..20) {
            0..10 => {
                let (answer, moved) = self.table.try_acquire(key, n, now);
                // A refusal tells the wait from the call.
                let early = judged.saturating_since(now);
                let expected = match self.singles[key].law.ask(n, judged) {
                    Err(Refused::TooSoon { asked, remaining, retry_after }) => {
                        Err(Refused::TooSoon { asked, remaining, retry_after: retry_after + early })
                    }
                    other => other,
                };
                if moved {
                    self.moved = true;
                    self.singles.iter_mut().for_each(|single| single.set_quota(self.table.quota, now));
                }
                ("try", key, n, now, format!("{answer:?}"), format!("{expected:?}"))
            }
            10..14 => {
                let (ours, theirs) = (self.table.snapshot(key, now), self.singles[key].law.snapshot(judged));
                let told = |seen: Snapshot| format!("{} of {}", seen.remaining, seen.limit);
                ("look", key, n, now, told(ours), told(theirs))
            }
            14..16 => {
                self.table.lower(key, |record, field| A::refunded(record, field, now, n));
                self.singles[key].law.give_back(Some(n), judged);
                ("refund", key, n, now, done(), done())
            }
            16 => {
                self.table.lower(key, |record, field| A::emptied(record, field, now));
                self.singles[key].law.give_back(None, judged);
                ("reset", key, n, now, done(), done())
            }
            _ => {
                let quota = quotas[random.usize(..quotas.len())];
                // A queue whose rate stays 0 takes whom it served for served at the change.
                let stays = !A::FORGETS && self.table.quota.permits() == 0;
                let quota = if stays { quotas[random.usize(..4)] } else { quota };
                self.table.set_quota(quota, now);
                self.singles.iter_mut().for_each(|single| single.set_quota(quota, now));
                let quota = format!("{quota:?}");
                ("set", key, n, now, quota.clone(), quota)
            }
        }
    }
}

fn per(permits: u64, nanos: u64) -> Quota {
    Quota::new(permits, Duration::from_nanos(nanos)).unwrap()
}

#[test]
fn a_bucket_of_a_key_answers_as_one_of_its_own() {
    let quotas = [
        per(1, 10).burst(3),
        per(3, 10).burst(4),
        per(7, 30).burst(2),
        per(1, 25).burst(1),
        per(0, 10).burst(5),
        per(0, 10).burst(0),
        per(4, 10).burst(0),
        Quota::UNLIMITED,
    ];
    let moved = (0..2_000).filter(|seed| Comparison::<Gcra>::run(*seed, &quotas, 20)).count();
    assert!(moved > 0);
}

#[test]
fn a_queue_of_a_key_tells_the_starts_of_one_of_its_own() {
    let quotas = [
        per(1, 10).burst(3),
        per(3, 10).burst(4),
        per(7, 30).burst(2),
        per(1, 25).burst(1),
        per(1, 25).burst(4),
        per(0, 10).burst(5),
        per(0, 10).burst(0),
        per(4, 10).burst(0),
        Quota::UNLIMITED,
    ];
    let moved = (0..2_000).filter(|seed| Comparison::<LeakyQueueLaw>::run(*seed, &quotas, 20)).count();
    assert!(moved > 0);
}

#[test]
fn windows_of_a_key_answer_as_those_of_its_own() {
    // The first is so large that all that may count by clocks set back fits counts as wide as its.
    let quotas = [per(200, 10), per(5, 10), per(3, 10), per(9, 10), per(4, 35), per(1, 1), per(0, 10)];
    let fixed = (0..2_000).filter(|seed| Comparison::<FixedWindowLaw>::run(*seed, &quotas, 12)).count();
    let sliding = (0..2_000).filter(|seed| Comparison::<SlidingCounterLaw>::run(*seed, &quotas, 12)).count();
    assert!(fixed > 0 && sliding > 0);
}
