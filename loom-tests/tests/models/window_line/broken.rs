//! A queue in front of a fixed window, for single permits without deadlines.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tollgate::Refused;

use crate::reference::real::{CLIENTS, Subject};
use crate::reference::{Law, Op, Outcome};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing: shows that the flaw is what turns a check red.
    Nothing,
    /// A new window is opened by a store, over what others have granted in it.
    OpensByStore,
    /// A new window belongs to whoever comes first, even if others wait for it.
    OvertakesAtTheEdge,
    /// What is due is granted by what was seen before the lock was taken.
    LooksBeforeTheLock,
    /// A grant that is not collected is given back to the window that is counted then.
    GivesBackToAnyWindow,
}

/// The word: the window, eight bits of its count, and in the lowest bit whether somebody waits.
const WAITING: u64 = 1;

pub(crate) struct WindowLine {
    flaw: Flaw,
    law: Law,
    word: AtomicU64,
    guarded: Mutex<Guarded>,
    woken: [AtomicBool; CLIENTS],
}

#[derive(Default)]
struct Guarded {
    waiting: Vec<usize>,
    /// Granted and not collected, with the window and count after it.
    granted: Vec<(usize, u64)>,
}

impl WindowLine {
    pub(crate) fn new(flaw: Flaw, law: Law) -> Self {
        let woken = std::array::from_fn(|_| AtomicBool::new(false));
        Self { flaw, law, word: AtomicU64::new(0), guarded: Mutex::default(), woken }
    }

    /// The word after one more at `now`, and whether that opens a window; `None` if there is no more.
    fn after(&self, seen: u64, now: u64) -> Option<(u64, bool)> {
        let window = now / self.law.interval;
        if window > seen >> 9 {
            return Some((window << 9 | 1 << 1 | seen & WAITING, true));
        }
        (seen >> 1 & 0xff < self.law.burst).then_some((seen + (1 << 1), false))
    }

    fn pass(&self, now: u64) -> bool {
        loop {
            let seen = self.word.load(SeqCst);
            let Some((next, opens)) = self.after(seen, now) else { return false };
            if seen & WAITING != 0 && !(opens && self.flaw == Flaw::OvertakesAtTheEdge) {
                return false;
            }
            if opens && self.flaw == Flaw::OpensByStore {
                self.word.store(next, SeqCst);
                return true;
            }
            if self.word.compare_exchange(seen, next, SeqCst, SeqCst).is_ok() {
                return true;
            }
        }
    }

    fn locked<R>(&self, now: u64, work: impl FnOnce(&mut Guarded) -> R) -> R {
        let early = self.word.load(SeqCst);
        let mut guarded = self.guarded.lock().unwrap();
        if self.flaw == Flaw::LooksBeforeTheLock && !guarded.waiting.is_empty() {
            self.word.store(early | WAITING, SeqCst);
        }
        self.advance(&mut guarded, now);
        work(&mut guarded)
    }

    /// Grants what is due, and clears the bit when nobody is left.
    fn advance(&self, guarded: &mut Guarded, now: u64) {
        while !guarded.waiting.is_empty() {
            let Some((next, _)) = self.after(self.word.load(SeqCst), now) else { return };
            let who = guarded.waiting.remove(0);
            guarded.granted.push((who, next >> 1));
            self.woken[who].store(true, SeqCst);
            self.word.store(next | WAITING, SeqCst);
        }
        let seen = self.word.load(SeqCst);
        if seen & WAITING != 0 {
            self.word.store(seen & !WAITING, SeqCst);
        }
    }

    /// When the next but `ahead` may leave.
    fn place(&self, now: u64, ahead: usize) -> u64 {
        let word = self.word.load(SeqCst);
        let window = now / self.law.interval;
        let (window, count) = if window > word >> 9 { (window, 0) } else { (word >> 9, word >> 1 & 0xff) };
        let beyond = (count + ahead as u64 + 1).saturating_sub(self.law.burst);
        if beyond == 0 { 0 } else { (window + beyond.div_ceil(self.law.burst)) * self.law.interval }
    }

    fn wait(&self, guarded: &Guarded, now: u64) -> Duration {
        Duration::from_nanos(self.place(now, guarded.waiting.len()).saturating_sub(now))
    }

    fn try_acquire(&self, now: u64) -> Outcome {
        if self.pass(now) {
            return Outcome::Granted;
        }
        self.locked(now, |guarded| {
            if guarded.waiting.is_empty() && self.pass(now) {
                return Outcome::Granted;
            }
            Outcome::Refused(Refused::TooSoon { asked: 1, remaining: 0, retry_after: self.wait(guarded, now) })
        })
    }

    fn enter(&self, who: usize, now: u64) -> Outcome {
        if self.pass(now) {
            return Outcome::Granted;
        }
        self.locked(now, |guarded| {
            loop {
                if guarded.waiting.is_empty() && self.pass(now) {
                    return Outcome::Granted;
                }
                let seen = self.word.load(SeqCst);
                if guarded.waiting.is_empty() && self.after(seen, now).is_some() {
                    continue;
                }
                if self.word.compare_exchange(seen, seen | WAITING, SeqCst, SeqCst).is_ok() {
                    guarded.waiting.push(who);
                    return Outcome::Waits(self.place(now, guarded.waiting.len() - 1));
                }
            }
        })
    }

    fn step(&self, who: usize, now: u64) -> Outcome {
        self.locked(now, |guarded| {
            if let Some(index) = guarded.granted.iter().position(|(other, _)| *other == who) {
                guarded.granted.remove(index);
                return Outcome::Granted;
            }
            let position = guarded.waiting.iter().position(|other| *other == who);
            position.map_or(Outcome::Done, |ahead| Outcome::Waits(self.place(now, ahead)))
        })
    }

    fn leave(&self, who: usize, now: u64) {
        self.locked(now, |guarded| {
            guarded.waiting.retain(|other| *other != who);
            if let Some(index) = guarded.granted.iter().position(|(other, _)| *other == who) {
                self.take_back(guarded.granted.remove(index).1);
            }
            self.advance(guarded, now);
            guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
        });
    }

    /// Gives a grant back that left this window and count.
    fn take_back(&self, after: u64) {
        loop {
            let seen = self.word.load(SeqCst);
            let last = seen >> 1 == after || self.flaw == Flaw::GivesBackToAnyWindow;
            if !last || self.word.compare_exchange(seen, seen - (1 << 1), SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }
}

impl Subject for WindowLine {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n: 1, now } => return self.try_acquire(now),
            Op::Enter { who, n: 1, now, deadline: u64::MAX } => return self.enter(who, now),
            Op::Step { who, now } => return self.step(who, now),
            Op::Leave { who, now } => self.leave(who, now),
            Op::Estimate { n: 1, now } => {
                return Outcome::Wait(Some(self.locked(now, |guarded| self.wait(guarded, now))));
            }
            _ => panic!("{op:?} is not for this queue"),
        }
        Outcome::Done
    }

    fn woken(&self, who: usize) -> bool {
        self.woken[who].swap(false, SeqCst)
    }
}
