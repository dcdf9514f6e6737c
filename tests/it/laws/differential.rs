//! Random limits and calls, given to a law and to its reference: no answer may differ.
//!
//! `PROPTEST_CASES` sets how many sequences are run, if more than the default, and `SEED` which ones. A failure prints the seed
//! and the shortest sequence found.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};
use tollgate::{FixedWindowLaw, SlidingCounterLaw, SlidingLogLaw};

use super::fixed_window::FixedWindow;
use super::real::{Build, Clocked, Told};
use super::reference::{Counts, Reference, Window};
use super::sliding_counter::SlidingCounter;
use super::sliding_log::SlidingLog;
use super::statement::Grant;
use crate::differential::{Bucket, Difference, at_least, of_any_size, same};
use crate::reference::{No, Setup, Spec};

/// How far the time moves before a call.
#[derive(Clone, Copy, Debug)]
enum Step {
    Stay,
    Forward(u64),
    Back(u64),
    /// 16ths of a window.
    Windows(i32),
    /// So many windows on or back, to so many nanoseconds after the edge.
    Edge(i32, i32),
    /// By the wait told last.
    Waited,
    /// By a nanosecond less than that.
    AlmostWaited,
    /// To so many nanoseconds before the end of time.
    End(u64),
    To(u64),
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Of(u64),
    /// All that are left.
    Remaining,
    OneTooMany,
    /// 256ths of the limit.
    Share(u8),
    Limit,
    AboveLimit,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Try(Amount),
    Peek(Amount),
    Available,
    Snapshot,
    SetQuota(Spec),
    /// Another limit, and the same window.
    SetLimit(Amount),
    UpTo(Amount),
    Refund(Amount),
    Reset,
    /// Until where such a step would lead.
    Pause(Step),
    Resume,
}

#[derive(Clone, Debug)]
struct Sequence {
    first: Setup,
    calls: Vec<(Step, Call)>,
}

/// A call that may have changed something, with its numbers worked out.
#[derive(Clone, Copy, Debug)]
enum Done {
    Try(u64, u64),
    SetQuota(Spec, u64),
    UpTo(u64, u64),
    Refund(u64, u64),
    Reset(u64),
    PauseUntil(u64, u64),
    Resume(u64),
}

impl Done {
    fn again(self, subject: &mut impl Bucket) {
        match self {
            Self::Try(n, now) => drop(subject.try_acquire_n(n, now)),
            Self::SetQuota(spec, now) => subject.set_quota(spec, now),
            Self::UpTo(n, now) => drop(subject.acquire_up_to(n, now)),
            Self::Refund(n, now) => subject.refund(n, now),
            Self::Reset(now) => subject.reset(now),
            Self::PauseUntil(end, now) => subject.pause_until(end, now),
            Self::Resume(now) => subject.resume(now),
        }
    }
}

fn compare<L: Counts, B: Bucket>(make: impl Fn(Setup) -> B, sequence: &Sequence) -> Result<(), String> {
    let mut done = Vec::new();
    follow::<L, B>(make, sequence, &mut done).map_err(|difference| {
        let calls: Vec<_> = done.iter().map(|call| format!("\n  {call:?}")).collect();
        format!("{:?}{}\n  {difference}", sequence.first, calls.concat())
    })
}

fn follow<L: Counts, B: Bucket>(
    make: impl Fn(Setup) -> B,
    sequence: &Sequence,
    done: &mut Vec<Done>,
) -> Result<(), String> {
    let mut spec = sequence.first.spec;
    let mut subject = make(sequence.first);
    let mut reference = Reference::<L>::new(sequence.first);
    let mut now = sequence.first.built;
    let mut waited = Duration::ZERO;
    // Since the quota was changed or something given back.
    let mut grants: Vec<Grant> = Vec::new();
    let note = |grants: &mut Vec<Grant>, n, now, spec| {
        let Some(window) = Window::of(spec).filter(|_| n > 0) else { return Ok(()) };
        grants.push((n, now));
        L::STATEMENT(grants, window)
    };
    for &(step, call) in &sequence.calls {
        now = moved(step, now, spec, waited);
        match call {
            Call::Try(amount) => {
                let n = asked(amount, &mut reference, now);
                let want = reference.try_acquire_n(n, now);
                same(("try", n, now), subject.try_acquire_n(n, now), want)?;
                match want {
                    Ok(()) => note(&mut grants, n, now, spec)?,
                    Err(refused) => {
                        waited = refused.retry_after().unwrap_or(waited);
                        exact_wait(&make, sequence.first, done, (n, now), refused)?;
                    }
                }
                done.push(Done::Try(n, now));
            }
            Call::Peek(amount) => {
                let n = asked(amount, &mut reference, now);
                same(("peek", n, now), subject.peek(n, now), reference.peek(n, now))?;
            }
            Call::Available => {
                same(("available", now), subject.available(now), reference.available(now))?;
            }
            Call::Snapshot => {
                same(("snapshot", now), subject.snapshot(now), reference.snapshot(now))?;
            }
            Call::SetQuota(_) | Call::SetLimit(_) => {
                spec = match (call, spec) {
                    (Call::SetQuota(next), _) => next,
                    (Call::SetLimit(amount), Spec::Rate { period, burst, .. }) => {
                        Spec::new(asked(amount, &mut reference, now).min(L::MOST), period, burst)
                    }
                    _ => spec,
                };
                subject.set_quota(spec, now);
                reference.set_quota(spec, now);
                grants.clear();
                done.push(Done::SetQuota(spec, now));
            }
            Call::UpTo(amount) => {
                let n = asked(amount, &mut reference, now);
                let want = reference.acquire_up_to(n, now);
                same(("up to", n, now), subject.acquire_up_to(n, now), want)?;
                note(&mut grants, want, now, spec)?;
                done.push(Done::UpTo(n, now));
            }
            Call::Refund(amount) => {
                let n = asked(amount, &mut reference, now);
                subject.refund(n, now);
                reference.refund(n, now);
                grants.clear();
                done.push(Done::Refund(n, now));
            }
            Call::Reset => {
                subject.reset(now);
                reference.reset(now);
                grants.clear();
                done.push(Done::Reset(now));
            }
            Call::Pause(step) => {
                let end = moved(step, now, spec, waited);
                if end > now || reference.is_paused(now) {
                    // It uses the time at which it begins or ends as a grant does.
                    grants.push((0, now));
                }
                subject.pause_until(end, now);
                reference.pause_until(end, now);
                done.push(Done::PauseUntil(end, now));
            }
            Call::Resume => {
                if reference.is_paused(now) {
                    grants.push((0, now));
                }
                subject.resume(now);
                reference.resume(now);
                done.push(Done::Resume(now));
            }
        }
    }
    same(("at last", now), subject.snapshot(now), reference.snapshot(now))
}

