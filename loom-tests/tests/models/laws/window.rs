//! The window laws, one call after the other.

use super::{Judge, length};
use crate::reference::{Expected, Law, Op, Outcome, Reference};

/// Counts of windows. A fixed window is one that does not slide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) law: Law,
    pub(crate) slides: bool,
    /// The number of the newest window that was used.
    pub(crate) index: i128,
    pub(crate) previous: u64,
    pub(crate) current: u64,
    /// The end of a pause that has not been seen to be over.
    pub(crate) pause: Option<u64>,
    /// From when the last pause counts.
    pub(crate) since: i128,
}

impl Window {
    pub(crate) fn new(law: Law, slides: bool) -> Self {
        Self { law, slides, index: 0, previous: 0, current: 0, pause: None, since: 0 }
    }

    fn index_at(&self, now: u64) -> i128 {
        i128::from(now) / length(self.law)
    }

    /// The counts at `now`, if nothing is asked in between.
    pub(crate) fn at(&self, now: u64) -> Self {
        let previous = |current| if self.slides { current } else { 0 };
        match self.index_at(now) - self.index {
            steps if steps <= 0 => *self,
            1 => Self { index: self.index + 1, previous: previous(self.current), current: 0, ..*self },
            steps => Self { index: self.index + steps, previous: 0, current: 0, ..*self },
        }
    }

    /// What counts at `now`, rounded up.
    fn estimate(&self, now: u64) -> u64 {
        let (counts, length) = (self.at(now), length(self.law));
        let elapsed = (i128::from(now) - counts.index * length).max(0);
        let weighted = i128::from(counts.previous) * (length - elapsed);
        counts.current + u64::try_from((weighted + length - 1) / length).unwrap()
    }

    /// The instant from which what follows counts.
    fn effective(&self, now: u64) -> i128 {
        let now = i128::from(now);
        if self.pause.is_some_and(|end| now < i128::from(end)) {
            now.max(self.since)
        } else {
            now.max(self.index * length(self.law))
        }
    }

    /// What still counts at `now`, as the count of the window in which `law` begins: now, or when the pause ends.
    fn carry(&self, law: Law, end: Option<u64>, now: u64) -> Self {
        let since = self.effective(now);
        let counted = if self.is_held(now) { self.current } else { self.estimate(now) };
        let begin = end.map_or(since, |end| since.max(end.into()));
        Self { law, index: begin / length(law), previous: 0, current: counted, pause: end, since, ..*self }
    }
}

impl Judge for Window {
    fn law(&self) -> Law {
        self.law
    }

    fn is_held(&self, now: u64) -> bool {
        self.pause.is_some_and(|end| now < end)
    }

    fn remaining(&self, now: u64) -> u64 {
        if self.is_held(now) { 0 } else { self.law.permits.saturating_sub(self.estimate(now)) }
    }
}

impl Reference for Window {
    fn call(&mut self, op: Op) -> Expected {
        let outcome = match op {
            Op::Try { n, now } => {
                let outcome = self.judge(n, now);
                if outcome == Outcome::Granted && n > 0 {
                    let counts = self.at(now);
                    *self = Self { current: counts.current + n, pause: None, ..counts };
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
                let steps = if self.is_held(now) { 0 } else { (self.index_at(now) - self.index).max(0) };
                let counts = steps == 0 || (steps == 1 && self.slides);
                let current = if counts { self.current.min(n) } else { 0 };
                let previous = if steps == 0 { self.previous.min(n - current) } else { 0 };
                (self.current, self.previous) = (self.current - current, self.previous - previous);
                Outcome::Done
            }
            Op::Reset { .. } => {
                (self.current, self.previous) = (0, 0);
                Outcome::Done
            }
            Op::SetQuota { law, now } => {
                let same = length(law) == length(self.law);
                let end = self.pause.filter(|_| self.is_held(now));
                *self = if same { Self { law, ..*self } } else { self.carry(law, end, now) };
                Outcome::Done
            }
            Op::Pause { end, now } => {
                if end > now || self.is_held(now) {
                    *self = self.carry(self.law, Some(end).filter(|end| *end > now), now);
                }
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a window"),
        };
        Expected::exactly(outcome)
    }
}
