//! Histories of the window laws, the log and the leaky queue with every call that they know are linearizable: pauses, what is
//! there, resets, and changes of the length, beside requests on both sides of a window's edge.

use std::sync::{Arc, Mutex};

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

use crate::other_laws::log::List;
use crate::other_laws::queue::{Queue, Real};
use crate::other_laws::window::Window;
use crate::other_laws::{Counter, Fixed, Log, law};
use crate::reference::real::Subject;
use crate::reference::{Expected, Law, Op, Outcome, Reference};
use crate::run::{check, pick};

/// Five per ten nanoseconds: that a counter has room to weigh.
fn first() -> Law {
    law(5, 10)
}

/// Another limit, another length, and both.
fn others() -> [Law; 4] {
    [first(), law(10, 10), law(5, 5), law(2, 6)]
}

const FIRST: Law = Law::new(4, 3);
const OTHERS: [Law; 4] = [FIRST, Law::new(9, 3), Law::new(4, 2), Law::new(2, 5)];

/// A law for one caller, and what a checker of its histories has to know.
trait Sequential: Reference + Eq + std::hash::Hash + std::fmt::Debug + Send + 'static {
    fn start() -> Self;
    fn any(random: &mut ThreadRng) -> Op;
}

/// Any call of a limiter, around the edges at 10 and 20.
fn any(random: &mut ThreadRng) -> Op {
    let (n, now) = (pick(random, &[0, 1, 1, 2, 3, 6]), random.gen_range(6..24));
    match random.gen_range(0..14) {
        0..=3 => Op::Try { n, now },
        4 => Op::Peek { n, now },
        5 => Op::Look { now },
        6 => Op::Refund { n, now },
        7 => Op::Reset { now },
        8 | 9 => Op::UpTo { n, now },
        10 => Op::SetQuota { law: pick(random, &others()), now },
        11 | 12 => Op::Pause { end: now + random.gen_range(1..20), now },
        _ => Op::Pause { end: now, now },
    }
}

/// A window that slides, or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Windows<const SLIDES: bool>(Window);

impl<const SLIDES: bool> Reference for Windows<SLIDES> {
    fn call(&mut self, op: Op) -> Expected {
        self.0.call(op)
    }
}

impl<const SLIDES: bool> Sequential for Windows<SLIDES> {
    fn start() -> Self {
        Self(Window::new(first(), SLIDES))
    }
    fn any(random: &mut ThreadRng) -> Op {
        any(random)
    }
}

impl Sequential for List {
    fn start() -> Self {
        Self::new(first())
    }
    fn any(random: &mut ThreadRng) -> Op {
        any(random)
    }
}

impl Sequential for Queue {
    fn start() -> Self {
        Self::new(FIRST)
    }

    fn any(random: &mut ThreadRng) -> Op {
        let (n, now) = (pick(random, &[1, 1, 2, 3, 4]), random.gen_range(6..24));
        match random.gen_range(0..11) {
            0..=4 => Op::Try { n, now },
            10 => Op::Peek { n, now },
            5 => Op::Look { now },
            6 => Op::SetQuota { law: pick(random, &OTHERS), now },
            7 | 8 => Op::Pause { end: now + random.gen_range(1..20), now },
            _ => Op::Pause { end: now, now },
        }
    }
}

struct Spec<L>(std::marker::PhantomData<L>);

impl<L: Sequential> Specification for Spec<L> {
    type State = L;
    type Operation = (Op, Option<Outcome>);

    fn init() -> L {
        L::start()
    }

    fn apply((op, seen): &Self::Operation, law: &L) -> (bool, L) {
        let mut after = law.clone();
        let expected = after.call(*op);
        match seen.is_some_and(|seen| expected.allows(&seen)) {
            true => (true, after),
            false => (false, law.clone()),
        }
    }
}

/// Three threads make three calls each.
fn linearizable<L: Sequential>(subject: impl Subject) {
    let subject = Arc::new(subject);
    // A lock of std's is no step of the schedule.
    let history = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (subject, history) = (Arc::clone(&subject), Arc::clone(&history));
            let calls: Vec<Op> = (0..3).map(|_| L::any(&mut thread_rng())).collect();
            shuttle::thread::spawn(move || {
                for op in calls {
                    history.lock().unwrap().push((thread, Action::Call((op, None))));
                    let seen = subject.call(op);
                    history.lock().unwrap().push((thread, Action::Response((op, Some(seen)))));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let actions = history.lock().unwrap().clone();
    let lines: String = actions.iter().map(|action| format!("\n{action:?}")).collect();
    assert!(WGLChecker::<Spec<L>>::is_linearizable(History::from_actions(actions)), "not linearizable: {lines}");
}

#[test]
fn histories_of_a_fixed_window_with_every_call_are_linearizable() {
    check(5_000, || linearizable::<Windows<false>>(Fixed::new(first())));
}

#[test]
fn histories_of_a_sliding_counter_with_every_call_are_linearizable() {
    check(5_000, || linearizable::<Windows<true>>(Counter::new(first())));
}

#[test]
fn histories_of_a_sliding_log_with_every_call_are_linearizable() {
    check(5_000, || linearizable::<List>(Log::new(first())));
}

#[test]
fn histories_of_a_leaky_queue_with_every_call_are_linearizable() {
    check(5_000, || linearizable::<Queue>(Real::new(FIRST)));
}

/// A law behind a lock, but for the calls of which it is stored what was read before another thread may have run.
struct Torn<L> {
    law: shuttle::sync::Mutex<L>,
    is_torn: fn(Op) -> bool,
}

impl<L: Sequential> Subject for Torn<L> {
    fn call(&self, op: Op) -> Outcome {
        if !(self.is_torn)(op) {
            return self.law.lock().unwrap().call(op).outcome();
        }
        let mut law = self.law.lock().unwrap().clone();
        let outcome = law.call(op).outcome();
        *self.law.lock().unwrap() = law;
        outcome
    }
}

fn torn<L: Sequential>(is_torn: fn(Op) -> bool) {
    check(5_000, move || linearizable::<L>(Torn { law: shuttle::sync::Mutex::new(L::start()), is_torn }));
}

const fn is_pause(op: Op) -> bool {
    matches!(op, Op::Pause { .. })
}

#[test]
fn histories_of_a_whole_law_are_linearizable() {
    torn::<Windows<false>>(|_| false);
    torn::<Queue>(|_| false);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_pause_of_a_fixed_window_is_found() {
    torn::<Windows<false>>(is_pause);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_pause_of_a_sliding_counter_is_found() {
    torn::<Windows<true>>(is_pause);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_pause_of_a_sliding_log_is_found() {
    torn::<List>(is_pause);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_pause_of_a_leaky_queue_is_found() {
    torn::<Queue>(is_pause);
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_reset_is_found() {
    torn::<List>(|op| matches!(op, Op::Reset { .. }));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_torn_change_of_the_quota_is_found() {
    torn::<Windows<true>>(|op| matches!(op, Op::SetQuota { .. }));
}
