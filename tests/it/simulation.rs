//! The whole shaper in a seeded world: tasks on a real runtime with paused time, that come at random, for random weights, give up,
//! stay away, give back, pause, change the quota, refund and close. Every call is noted in a trace, and the trace is checked.
//!
//! `SEEDS=100000` runs that many seeds instead of 300; `SEED=17` runs one and prints its trace. The same seed gives the same trace.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{JoinHandle, unconstrained};
use tokio::time::{sleep, timeout};
use tollgate::{AcquireOwned, Nanos, OwnedPermit, Refused, Shaper};

use crate::shaper_reference::{Outcome, Rate, Reference};
use crate::tasks::Random;
use crate::{HOUR, MILLISECOND, YEAR};

/// A call and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// The first poll of a wait.
    Ask {
        who: usize,
        n: u64,
        limit: Option<Duration>,
        outcome: Outcome,
    },
    /// A later poll.
    Look {
        who: usize,
        outcome: Outcome,
    },
    /// A wait is dropped before its answer.
    Leave {
        who: usize,
    },
    /// The task of a wait does not look whatever happens, or does again.
    Away {
        who: usize,
        away: bool,
    },
    Try {
        who: usize,
        n: u64,
        outcome: Outcome,
    },
    TakeUpTo {
        who: usize,
        n: u64,
        taken: u64,
    },
    GiveBack {
        who: usize,
        n: u64,
    },
    Estimate {
        n: u64,
        wait: Option<Duration>,
        waiting: usize,
    },
    Quota {
        rate: Rate,
    },
    Pause {
        end: Nanos,
    },
    /// `u64::MAX` for a reset.
    Refund {
        n: u64,
    },
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    at: Nanos,
    call: Call,
}

/// What a seed decides before anybody comes.
#[derive(Clone, Copy, Debug)]
struct Setup {
    rate: Rate,
    max_n: Option<u64>,
    places: usize,
    catch_up: Duration,
    /// Everybody comes within this time.
    span: Duration,
}

/// Intervals are milliseconds times a power of two below 64, so that permits that are carried from one quota to another stay
/// whole numbers of nanoseconds, whose millionth is 2^6 * 15625.
const SLOWEST: Duration = Duration::from_millis(64);

fn random_rate(random: &mut Random, max_n: Option<u64>) -> (tollgate::Quota, Rate) {
    Rate::new(1_000_000 << random.below(7), random.pick(&[1, 1, 5]), random.pick(&[1, 1, 2, 5]), max_n)
}

impl Setup {
    /// Where the time of a trace begins: the past is long enough for a full bucket.
    const START: Nanos = Nanos::from_secs(1000);

    fn random(random: &mut Random, tasks: usize) -> (tollgate::Quota, Self) {
        let max_n = random.pick(&[None, Some(6)]);
        let (quota, rate) = random_rate(random, max_n);
        let setup = Self {
            rate,
            max_n,
            places: random.pick(&[usize::MAX, usize::MAX, 8]),
            catch_up: MILLISECOND * random.pick(&[0, 5, 5, 50, 1000]),
            span: MILLISECOND * u32::try_from(tasks).expect("fits") * random.pick(&[1, 20, 60]),
        };
        (quota, setup)
    }
}

