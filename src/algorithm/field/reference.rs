//! The fields of a table against limiters of their own: they answer the same, but for what a table says of keys at rest.

use std::time::Duration;

use super::{Admission, FieldLaw};
use crate::algorithm::window::Kind;
use crate::algorithm::windowed::Windowed;
use crate::algorithm::{FixedWindowLaw, Gcra, Policing, SlidingCounterLaw};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// What a table does, with one key or several, and nothing concurrent.
struct Table<A: FieldLaw> {
    quota: Quota,
    versions: Vec<A::Record>,
    /// The version of each key, and its field.
    keys: Vec<(usize, u64)>,
}

impl<A: FieldLaw> Table<A> {
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
    fn try_acquire(&mut self, key: usize, n: u64, now: Nanos) -> (Result<(), Refused>, bool) {
        for moved in [false, true] {
            let field = self.field(key);
            let quick = A::admit_in_64_bits(self.record(), field, now, n).filter(|_| n > 0);
            let admission = A::admit(self.record(), field, now, n);
            assert!(quick.is_none() || quick.map(Admission::Granted) == Some(admission), "{quick:?}: {admission:?}");
            match admission {
                Admission::Granted(field) => {
                    self.keys[key].1 = field;
                    return (Ok(()), moved);
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
trait Keyed: FieldLaw + Policing {
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
        if before.is_unlimited() || quota.is_unlimited() || self.rests_at(now.max(self.since)) {
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

/// Random calls on a few keys at random times, also backwards, that meet several changes of the quota at once.
fn compare<A: Keyed>(seed: u64, quotas: &[Quota], step: u64, start: u64) {
    const KEYS: usize = 3;
    let mut random = fastrand::Rng::with_seed(seed);
    let quota = quotas[0];
    let mut now = Nanos::new(start);
    let mut table = Table::<A>::new(quota, now, KEYS);
    let mut singles: Vec<Single<A>> = (0..KEYS).map(|_| Single::new(quota, now)).collect();
    let mut history = Vec::new();
    for _ in 0..60 {
        let (key, n, span) = (random.usize(..KEYS), random.u64(0..5), random.u64(..step));
        now = if random.u8(..4) == 0 {
            now.saturating_sub(Duration::from_nanos(span))
        } else {
            now.saturating_add(Duration::from_nanos(span))
        };
        let single = &singles[key];
        let judged = single.judged(now);
        let call = random.u8(..20);
        history.push((call, key, n, now.get(), table.quota));
        match call {
            0..10 => {
                let (answer, moved) = table.try_acquire(key, n, now);
                let single = single.law.try_acquire(n, judged);
                // A refusal tells the wait from the call.
                let early = judged.saturating_since(now);
                let expected = match single {
                    Err(Refused::TooSoon { asked, remaining, retry_after }) => {
                        Err(Refused::TooSoon { asked, remaining, retry_after: retry_after + early })
                    }
                    other => other,
                };
                assert_eq!(answer, expected, "seed {seed}: {history:?}");
                if moved {
                    for single in &mut singles {
                        single.set_quota(table.quota, now);
                    }
                }
            }
            10..14 => {
                let (ours, theirs) = (table.snapshot(key, now), single.law.snapshot(judged));
                assert_eq!((ours.limit, ours.remaining), (theirs.limit, theirs.remaining), "seed {seed}: {history:?}");
            }
            14..16 => {
                table.lower(key, |record, field| A::refunded(record, field, now, n));
                single.law.refund(n, judged);
            }
            16 => {
                table.lower(key, |record, field| A::emptied(record, field, now));
                single.law.reset(judged);
            }
            _ => {
                let quota = quotas[random.usize(..quotas.len())];
                table.set_quota(quota, now);
                for single in &mut singles {
                    single.set_quota(quota, now);
                }
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
    for seed in 0..4_000 {
        compare::<Gcra>(seed, &quotas, 20, 100);
    }
}

#[test]
fn windows_of_a_key_answer_as_those_of_its_own() {
    // The first is so large that all that may count by clocks set back fits a count as wide as it.
    let quotas = [per(200, 10), per(5, 10), per(3, 10), per(9, 10), per(4, 35), per(1, 1), per(0, 10)];
    for seed in 0..4_000 {
        compare::<FixedWindowLaw>(seed, &quotas, 12, 100);
        compare::<SlidingCounterLaw>(seed, &quotas, 12, 100);
    }
}
