//! Buckets with a bug put in on purpose: the comparison with the reference must find each of them.

use std::time::Duration;

use num::Zero;

use crate::differential::{Bucket, search};
use crate::reference::{Answer, Exact, No, Reference, Spec, View, whole};

/// Bugs that rate limiters have shipped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// One more than the burst passes.
    BurstAndOne,
    /// `<` where `<=` is meant: the last permit is never given.
    LastPermitKept,
    /// A time that went back becomes the last one seen, and the span up to the newest time is credited twice.
    RewoundClock,
    /// What a grant costs is rounded up to whole nanoseconds, each time.
    CostRounded,
    /// The fraction that has come in since the last whole permit is thrown away with each grant.
    FractionLost,
    /// A refused request takes what is left.
    RefusedIsCharged,
    /// A request for nothing starts the clock of a full bucket.
    NothingIsCharged,
    /// The wait told is cut to whole microseconds.
    WaitCut,
    /// A new quota refills for the time since the last grant, although the old one was in force.
    RetroactiveCredit,
    /// A new quota counts from the time told, even if the clock has stepped back to before the last grant.
    RewoundChange,
    /// A new quota starts full.
    FullAfterChange,
}

struct Flawed {
    flaw: Flaw,
    law: Reference,
    spec: Spec,
    /// The time of the last grant, or of the last call where the flaw needs that.
    last: u64,
}

impl Flawed {
    fn new(flaw: Flaw, spec: Spec) -> Self {
        let spec = flawed(flaw, spec);
        Self { flaw, law: Reference::new(spec), spec, last: 0 }
    }

    /// Puts another amount in place of what is left.
    fn leave(&mut self, left: Exact, now: u64) {
        if self.spec.interval().is_some() {
            self.law = Reference::starting(self.spec, &whole(now), &left);
        }
    }

    fn rewind(&mut self, now: u64) {
        if self.flaw == Flaw::RewoundClock {
            if now < self.last {
                self.leave(self.law.left(self.last), now);
            }
            self.last = now;
        }
    }
}

fn flawed(flaw: Flaw, spec: Spec) -> Spec {
    match (flaw, spec) {
        (Flaw::BurstAndOne, Spec::Rate { permits, period, burst }) => {
            Spec::new(permits, period, burst.saturating_add(1))
        }
        _ => spec,
    }
}

impl Bucket for Flawed {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        self.rewind(now);
        let left = self.law.left(now);
        if self.flaw == Flaw::LastPermitKept && n > 0 && n == self.law.available(now) {
            return Err(No::TooSoon { asked: n, remaining: n - 1, retry_after: Duration::from_nanos(1) });
        }
        let answer = self.law.try_acquire_n(n, now);
        match (self.flaw, answer) {
            (Flaw::CostRounded, Ok(())) if n > 0 => {
                if let Some(interval) = self.spec.interval() {
                    self.leave(left - (&interval * whole(n)).ceil() / &interval, now);
                }
            }
            (Flaw::FractionLost, Ok(())) if n > 0 => self.leave(left.floor() - whole(n), now),
            (Flaw::NothingIsCharged, Ok(())) if n == 0 => self.leave(left, now),
            (Flaw::RefusedIsCharged, Err(No::TooSoon { remaining, .. })) => self.leave(left - whole(remaining), now),
            (Flaw::WaitCut, Err(No::TooSoon { asked, remaining, retry_after })) => {
                let retry_after = Duration::from_micros(u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX));
                return Err(No::TooSoon { asked, remaining, retry_after });
            }
            _ => {}
        }
        if self.flaw == Flaw::RetroactiveCredit && answer.is_ok() && n > 0 {
            self.last = now;
        }
        answer
    }

    fn peek(&mut self, n: u64, now: u64) -> Answer {
        self.law.peek(n, now)
    }

    fn available(&mut self, now: u64) -> u64 {
        self.law.available(now)
    }

    fn snapshot(&mut self, now: u64) -> View {
        self.law.snapshot(now)
    }

    fn set_quota(&mut self, spec: Spec, now: u64) {
        let spec = flawed(self.flaw, spec);
        let from = |now| (whole(now), self.law.left(now));
        let changed = match self.flaw {
            Flaw::RetroactiveCredit => Some(from(self.last.min(now))),
            Flaw::RewoundChange => Some(from(now)),
            Flaw::FullAfterChange => Some((whole(now), whole(spec.burst()))),
            _ => None,
        };
        match changed {
            Some((from, left)) if self.spec.interval().is_some() => {
                self.law = Reference::starting(spec, &from, &left.max(Exact::zero()));
            }
            _ => self.law.set_quota(spec, now),
        }
        self.spec = spec;
    }
}

fn is_found(flaw: Flaw, sequences: u32) -> bool {
    search(|spec| Flawed::new(flaw, spec), sequences, 0).is_err()
}

#[test]
fn every_flaw_is_found() {
    for flaw in [
        Flaw::BurstAndOne,
        Flaw::LastPermitKept,
        Flaw::RewoundClock,
        Flaw::CostRounded,
        Flaw::FractionLost,
        Flaw::RefusedIsCharged,
        Flaw::NothingIsCharged,
        Flaw::WaitCut,
        Flaw::RetroactiveCredit,
        Flaw::RewoundChange,
        Flaw::FullAfterChange,
    ] {
        assert!(is_found(flaw, 10_000), "{flaw:?} was not found");
    }
}

#[test]
fn a_bucket_without_a_flaw_is_not_taken_for_a_flawed_one() {
    assert!(!is_found(Flaw::None, 256));
}