struct World {
    shaper: Arc<Shaper>,
    max_n: Option<u64>,
    start: Nanos,
    size: u64,
    trace: Mutex<Vec<Event>>,
    /// Tasks that somebody may abort.
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl World {
    fn note(&self, call: Call) {
        let at = self.shaper.now();
        self.trace.lock().unwrap().push(Event { at: self.in_trace(at), call });
    }

    fn in_trace(&self, at: Nanos) -> Nanos {
        Setup::START.saturating_add(at.saturating_since(self.start))
    }
}

/// A wait that notes its polls and its end.
struct Noted {
    world: Arc<World>,
    who: usize,
    n: u64,
    limit: Option<Duration>,
    polled: bool,
    acquire: Option<Pin<Box<AcquireOwned>>>,
}

impl Noted {
    fn new(world: &Arc<World>, who: usize, n: u64, limit: Option<Duration>) -> Self {
        let acquire = Arc::clone(&world.shaper).acquire_n_owned(n);
        let acquire = limit.into_iter().fold(acquire, AcquireOwned::within);
        Self { world: Arc::clone(world), who, n, limit, polled: false, acquire: Some(Box::pin(acquire)) }
    }
}

impl Future for Noted {
    type Output = Result<OwnedPermit, Refused>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(acquire) = &mut this.acquire else { panic!("polled after its end") };
        let answer = acquire.as_mut().poll(cx);
        let outcome = match &answer {
            Poll::Pending => Outcome::Waits,
            Poll::Ready(Ok(_)) => Outcome::Granted,
            Poll::Ready(Err(refused)) => Outcome::Refused(*refused),
        };
        let Self { who, n, limit, .. } = *this;
        this.world.note(if this.polled { Call::Look { who, outcome } } else { Call::Ask { who, n, limit, outcome } });
        this.polled = true;
        if answer.is_ready() {
            this.acquire = None;
        }
        answer
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(acquire) = self.acquire.take() {
            drop(acquire);
            if self.polled {
                self.world.note(Call::Leave { who: self.who });
            }
        }
    }
}

/// One who comes a few times, whatever for.
async fn live(world: Arc<World>, who: usize, setup: Setup, mut random: Random) {
    let ms = |count: u64| Duration::from_millis(count);
    let span = u64::try_from(setup.span.as_millis()).expect("fits");
    sleep(ms(random.below(span + 1))).await;
    for round in 0..1 + random.index(3) {
        // Requests are named by who makes them and which it is.
        let who = who * 4 + round;
        let n = random.pick(&[1, 1, 1, 1, 2, 3, 5, 0, 7]);
        let patience = ms(random.below(800));
        let permit = match random.below(20) {
            0..=6 => Noted::new(&world, who, n, None).await.ok(),
            7 | 8 => Noted::new(&world, who, n, Some(patience)).await.ok(),
            9 => timeout(patience, Noted::new(&world, who, n, None)).await.ok().and_then(Result::ok),
            10 => tokio::select! {
                biased;
                () = sleep(patience) => None,
                answer = Noted::new(&world, who, n, Some(ms(700))) => answer.ok(),
            },
            11 => stay_away(&world, Noted::new(&world, who, n, None), patience, random.once_in(2)).await,
            12 => {
                let tried = world.shaper.try_acquire_n(n);
                let outcome = tried.as_ref().map_or_else(|refused| Outcome::Refused(*refused), |_| Outcome::Granted);
                world.note(Call::Try { who, n, outcome });
                if let Ok(permit) = tried.as_ref().map(|permit| permit.permits()) {
                    // As long as it lives it can be given back, across awaits too.
                    sleep(ms(random.below(3) * 20)).await;
                    if permit > 0 && random.once_in(2) {
                        tried.expect("granted").give_back();
                        world.note(Call::GiveBack { who, n });
                    }
                }
                None
            }
            13 => {
                let permit = world.shaper.acquire_up_to(n);
                world.note(Call::TakeUpTo { who, n, taken: permit.permits() });
                None
            }
            // So seldom where many are, that something comes of the line between two changes.
            _ if random.below(world.size) < 30 => {
                disturb(&world, &mut random);
                None
            }
            _ => Noted::new(&world, who, n, None).await.ok(),
        };
        if let Some(permit) = permit.filter(|permit| permit.permits() > 0 && random.once_in(4)) {
            sleep(ms(random.pick(&[0, 0, 1, 30]))).await;
            permit.give_back();
            world.note(Call::GiveBack { who, n });
        }
        sleep(ms(random.below(100))).await;
    }
}

