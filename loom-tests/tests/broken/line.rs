//! A queue for single permits at a burst of one, without deadlines.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tollgate::Refused;

use super::checked::Mutex;
use super::checked::atomic::{AtomicU64, Ordering::SeqCst};
use crate::reference::real::{CLIENTS, Subject};
use crate::reference::{Law, Op, Outcome};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing: shows that the flaw is what turns a check red.
    Nothing,
    /// The bit that somebody waits is stored with the word that was seen, over a grant.
    BitByStore,
    /// Who does not wait does not look at the bit.
    Overtakes,
    /// What is there is taken without a look at the bit.
    TakesFromThoseWhoWait,
    /// A reset does not reach those who wait.
    ResetsTheWordAlone,
    /// What is due is granted by what was seen before the lock was taken.
    LooksBeforeTheLock,
    /// A grant that is not collected is never given back.
    NoTakeBack,
    /// A grant that is not collected is given back, whatever was granted since.
    AlwaysTakesBack,
    /// A permit in hand is given back, whatever was granted since.
    AlwaysGivesBack,
    /// Who moves up is not woken.
    NoWakeUp,
    /// A pause is set over a grant that was not seen.
    PauseByStore,
    /// A pause holds what was seen before the lock was taken, over what was granted since.
    PausesWhatItSawBeforeTheLock,
    /// What was due before the lock was taken is granted, though a pause has begun since.
    GrantsWhatWasDueBeforeAPause,
    /// The end of a pause does not reach those who wait.
    ResumesWithoutAWakeUp,
    /// The end does not reach those who wait.
    ClosesWithoutDraining,
    /// The end is not seen by who takes no lock.
    ClosesWithoutTheBit,
}

/// The word: the arrival time, and in the lowest bit whether somebody waits.
const WAITING: u64 = 1;

pub(crate) struct Line {
    flaw: Flaw,
    interval: u64,
    word: AtomicU64,
    guarded: Mutex<Guarded>,
    woken: [AtomicBool; CLIENTS],
    /// The arrival time after the permit that each has in hand. A lock of std's is no step of a model.
    in_hand: [std::sync::Mutex<Option<u64>>; CLIENTS],
}

#[derive(Default)]
struct Guarded {
    closed: bool,
    /// The end of a pause.
    held: u64,
    waiting: Vec<usize>,
    /// Granted and not collected, with the arrival time after it.
    granted: Vec<(usize, u64)>,
    ended: Vec<usize>,
}

impl Line {
    pub(crate) fn new(flaw: Flaw, law: Law) -> Self {
        assert_eq!(law.burst, 1, "not for this queue");
        let (word, guarded) = (AtomicU64::new(0), Mutex::default());
        let woken = std::array::from_fn(|_| AtomicBool::new(false));
        Self { flaw, interval: law.interval, word, guarded, woken, in_hand: std::array::from_fn(|_| None.into()) }
    }

    fn collect(&self, who: usize, after: u64) -> Outcome {
        *self.in_hand[who].lock().unwrap() = Some(after);
        Outcome::Granted
    }

    fn tat(&self) -> u64 {
        self.word.load(SeqCst) >> 1
    }

    fn exchange(&self, seen: u64, next: u64) -> bool {
        self.word.compare_exchange(seen, next, SeqCst, SeqCst).is_ok()
    }

    /// A grant while nobody waits: the arrival time after it.
    fn pass(&self, now: u64) -> Option<u64> {
        self.take(now, self.flaw == Flaw::Overtakes)
    }

    fn take(&self, now: u64, overtakes: bool) -> Option<u64> {
        loop {
            let seen = self.word.load(SeqCst);
            let waits = seen & WAITING != 0 && !overtakes;
            if waits || seen >> 1 > now {
                return None;
            }
            let after = (seen >> 1).max(now) + self.interval;
            if self.exchange(seen, after << 1 | seen & WAITING) {
                return Some(after);
            }
        }
    }

