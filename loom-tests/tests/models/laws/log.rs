//! The sliding log, one call after the other: a list of times.

use super::{Judge, length};
use crate::reference::{Expected, Law, Op, Outcome, Reference};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct List {
    law: Law,
    /// When each permit was granted, in the log's own time.
    times: Vec<i128>,
    /// The own time that was used last.
    used: i128,
    /// By how much the log's own time is behind the clock.
    offset: i128,
    /// The end of a pause that has not been seen to be over.
    pause: Option<u64>,
    /// From when that counts: own time goes on no earlier, by a clock that was set back.
    since: i128,
}

impl List {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, times: Vec::new(), used: 0, offset: 0, pause: None, since: 0 }
    }

    /// It begins at 0.
    fn own(&self, now: u64) -> i128 {
        (i128::from(self.pause.map_or(now, |end| end.max(now))) - self.offset).max(0)
    }

    fn at(&self, now: u64) -> i128 {
        self.own(now).max(self.used)
    }

    fn counted(&self, now: u64) -> usize {
        self.times.iter().filter(|&&time| time + length(self.law) > self.at(now)).count()
    }
}

impl Judge for List {
    fn law(&self) -> Law {
        self.law
    }

    fn is_held(&self, now: u64) -> bool {
        self.pause.is_some_and(|end| now < end)
    }

    fn remaining(&self, now: u64) -> u64 {
        if self.is_held(now) { 0 } else { self.law.permits.saturating_sub(self.counted(now) as u64) }
    }
}

impl Reference for List {
    fn call(&mut self, op: Op) -> Expected {
        let outcome = match op {
            Op::Try { n, now } => {
                let outcome = self.judge(n, now);
                if outcome == Outcome::Granted && n > 0 {
                    self.used = self.at(now);
                    self.times.extend((0..n).map(|_| self.used));
                    self.pause = None;
                }
                outcome
            }
            Op::UpTo { n, now } => {
                let n = n.min(self.remaining(now));
                self.call(Op::Try { n, now });
                Outcome::Took(n)
            }
            Op::Peek { n, now } => self.judge(n, now),
            Op::Look { now } => self.look(now),
            Op::Refund { n, now } => {
                let given = self.counted(now).min(usize::try_from(n).unwrap());
                self.times.truncate(self.times.len() - given);
                Outcome::Done
            }
            Op::Reset { .. } => {
                self.times.clear();
                Outcome::Done
            }
            Op::SetQuota { law, now } => {
                if length(law) != length(self.law) {
                    let counted = self.counted(now);
                    self.used = self.at(now);
                    self.times = vec![self.used; counted];
                    // A pause that is over is not taken along.
                    self.pause = self.pause.filter(|end| now < *end);
                    self.since = if self.pause.is_some() { self.since.max(now.into()) } else { now.into() };
                }
                self.law = law;
                Outcome::Done
            }
            Op::Pause { end, now } => {
                if end > now || self.is_held(now) {
                    let end = end.max(now);
                    self.used = self.at(now);
                    let earliest = if self.is_held(now) { self.since } else { self.offset };
                    self.since = earliest.max(now.into());
                    self.offset = (self.since.max(end.into()) - self.own(now)).max(0);
                    self.pause = Some(end).filter(|end| *end > now);
                }
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a log"),
        };
        Expected::exactly(outcome)
    }
}