/// Gets in line and does not look until later, if ever again.
async fn stay_away(world: &World, mut wait: Noted, away: Duration, returns: bool) -> Option<OwnedPermit> {
    let first = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut wait).poll(cx))).await;
    if let Poll::Ready(answer) = first {
        return answer.ok();
    }
    let who = wait.who;
    world.note(Call::Away { who, away: true });
    sleep(away).await;
    if !returns {
        return None;
    }
    world.note(Call::Away { who, away: false });
    wait.await.ok()
}

fn disturb(world: &World, random: &mut Random) {
    let shaper = &world.shaper;
    match random.below(12) {
        0..=2 => {
            let span = Duration::from_millis(random.below(600));
            shaper.pause_for(span);
            world.note(Call::Pause { end: world.in_trace(shaper.now().saturating_add(span)) });
        }
        3 => {
            shaper.resume();
            world.note(Call::Pause { end: world.in_trace(shaper.now()) });
        }
        4 | 5 => {
            let (quota, rate) = random_rate(random, world.max_n);
            shaper.set_quota(quota);
            world.note(Call::Quota { rate });
        }
        6 => {
            let n = random.pick(&[1, 1, 3, 0]);
            shaper.refund(n);
            world.note(Call::Refund { n });
        }
        7 => {
            shaper.reset();
            world.note(Call::Refund { n: u64::MAX });
        }
        8 | 9 => {
            let tasks = world.tasks.lock().unwrap();
            for _ in 0..random.below(5) {
                tasks[random.index(tasks.len())].abort();
            }
        }
        10 if random.once_in(8) => {
            shaper.close();
            world.note(Call::Close);
        }
        _ => {
            let n = random.below(9);
            let (wait, waiting) = (shaper.estimated_wait(n), shaper.waiting());
            world.note(Call::Estimate { n, wait, waiting });
        }
    }
}

/// Runs a seed and returns its trace.
fn run(seed: u64, tasks: usize) -> (Setup, Vec<Event>) {
    let mut random = Random::new(seed);
    let (quota, setup) = Setup::random(&mut random, tasks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let trace = runtime.block_on(unconstrained(async {
        let builder = Shaper::builder(quota).queue(setup.places).catch_up(setup.catch_up);
        let shaper = Arc::new(setup.max_n.into_iter().fold(builder, |builder, n| builder.max_n(n)).build());
        let start = shaper.now();
        let size = u64::try_from(tasks).expect("fits");
        let world = Arc::new(World {
            shaper,
            max_n: setup.max_n,
            start,
            size,
            trace: Mutex::default(),
            tasks: Mutex::default(),
        });
        for who in 0..tasks {
            let life = live(Arc::clone(&world), who, setup, Random::new(random.next()));
            // A task that yields for its budget's sake would look like one who waits.
            let task = tokio::spawn(unconstrained(life));
            world.tasks.lock().unwrap().push(task);
        }
        // Time passes by itself as soon as nobody has anything to do: whoever is stuck keeps this from ending in time.
        let everybody = async {
            while world.tasks.lock().unwrap().iter().any(|task| !task.is_finished()) {
                sleep(MILLISECOND * 100).await;
            }
        };
        let ended = timeout(HOUR, everybody).await;
        assert!(ended.is_ok(), "{} in line for ever", world.shaper.waiting());
        let tasks = std::mem::take(&mut *world.tasks.lock().unwrap());
        for task in tasks {
            let ended = task.await;
            assert!(ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()), "a task has panicked");
        }
        world.note(Call::Estimate { n: 1, wait: world.shaper.estimated_wait(1), waiting: world.shaper.waiting() });
        std::mem::take(&mut *world.trace.lock().unwrap())
    }));
    (setup, trace)
}

/// All that must be true of a trace. Panics if something is not.
fn check(setup: &Setup, trace: &[Event]) {
    check_law(setup, trace, setup.catch_up);
    check_order(trace);
    check_answers(setup, trace);
}