    /// Grants what is due, and clears the bit when nobody is left.
    fn advance(&self, guarded: &mut Guarded, now: u64) {
        while self.tat() <= now && !guarded.waiting.is_empty() {
            self.grant_head(guarded, now);
        }
        let seen = self.word.load(SeqCst);
        if seen & WAITING != 0 && guarded.waiting.is_empty() && !guarded.closed {
            self.word.store(seen & !WAITING, SeqCst);
        }
    }

    fn grant_head(&self, guarded: &mut Guarded, now: u64) {
        let after = self.tat().max(now) + self.interval;
        let who = guarded.waiting.remove(0);
        guarded.granted.push((who, after));
        self.woken[who].store(true, SeqCst);
        self.word.store(after << 1 | WAITING, SeqCst);
    }

    fn locked<R>(&self, now: u64, work: impl FnOnce(&mut Guarded) -> R) -> R {
        let early = self.tat();
        let mut guarded = self.guarded.lock().unwrap();
        if self.flaw == Flaw::LooksBeforeTheLock && !guarded.waiting.is_empty() {
            self.word.store(early << 1 | WAITING, SeqCst);
        }
        let began = early <= now && guarded.held > now;
        if self.flaw == Flaw::GrantsWhatWasDueBeforeAPause && began && !guarded.waiting.is_empty() {
            self.grant_head(&mut guarded, now);
        }
        self.advance(&mut guarded, now);
        work(&mut guarded)
    }

    fn wait(&self, guarded: &Guarded, now: u64) -> Duration {
        Duration::from_nanos((self.tat() + self.interval * guarded.waiting.len() as u64).saturating_sub(now))
    }

    fn try_acquire(&self, now: u64) -> Outcome {
        if self.pass(now).is_some() {
            return Outcome::Granted;
        }
        self.locked(now, |guarded| {
            if guarded.closed {
                return Outcome::Refused(Refused::Closed);
            }
            if self.pass(now).is_some() {
                return Outcome::Granted;
            }
            let retry_after = self.wait(guarded, now);
            Outcome::Refused(match now < guarded.held {
                true => Refused::Paused { asked: 1, retry_after },
                false => Refused::TooSoon { asked: 1, remaining: 0, retry_after },
            })
        })
    }

    fn enter(&self, who: usize, now: u64) -> Outcome {
        if let Some(after) = self.pass(now) {
            return self.collect(who, after);
        }
        self.locked(now, |guarded| {
            if guarded.closed {
                return Outcome::Refused(Refused::Closed);
            }
            loop {
                if let Some(after) = guarded.waiting.is_empty().then(|| self.pass(now)).flatten() {
                    return self.collect(who, after);
                }
                let seen = self.word.load(SeqCst);
                if self.flaw == Flaw::BitByStore {
                    self.word.store(seen | WAITING, SeqCst);
                } else if seen >> 1 <= now && guarded.waiting.is_empty() || !self.exchange(seen, seen | WAITING) {
                    continue;
                }
                guarded.waiting.push(who);
                return Outcome::Waits(self.tat() + self.interval * (guarded.waiting.len() as u64 - 1));
            }
        })
    }

    fn step(&self, who: usize, now: u64) -> Outcome {
        self.locked(now, |guarded| {
            if let Some(index) = guarded.granted.iter().position(|(other, _)| *other == who) {
                return self.collect(who, guarded.granted.remove(index).1);
            }
            if let Some(index) = guarded.ended.iter().position(|other| *other == who) {
                guarded.ended.remove(index);
                return Outcome::Refused(Refused::Closed);
            }
            match guarded.waiting.iter().position(|other| *other == who) {
                Some(ahead) => Outcome::Waits(self.tat() + self.interval * ahead as u64),
                None => Outcome::Done,
            }
        })
    }

    fn leave(&self, who: usize, now: u64) {
        self.locked(now, |guarded| {
            guarded.waiting.retain(|other| *other != who);
            guarded.ended.retain(|other| *other != who);
            if let Some(index) = guarded.granted.iter().position(|(other, _)| *other == who) {
                self.take_back(guarded.granted.remove(index).1, self.flaw == Flaw::AlwaysTakesBack);
            }
            self.advance(guarded, now);
            if self.flaw != Flaw::NoWakeUp {
                guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
            }
        });
    }

