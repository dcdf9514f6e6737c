//! Random quotas and requests, given to the token bucket and to the reference: no answer may differ.
//!
//! A failure prints the shortest sequence found. `PROPTEST_CASES` sets how many sequences are run, if more than the default.

use std::fmt::{self, Debug};
use std::time::Duration;

use num::{BigInt, ToPrimitive, Zero};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use tollgate::{ManualClock, TokenBucket};

use crate::reference::{Answer, Exact, Kept, MAX_BURST, No, Reference, Setup, Spec, View, answer, whole};

/// What is compared with the reference: the real bucket, and broken ones to show that the comparison has teeth.
pub(crate) trait Bucket {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer;
    fn peek(&mut self, n: u64, now: u64) -> Answer;
    fn available(&mut self, now: u64) -> u64;
    fn snapshot(&mut self, now: u64) -> View;
    fn set_quota(&mut self, spec: Spec, now: u64);
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64;
    fn refund(&mut self, n: u64, now: u64);
    fn reset(&mut self, now: u64);
    fn pause_until(&mut self, end: u64, now: u64);
    fn resume(&mut self, now: u64);
}

impl Bucket for Reference {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        Reference::try_acquire_n(self, n, now)
    }
    fn peek(&mut self, n: u64, now: u64) -> Answer {
        Reference::peek(self, n, now)
    }
    fn available(&mut self, now: u64) -> u64 {
        Reference::available(self, now)
    }
    fn snapshot(&mut self, now: u64) -> View {
        Reference::snapshot(self, now)
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        Reference::set_quota(self, spec, now);
    }
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        Reference::acquire_up_to(self, n, now)
    }
    fn refund(&mut self, n: u64, now: u64) {
        Reference::refund(self, n, now);
    }
    fn reset(&mut self, now: u64) {
        Reference::reset(self, now);
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        Reference::pause_until(self, end, now);
    }
    fn resume(&mut self, now: u64) {
        Reference::resume(self, now);
    }
}

/// The real bucket, told the time with each call.
pub(crate) struct Told(TokenBucket<ManualClock>);

impl Told {
    pub(crate) fn new(setup: Setup) -> Self {
        Self(build(setup))
    }
}

impl Bucket for Told {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        answer(self.0.try_acquire_n_at(n, now))
    }
    fn peek(&mut self, n: u64, now: u64) -> Answer {
        answer(self.0.peek_at(n, now))
    }
    fn available(&mut self, now: u64) -> u64 {
        self.0.available_at(now)
    }
    fn snapshot(&mut self, now: u64) -> View {
        view(self.0.snapshot_at(now))
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        self.0.set_quota_at(spec.quota(), now);
    }
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        self.0.acquire_up_to_at(n, now)
    }
    fn refund(&mut self, n: u64, now: u64) {
        self.0.refund_at(n, now);
    }
    fn reset(&mut self, now: u64) {
        self.0.reset_at(now);
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        self.0.pause_until_at(end, now);
    }
    fn resume(&mut self, now: u64) {
        self.0.resume_at(now);
    }
}

/// The real bucket, reading the time from its clock.
pub(crate) struct Clocked(TokenBucket<ManualClock>);

impl Clocked {
    pub(crate) fn new(setup: Setup) -> Self {
        Self(build(setup))
    }

    fn at(&self, now: u64) -> &TokenBucket<ManualClock> {
        self.0.clock().set(now);
        &self.0
    }
}

impl Bucket for Clocked {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        answer(self.at(now).try_acquire_n(n))
    }
    fn peek(&mut self, n: u64, now: u64) -> Answer {
        answer(self.at(now).peek(n))
    }
    fn available(&mut self, now: u64) -> u64 {
        self.at(now).available()
    }
    fn snapshot(&mut self, now: u64) -> View {
        view(self.at(now).snapshot())
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        self.at(now).set_quota(spec.quota());
    }
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        self.at(now).acquire_up_to(n)
    }
    fn refund(&mut self, n: u64, now: u64) {
        self.at(now).refund(n);
    }
    fn reset(&mut self, now: u64) {
        self.at(now).reset();
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        match end.checked_sub(now) {
            Some(span) => self.at(now).pause_for(Duration::from_nanos(span)),
            None => self.at(now).pause_until(end),
        }
    }
    fn resume(&mut self, now: u64) {
        self.at(now).resume();
    }
}