/// In every span no more leaves than accrues in it, pauses left out, and what may be there at its start.
fn check_law(setup: &Setup, trace: &[Event], catch_up: Duration) {
    let nanos = |span: Duration| i128::try_from(span.as_nanos()).expect("fits");
    // A permit is as many units as the slowest quota takes nanoseconds, so that every quota gives whole units a nanosecond.
    let permit = nanos(SLOWEST);
    let (mut rate, mut end, mut last) = (setup.rate, Nanos::ZERO, Setup::START);
    let (mut accrued, mut paid) = (0, 0);
    // What came back in this instant. A call grants what is due before it does anything else, and those are told after it.
    let mut returned = 0;
    // Over the whole trace, and since the last quota; and the instant after which each begins.
    let (mut whole, mut recent) = ((i128::MAX, Nanos::ZERO), (i128::MAX, Nanos::ZERO));
    let (mut fullest, mut emptiest, mut fastest) = (0, 0, 0);
    let away = away_at_some_time(trace);
    let mut asked = HashMap::new();
    for (index, &Event { at, call }) in trace.iter().enumerate() {
        let gives = permit / rate.interval;
        accrued += nanos(at.saturating_since(last.max(end.min(at)))) * gives;
        if at > last {
            (returned, last) = (0, at);
        }
        let largest = i128::from(rate.largest);
        (fullest, emptiest) = (rate.burst.max(fullest), (rate.burst - largest).min(emptiest));
        fastest = gives.max(fastest);
        let mut leaves = |n: u64| {
            let check = |(least, after): &mut (i128, Nanos), most: i128, gives: i128| {
                if at > *after {
                    *least = (paid + returned - accrued).min(*least);
                    let paid = paid + i128::from(n) * permit;
                    let excess = paid - accrued - *least - most * permit - nanos(catch_up) * gives;
                    assert!(excess <= 0, "{excess} units too early: event {index}, {:?}", trace[index]);
                }
            };
            check(&mut recent, rate.burst.max(largest), gives);
            // A change of the quota may leave the burst of the one and the debts of the other.
            check(&mut whole, fullest - emptiest, fastest);
            paid += i128::from(n) * permit;
        };
        match call {
            Call::Ask { who, n, outcome, .. } => {
                asked.insert(who, n);
                if outcome == Outcome::Granted {
                    leaves(n);
                }
            }
            // Who was away may have left long before.
            Call::Look { who, outcome: Outcome::Granted } if !away.contains(&who) => leaves(asked[&who]),
            Call::Try { n, outcome: Outcome::Granted, .. } => leaves(n),
            Call::TakeUpTo { taken, .. } => leaves(taken),
            Call::Refund { n: u64::MAX } => (whole, recent) = ((i128::MAX, at), (i128::MAX, at)),
            // Perhaps it counts as used; the answers tell exactly.
            Call::GiveBack { n, .. } | Call::Refund { n } => {
                paid -= i128::from(n) * permit;
                returned += i128::from(n) * permit;
            }
            Call::Quota { rate: next } => (rate, recent) = (next, (i128::MAX, at)),
            Call::Pause { end: next } => end = next,
            _ => {}
        }
        let leaving = matches!(
            call,
            Call::Ask { n: 1.., outcome: Outcome::Granted, .. }
                | Call::Try { n: 1.., outcome: Outcome::Granted, .. }
                | Call::TakeUpTo { taken: 1.., .. }
        );
        assert!(!leaving || at >= end, "in a pause: event {index}, {:?}", trace[index]);
    }
}

fn away_at_some_time(trace: &[Event]) -> HashSet<usize> {
    let away = |event: &Event| match event.call {
        Call::Away { who, .. } => Some(who),
        _ => None,
    };
    trace.iter().filter_map(away).collect()
}

