//! The queue that tells when: one call after the other, and the crate's own.

use std::time::Duration;

use tollgate::{LeakyQueue, Refused};

use crate::reference::Op::{self, Look, Pause, Peek, SetQuota, Try};
use crate::reference::real::{Subject, granted};
use crate::reference::{Expected, Law, Outcome, Reference};

/// One call after the other. The capacity is the burst of the law.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    law: Law,
    pub(crate) free_at: u64,
    /// The end of a pause that has not been seen to be over.
    pause: Option<u64>,
    /// From when that counts: it ends no earlier, by a clock that was set back.
    since: u64,
}

impl Queue {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, free_at: 0, pause: None, since: 0 }
    }

    /// The first instant at which there is room for `n`.
    fn room(&self, n: u64) -> u64 {
        let (before, capacity) = (self.free_at + (n - 1) * self.law.interval, self.law.burst * self.law.interval);
        (before + 1).saturating_sub(capacity).max(self.pause.unwrap_or(0))
    }

    fn schedule(&mut self, n: u64, now: u64) -> Outcome {
        if n > self.law.burst {
            return Outcome::Refused(Refused::ExceedsCapacity { asked: n, capacity: self.law.burst });
        }
        let room = self.room(n);
        if room > now {
            let retry_after = Duration::from_nanos(room - now);
            return Outcome::Refused(match self.pause.filter(|end| now < *end) {
                Some(_) => Refused::Paused { asked: n, retry_after },
                None => Refused::TooSoon { asked: n, remaining: self.remaining(now), retry_after },
            });
        }
        let start = now.max(self.free_at);
        (self.free_at, self.pause) = (start + n * self.law.interval, None);
        Outcome::Waits(start)
    }

    fn remaining(&self, now: u64) -> u64 {
        (1..=self.law.burst).take_while(|n| self.room(*n) <= now).count() as u64
    }
}

impl Reference for Queue {
    fn call(&mut self, op: Op) -> Expected {
        Expected::exactly(match op {
            Try { n, now } => self.schedule(n, now),
            Peek { n, now } => match self.clone().schedule(n, now) {
                Outcome::Waits(_) => Outcome::Granted,
                refused => refused,
            },
            Look { now } => Outcome::Took(self.remaining(now)),
            SetQuota { law, now } => {
                if law.interval != self.law.interval {
                    // A pause that is over is not taken along.
                    self.pause = self.pause.filter(|end| now < *end);
                }
                self.law = law;
                Outcome::Done
            }
            Pause { end, now } => {
                let held = self.pause.filter(|end| now < *end);
                if held.is_some() || end > now {
                    self.since = if held.is_some() { self.since } else { now };
                    let goes_on = end.max(now).max(self.since);
                    self.free_at = goes_on + self.free_at.saturating_sub(held.unwrap_or(now));
                    self.pause = (end > now).then_some(goes_on);
                }
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a queue that tells when"),
        })
    }
}

pub(crate) struct Real(LeakyQueue);

impl Real {
    pub(crate) fn new(law: Law) -> Self {
        Self(LeakyQueue::new(law.quota()))
    }
}

impl Subject for Real {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Try { n, now } => {
                return self.0.schedule_n_at(n, now).map_or_else(Outcome::Refused, |start| Outcome::Waits(start.get()));
            }
            Peek { n, now } => return granted(self.0.peek_at(n, now)),
            Look { now } => return Outcome::Took(self.0.available_at(now)),
            SetQuota { law, now } => self.0.set_quota_at(law.quota(), now),
            Pause { end, now } => self.0.pause_until_at(end, now),
            _ => panic!("{op:?} is not for a queue that tells when"),
        }
        Outcome::Done
    }
}