    fn give_back(&self, who: usize, now: u64) {
        let Some(after) = self.in_hand[who].lock().unwrap().take() else { return };
        self.locked(now, |guarded| {
            self.take_back(after, self.flaw == Flaw::AlwaysGivesBack);
            self.advance(guarded, now);
            guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
        });
    }

    /// Gives a grant back that left the arrival time at `after`: always, or if nothing was granted since.
    fn take_back(&self, after: u64, always: bool) {
        loop {
            let seen = self.word.load(SeqCst);
            let last = seen >> 1 == after || always;
            if !last || self.flaw == Flaw::NoTakeBack || self.exchange(seen, seen - (self.interval << 1)) {
                return;
            }
        }
    }

    fn up_to(&self, now: u64) -> u64 {
        u64::from(
            self.take(now, self.flaw == Flaw::TakesFromThoseWhoWait).is_some()
                || self.locked(now, |_| self.pass(now).is_some()),
        )
    }

    fn reset(&self, now: u64) {
        self.locked(now, |guarded| {
            loop {
                let seen = self.word.load(SeqCst);
                if self.exchange(seen, (seen >> 1).min(now) << 1 | seen & WAITING) {
                    break;
                }
            }
            if self.flaw != Flaw::ResetsTheWordAlone {
                self.advance(guarded, now);
                guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
            }
        });
    }

    /// What was left of an interval when a pause begins is left when it ends, and so it is at `end`.
    fn pause(&self, end: u64, now: u64) {
        let early = self.word.load(SeqCst);
        let late = self.flaw == Flaw::PausesWhatItSawBeforeTheLock;
        self.locked(now, |guarded| {
            if end <= now && guarded.held <= now {
                return;
            }
            loop {
                let seen = if late { early } else { self.word.load(SeqCst) };
                // By a clock that is behind, not from before the last grant.
                let from =
                    if now < guarded.held { guarded.held } else { now.max((seen >> 1).saturating_sub(self.interval)) };
                let next = (end.max(now) + (seen >> 1).saturating_sub(from)) << 1 | seen & WAITING;
                if self.flaw == Flaw::PauseByStore || late {
                    self.word.store(next, SeqCst);
                } else if !self.exchange(seen, next) {
                    continue;
                }
                break;
            }
            guarded.held = end;
            if self.flaw != Flaw::ResumesWithoutAWakeUp {
                guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
            }
        });
    }

    fn close(&self, now: u64) {
        self.locked(now, |guarded| {
            guarded.closed = true;
            if self.flaw != Flaw::ClosesWithoutDraining {
                guarded.waiting.iter().for_each(|who| self.woken[*who].store(true, SeqCst));
                let waiting = std::mem::take(&mut guarded.waiting);
                guarded.ended.extend(waiting);
            }
            if self.flaw != Flaw::ClosesWithoutTheBit {
                self.word.fetch_or(WAITING, SeqCst);
            }
        });
    }
}

impl Subject for Line {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n: 1, now } => return self.try_acquire(now),
            Op::Enter { who, n: 1, now, deadline: u64::MAX } => return self.enter(who, now),
            Op::Step { who, now } => return self.step(who, now),
            Op::Leave { who, now } => self.leave(who, now),
            Op::GiveBack { who, now } => self.give_back(who, now),
            Op::Waiting { now } => return Outcome::Waiting(self.locked(now, |guarded| guarded.waiting.len())),
            Op::UpTo { n: 1, now } => return Outcome::Took(self.up_to(now)),
            Op::Reset { now } => self.reset(now),
            Op::Pause { end, now } => self.pause(end, now),
            Op::Close { now } => self.close(now),
            Op::Estimate { n: 1, now } => {
                return Outcome::Wait(self.locked(now, |guarded| (!guarded.closed).then(|| self.wait(guarded, now))));
            }
            _ => panic!("{op:?} is not for this queue"),
        }
        Outcome::Done
    }

    fn woken(&self, who: usize) -> bool {
        self.woken[who].swap(false, SeqCst)
    }
}
