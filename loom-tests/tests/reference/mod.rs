//! What a limiter and a shaper have to answer, one call after the other: a small reference that shares no code with the
//! crate, the calls that models make, and the search for an order of calls that explains what was seen.
//!
//! All quotas here have a T of whole nanoseconds, so that everything is exact. Time is kept in i128 and has no end.

pub(crate) mod bucket;
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

    /// The TAT under `next` of a bucket whose TAT is `tat` at `now`, and the instant from which `next` counts: what is left
    /// stays left, cut to the new burst, from `max(now, tat - deepest)` on.
    fn carry(self, next: Law, tat: i128, now: u64, deepest: i128) -> (i128, i128) {
        let from = i128::from(now).max(tat - deepest);
        let left = self.capacity() - (tat - from).max(0);
        let kept = (left * i128::from(next.interval)).div_euclid(i128::from(self.interval));
        (from + next.capacity() - kept.min(next.capacity()), from)
    }
}

/// A call. `who` names a request that may wait; only one thread at a time may make calls for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Try { n: u64, now: u64 },
    Peek { n: u64, now: u64 },
    Look { now: u64 },
    SetQuota { law: Law, now: u64 },
    Enter { who: usize, n: u64, now: u64, deadline: u64 },
    Step { who: usize, now: u64 },
    Leave { who: usize, now: u64 },
    GiveBack { who: usize, now: u64 },
    Estimate { n: u64, now: u64 },
    Close { now: u64 },
}

impl Op {
    pub(crate) fn now(&self) -> u64 {
        match *self {
            Self::Try { now, .. }
            | Self::Peek { now, .. }
            | Self::Look { now }
            | Self::SetQuota { now, .. }
            | Self::Enter { now, .. }
            | Self::Step { now, .. }
            | Self::Leave { now, .. }
            | Self::GiveBack { now, .. }
            | Self::Estimate { now, .. }
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
    /// In line, to ask again at that instant or when woken.
    Waits(u64),
    Seen {
        limit: u64,
        remaining: u64,
        retry_after: Duration,
        reset_after: Duration,
    },
    Wait(Option<Duration>),
}

/// What a sequential reference answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    outcome: Outcome,
    /// Whether the numbers in it are promised, or only its kind.
    exact: bool,
}

impl Expected {
    fn exactly(outcome: Outcome) -> Self {
        Self { outcome, exact: true }
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
