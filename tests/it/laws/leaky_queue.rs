//! The leaky bucket as a queue, in exact rationals: `start = max(now, free_at)`, then `free_at = start + n*T`; refused if the
//! backlog `(free_at - now)/T`, with n - 1 more, is the capacity or above.
//!
//! Only quotas whose T is a fraction that a word can keep are compared, without those of rate 0 and without a limit.

use std::cmp::{max, min};
use std::fmt::Debug;
use std::time::Duration;

use num::{One, ToPrimitive, Zero};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};
use tollgate::{LeakyQueue, ManualClock, Nanos, Refused};

use super::reference::duration;
use crate::differential::{Difference, Step, at_least, moved, of_any_size, same, step, view};
use crate::reference::{Exact, Kept, No, Spec, View, answer, whole};

/// When a request starts.
type Start = Result<u64, No>;

/// What is compared: the queue, its reference, and flawed ones.
trait Queue {
    fn schedule_n(&mut self, n: u64, now: u64) -> Start;
    fn peek(&mut self, n: u64, now: u64) -> Result<(), No>;
    fn snapshot(&mut self, now: u64) -> View;
    fn set_quota(&mut self, spec: Spec, now: u64);
    fn pause_until(&mut self, end: u64, now: u64);
}

/// Bugs that the comparison must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// A backlog of exactly the capacity is one too few.
    CapacityAndOne,
    /// Who is half done counts as one who waits.
    BacklogRoundedUp,
    /// The server begins when it was told last, and not when the request came.
    StartsInThePast,
    /// T is rounded up to whole nanoseconds.
    WholeInterval,
    /// Starts are rounded down.
    EarlyStart,
    /// The wait told is the one until the server is free.
    WaitsForAnEmptyQueue,
    /// A refused request is scheduled all the same.
    RefusedIsScheduled,
    /// Of n, only the first is served.
    ServesOnce,
    /// A new quota counts what waits in its own T.
    ChangeMovesStarts,
    /// A pause serves those who wait.
    PauseServes,
    /// A pause loses those who wait.
    PauseForgets,
    /// A pause that is over lasts again when the clock is set back into it.
    PauseComesBack,
}

#[derive(Clone, Debug)]
struct Reference {
    spec: Spec,
    flaw: Flaw,
    free_at: Exact,
    /// When a pause began.
    since: Exact,
    pause: Option<u64>,
}

impl Reference {
    fn new(spec: Spec, flaw: Flaw) -> Self {
        Self { spec, flaw, free_at: Exact::zero(), since: Exact::zero(), pause: None }
    }

    fn interval(&self) -> Exact {
        let interval = self.spec.interval().expect("a rate above 0");
        if self.flaw == Flaw::WholeInterval { interval.ceil() } else { interval }
    }

    /// In how many parts a nanosecond is counted.
    fn ticks(&self) -> u64 {
        self.interval().denom().to_u64().expect("a small one")
    }

    fn pause_end(&self, now: u64) -> Option<u64> {
        self.pause.filter(|end| *end > now)
    }

    /// The time for which the queue is busy with those before.
    fn busy(&self, now: &Exact) -> Exact {
        max(&self.free_at - now, Exact::zero())
    }

    fn admits(&self, n: u64, now: &Exact) -> bool {
        let backlog = self.busy(now) / self.interval();
        let backlog = if self.flaw == Flaw::BacklogRoundedUp { backlog.ceil() } else { backlog };
        let capacity = whole(self.spec.burst());
        let next = backlog + whole(n) - Exact::one();
        if self.flaw == Flaw::CapacityAndOne { next <= capacity } else { next < capacity }
    }

    /// The time until `n` are admitted.
    fn wait(&self, n: u64, now: u64) -> Duration {
        let from = whole(self.pause_end(now).unwrap_or(now));
        let mut first = from.clone();
        if !self.admits(n, &from) {
            // busy < (capacity + 1 - n)*T
            let room = (whole(self.spec.burst()) + Exact::one() - whole(n)) * self.interval();
            first = if self.flaw == Flaw::WaitsForAnEmptyQueue {
                self.free_at.ceil()
            } else {
                (&self.free_at - room).floor() + Exact::one()
            };
        }
        duration((first - whole(now)).to_integer().to_u128().unwrap_or(0))
    }

    fn remaining(&self, now: u64) -> u64 {
        if self.pause_end(now).is_some() {
            return 0;
        }
        // The largest n below capacity + 1 - backlog.
        let room = whole(self.spec.burst()) + Exact::one() - self.busy(&whole(now)) / self.interval();
        (room.ceil() - Exact::one()).to_integer().to_u64().unwrap_or(0)
    }
}

