//! Random calls on a few keys, given to a table and to its reference: no answer may differ.
//!
//! Once with a place for every key and times that go back and forth, and once with fewer places than keys and times that go on.
//! `PROPTEST_CASES` sets how many sequences are run, if more than the default, and `SEED` which ones. A failure prints the seed
//! and the shortest sequence found.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};
use tollgate::WhenFull;

use super::reference::{Keys, Single, told, wait};
use super::tables::{LAWS, Law, PLACES, Setup, Shape, Store, Table};
use crate::differential::{Difference, Step, at_least, moved, of_any_size, same, step, view};
use crate::laws::fixed_window::FixedWindow;
use crate::laws::reference::Reference as WindowReference;
use crate::laws::sliding_counter::SlidingCounter;
use crate::laws::sliding_log::SlidingLog;
use crate::reference::{Reference as BucketReference, Spec};

#[derive(Clone, Copy, Debug)]
enum Amount {
    Of(u64),
    /// All that are left.
    Remaining,
    OneTooMany,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Try(Amount),
    Peek(Amount),
    Available,
    Snapshot,
    Refund(Amount),
    Reset,
    SetQuota(Spec),
    Len,
}

#[derive(Clone, Debug)]
struct Sequence {
    first: Spec,
    built: u64,
    calls: Vec<(u64, Step, Call)>,
}

/// How keys and times are chosen.
#[derive(Clone, Copy, Debug)]
struct Manner {
    keys: u64,
    /// Whether there is a place for a few keys only.
    crowded: bool,
    when_full: WhenFull,
    /// Whether the time goes on alone; else it also goes back, and only so far that no origin has to move, since that is an instant
    /// from which all keys count.
    forward: bool,
    /// Whether the calls read the time from the table's clock.
    clocked: bool,
}

const ROOMY: Manner = Manner { keys: 5, crowded: false, when_full: WhenFull::Refuse, forward: false, clocked: false };
const CROWDED: Manner = Manner { keys: 24, crowded: true, when_full: WhenFull::Refuse, forward: true, clocked: false };

/// What rests at the very last instant counts as never at rest.
const LAST: u64 = u64::MAX - 1;

const LAST_WITHOUT_MOVE: u64 = 1 << 50;

impl Manner {
    fn time(self, step: Step, now: u64, spec: Spec, waited: Duration) -> u64 {
        let then = moved(step, now, spec, waited);
        if self.forward { then.max(now).min(LAST) } else { then.min(LAST_WITHOUT_MOVE) }
    }
}

/// A table that is told the time, or whose clock is.
struct Subject {
    table: Box<dyn Table>,
    clocked: bool,
}

impl Subject {
    fn at<T>(&self, now: u64, told: impl Fn(&dyn Table) -> T, clocked: impl Fn(&dyn Table) -> T) -> T {
        if self.clocked {
            self.table.clock().set(now);
            clocked(&*self.table)
        } else {
            told(&*self.table)
        }
    }
}

fn compare<R: Single>(law: Law, manner: Manner, sequence: &Sequence) -> Result<(), String> {
    let mut done = Vec::new();
    follow::<R>(law, manner, sequence, &mut done)
        .map_err(|difference| format!("{:?} at {}{}\n  {difference}", sequence.first, sequence.built, done.concat()))
}