/// On a limiter that lived through the same calls, the wait told is long enough and one nanosecond less is not.
fn exact_wait<B: Bucket>(
    make: impl Fn(Setup) -> B,
    first: Setup,
    done: &[Done],
    (n, now): (u64, u64),
    refused: No,
) -> Result<(), String> {
    let Some(wait) = refused.retry_after() else { return Ok(()) };
    let Some(then) = u64::try_from(wait.as_nanos()).ok().and_then(|wait| now.checked_add(wait)) else { return Ok(()) };
    let mut subject = make(first);
    for &call in done {
        call.again(&mut subject);
    }
    if subject.try_acquire_n(n, then - 1).is_ok() {
        return Err(format!("try {n} at {now}: told to wait {wait:?}, but 1 ns less is enough"));
    }
    let in_time = subject.try_acquire_n(n, then);
    in_time.map_err(|refused| format!("try {n} at {now}: told to wait {wait:?}, then {refused:?}"))
}

fn moved(step: Step, now: u64, spec: Spec, waited: Duration) -> u64 {
    let length = Window::of(spec).map_or(1_000_000_000, |window| window.length);
    let length = i128::try_from(length).expect("shorter than 2^95 ns");
    let to = |time: i128| u64::try_from(time.max(0)).unwrap_or(u64::MAX);
    let wide = i128::from(now);
    match step {
        Step::Stay => now,
        Step::Forward(nanos) => now.saturating_add(nanos),
        Step::Back(nanos) => now.saturating_sub(nanos),
        Step::Windows(parts) => to(wide + length * i128::from(parts) / 16),
        Step::Edge(windows, off) => to((wide / length + i128::from(windows)) * length + i128::from(off)),
        Step::Waited => to(wide + i128::try_from(waited.as_nanos()).expect("a wait")),
        Step::AlmostWaited => to(wide + i128::try_from(waited.as_nanos()).expect("a wait") - 1),
        Step::End(before) => u64::MAX - before,
        Step::To(now) => now,
    }
}

fn asked<L: Counts>(amount: Amount, reference: &mut Reference<L>, now: u64) -> u64 {
    match amount {
        Amount::Of(n) => n,
        Amount::Remaining => reference.available(now),
        Amount::OneTooMany => reference.available(now).saturating_add(1),
        Amount::Share(parts) => u64::try_from(u128::from(reference.limit()) * u128::from(parts) / 256).expect("a part"),
        Amount::Limit => reference.limit(),
        Amount::AboveLimit => reference.limit().saturating_add(1),
    }
}

fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::from_secs(1)),
        2 => Just(Duration::from_secs(60)),
        2 => Just(Duration::from_secs(24 * 60 * 60)),
        3 => (1..20_u64).prop_map(Duration::from_nanos),
        3 => of_any_size().prop_map(|nanos| Duration::from_nanos(nanos.max(1))),
        1 => (of_any_size(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos.max(1))),
        1 => prop::sample::select(vec![
            Duration::from_nanos(u64::MAX),
            Duration::from_nanos(u64::MAX).saturating_add(Duration::from_nanos(1)),
            Duration::MAX,
        ]),
    ]
}