impl Queue for Reference {
    fn schedule_n(&mut self, n: u64, now: u64) -> Start {
        let start = max(self.free_at.clone(), whole(now));
        let rounded = if self.flaw == Flaw::EarlyStart { start.floor() } else { start.ceil() };
        // What waits for longer than there is time starts at its end.
        let told = rounded.to_integer().to_u64().unwrap_or(u64::MAX);
        if n == 0 {
            return Ok(told);
        }
        let peeked = self.peek(n, now);
        if peeked.is_ok() || self.flaw == Flaw::RefusedIsScheduled && self.pause_end(now).is_none() {
            let start = if self.flaw == Flaw::StartsInThePast { self.free_at.clone() } else { start };
            let n = if self.flaw == Flaw::ServesOnce { 1 } else { n };
            self.free_at = start + whole(n) * self.interval();
            if self.flaw != Flaw::PauseComesBack {
                self.pause = None;
            }
        }
        peeked.map(|()| told)
    }

    fn peek(&mut self, n: u64, now: u64) -> Result<(), No> {
        if n == 0 {
            return Ok(());
        }
        if n > self.spec.burst() {
            return Err(No::ExceedsCapacity { asked: n, capacity: self.spec.burst() });
        }
        let retry_after = self.wait(n, now);
        match self.pause_end(now) {
            _ if retry_after.is_zero() => Ok(()),
            Some(_) => Err(No::Paused { asked: n, retry_after }),
            None => Err(No::TooSoon { asked: n, remaining: self.remaining(now), retry_after }),
        }
    }

    fn snapshot(&mut self, now: u64) -> View {
        let limit = self.spec.burst();
        View {
            limit,
            remaining: self.remaining(now),
            retry_after: (limit > 0).then(|| self.wait(1, now)),
            reset_after: Some(self.wait(limit, now)),
        }
    }

    /// Starts that were told stand.
    fn set_quota(&mut self, spec: Spec, now: u64) {
        let before = self.interval();
        self.spec = spec;
        if self.interval() == before {
            return;
        }
        if self.flaw == Flaw::ChangeMovesStarts {
            self.free_at = whole(now) + self.busy(&whole(now)) / before * self.interval();
        }
        // A start that was told is a whole nanosecond, and none beyond the end of time, unless a pause until then is shortened.
        self.free_at = self.free_at.ceil();
        self.pause = self.pause_end(now);
        let fits = self.pause.is_some_and(|end| self.busy(&whole(end)) * whole(self.ticks()) < whole(1 << 59));
        if !fits {
            self.free_at = min(self.free_at.clone(), whole(u64::MAX));
            if self.pause.is_some() {
                // As for a pause that begins so.
                self.since = max(self.since.clone(), self.free_at.clone());
                self.free_at = max(whole(self.pause.unwrap_or(0)), self.free_at.clone());
                self.pause = self.free_at.to_integer().to_u64();
            }
        }
    }

    /// Those who wait at its begin wait at its end.
    fn pause_until(&mut self, end: u64, now: u64) {
        let before = self.pause_end(now);
        if end <= now && before.is_none() {
            return;
        }
        if before.is_none() {
            self.since = whole(now);
        }
        let busy = self.busy(&whole(before.unwrap_or(now)));
        let mut end_at = max(whole(end.max(now)), self.since.clone());
        let until = self.free_at.ceil().min(whole(u64::MAX));
        if end > now && &busy * whole(self.ticks()) >= whole(1 << 59) {
            // More than a word can hold, by a clock that was set back far: then all of them are served first.
            end_at = max(end_at, until.clone());
            (self.since, self.free_at) = (max(self.since.clone(), until), end_at.clone());
        } else {
            match self.flaw {
                Flaw::PauseServes => {}
                Flaw::PauseForgets => self.free_at = end_at.clone(),
                _ => self.free_at = &end_at + busy,
            }
        }
        self.pause = (end > now).then(|| end_at.to_integer().to_u64().expect("a time"));
    }
}

/// The real queue.
struct Real(LeakyQueue<ManualClock>);

impl Real {
    fn new(spec: Spec) -> Self {
        Self(LeakyQueue::with_clock(spec.quota(), ManualClock::new()))
    }
}