fn build(setup: Setup) -> TokenBucket<ManualClock> {
    let Setup { spec, initial, max_pause, built } = setup;
    let builder = TokenBucket::builder(spec.quota()).max_pause(max_pause).clock(ManualClock::at(built));
    match initial {
        Some(permits) => builder.initial(permits).build(),
        None => builder.build(),
    }
}

pub(crate) fn view(snapshot: tollgate::Snapshot) -> View {
    View {
        limit: snapshot.limit,
        remaining: snapshot.remaining,
        retry_after: snapshot.retry_after,
        reset_after: snapshot.reset_after,
    }
}

/// How far the time moves before a call. It is worked out when its turn comes, so that it meets the edges of the quota.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Stay,
    Forward(u64),
    Back(u64),
    /// Eighths of the quota's interval.
    Intervals(i64),
    /// 256ths of the time in which an empty bucket fills.
    Bursts(i16),
    /// By the wait told last.
    Waited,
    /// By a nanosecond less than that.
    AlmostWaited,
    /// To so many nanoseconds before the end of time.
    End(u64),
    To(u64),
}

/// How many permits are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Of(u64),
    /// All that are there.
    Remaining,
    OneTooMany,
    /// 256ths of the burst.
    Share(u8),
    Burst,
    AboveBurst,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Try(Amount),
    Peek(Amount),
    Available,
    Snapshot,
    SetQuota(Spec),
    UpTo(Amount),
    Refund(Amount),
    Reset,
    /// Until where such a step would lead.
    Pause(Step),
    Resume,
}

#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// The calls begin at the time at which the bucket is built.
    pub(crate) first: Setup,
    pub(crate) calls: Vec<(Step, Call)>,
}

/// A call with its numbers worked out.
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
    fn again(self, bucket: &mut impl Bucket) {
        match self {
            Self::Try(n, now) => drop(bucket.try_acquire_n(n, now)),
            Self::SetQuota(spec, now) => bucket.set_quota(spec, now),
            Self::UpTo(n, now) => drop(bucket.acquire_up_to(n, now)),
            Self::Refund(n, now) => bucket.refund(n, now),
            Self::Reset(now) => bucket.reset(now),
            Self::PauseUntil(end, now) => bucket.pause_until(end, now),
            Self::Resume(now) => bucket.resume(now),
        }
    }
}

/// The grants of one quota, for the law. Pauses change nothing in it, even if the clock goes back in them.
struct Grants {
    burst: u64,
    /// The true interval; `None` where time gives nothing or everything.
    interval: Option<Exact>,
    is_kept: bool,
    unlimited: bool,
    /// Permits, negative where they were given back, and when.
    made: Vec<(i128, u64)>,
}

impl Grants {
    fn under(spec: Spec) -> Self {
        let (burst, interval) = (spec.burst(), spec.interval());
        let is_kept = interval.as_ref().is_some_and(|interval| Kept::of(interval, burst).is_exact());
        Self { burst, interval, is_kept, unlimited: spec == Spec::Unlimited, made: Vec::new() }
    }

    /// Adds a grant and checks the law, with the true `T`, for every run that begins and ends with a grant:
    /// `n_i*T + ... + n_j*T <= burst*T + (now_j - now_i)`, where what was given back meanwhile does not count.
    fn add(&mut self, n: u64, now: u64) -> Result<(), String> {
        self.made.push((n.into(), now));
        let mut beyond = -i128::from(self.burst);
        for &(n, then) in self.made.iter().rev() {
            beyond += n;
            if n <= 0 {
                continue;
            }
            let span = i128::from(now) - i128::from(then);
            let is_lawful = match &self.interval {
                // Where the kept interval is longer than the true one and the clock went back, a step may count for
                // fewer permits than it is worth. What passes beyond the burst is never too much.
                Some(interval) if beyond > 0 || self.is_kept => interval.numer() * beyond <= interval.denom() * span,
                Some(_) => true,
                None => self.unlimited || beyond <= 0,
            };
            if !is_lawful {
                return Err(format!("{beyond} beyond the burst from {then} to {now}"));
            }
        }
        Ok(())
    }

