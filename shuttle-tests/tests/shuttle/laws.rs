//! The window laws and the leaky queue from several threads, with times on both sides of a window's edge: histories are
//! linearizable to a naive law, and a frozen thread keeps nobody from a decision.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;
use tollgate::{FixedWindow, LeakyQueue, Quota, SlidingCounter, SlidingLog};

use crate::freeze::stuck;
use crate::reference::real::{Subject, granted};
use crate::reference::{Op, Outcome};
use crate::run::{check, pick, report};

const LIMIT: u64 = 3;
const WINDOW: u64 = 10;

fn quota(limit: u64) -> Quota {
    Quota::new(limit, std::time::Duration::from_nanos(WINDOW)).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Try { n: u64, now: u64 },
    Left { now: u64 },
    Refund { n: u64, now: u64 },
    Limit { limit: u64, now: u64 },
}

/// The answer: whether it was granted or how long to wait, how many are left, or nothing. The queue tells a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Granted,
    StartsAt(u64),
    After(u64),
    TooMany,
    Left(u64),
    Done,
}

/// Something that threads share, and the law that it keeps.
trait Shared: Send + Sync + 'static {
    type Law: Sequential;

    fn make() -> Self;
    fn call(&self, call: Call) -> Answer;
}

/// A law for one caller.
trait Sequential: Clone + Debug + Eq + std::hash::Hash + Default + Send + 'static {
    fn call(&mut self, call: Call) -> Answer;
}

/// Grants by the time that counts, and the limit less the usual one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Grants {
    times: Vec<u64>,
    newest: u64,
    more: u64,
}

/// What counts at a time, in tenths of a permit.
type Counted = fn(&Grants, u64) -> u64;

fn fixed(grants: &Grants, now: u64) -> u64 {
    WINDOW * grants.times.iter().filter(|then| *then / WINDOW == now / WINDOW).count() as u64
}

fn log(grants: &Grants, now: u64) -> u64 {
    WINDOW * grants.times.iter().filter(|then| *then + WINDOW > now).count() as u64
}

fn counter(grants: &Grants, now: u64) -> u64 {
    let in_window = |index: u64| grants.times.iter().filter(|then| *then / WINDOW == index).count() as u64;
    let previous = (now / WINDOW).checked_sub(1).map_or(0, in_window);
    previous * (WINDOW - now % WINDOW) + WINDOW * in_window(now / WINDOW)
}

impl Grants {
    fn call(&mut self, call: Call, counted: Counted, newest: fn(u64) -> u64) -> Answer {
        let limit = LIMIT + self.more;
        match call {
            Call::Try { n: 0, .. } => Answer::Granted,
            Call::Try { n, .. } if n > limit => Answer::TooMany,
            Call::Try { n, now } => {
                let fits = |now: u64| counted(self, now.max(self.newest)) + n * WINDOW <= limit * WINDOW;
                let wait = (0..).find(|wait| fits(now + wait)).unwrap();
                if wait > 0 {
                    return Answer::After(wait);
                }
                let time = now.max(self.newest);
                self.times.extend((0..n).map(|_| time));
                self.newest = newest(time);
                Answer::Granted
            }
            Call::Left { now } => {
                Answer::Left(limit.saturating_sub(counted(self, now.max(self.newest)).div_ceil(WINDOW)))
            }
            Call::Limit { limit, .. } => {
                self.more = limit - LIMIT;
                Answer::Done
            }
            Call::Refund { .. } => panic!("each law gives back in its own way"),
        }
    }

    /// Takes the newest `n` of those that `count` out.
    fn take_back(&mut self, n: u64, mut counts: impl FnMut(u64) -> bool) -> Answer {
        for _ in 0..n {
            if let Some(last) = self.times.iter().rposition(|then| counts(*then)) {
                self.times.remove(last);
            }
        }
        Answer::Done
    }
}

const fn window_of(now: u64) -> u64 {
    now - now % WINDOW
}

macro_rules! law {
    ($name:ident, $counted:ident, $newest:expr, $counts:expr) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        struct $name(Grants);

        impl Sequential for $name {
            fn call(&mut self, call: Call) -> Answer {
                if let Call::Refund { n, now } = call {
                    let now = now.max(self.0.newest);
                    return self.0.take_back(n, |then| $counts(then, now));
                }
                self.0.call(call, $counted, $newest)
            }
        }
    };
}

law!(Fixed, fixed, window_of, |then, now| then / WINDOW == now / WINDOW);
law!(Log, log, |now| now, |then, now| then + WINDOW > now);
law!(Counter, counter, window_of, |then, now| then / WINDOW + 1 >= now / WINDOW);

