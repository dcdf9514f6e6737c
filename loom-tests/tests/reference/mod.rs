//! What a limiter and a shaper have to answer, one call after the other: a small reference that shares no code with the
//! crate, the calls that models make, and the search for an order of calls that explains what was seen.
//!
//! All quotas here have a T of whole nanoseconds, so that everything is exact. Time is kept in i128 and has no end.

pub(crate) mod bucket;
pub(crate) mod keys;
pub(crate) mod line;
pub(crate) mod order;
pub(crate) mod real;

use std::time::Duration;

use tollgate::{Quota, Refused};

/// A quota whose T is a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Law {
    /// T in nanoseconds.
    pub(crate) interval: u64,
    pub(crate) burst: u64,
    /// How many permits the period is named for. What a shaper takes as its largest request if that is more than the burst.
    pub(crate) permits: u64,
}

impl Law {
    pub(crate) const fn new(interval: u64, burst: u64) -> Self {
        Self { interval, burst, permits: 1 }
    }

    /// The same law, written as so many permits in a period that is as much longer.
    pub(crate) const fn permits(self, permits: u64) -> Self {
        Self { permits, ..self }
    }

    pub(crate) fn quota(self) -> Quota {
        Quota::new(self.permits, Duration::from_nanos(self.interval * self.permits)).unwrap().burst(self.burst)
    }

    fn cost(self, n: u64) -> i128 {
        i128::from(n) * i128::from(self.interval)
    }

    fn capacity(self) -> i128 {
        self.cost(self.burst)
    }

    /// The largest request that a shaper takes.
    fn largest(self) -> u64 {
        self.burst.max(self.permits)
    }
}

/// Where a bucket stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Standing {
    /// When it will be full.
    tat: i128,
    /// From when the quota counts.
    since: i128,
    /// The end of the last pause, if the quota has not changed since.
    pause: Option<u64>,
}

impl Standing {
    fn is_held(&self, now: u64) -> bool {
        self.pause.is_some_and(|end| now < end)
    }

    /// Nothing is given back into the time before.
    fn origin(&self) -> i128 {
        self.pause.map_or(self.since, i128::from)
    }

    /// The debt at `now`.
    fn debt(&self, now: u64) -> i128 {
        (self.tat - i128::from(now)).max(0)
    }

    /// The wait until `instant`.
    fn until(&self, instant: i128, now: u64) -> Duration {
        let held = self.is_held(now);
        nanos(if held { instant.max(self.origin()) } else { instant } - i128::from(now))
    }

    fn remaining(&self, law: Law, now: u64) -> u64 {
        let left = law.capacity() - self.debt(now);
        if self.is_held(now) { 0 } else { u64::try_from(left.max(0)).unwrap() / law.interval }
    }

    /// After `n` were given back: never more than full.
    fn refund(&mut self, law: Law, n: u64, now: u64) {
        let full = if self.is_held(now) { self.origin() } else { now.into() };
        self.tat = self.tat.min((self.tat - law.cost(n)).max(full));
        if self.pause.is_none() {
            self.since = self.since.min(self.tat);
        }
    }

    /// The standing under `next`, held until `end`: what is left stays left, cut to the new burst. It counts from now, but not
    /// from before the last grant could have been made, which `deepest` tells: the deepest debt that the old law allows.
    fn carry(&self, old: Law, next: Law, now: u64, deepest: i128, end: Option<u64>) -> Self {
        let (now, held) = (i128::from(now), self.is_held(now));
        let since = now.max(if held { self.since } else { self.tat - deepest });
        let owed = if held { self.tat - self.origin() } else { (self.tat - since).max(0) };
        let left = ((old.capacity() - owed) * i128::from(next.interval)).div_euclid(i128::from(old.interval));
        // By a clock that was set back it may count from later than the end.
        let pause = end.filter(|end| i128::from(*end) > now).map(|end| end.max(instant(since)));
        let tat = pause.map_or(since, i128::from) + next.capacity() - left.min(next.capacity());
        Self { tat, since, pause }
    }