fn follow<R: Single>(law: Law, manner: Manner, sequence: &Sequence, done: &mut Vec<String>) -> Result<(), String> {
    let mut spec = sequence.first;
    let setup = Setup { when_full: manner.when_full, ..Setup::new(spec.quota()) };
    let mut now = if manner.forward { sequence.built.min(LAST) } else { sequence.built.min(LAST_WITHOUT_MOVE) };
    let table = if manner.crowded { law.small(setup.built(now)) } else { law.table(setup.built(now)) };
    let subject = Subject { table, clocked: manner.clocked };
    let mut keys = Keys::<R>::new(spec, if manner.crowded { PLACES } else { usize::MAX }, setup);
    let mut waited = Duration::ZERO;
    for &(key, step, call) in &sequence.calls {
        let key = key % manner.keys;
        now = manner.time(step, now, spec, waited);
        keys.settle(key, now, view(subject.table.snapshot_at(key, now)));
        let asked = |keys: &Keys<R>, amount| match amount {
            Amount::Of(n) => n,
            Amount::Remaining => keys.available(key, now),
            Amount::OneTooMany => keys.available(key, now).saturating_add(1),
        };
        let mut note = |what: String| done.push(format!("\n  {what}"));
        match call {
            Call::Try(amount) => {
                let n = asked(&keys, amount);
                let want = keys.try_acquire_n(key, n, now);
                let got = told(subject.at(now, |table| table.try_n_at(key, n, now), |table| table.try_n(key, n)));
                same(("try", key, n, now), got, want)?;
                if let Some(wait) = wait(want) {
                    waited = wait;
                    exact_wait(&*subject.table, key, n, now, wait)?;
                }
                note(format!("try {n} of {key} at {now}: {want:?}"));
            }
            Call::Peek(amount) => {
                let n = asked(&keys, amount);
                let got = told(subject.at(now, |table| table.peek_at(key, n, now), |table| table.peek(key, n)));
                same(("peek", key, n, now), got, keys.peek(key, n, now))?;
            }
            Call::Available => {
                let got = subject.at(now, |table| table.available_at(key, now), |table| table.available(key));
                same(("available", key, now), got, keys.available(key, now))?;
            }
            Call::Snapshot => {
                let got = subject.at(now, |table| table.snapshot_at(key, now), |table| table.snapshot(key));
                same(("snapshot", key, now), view(got), keys.snapshot(key, now))?;
            }
            Call::Refund(amount) => {
                let n = asked(&keys, amount);
                keys.refund(key, n, now);
                subject.at(now, |table| table.refund_at(key, n, now), |table| table.refund(key, n));
                note(format!("refund {n} of {key} at {now}"));
            }
            Call::Reset => {
                keys.reset(key, now);
                subject.at(now, |table| table.reset_at(key, now), |table| table.reset(key));
                note(format!("reset {key} at {now}"));
            }
            Call::SetQuota(next) => {
                spec = next;
                keys.set_quota(spec, now);
                subject.at(now, |table| table.set_quota_at(spec.quota(), now), |table| table.set_quota(spec.quota()));
                same("quota", subject.table.quota(), spec.quota())?;
                note(format!("quota {spec:?} at {now}"));
            }
            Call::Len => {
                let got = subject.at(now, |table| table.len_at(now), |table| table.len());
                same(("len", now), got, keys.len(now))?;
            }
        }
    }
    for key in 0..manner.keys {
        let seen = view(subject.table.snapshot_at(key, now));
        keys.settle(key, now, seen);
        same(("at last", key, now), seen, keys.snapshot(key, now))?;
    }
    same(("len at last", now), subject.table.len_at(now), keys.len(now))
}

/// The wait told is long enough and one nanosecond less is not.
fn exact_wait(table: &dyn Table, key: u64, n: u64, now: u64, wait: Duration) -> Result<(), String> {
    let Some(due) = u64::try_from(wait.as_nanos()).ok().and_then(|wait| now.checked_add(wait)) else { return Ok(()) };
    if table.peek_at(key, n, due - 1).is_ok() {
        return Err(format!("try {n} of {key} at {now}: told to wait {wait:?}, but 1 ns less is enough"));
    }
    let in_time = table.peek_at(key, n, due);
    in_time.map_err(|refused| format!("try {n} of {key} at {now}: told to wait {wait:?}, then {refused:?}"))
}

/// Quotas that the units of a limiter and of a table both keep exactly.
fn spec(shape: Shape, forward: bool) -> impl Strategy<Value = Spec> {
    let period = match (shape, forward) {
        // Two windows of the future may have more than a limit lets pass in one, which their estimate does not fit.
        (Shape::Counter, false) => Just(Duration::from_secs(1)).boxed(),
        _ => prop_oneof![
            3 => Just(Duration::from_secs(1)),
            1 => Just(Duration::from_secs(60)),
            1 => Just(Duration::from_secs(24 * 60 * 60)),
            2 => (5_000..1_u64 << 45).prop_map(Duration::from_nanos),
        ]
        .boxed(),
    };
    let permits = match (shape, forward) {
        (_, true) => prop_oneof![8 => 1..8_u64, 2 => 1..128_u64, 1 => Just(0)].boxed(),
        // By a clock that goes back the instant from which a rate of 0 counts is not known of each key.
        (Shape::Bucket, false) => prop_oneof![8 => 1..8_u64, 2 => 1..128_u64].boxed(),
        // Nor how many permits of a larger limit count in a window of the future.
        (_, false) => (4..8_u64).boxed(),
    };
    let burst = prop_oneof![4 => 1..6_u64, 1 => 0..20_u64];
    let rate = (permits, period, burst).prop_map(|(permits, period, burst)| Spec::new(permits, period, burst));
    prop_oneof![20 => rate, 1 => Just(Spec::Unlimited)]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        4 => (0..4_u64).prop_map(Amount::Of),
        3 => Just(Amount::Remaining),
        1 => Just(Amount::OneTooMany),
        1 => of_any_size().prop_map(Amount::Of),
    ]
}