impl Queue for Real {
    fn schedule_n(&mut self, n: u64, now: u64) -> Start {
        let told: Result<Nanos, Refused> = self.0.schedule_n_at(n, now);
        match told {
            Ok(start) => Ok(start.get()),
            Err(refused) => Err(answer(Err(refused)).unwrap_err()),
        }
    }
    fn peek(&mut self, n: u64, now: u64) -> Result<(), No> {
        answer(self.0.peek_at(n, now))
    }
    fn snapshot(&mut self, now: u64) -> View {
        assert_eq!(self.0.available_at(now), self.0.snapshot_at(now).remaining);
        view(self.0.snapshot_at(now))
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        self.0.set_quota_at(spec.quota(), now);
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        self.0.pause_until_at(end, now);
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    /// So many, or so many more than there is room for.
    Schedule(u64),
    Beyond(u64),
    Peek(u64),
    Snapshot,
    SetQuota(Spec),
    Pause(Step),
    Resume,
}

#[derive(Clone, Copy, Debug)]
enum Done {
    Schedule(u64, u64),
    SetQuota(Spec, u64),
    Pause(u64, u64),
}

impl Done {
    fn again(self, queue: &mut impl Queue) {
        match self {
            Self::Schedule(n, now) => drop(queue.schedule_n(n, now)),
            Self::SetQuota(spec, now) => queue.set_quota(spec, now),
            Self::Pause(end, now) => queue.pause_until(end, now),
        }
    }
}

/// What was told since the quota was changed: n, and the start.
struct Told {
    interval: Exact,
    starts: Vec<(u64, u64)>,
}

impl Told {
    fn under(spec: Spec) -> Self {
        Self { interval: spec.interval().expect("a rate above 0"), starts: Vec::new() }
    }

