//! Windows and logs that are wrong on purpose, in one known way each.

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::length;
use super::window::Window;
use crate::reference::real::Subject;
use crate::reference::{Law, Op, Outcome, Reference};
use tollgate::Refused;

/// What is wrong with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowFlaw {
    /// Nothing: shows that the flaw is what turns a model red.
    Nothing,
    /// The first grant of a window is a load and a store.
    RollsByStore,
    /// A time in an older window opens that again.
    OpensAnOldWindow,
    /// Permits given back are a load and a store.
    RefundByStore,
    /// A pause is a load and a store.
    PauseByStore,
    /// What a refused request finds rolls the window over, by a store.
    RefusalRolls,
}

/// A window in one atomic; what it does with it is the reference's.
pub(crate) struct FlawedWindow {
    flaw: WindowFlaw,
    start: Window,
    state: AtomicU64,
}

/// Of a small window: `pause | since | index | previous | current`, twelve bits and twice eight.
fn pack(window: &Window) -> u64 {
    let small = |value: i128| u64::try_from(value).unwrap() & 0xFFF;
    let pause = window.pause.map_or(0, |end| end + 1);
    pause << 40 | small(window.since) << 28 | small(window.index) << 16 | window.previous << 8 | window.current
}

impl FlawedWindow {
    pub(crate) fn new(flaw: WindowFlaw, law: Law, slides: bool) -> Self {
        let start = Window::new(law, slides);
        Self { flaw, start, state: AtomicU64::new(pack(&start)) }
    }

    fn unpack(&self, state: u64) -> Window {
        Window {
            pause: (state >> 40).checked_sub(1),
            since: ((state >> 28) & 0xFFF).into(),
            index: ((state >> 16) & 0xFFF).into(),
            previous: (state >> 8) & 0xFF,
            current: state & 0xFF,
            ..self.start
        }
    }
}

impl Subject for FlawedWindow {
    fn call(&self, op: Op) -> Outcome {
        loop {
            let seen = self.state.load(SeqCst);
            let before = self.unpack(seen);
            let mut window = before;
            if let (WindowFlaw::OpensAnOldWindow, Op::Try { now, .. }) = (self.flaw, op) {
                let index = i128::from(now) / length(window.law);
                if index < window.index {
                    window = Window { index, previous: 0, current: 0, ..window };
                }
            }
            let outcome = window.call(op).outcome();
            let refused = matches!(outcome, Outcome::Refused(_));
            if let (WindowFlaw::RefusalRolls, true, Op::Try { now, .. }) = (self.flaw, refused, op) {
                window = window.at(now);
            }
            let by_store = match (self.flaw, op) {
                (WindowFlaw::RollsByStore, Op::Try { .. }) => window.index != before.index,
                (WindowFlaw::RefundByStore, Op::Refund { .. }) | (WindowFlaw::PauseByStore, Op::Pause { .. }) => true,
                (WindowFlaw::RefusalRolls, _) => refused,
                _ => false,
            };
            let next = pack(&window);
            if by_store {
                self.state.store(next, SeqCst);
                return outcome;
            }
            if next == seen || self.state.compare_exchange(seen, next, SeqCst, SeqCst).is_ok() {
                return outcome;
            }
        }
    }
}

/// What is wrong with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFlaw {
    /// Nothing: shows that the flaw is what turns a model red.
    Nothing,
    /// The ring has room for the limit alone, so that a grant writes over what a refusal rests on.
    RoomForTheLimit,
    /// The word says that a grant happened before its times are there.
    WordBeforeTimes,
    /// What was found without the lock is done under it.
    LooksOnlyBeforeTheLock,
    /// A refusal does not look whether the word is still the word.
    RefusesWithoutLookingAgain,
}

/// A log that only grants and refuses one permit at a time, in a ring of atomics.
pub(crate) struct FlawedLog {
    flaw: LogFlaw,
    law: Law,
    head: AtomicU64,
    ring: Vec<AtomicU64>,
    lock: Mutex<()>,
}

impl FlawedLog {
    pub(crate) fn new(flaw: LogFlaw, law: Law) -> Self {
        let places = if flaw == LogFlaw::RoomForTheLimit { law.permits } else { 2 * law.permits };
        let ring = (0..places).map(|_| AtomicU64::new(0)).collect();
        Self { flaw, law, head: AtomicU64::new(0), ring, lock: Mutex::new(()) }
    }

    fn time(&self, position: u64) -> u64 {
        self.ring[usize::try_from(position).unwrap() % self.ring.len()].load(SeqCst)
    }

    /// When the permit that is in the way leaves, and the time that was used last.
    fn look(&self, head: u64) -> (u64, u64) {
        let length = self.law.interval * self.law.permits;
        let leaves = head.checked_sub(self.law.permits).map_or(0, |position| self.time(position) + length);
        (leaves, head.checked_sub(1).map_or(0, |last| self.time(last)))
    }

    /// The time at which a grant counts, or the wait.
    fn decide(&self, head: u64, now: u64) -> Result<u64, Outcome> {
        let (leaves, used) = self.look(head);
        if leaves <= now.max(used) {
            return Ok(now.max(used));
        }
        let retry_after = std::time::Duration::from_nanos(leaves - now);
        Err(Outcome::Refused(Refused::TooSoon { asked: 1, remaining: 0, retry_after }))
    }

    fn grant(&self, now: u64) -> Outcome {
        loop {
            let head = self.head.load(SeqCst);
            let found = self.decide(head, now);
            match found {
                Err(refused) if self.flaw == LogFlaw::RefusesWithoutLookingAgain || self.head.load(SeqCst) == head => {
                    return refused;
                }
                Err(_) => continue,
                Ok(_) => {}
            }
            let _guard = self.lock.lock().unwrap();
            let looked = head;
            let head = self.head.load(SeqCst);
            let at = match self.decide(head, now) {
                Ok(at) => at,
                Err(_) if self.flaw == LogFlaw::LooksOnlyBeforeTheLock && looked != head => now,
                Err(_) => continue,
            };
            let place = &self.ring[usize::try_from(head).unwrap() % self.ring.len()];
            if self.flaw == LogFlaw::WordBeforeTimes {
                self.head.store(head + 1, SeqCst);
                place.store(at, SeqCst);
            } else {
                place.store(at, SeqCst);
                self.head.store(head + 1, SeqCst);
            }
            return Outcome::Granted;
        }
    }
}

impl Subject for FlawedLog {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n: 1, now } => self.grant(now),
            Op::Peek { n: 1, now } => loop {
                let head = self.head.load(SeqCst);
                let outcome = self.decide(head, now).err().unwrap_or(Outcome::Granted);
                if self.head.load(SeqCst) == head {
                    return outcome;
                }
            },
            _ => panic!("{op:?} is not for this log"),
        }
    }
}