/// Nobody leaves while one who came before him and looks for his answer is in line still.
fn check_order(trace: &[Event]) {
    let away = away_at_some_time(trace);
    // When each left the line, granted or not, in order of arrival.
    let mut places: Vec<(usize, Nanos, Option<Nanos>)> = Vec::new();
    let mut place_of = HashMap::new();
    for &Event { at, call } in trace {
        let mut ends = |who: usize, granted: bool| {
            if let Some(place) = place_of.get(&who) {
                let (_, end, departure) = &mut places[*place];
                (*end, *departure) = (at, granted.then_some(at));
            }
        };
        match call {
            Call::Ask { n: 0, .. } | Call::Try { n: 0, .. } => {}
            Call::Ask { who, outcome, .. } | Call::Try { who, outcome, .. } => {
                place_of.insert(who, places.len());
                let end = if outcome == Outcome::Waits { Nanos::MAX } else { at };
                places.push((who, end, (outcome == Outcome::Granted).then_some(at)));
            }
            Call::TakeUpTo { who, taken: 1.., .. } => places.push((who, at, Some(at))),
            Call::Look { outcome: Outcome::Waits, .. } => {}
            Call::Look { who, outcome } => ends(who, outcome == Outcome::Granted),
            Call::Leave { who } => ends(who, false),
            _ => {}
        }
    }
    let mut earliest_behind = (0, Nanos::MAX);
    for &(who, end, departure) in places.iter().rev().filter(|place| !away.contains(&place.0)) {
        let (other, left) = earliest_behind;
        assert!(end <= left, "{other} left at {left}, {who} was before him in line and is there until {end}");
        if let Some(departure) = departure.filter(|departure| *departure < left) {
            earliest_behind = (who, departure);
        }
    }
}

/// Every answer is that of the reference, in which no permit is lost unless a later one left before it came back; and nobody who
/// looks has to wait for his answer while time passes.
fn check_answers(setup: &Setup, trace: &[Event]) {
    let catch_up = u64::try_from(setup.catch_up.as_nanos()).expect("fits");
    let mut reference = Reference::new(setup.rate, catch_up, setup.places, YEAR);
    let (mut away, mut last) = (HashSet::new(), Setup::START);
    for (index, &Event { at, call }) in trace.iter().enumerate() {
        let event = || format!("event {index}, {:?}", trace[index]);
        if at > last {
            let (in_line, answered) = reference.unanswered();
            assert!(answered.iter().all(|who| away.contains(who)), "{answered:?} not woken before {}", event());
            // Timers end at whole milliseconds; one who is away may hold up those behind him until they look.
            let present = !in_line.iter().any(|who| away.contains(who));
            let before = at.saturating_sub(MILLISECOND).max(last);
            assert!(!present || !reference.head_is_due(before), "{} not woken before {}", in_line[0], event());
            last = at;
        }
        let same = |outcome, expected| match (outcome, expected) {
            // What is told at a deadline is an upper bound.
            (Outcome::Refused(a), Outcome::Refused(b)) => assert_eq!(discriminant(&a), discriminant(&b), "{}", event()),
            _ => assert_eq!(outcome, expected, "{}", event()),
        };
        match call {
            Call::Ask { who, n, limit, outcome } => {
                assert_eq!(outcome, reference.ask(who, n, limit, at), "{}", event());
            }
            Call::Look { who, outcome } => same(outcome, reference.look(who, at)),
            Call::Leave { who } => {
                away.remove(&who);
                reference.leave(who, at);
            }
            Call::Away { who, away: true } => drop(away.insert(who)),
            Call::Away { who, away: false } => drop(away.remove(&who)),
            Call::Try { who, n, outcome } => assert_eq!(outcome, reference.try_acquire(who, n, at), "{}", event()),
            Call::TakeUpTo { who, n, taken } => assert_eq!(taken, reference.acquire_up_to(who, n, at), "{}", event()),
            Call::GiveBack { who, n } => reference.give_back(who, n, at),
            Call::Estimate { n, wait, waiting } => {
                assert_eq!((wait, waiting), (reference.estimated_wait(n, at), reference.waiting(at)), "{}", event());
            }
            Call::Quota { rate } => assert!(reference.set_quota(rate, at), "whole nanoseconds"),
            Call::Pause { end } => reference.pause_until(end, at),
            Call::Refund { n } => reference.refund(n, at),
            Call::Close => reference.close(at),
        }
    }
    let unanswered = reference.unanswered();
    assert!(unanswered.0.is_empty() && unanswered.1.is_empty(), "in line, and without their answers: {unanswered:?}");
}