fn call(shape: Shape, forward: bool) -> impl Strategy<Value = Call> {
    prop_oneof![
        16 => amount().prop_map(Call::Try),
        1 => amount().prop_map(Call::Peek),
        1 => Just(Call::Available),
        1 => Just(Call::Snapshot),
        2 => amount().prop_map(Call::Refund),
        1 => Just(Call::Reset),
        3 => spec(shape, forward).prop_map(Call::SetQuota),
        1 => Just(Call::Len),
    ]
}

fn sequence(shape: Shape, forward: bool) -> impl Strategy<Value = Sequence> {
    let built = prop_oneof![Just(0), Just(1_700_000_000_000_000_000), of_any_size()];
    let calls = prop::collection::vec((0..64_u64, step(), call(shape, forward)), 1..100);
    (spec(shape, forward), built, calls).prop_map(|(first, built, calls)| Sequence { first, built, calls })
}

/// Compares the tables of a law with their reference over many sequences. The error tells of one that parts them, made as short as
/// `shrinks` steps allow.
fn search(law: Law, manner: Manner, cases: u32, shrinks: u32) -> Result<(), Difference> {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let config = ProptestConfig {
        cases,
        max_shrink_iters: shrinks,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    };
    let compare = match law.shape {
        Shape::Bucket => compare::<BucketReference>,
        Shape::Fixed => compare::<WindowReference<FixedWindow>>,
        Shape::Counter => compare::<WindowReference<SlidingCounter>>,
        Shape::Log => compare::<WindowReference<SlidingLog>>,
        Shape::Queue => unreachable!("it has calls of its own"),
    };
    let found = TestRunner::new(config).run(&sequence(law.shape, manner.forward), |sequence| {
        compare(law, manner, &sequence).map_err(TestCaseError::fail)
    });
    found.map_err(|found| match found {
        TestError::Fail(reason, _) => Difference(format!("SEED={seed} {law:?} {manner:?}: {reason}")),
        TestError::Abort(reason) => panic!("gave up: {reason}"),
    })
}

const SHRINKS: u32 = 2_000;

fn answer_as_their_reference_does(laws: impl Iterator<Item = Law>, manner: Manner) {
    for law in laws {
        search(law, manner, at_least(120), SHRINKS).unwrap();
        search(law, Manner { clocked: true, ..manner }, at_least(30), SHRINKS).unwrap();
    }
}

/// Those that police.
fn laws() -> impl Iterator<Item = Law> {
    LAWS.into_iter().filter(|law| law.shape != Shape::Queue)
}

/// In a map a key at rest leaves its place at any first sight of another, and what a clock that goes back finds depends on that; and who
/// shares a limiter is charged for that when he finds a place.
fn laws_in_slots() -> impl Iterator<Item = Law> {
    laws().filter(|law| law.store == Store::Slots)
}

#[test]
fn a_table_with_room_answers_as_a_map_of_limiters_whatever_the_times() {
    answer_as_their_reference_does(laws_in_slots(), ROOMY);
}

#[test]
fn a_table_with_room_answers_as_a_map_of_limiters() {
    answer_as_their_reference_does(laws(), Manner { forward: true, ..ROOMY });
}

#[test]
fn a_table_with_less_room_than_keys_answers_as_a_map_of_limiters_and_refuses_newcomers() {
    answer_as_their_reference_does(laws(), CROWDED);
}

#[test]
fn a_table_with_less_room_than_keys_lets_newcomers_share_one_limiter() {
    answer_as_their_reference_does(laws_in_slots(), Manner { when_full: WhenFull::Share, ..CROWDED });
}