/// `free_at`, with one permit per T of 4 ns and room for `LIMIT`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Queue {
    free_at: u64,
}

const T: u64 = 4;

impl Sequential for Queue {
    fn call(&mut self, call: Call) -> Answer {
        match call {
            Call::Try { n: 0, now } => Answer::StartsAt(now.max(self.free_at)),
            Call::Try { n, .. } if n > LIMIT => Answer::TooMany,
            Call::Try { n, now } => {
                let fits = |now: u64| self.free_at.saturating_sub(now) + (n - 1) * T < LIMIT * T;
                let wait = (0..).find(|wait| fits(now + wait)).unwrap();
                if wait > 0 {
                    return Answer::After(wait);
                }
                let start = now.max(self.free_at);
                self.free_at = start + n * T;
                Answer::StartsAt(start)
            }
            Call::Left { now } => {
                let busy = self.free_at.saturating_sub(now);
                Answer::Left((1..=LIMIT).take_while(|n| busy + (n - 1) * T < LIMIT * T).count() as u64)
            }
            Call::Refund { .. } | Call::Limit { .. } => Answer::Done,
        }
    }
}

fn answer<T>(told: Result<T, tollgate::Refused>, granted: impl Fn(T) -> Answer) -> Answer {
    match told.map_err(|refused| refused.retry_after()) {
        Ok(told) => granted(told),
        Err(Some(wait)) => Answer::After(u64::try_from(wait.as_nanos()).unwrap()),
        Err(None) => Answer::TooMany,
    }
}

macro_rules! shared {
    ($limiter:ident, $law:ident $(, $unwrap:ident)?) => {
        impl Shared for $limiter {
            type Law = $law;

            fn make() -> Self {
                $limiter::new(quota(LIMIT))$(.$unwrap())?
            }
            fn call(&self, call: Call) -> Answer {
                match call {
                    Call::Try { n, now } => answer(self.try_acquire_n_at(n, now), |()| Answer::Granted),
                    Call::Left { now } => Answer::Left(self.available_at(now)),
                    Call::Refund { n, now } => {
                        self.refund_at(n, now);
                        Answer::Done
                    }
                    Call::Limit { limit, now } => {
                        self.set_quota_at(quota(limit), now)$(.$unwrap())?;
                        Answer::Done
                    }
                }
            }
        }

        impl Subject for $limiter {
            fn call(&self, op: Op) -> Outcome {
                match op {
                    Op::Try { n, now } => granted(self.try_acquire_n_at(n, now)),
                    Op::Peek { n, now } => granted(self.peek_at(n, now)),
                    Op::Look { now } => Outcome::Took(self.available_at(now)),
                    Op::Refund { n, now } => {
                        self.refund_at(n, now);
                        Outcome::Done
                    }
                    Op::SetQuota { law, now } => {
                        self.set_quota_at(law.quota(), now)$(.$unwrap())?;
                        Outcome::Done
                    }
                    Op::Pause { end, now } => {
                        self.pause_until_at(end, now);
                        Outcome::Done
                    }
                    _ => panic!("{op:?} is not for a window"),
                }
            }
        }
    };
}

shared!(FixedWindow, Fixed);
shared!(SlidingCounter, Counter, unwrap);
shared!(SlidingLog, Log, unwrap);

impl Shared for LeakyQueue {
    type Law = Queue;

    fn make() -> Self {
        LeakyQueue::new(Quota::every(std::time::Duration::from_nanos(T)).unwrap().burst(LIMIT))
    }
    fn call(&self, call: Call) -> Answer {
        match call {
            Call::Try { n, now } => answer(self.schedule_n_at(n, now), |start| Answer::StartsAt(start.get())),
            Call::Left { now } => Answer::Left(self.available_at(now)),
            Call::Refund { .. } | Call::Limit { .. } => Answer::Done,
        }
    }
}

/// A law whose state is read, and stored after another thread may have run.
struct Torn<L>(shuttle::sync::Mutex<L>);

impl<L: Sequential> Shared for Torn<L> {
    type Law = L;

    fn make() -> Self {
        Self(shuttle::sync::Mutex::new(L::default()))
    }
    fn call(&self, call: Call) -> Answer {
        let mut law = self.0.lock().unwrap().clone();
        let answer = law.call(call);
        *self.0.lock().unwrap() = law;
        answer
    }
}

struct Spec<L>(std::marker::PhantomData<L>);