/// Prints the seed, and on demand the trace, if the test panics.
struct Seed {
    seed: u64,
    trace: Vec<Event>,
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {0}: SEED={0} prints its trace", self.seed);
        }
        for event in &self.trace {
            println!("{event:?}");
        }
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value}")))
}

fn tasks_of(seed: u64) -> usize {
    match seed % 100 {
        99 => 3000,
        9 | 29 | 49 | 69 | 89 => 300,
        _ => 30,
    }
}

#[test]
fn whatever_happens_the_law_the_order_and_every_answer_are_right() {
    let one: Option<u64> = variable("SEED");
    let seeds = one.map_or(0..variable("SEEDS").unwrap_or(300), |seed| seed..seed + 1);
    let (mut events, mut granted) = (0, 0);
    for seed in seeds {
        let mut shown = Seed { seed, trace: Vec::new() };
        let (setup, trace) = run(seed, tasks_of(seed));
        if one.is_some() {
            println!("{setup:?}");
            shown.trace.clone_from(&trace);
        }
        check(&setup, &trace);
        events += trace.len();
        granted += trace.iter().filter(|event| is_granted(event)).count();
    }
    println!("{events} calls, {granted} granted");
}

fn is_granted(event: &Event) -> bool {
    matches!(event.call, Call::Ask { outcome, .. } | Call::Look { outcome, .. } if outcome == Outcome::Granted)
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..10 {
        assert!(run(seed, 30).1 == run(seed, 30).1, "seed {seed}");
    }
}

/// A check must fail where it is to; the panics of those are not printed.
fn fails(check: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(check)).is_err()
}

/// Traces with enough in them to be spoilt.
fn traces() -> impl Iterator<Item = (Setup, Vec<Event>)> {
    (0..40).map(|seed| run(seed, 30)).filter(|(_, trace)| trace.iter().filter(|event| is_granted(event)).count() > 10)
}

/// The same trace with one event changed, for each event for which `change` knows how.
fn spoilt(trace: &[Event], change: impl Fn(Event) -> Option<Event>) -> impl Iterator<Item = Vec<Event>> {
    trace.iter().enumerate().filter_map(move |(index, event)| {
        let event = change(*event)?;
        let mut trace = trace.to_vec();
        trace[index] = event;
        Some(trace)
    })
}

#[test]
fn the_check_finds_a_rate_that_is_not_kept() {
    // Judged by half the rate, some leave too early.
    let found = traces().filter(|(setup, trace)| {
        let rate = Rate { interval: setup.rate.interval * 2, ..setup.rate };
        fails(|| check_law(&Setup { rate, ..*setup }, trace, Duration::ZERO))
    });
    assert!(found.count() > 3);
}

#[test]
fn the_check_finds_two_who_leave_for_one_permit() {
    for (setup, trace) in traces().take(5) {
        let spoilt = spoilt(&trace, |event| match event.call {
            Call::TakeUpTo { who, n, taken } => {
                Some(Event { call: Call::TakeUpTo { who, n, taken: taken + 1 }, ..event })
            }
            Call::Try { who, n: n @ 1.., outcome: Outcome::Refused(_) } => {
                Some(Event { call: Call::Try { who, n, outcome: Outcome::Granted }, ..event })
            }
            _ => None,
        });
        for trace in spoilt {
            assert!(fails(|| check_answers(&setup, &trace)));
        }
    }
    // The law alone finds it where nothing was saved up.
    let (setup, trace) = traces().find(|(setup, _)| setup.rate.burst == 1).expect("a burst of 1");
    let often: Vec<_> =
        trace.iter().flat_map(|event| std::iter::repeat_n(*event, 1 + 9 * usize::from(is_granted(event)))).collect();
    assert!(fails(|| check_law(&setup, &often, setup.catch_up)));
}