    /// A start is not before its request, and as many T after each one before as went then and meanwhile; less than a
    /// nanosecond is lost where both are rounded up.
    fn add(&mut self, n: u64, start: u64, now: u64) -> Result<(), String> {
        if start < now {
            return Err(format!("{start} is told at {now}"));
        }
        let mut before = Exact::zero();
        for &(n, then) in self.starts.iter().rev() {
            before += whole(n);
            if start < u64::MAX && whole(start) + Exact::one() <= whole(then) + &before * &self.interval {
                return Err(format!("{start} is told, and {then} with {before} since"));
            }
        }
        self.starts.push((n, start));
        Ok(())
    }
}

fn compare<Q: Queue>(make: impl Fn(Spec) -> Q, spec: Spec, calls: &[(Step, Call)]) -> Result<(), String> {
    let mut done = Vec::new();
    follow(make, spec, calls, &mut done).map_err(|difference| {
        let calls: Vec<_> = done.iter().map(|call| format!("\n  {call:?}")).collect();
        format!("Setup {spec:?}{}\n  {difference}", calls.concat())
    })
}

fn follow<Q: Queue>(
    make: impl Fn(Spec) -> Q,
    mut spec: Spec,
    calls: &[(Step, Call)],
    done: &mut Vec<Done>,
) -> Result<(), String> {
    let first = spec;
    let (mut queue, mut reference) = (make(spec), Reference::new(spec, Flaw::None));
    let (mut now, mut waited, mut told) = (0, Duration::ZERO, Told::under(spec));
    for &(step, call) in calls {
        now = moved(step, now, spec, waited);
        match call {
            Call::Schedule(n) | Call::Beyond(n) => {
                let n = if matches!(call, Call::Beyond(_)) { reference.remaining(now).saturating_add(n) } else { n };
                let want = reference.schedule_n(n, now);
                same(("schedule", n, now), queue.schedule_n(n, now), want)?;
                match want {
                    Ok(start) if n > 0 => told.add(n, start, now)?,
                    Ok(_) => {}
                    Err(refused) => {
                        waited = refused.retry_after().unwrap_or(waited);
                        exact_wait(&make, first, done, (n, now), refused)?;
                    }
                }
                done.push(Done::Schedule(n, now));
            }
            Call::Peek(n) => same(("peek", n, now), queue.peek(n, now), reference.peek(n, now))?,
            Call::Snapshot => same(("snapshot", now), queue.snapshot(now), reference.snapshot(now))?,
            Call::SetQuota(next) => {
                spec = next;
                queue.set_quota(spec, now);
                reference.set_quota(spec, now);
                told = Told::under(spec);
                done.push(Done::SetQuota(spec, now));
            }
            Call::Pause(_) | Call::Resume => {
                let end = if let Call::Pause(step) = call { moved(step, now, spec, waited) } else { now };
                queue.pause_until(end, now);
                reference.pause_until(end, now);
                // An end that comes earlier brings what was moved back; told are starts before the pause or after it.
                told = Told::under(spec);
                done.push(Done::Pause(end, now));
            }
        }
    }
    same(("at last", now), queue.snapshot(now), reference.snapshot(now))
}

fn exact_wait<Q: Queue>(
    make: impl Fn(Spec) -> Q,
    first: Spec,
    done: &[Done],
    (n, now): (u64, u64),
    refused: No,
) -> Result<(), String> {
    let Some(wait) = refused.retry_after() else { return Ok(()) };
    let Some(then) = u64::try_from(wait.as_nanos()).ok().and_then(|wait| now.checked_add(wait)) else { return Ok(()) };
    let mut queue = make(first);
    for &call in done {
        call.again(&mut queue);
    }
    if queue.schedule_n(n, then - 1).is_ok() {
        return Err(format!("{n} at {now}: told to wait {wait:?}, but 1 ns less is enough"));
    }
    queue
        .schedule_n(n, then)
        .map(drop)
        .map_err(|refused| format!("{n} at {now}: told to wait {wait:?}, then {refused:?}"))
}

fn spec() -> impl Strategy<Value = Spec> {
    let period = prop_oneof![
        Just(Duration::from_secs(1)),
        Just(Duration::from_secs(24 * 60 * 60)),
        (1..1_000_u64).prop_map(Duration::from_nanos),
        of_any_size().prop_map(|nanos| Duration::from_nanos(nanos.max(1))),
    ];
    let permits =
        prop_oneof![4 => 1..20_u64, 2 => prop::sample::select(vec![2_004, 700_000_000]), 1 => 1..1_000_000_u64];
    let burst = prop_oneof![6 => 1..20_u64, 1 => Just(0), 1 => 0..1_000_000_u64];
    (permits, period, burst).prop_filter_map("T is no fraction that a word keeps", |(permits, period, burst)| {
        let spec = Spec::new(permits, period, burst);
        let interval = spec.interval().expect("a rate above 0");
        Kept::of(&interval, burst + 1).is_exact().then_some(spec)
    })
}

fn call() -> impl Strategy<Value = Call> {
    let n = || prop_oneof![6 => 0..4_u64, 1 => of_any_size(), 1 => Just(u64::MAX)];
    prop_oneof![
        12 => n().prop_map(Call::Schedule),
        4 => (0..3_u64).prop_map(Call::Beyond),
        2 => n().prop_map(Call::Peek),
        3 => Just(Call::Snapshot),
        2 => spec().prop_map(Call::SetQuota),
        2 => step().prop_map(Call::Pause),
        1 => Just(Call::Resume),
    ]
}

fn search<Q: Queue>(make: impl Fn(Spec) -> Q + Copy, cases: u32, shrinks: u32) -> Result<(), Difference> {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let config = ProptestConfig {
        cases,
        max_shrink_iters: shrinks,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    };
    let sequences = (spec(), prop::collection::vec((step(), call()), 1..20));
    let found = TestRunner::new(config)
        .run(&sequences, |(spec, calls)| compare(make, spec, &calls).map_err(TestCaseError::fail));
    found.map_err(|found| match found {
        TestError::Fail(reason, _) => Difference(format!("SEED={seed}: {reason}")),
        TestError::Abort(reason) => panic!("gave up: {reason}"),
    })
}

#[test]
fn the_leaky_queue_answers_as_its_reference_does() {
    search(Real::new, at_least(10_000), 2_000).unwrap();
}

#[test]
fn the_reference_of_the_queue_keeps_its_law_and_the_waits_that_it_tells() {
    search(|spec| Reference::new(spec, Flaw::None), at_least(1_000), 2_000).unwrap();
}

#[test]
fn every_flaw_of_a_leaky_queue_is_found() {
    for flaw in [
        Flaw::CapacityAndOne,
        Flaw::BacklogRoundedUp,
        Flaw::StartsInThePast,
        Flaw::WholeInterval,
        Flaw::EarlyStart,
        Flaw::WaitsForAnEmptyQueue,
        Flaw::RefusedIsScheduled,
        Flaw::ServesOnce,
        Flaw::ChangeMovesStarts,
        Flaw::PauseServes,
        Flaw::PauseForgets,
        Flaw::PauseComesBack,
    ] {
        let found = search(|spec| Reference::new(spec, flaw), 20_000, 0);
        let difference = found.expect_err(&format!("{flaw:?} was not found"));
        assert!(difference.0.contains("Setup"), "{flaw:?} was not found, but {difference:?}");
    }
}

#[test]
fn a_pause_without_a_limit_tells_its_end() {
    let queue = LeakyQueue::with_clock(Spec::new(1, Duration::from_secs(1), 1).quota(), ManualClock::new());
    let end = Duration::from_millis(125);
    queue.pause_until_at(end, 0);
    queue.set_quota_at(tollgate::Quota::UNLIMITED, 0);
    assert_eq!(queue.schedule_at(0), Err(Refused::Paused { asked: 1, retry_after: end }));
    assert_eq!(queue.schedule_at(end), Ok(end.into()));
}