impl<L: Sequential> Specification for Spec<L> {
    type State = L;
    type Operation = (Call, Option<Answer>);

    fn init() -> L {
        L::default()
    }

    fn apply((call, seen): &Self::Operation, law: &L) -> (bool, L) {
        let mut after = law.clone();
        let explained = *seen == Some(after.call(*call));
        (explained, if explained { after } else { law.clone() })
    }
}

/// Around the edges at 10 and 20.
fn any(random: &mut ThreadRng) -> Call {
    let (n, now) = (pick(random, &[0, 1, 1, 2, 3, 4]), random.gen_range(6..24));
    match random.gen_range(0..8) {
        0..=4 => Call::Try { n, now },
        5 => Call::Left { now },
        6 => Call::Refund { n, now },
        _ => Call::Limit { limit: pick(random, &[LIMIT, LIMIT + 2]), now },
    }
}

/// Three threads make three calls each.
fn linearizable<S: Shared>() {
    let shared = Arc::new(S::make());
    // A lock of std's is no step of the schedule.
    let history = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (shared, history) = (Arc::clone(&shared), Arc::clone(&history));
            let calls: Vec<Call> = (0..3).map(|_| any(&mut thread_rng())).collect();
            shuttle::thread::spawn(move || {
                for call in calls {
                    history.lock().unwrap().push((thread, Action::Call((call, None))));
                    let seen = shared.call(call);
                    history.lock().unwrap().push((thread, Action::Response((call, Some(seen)))));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let actions = history.lock().unwrap().clone();
    let lines: String = actions.iter().map(|action| format!("\n{action:?}")).collect();
    assert!(WGLChecker::<Spec<S::Law>>::is_linearizable(History::from_actions(actions)), "not linearizable: {lines}");
}

#[test]
fn histories_of_a_fixed_window_are_linearizable() {
    check(5_000, linearizable::<FixedWindow>);
}

#[test]
fn histories_of_a_sliding_counter_are_linearizable() {
    check(5_000, linearizable::<SlidingCounter>);
}

#[test]
fn histories_of_a_sliding_log_are_linearizable() {
    check(5_000, linearizable::<SlidingLog>);
}

#[test]
fn histories_of_a_leaky_queue_are_linearizable() {
    check(5_000, linearizable::<LeakyQueue>);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_fixed_window_is_found() {
    check(5_000, linearizable::<Torn<Fixed>>);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_sliding_counter_is_found() {
    check(5_000, linearizable::<Torn<Counter>>);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_sliding_log_is_found() {
    check(5_000, linearizable::<Torn<Log>>);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_leaky_queue_is_found() {
    check(5_000, linearizable::<Torn<Queue>>);
}

const TRY: Op = Op::Try { n: 1, now: 12 };
const CHANGE: Op = Op::SetQuota { law: crate::reference::Law::new(7, 2), now: 12 };
const VICTIMS: [&[Op]; 4] = [
    &[TRY, TRY],
    &[Op::Refund { n: 1, now: 12 }, Op::Look { now: 12 }],
    &[CHANGE, TRY],
    &[Op::Pause { end: 50, now: 12 }, Op::Pause { end: 13, now: 13 }],
];

fn answers_beside_a_frozen_thread<S: Subject>(make: fn() -> S, decisions: &'static [Op]) {
    report(|| {
        for victim in VICTIMS {
            assert_eq!(stuck(make, victim, decisions), 0, "beside {victim:?}");
        }
    });
}

#[test]
fn windows_answer_while_a_thread_is_frozen() {
    const DECISIONS: [Op; 5] = [
        TRY,
        Op::Peek { n: 2, now: 14 },
        Op::Refund { n: 1, now: 50 },
        Op::Look { now: 14 },
        Op::Try { n: 2, now: 20 },
    ];
    answers_beside_a_frozen_thread(<FixedWindow as Shared>::make, &DECISIONS);
    answers_beside_a_frozen_thread(<SlidingCounter as Shared>::make, &DECISIONS);
}

/// A grant of the log takes a lock, a refusal and a look do not.
#[test]
fn a_full_log_refuses_while_a_thread_is_frozen() {
    const REFUSED: [Op; 3] = [TRY, Op::Look { now: 14 }, Op::Peek { n: 2, now: 14 }];
    let full = || {
        let log = <SlidingLog as Shared>::make();
        log.try_acquire_n_at(LIMIT, 12).unwrap();
        log
    };
    report(|| assert_eq!(stuck(full, &[TRY, TRY, Op::Try { n: 1, now: 40 }], &REFUSED), 0));
}