#[test]
fn the_check_finds_a_pause_that_does_not_hold() {
    let mut held = 0;
    for (setup, trace) in traces() {
        let granted =
            trace.iter().position(|event| matches!(event.call, Call::Ask { n: 1.., outcome: Outcome::Granted, .. }));
        let Some(index) = granted else { continue };
        let mut trace = trace;
        let at = trace[index].at;
        trace.insert(index, Event { at, call: Call::Pause { end: at.saturating_add(MILLISECOND) } });
        assert!(fails(|| check_law(&setup, &trace, setup.catch_up)));
        held += 1;
    }
    assert!(held > 5);
}

#[test]
fn the_check_finds_one_who_overtakes() {
    let mut overtaken = 0;
    for (_, trace) in traces() {
        // Two who waited and looked change places.
        let away = away_at_some_time(&trace);
        let asked: HashMap<_, _> = trace
            .iter()
            .filter_map(|event| match event.call {
                Call::Ask { who, .. } => Some((who, event.at)),
                _ => None,
            })
            .collect();
        let granted = |event: &Event| match event.call {
            Call::Look { who, outcome: Outcome::Granted } if !away.contains(&who) => Some((event.at, who)),
            _ => None,
        };
        let left: Vec<_> = trace.iter().filter_map(granted).collect();
        for pair in left.windows(2).filter(|pair| pair[0].0 < pair[1].0 && asked[&pair[1].1] < pair[0].0) {
            let (a, b) = (pair[0].1, pair[1].1);
            let exchanged: Vec<_> = trace
                .iter()
                .map(|event| match event.call {
                    Call::Look { who, outcome: Outcome::Granted } if who == a || who == b => {
                        Event { call: Call::Look { who: a + b - who, outcome: Outcome::Granted }, ..*event }
                    }
                    _ => *event,
                })
                .collect();
            assert!(fails(|| check_order(&exchanged)), "{a} and {b}");
            overtaken += 1;
        }
    }
    assert!(overtaken > 50, "{overtaken}");
}

#[test]
fn the_check_finds_a_permit_that_is_lost_and_one_that_comes_back_twice() {
    let (mut lost, mut doubled, mut given_back) = (0, 0, 0);
    for (setup, trace) in traces() {
        for (index, event) in trace.iter().enumerate() {
            if !matches!(event.call, Call::GiveBack { .. }) {
                continue;
            }
            // Without the event it is as if the shaper had given back what was not; with a refund in its place, too much.
            let mut other = trace.clone();
            other.remove(index);
            lost += usize::from(fails(|| check_answers(&setup, &other)));
            let mut other = trace.clone();
            other.insert(index, Event { at: event.at, call: Call::Refund { n: 1 } });
            doubled += usize::from(fails(|| check_answers(&setup, &other)));
            given_back += 1;
        }
    }
    // Where a bucket fills up, or a later one has left, it makes no difference.
    assert!(lost > 3 && doubled > 3, "{lost} and {doubled} of {given_back}");
}

#[test]
fn the_check_finds_one_who_is_told_late_or_never() {
    let (mut late, mut never) = (0, 0);
    for (setup, trace) in traces().take(10) {
        let away = away_at_some_time(&trace);
        for (index, event) in trace.iter().enumerate() {
            let Call::Look { who, outcome: Outcome::Granted } = event.call else { continue };
            if away.contains(&who) {
                continue;
            }
            // All that comes after is as much later.
            let mut other = trace.clone();
            for event in &mut other[index..] {
                event.at = event.at.saturating_add(MILLISECOND * 2);
            }
            late += usize::from(fails(|| check_answers(&setup, &other)));
            let mut other = trace.clone();
            other.remove(index);
            assert!(fails(|| check_answers(&setup, &other)));
            never += 1;
        }
    }
    // Behind one who is away they may well be told late.
    assert!(late * 10 > never * 9 && never > 50, "{late} of {never}");
}