/// Limits of at most `most`. The burst means nothing to a window.
fn spec(most: u64) -> impl Strategy<Value = Spec> {
    let limit = prop_oneof![
        5 => 1..20_u64,
        1 => Just(0),
        2 => of_any_size(),
        1 => prop::sample::select(vec![most, most - 1, most / 2, most / 2 + 1]),
    ];
    let windows = (limit, length(), of_any_size())
        .prop_map(move |(limit, length, burst)| Spec::new(limit.min(most), length, burst));
    prop_oneof![20 => windows, 1 => Just(Spec::Unlimited)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Stay),
        4 => (-16..40_i32).prop_map(Step::Windows),
        3 => (-2..4_i32, -2..3_i32).prop_map(|(windows, off)| Step::Edge(windows, off)),
        3 => Just(Step::Waited),
        2 => Just(Step::AlmostWaited),
        2 => of_any_size().prop_map(Step::Forward),
        2 => of_any_size().prop_map(Step::Back),
        1 => of_any_size().prop_map(Step::End),
        1 => of_any_size().prop_map(Step::To),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        4 => (0..4_u64).prop_map(Amount::Of),
        3 => Just(Amount::Remaining),
        3 => Just(Amount::OneTooMany),
        2 => any::<u8>().prop_map(Amount::Share),
        2 => Just(Amount::Limit),
        1 => Just(Amount::AboveLimit),
        1 => of_any_size().prop_map(Amount::Of),
        1 => Just(Amount::Of(u64::MAX)),
    ]
}

fn call(most: u64) -> impl Strategy<Value = Call> {
    prop_oneof![
        14 => amount().prop_map(Call::Try),
        2 => amount().prop_map(Call::UpTo),
        1 => amount().prop_map(Call::Peek),
        1 => Just(Call::Available),
        2 => Just(Call::Snapshot),
        2 => spec(most).prop_map(Call::SetQuota),
        2 => amount().prop_map(Call::SetLimit),
        2 => amount().prop_map(Call::Refund),
        1 => Just(Call::Reset),
        3 => step().prop_map(Call::Pause),
        1 => Just(Call::Resume),
    ]
}

fn setup(most: u64) -> impl Strategy<Value = Setup> {
    let unix_time = 1_700_000_000_000_000_000;
    let built =
        prop_oneof![Just(0), Just(unix_time), of_any_size(), of_any_size().prop_map(|before| u64::MAX - before)];
    let initial = prop_oneof![3 => Just(None), 1 => of_any_size().prop_map(Some)];
    let max_pause = prop_oneof![
        3 => Just(Duration::MAX),
        1 => of_any_size().prop_map(Duration::from_nanos),
        1 => of_any_size().prop_map(Duration::from_secs),
    ];
    (spec(most), initial, max_pause, built).prop_map(|(spec, initial, max_pause, built)| Setup {
        spec,
        initial,
        max_pause,
        built,
    })
}

fn sequence(most: u64) -> impl Strategy<Value = Sequence> {
    (setup(most), prop::collection::vec((step(), call(most)), 1..20))
        .prop_map(|(first, calls)| Sequence { first, calls })
}

/// Compares what `make` makes with the reference of the law `L` over many sequences. The error tells of one that parts them, made
/// as short as `shrinks` steps allow.
pub(crate) fn search<L: Counts, B: Bucket>(
    make: impl Fn(Setup) -> B + Copy,
    cases: u32,
    shrinks: u32,
) -> Result<(), Difference> {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let config = ProptestConfig {
        cases,
        max_shrink_iters: shrinks,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    };
    let found = TestRunner::new(config)
        .run(&sequence(L::MOST), |sequence| compare::<L, B>(make, &sequence).map_err(TestCaseError::fail));
    found.map_err(|found| match found {
        TestError::Fail(reason, _) => Difference(format!("SEED={seed}: {reason}")),
        TestError::Abort(reason) => panic!("gave up: {reason}"),
    })
}

/// Enough to get down to the few calls that matter.
const SHRINKS: u32 = 2_000;

fn keeps_its_statement<L: Counts>() {
    search::<L, Reference<L>>(Reference::new, at_least(1_000), SHRINKS).unwrap();
}

#[test]
fn the_references_keep_the_laws_and_the_waits_that_they_tell() {
    keeps_its_statement::<FixedWindow>();
    keeps_its_statement::<SlidingLog>();
    keeps_its_statement::<SlidingCounter>();
}

/// Ten thousand sequences with the time told, and two thousand read from a clock; more if more are asked for.
fn answers_as_its_reference_does<L: Counts, A: Build>() {
    search::<L, Told<A>>(Told::new, at_least(10_000), SHRINKS).unwrap();
    search::<L, Clocked<A>>(Clocked::new, at_least(2_000), SHRINKS).unwrap();
}

#[test]
fn the_fixed_window_answers_as_its_reference_does() {
    answers_as_its_reference_does::<FixedWindow, FixedWindowLaw>();
}

#[test]
fn the_sliding_counter_answers_as_its_reference_does() {
    answers_as_its_reference_does::<SlidingCounter, SlidingCounterLaw>();
}

#[test]
fn the_sliding_log_answers_as_its_reference_does() {
    answers_as_its_reference_does::<SlidingLog, SlidingLogLaw>();
}