    /// A pause that is over at `now` does not come back, even if the clock is set back. Whether there was one.
    fn forget_a_past_pause(&mut self, now: u64) -> bool {
        match self.pause.filter(|end| *end <= now) {
            Some(end) => {
                (self.pause, self.since) = (None, end.into());
                true
            }
            None => false,
        }
    }

    /// The end of a pause that goes on.
    fn goes_on(&self, now: u64) -> Option<u64> {
        self.pause.filter(|end| now < *end)
    }

    /// Whether a pause until `end` changes anything.
    fn is_news(&self, end: u64, now: u64) -> bool {
        end > now || self.is_held(now)
    }
}

/// A call. `who` names a request that may wait; only one thread at a time may make calls for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Try {
        n: u64,
        now: u64,
    },
    Peek {
        n: u64,
        now: u64,
    },
    Look {
        now: u64,
    },
    SetQuota {
        law: Law,
        now: u64,
    },
    Refund {
        n: u64,
        now: u64,
    },
    Reset {
        now: u64,
    },
    /// What is there, `n` at most.
    UpTo {
        n: u64,
        now: u64,
    },
    /// Holds everybody until `end`; ends a pause if that is not after `now`.
    Pause {
        end: u64,
        now: u64,
    },
    Enter {
        who: usize,
        n: u64,
        now: u64,
        deadline: u64,
    },
    Step {
        who: usize,
        now: u64,
    },
    Leave {
        who: usize,
        now: u64,
    },
    GiveBack {
        who: usize,
        now: u64,
    },
    Estimate {
        n: u64,
        now: u64,
    },
    Waiting {
        now: u64,
    },
    Close {
        now: u64,
    },
}

impl Op {
    pub(crate) fn now(&self) -> u64 {
        match *self {
            Self::Try { now, .. }
            | Self::Peek { now, .. }
            | Self::Look { now }
            | Self::SetQuota { now, .. }
            | Self::Refund { now, .. }
            | Self::Reset { now }
            | Self::UpTo { now, .. }
            | Self::Pause { now, .. }
            | Self::Enter { now, .. }
            | Self::Step { now, .. }
            | Self::Leave { now, .. }
            | Self::GiveBack { now, .. }
            | Self::Estimate { now, .. }
            | Self::Waiting { now }
            | Self::Close { now } => now,
        }
    }
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Granted,
    Refused(Refused),
    /// In line, to ask again at that instant or when woken; of a queue that tells when, to start at that instant.
    Waits(u64),
    Seen {
        limit: u64,
        remaining: u64,
        retry_after: Duration,
        reset_after: Duration,
    },
    Wait(Option<Duration>),
    /// So many were taken.
    Took(u64),
    /// So many wait.
    Waiting(usize),
}

/// What a sequential reference answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) outcome: Outcome,
    /// Whether the numbers in it are promised, or only its kind.
    pub(crate) exact: bool,
}

impl Expected {
    pub(crate) fn exactly(outcome: Outcome) -> Self {
        Self { outcome, exact: true }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(crate) fn allows(&self, seen: &Outcome) -> bool {
        use std::mem::discriminant;
        match (&self.outcome, seen) {
            _ if self.outcome == *seen => true,
            (Outcome::Refused(expected), Outcome::Refused(seen)) => {
                !self.exact && discriminant(expected) == discriminant(seen)
            }
            (expected, seen) => !self.exact && discriminant(expected) == discriminant(seen),
        }
    }
}

/// Something that answers calls one after the other.
pub(crate) trait Reference: Clone {
    fn call(&mut self, op: Op) -> Expected;

    /// Does what that call may be seen doing before its own effect. False if that is nothing.
    fn begin(&mut self, _op: Op) -> bool {
        false
    }
}

fn nanos(ticks: i128) -> Duration {
    Duration::from_nanos(u64::try_from(ticks.max(0)).unwrap())
}

fn instant(ticks: i128) -> u64 {
    u64::try_from(ticks.max(0)).unwrap()
}