    fn give_back(&mut self, n: u64, now: u64) {
        self.made.push((-i128::from(n), now));
    }
}

/// Runs a sequence against both; the error says which calls led to the difference.
pub(crate) fn compare<B: Bucket>(make: impl Fn(Setup) -> B, sequence: &Sequence) -> Result<(), String> {
    let mut done = Vec::new();
    follow(make, sequence, &mut done).map_err(|difference| {
        let calls: Vec<_> = done.iter().map(|call| format!("\n  {call:?}")).collect();
        format!("{:?}{}\n  {difference}", sequence.first, calls.concat())
    })
}

fn follow<B: Bucket>(make: impl Fn(Setup) -> B, sequence: &Sequence, done: &mut Vec<Done>) -> Result<(), String> {
    let mut spec = sequence.first.spec;
    let mut bucket = make(sequence.first);
    let mut reference = Reference::new(sequence.first);
    let mut now = sequence.first.built;
    let mut waited = Duration::ZERO;
    let mut grants = Grants::under(spec);
    for &(step, call) in &sequence.calls {
        now = moved(step, now, spec, waited);
        match call {
            Call::Try(amount) => {
                let n = asked(amount, spec, || reference.available(now));
                let want = reference.try_acquire_n(n, now);
                same(("try", n, now), bucket.try_acquire_n(n, now), want)?;
                if let Err(refused) = want {
                    waited = refused.retry_after().unwrap_or(waited);
                    exact_wait(&make, sequence.first, done, n, now, refused)?;
                } else if n > 0 {
                    grants.add(n, now)?;
                }
                done.push(Done::Try(n, now));
            }
            Call::Peek(amount) => {
                let n = asked(amount, spec, || reference.available(now));
                same(("peek", n, now), bucket.peek(n, now), reference.peek(n, now))?;
            }
            Call::Available => {
                same(("available", now), bucket.available(now), reference.available(now))?;
            }
            Call::Snapshot => {
                same(("snapshot", now), bucket.snapshot(now), reference.snapshot(now))?;
            }
            Call::SetQuota(next) => {
                bucket.set_quota(next, now);
                reference.set_quota(next, now);
                spec = next;
                grants = Grants::under(spec);
                done.push(Done::SetQuota(next, now));
            }
            Call::UpTo(amount) => {
                let n = asked(amount, spec, || reference.available(now));
                let want = reference.acquire_up_to(n, now);
                same(("up to", n, now), bucket.acquire_up_to(n, now), want)?;
                if want > 0 {
                    grants.add(want, now)?;
                }
                done.push(Done::UpTo(n, now));
            }
            Call::Refund(amount) => {
                let n = asked(amount, spec, || reference.available(now));
                bucket.refund(n, now);
                reference.refund(n, now);
                grants.give_back(n, now);
                done.push(Done::Refund(n, now));
            }
            Call::Reset => {
                bucket.reset(now);
                reference.reset(now);
                grants.made.clear();
                done.push(Done::Reset(now));
            }
            Call::Pause(step) => {
                let end = moved(step, now, spec, waited);
                bucket.pause_until(end, now);
                reference.pause_until(end, now);
                done.push(Done::PauseUntil(end, now));
            }
            Call::Resume => {
                bucket.resume(now);
                reference.resume(now);
                done.push(Done::Resume(now));
            }
        }
    }
    same(("at last", now), bucket.snapshot(now), reference.snapshot(now))
}

pub(crate) fn same<T: PartialEq + Debug>(call: impl Debug, got: T, want: T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{call:?}: {got:?}, should be {want:?}")) }
}

