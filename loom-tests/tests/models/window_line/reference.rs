//! A line in front of a fixed window, one call after the other, for single permits.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Refused;

use crate::reference::order::Drive;
use crate::reference::{Expected, Law, Op, Outcome, Reference};

/// The law is read as `burst` permits in each window of `interval`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowLine {
    law: Law,
    taken: Taken,
    /// Those in line, with their deadlines.
    waiting: Vec<(usize, u64)>,
    /// Whether anybody ever waited.
    waited: bool,
    /// Answers that have not been collected: the number of a grant, or that it is too late.
    settled: BTreeMap<usize, Option<u64>>,
    held: BTreeMap<usize, u64>,
    /// The grants that stand, the last one at the end, and what each left.
    grants: Vec<(u64, Taken)>,
    next_grant: u64,
}

/// The newest window in which anything was granted, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Taken {
    window: u64,
    count: u64,
}

impl WindowLine {
    pub(crate) fn new(law: Law) -> Self {
        Self {
            law,
            taken: Taken::default(),
            waiting: Vec::new(),
            waited: false,
            settled: BTreeMap::new(),
            held: BTreeMap::new(),
            grants: Vec::new(),
            next_grant: 0,
        }
    }

    /// What is taken at `now`: nothing of a window that nobody has used.
    fn at(&self, now: u64) -> Taken {
        let window = now / self.law.interval;
        if window > self.taken.window { Taken { window, count: 0 } } else { self.taken }
    }

    /// When the next but `ahead` may leave after `taken`: 0 if it may in that window.
    fn place(&self, taken: Taken, ahead: u64) -> u64 {
        let beyond = (taken.count + ahead + 1).saturating_sub(self.law.burst);
        if beyond == 0 { 0 } else { (taken.window + beyond.div_ceil(self.law.burst)) * self.law.interval }
    }

    fn wait(&self, now: u64) -> Duration {
        let place = self.place(self.at(now), self.waiting.len() as u64);
        Duration::from_nanos(place.saturating_sub(now))
    }

    fn grant(&mut self, now: u64) -> u64 {
        let Taken { window, count } = self.at(now);
        self.taken = Taken { window, count: count + 1 };
        self.next_grant += 1;
        self.grants.push((self.next_grant, self.taken));
        self.next_grant
    }

    fn advance(&mut self, now: u64) {
        while let Some(&(who, deadline)) = self.waiting.first() {
            let slot = self.place(self.taken, 0);
            if slot > now {
                return;
            }
            self.waiting.remove(0);
            let settled = (deadline >= slot).then(|| self.grant(now));
            self.settled.insert(who, settled);
        }
    }

    /// A newcomer that need not wait.
    fn arrive(&mut self, now: u64) -> Option<u64> {
        self.advance(now);
        (self.waiting.is_empty() && self.place(self.taken, 0) <= now).then(|| self.grant(now))
    }

    fn undo(&mut self, number: u64, now: u64) {
        if self.grants.last() == Some(&(number, self.taken)) {
            self.grants.pop();
            self.taken.count -= 1;
        }
        self.advance(now);
    }

    fn enter(&mut self, who: usize, now: u64, deadline: u64) -> Outcome {
        if let Some(number) = self.arrive(now) {
            self.held.insert(who, number);
            return Outcome::Granted;
        }
        let place = self.place(self.at(now), self.waiting.len() as u64);
        if deadline < place {
            return Outcome::Refused(Refused::DeadlineTooSoon { wait: self.wait(now) });
        }
        self.waited = true;
        self.waiting.push((who, deadline));
        Outcome::Waits(place.min(deadline))
    }

    fn step(&mut self, who: usize, now: u64) -> Outcome {
        self.advance(now);
        match self.settled.remove(&who) {
            Some(Some(number)) => {
                self.held.insert(who, number);
                return Outcome::Granted;
            }
            Some(None) => return Outcome::Refused(Refused::DeadlineTooSoon { wait: Duration::ZERO }),
            None => {}
        }
        let Some(position) = self.waiting.iter().position(|waiting| waiting.0 == who) else { return Outcome::Done };
        let (place, deadline) = (self.place(self.at(now), position as u64), self.waiting[position].1);
        if now < deadline {
            return Outcome::Waits(place.min(deadline));
        }
        self.waiting.remove(position);
        self.advance(now);
        Outcome::Refused(Refused::DeadlineTooSoon { wait: Duration::from_nanos(place - now) })
    }
}

impl Reference for WindowLine {
    fn call(&mut self, op: Op) -> Expected {
        let outcome = match op {
            Op::Try { n: 1, now } if self.arrive(now).is_some() => Outcome::Granted,
            Op::Try { n: 1, now } => {
                // Nothing is left, for whoever waits would have it. How many wait is an estimate without the lock.
                let refused = Refused::TooSoon { asked: 1, remaining: 0, retry_after: self.wait(now) };
                return Expected { outcome: Outcome::Refused(refused), exact: !self.waited };
            }
            Op::Enter { who, n: 1, now, deadline } => self.enter(who, now, deadline),
            Op::Step { who, now } => self.step(who, now),
            Op::Leave { who, now } => {
                self.advance(now);
                self.waiting.retain(|waiting| waiting.0 != who);
                match self.settled.remove(&who) {
                    Some(Some(number)) => self.undo(number, now),
                    _ => self.advance(now),
                }
                Outcome::Done
            }
            Op::GiveBack { who, now } => {
                self.advance(now);
                if let Some(number) = self.held.remove(&who) {
                    self.undo(number, now);
                }
                Outcome::Done
            }
            Op::Estimate { n: 1, now } => {
                self.advance(now);
                Outcome::Wait(Some(self.wait(now)))
            }
            _ => panic!("{op:?} is not for a line in front of a window"),
        };
        Expected::exactly(outcome)
    }

    /// Whoever takes the lock gives what is due first, and callers that take no lock see that.
    fn begin(&mut self, op: Op) -> bool {
        let before = self.clone();
        self.advance(op.now());
        *self != before
    }
}

impl Drive for WindowLine {
    fn answer(&mut self, op: Op) -> Outcome {
        self.call(op).outcome()
    }

    fn alarm(&mut self, who: usize, _: u64) -> u64 {
        let position = self.waiting.iter().position(|waiting| waiting.0 == who);
        position.map_or(0, |position| self.place(self.taken, position as u64).min(self.waiting[position].1))
    }
}