/// On a bucket that lived through the same calls, the wait told is long enough and one nanosecond less is not.
fn exact_wait<B: Bucket>(
    make: impl Fn(Setup) -> B,
    first: Setup,
    done: &[Done],
    n: u64,
    now: u64,
    refused: No,
) -> Result<(), String> {
    let Some(wait) = refused.retry_after() else { return Ok(()) };
    let Some(then) = u64::try_from(wait.as_nanos()).ok().and_then(|wait| now.checked_add(wait)) else { return Ok(()) };
    let mut bucket = make(first);
    for &call in done {
        call.again(&mut bucket);
    }
    let early = bucket.try_acquire_n(n, then - 1);
    if early.is_ok() {
        return Err(format!("try {n} at {now}: told to wait {wait:?}, but 1 ns less is enough"));
    }
    let in_time = bucket.try_acquire_n(n, then);
    in_time.map_err(|refused| format!("try {n} at {now}: told to wait {wait:?}, then {refused:?}"))
}

pub(crate) fn moved(step: Step, now: u64, spec: Spec, waited: Duration) -> u64 {
    let by = |span: BigInt| {
        let sum = BigInt::from(now) + span;
        sum.to_u64().unwrap_or(if sum < BigInt::zero() { 0 } else { u64::MAX })
    };
    let interval = || spec.interval().unwrap_or_else(|| whole(1_000_000_000));
    match step {
        Step::Stay => now,
        Step::Forward(nanos) => now.saturating_add(nanos),
        Step::Back(nanos) => now.saturating_sub(nanos),
        Step::Intervals(eighths) => by((interval() * Exact::new(eighths.into(), 8.into())).round().to_integer()),
        Step::Bursts(parts) => {
            by((interval() * whole(spec.burst()) * Exact::new(parts.into(), 256.into())).round().to_integer())
        }
        Step::Waited => by(BigInt::from(waited.as_nanos())),
        Step::AlmostWaited => by(BigInt::from(waited.as_nanos().saturating_sub(1))),
        Step::End(before) => u64::MAX - before,
        Step::To(now) => now,
    }
}

fn asked(amount: Amount, spec: Spec, remaining: impl Fn() -> u64) -> u64 {
    match amount {
        Amount::Of(n) => n,
        Amount::Remaining => remaining(),
        Amount::OneTooMany => remaining().saturating_add(1),
        Amount::Share(parts) => u64::try_from(u128::from(spec.burst()) * u128::from(parts) / 256).expect("a part"),
        Amount::Burst => spec.burst(),
        Amount::AboveBurst => spec.burst().saturating_add(1),
    }
}

/// Numbers of every size, small ones as often as large ones.
pub(crate) fn of_any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

fn period() -> impl Strategy<Value = Duration> {
    let day = 24 * 60 * 60;
    prop_oneof![
        Just(Duration::from_secs(1)),
        Just(Duration::from_secs(60)),
        Just(Duration::from_secs(day)),
        of_any_size().prop_map(|nanos| Duration::from_nanos(nanos.max(1))),
        (of_any_size(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos.max(1))),
    ]
}

/// Rates whose interval is no whole number of nanoseconds, or hardly any number at all.
fn odd_rate() -> impl Strategy<Value = (u64, Duration)> {
    let (second, day, year) = (1, 24 * 60 * 60, 365 * 24 * 60 * 60);
    prop::sample::select(vec![
        (3, Duration::from_secs(second)),
        (7, Duration::from_secs(second)),
        (2004, Duration::from_secs(second)),
        (980_000_000, Duration::from_secs(10 * second)),
        (2_500_000, Duration::from_secs(30 * day)),
        (700_000_000, Duration::from_secs(second)),
        (576_460_751, Duration::from_secs(second)),
        (999_999_937, Duration::from_secs(second)),
        (1_000_000_007, Duration::from_secs(7 * second)),
        (1, Duration::from_nanos(1)),
        (1, Duration::from_secs(400 * year)),
        (1, Duration::MAX),
        (7, Duration::MAX),
        (u64::MAX, Duration::from_nanos(1)),
        (u64::MAX, Duration::from_secs(second)),
        (u64::MAX, Duration::MAX),
    ])
}

fn spec() -> impl Strategy<Value = Spec> {
    let rate = prop_oneof![
        4 => (1..1_000_u64, period()),
        4 => odd_rate(),
        3 => (of_any_size(), period()),
        2 => period().prop_map(|period| (0, period)),
    ];
    let with_burst = rate.prop_flat_map(|(permits, period)| {
        let burst = prop_oneof![
            3 => 1..20_u64,
            2 => Just(permits),
            2 => Just(1),
            1 => Just(0),
            2 => of_any_size(),
            1 => prop::sample::select(vec![1_000_000, MAX_BURST / 2, MAX_BURST - 1, MAX_BURST, MAX_BURST + 1, u64::MAX]),
        ];
        burst.prop_map(move |burst| Spec::new(permits, period, burst))
    });
    prop_oneof![20 => with_burst, 1 => Just(Spec::Unlimited)]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Stay),
        4 => (-16..64_i64).prop_map(Step::Intervals),
        3 => (-128..512_i16).prop_map(Step::Bursts),
        3 => Just(Step::Waited),
        2 => Just(Step::AlmostWaited),
        3 => of_any_size().prop_map(Step::Forward),
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
        2 => Just(Amount::Burst),
        1 => Just(Amount::AboveBurst),
        1 => of_any_size().prop_map(Amount::Of),
        1 => Just(Amount::Of(u64::MAX)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        12 => amount().prop_map(Call::Try),
        2 => amount().prop_map(Call::UpTo),
        1 => amount().prop_map(Call::Peek),
        1 => Just(Call::Available),
        2 => Just(Call::Snapshot),
        3 => spec().prop_map(Call::SetQuota),
        2 => amount().prop_map(Call::Refund),
        1 => Just(Call::Reset),
        3 => step().prop_map(Call::Pause),
        1 => Just(Call::Resume),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let unix_time = 1_700_000_000_000_000_000;
    let built =
        prop_oneof![Just(0), Just(unix_time), of_any_size(), of_any_size().prop_map(|before| u64::MAX - before)];
    let initial = prop_oneof![3 => Just(None), 1 => of_any_size().prop_map(Some)];
    let max_pause = prop_oneof![
        3 => Just(Duration::MAX),
        1 => of_any_size().prop_map(Duration::from_nanos),
        1 => of_any_size().prop_map(Duration::from_secs),
    ];
    (spec(), initial, max_pause, built).prop_map(|(spec, initial, max_pause, built)| Setup {
        spec,
        initial,
        max_pause,
        built,
    })
}

fn sequence() -> impl Strategy<Value = Sequence> {
    (setup(), prop::collection::vec((step(), call()), 1..20)).prop_map(|(first, calls)| Sequence { first, calls })
}

/// Compares a bucket with the reference over many sequences. The error tells of one that parts them, made as short as
/// `shrinks` steps allow.
pub(crate) fn search<B: Bucket>(make: impl Fn(Setup) -> B + Copy, cases: u32, shrinks: u32) -> Result<(), Difference> {
    let config =
        ProptestConfig { cases, max_shrink_iters: shrinks, failure_persistence: None, ..ProptestConfig::default() };
    let found =
        TestRunner::new(config).run(&sequence(), |sequence| compare(make, &sequence).map_err(TestCaseError::fail));
    found.map_err(|found| match found {
        TestError::Fail(reason, _) => Difference(reason.to_string()),
        TestError::Abort(reason) => panic!("gave up: {reason}"),
    })
}

/// The calls that led to a difference, and what it is.
pub(crate) struct Difference(pub(crate) String);

impl Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Enough to get down to the few calls that matter.
const SHRINKS: u32 = 2_000;

/// At least as many sequences as `PROPTEST_CASES` asks for.
pub(crate) fn at_least(cases: u32) -> u32 {
    ProptestConfig::default().cases.max(cases)
}

#[test]
fn the_bucket_answers_as_the_reference_does() {
    search(Told::new, at_least(10_000), SHRINKS).unwrap();
}

#[test]
fn the_bucket_that_reads_its_clock_answers_as_the_reference_does() {
    search(Clocked::new, at_least(2_000), SHRINKS).unwrap();
}

#[test]
fn the_reference_keeps_the_law_and_the_waits_that_it_tells() {
    search(Reference::new, at_least(256), SHRINKS).unwrap();
}
