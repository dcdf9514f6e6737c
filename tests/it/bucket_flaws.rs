//! Buckets with a bug put in on purpose: the comparison with the reference must find each of them.

use std::time::Duration;

use num::Zero;

use crate::differential::{Bucket, search};
use crate::reference::{Answer, Exact, No, Reference, Setup, Spec, View, whole};

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
    /// A new quota at rate 0 keeps whole permits only.
    FractionCutAtRateZero,
    /// The permits there at first are always the burst.
    InitialIgnored,
    /// Time gives permits during a pause.
    PauseAccrues,
    /// After a pause the bucket is full.
    PauseFills,
    /// After a pause the bucket is empty.
    PauseEmpties,
    /// An earlier end does not shorten a pause.
    PauseOnlyGrows,
    /// A server may pause the bucket for any time.
    MaxPauseIgnored,
    /// The wait told in a pause is the one to its end, even where too little will be left then.
    PauseTellsItsEnd,
    /// Within a pause, the clock set back to before it began, the next one counts from the time told.
    RewoundResume,
    /// No pause begins where the clock was set back and its end lies before the start of the quota.
    RewoundPause,
    /// A pause that is over lasts again when the clock is set back into it, and what passed since is charged to it.
    PauseComesBack,
    /// A new quota ends a pause.
    ChangeResumes,
    /// A reset ends a pause.
    ResetResumes,
    /// Permits given back in a pause are lost.
    RefundLostInPause,
    /// The fraction that has come in is thrown away when permits are given back.
    RefundCutsFraction,
    /// Permits given back to a full bucket are kept beyond the burst.
    RefundOverfills,
    /// All that was asked for or nothing.
    UpToIsAllOrNothing,
}

struct Flawed {
    flaw: Flaw,
    law: Reference,
    spec: Spec,
    /// The time of the last grant, or of the last call where the flaw needs that.
    last: u64,
    /// Permits beyond the burst.
    spare: u64,
}

impl Flawed {
    fn new(flaw: Flaw, mut setup: Setup) -> Self {
        setup.spec = flawed(flaw, setup.spec);
        match flaw {
            Flaw::InitialIgnored => setup.initial = None,
            Flaw::MaxPauseIgnored => setup.max_pause = Duration::MAX,
            _ => {}
        }
        Self { flaw, law: Reference::new(setup), spec: setup.spec, last: 0, spare: 0 }
    }

    /// Puts another amount in place of what is left.
    fn leave(&mut self, left: Exact, now: u64) {
        if self.spec.interval().is_some() {
            self.law.restart(self.spec, &whole(now), &left);
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
        if n > 0 && n <= self.spare && !self.law.is_paused(now) {
            self.spare -= n;
            return Ok(());
        }
        let (left, pause) = (self.law.left(now), self.law.pause_end(0));
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
            (Flaw::PauseComesBack, Ok(())) => self.law.hold(pause.unwrap_or(0)),
            (Flaw::NothingIsCharged, Ok(())) if n == 0 => self.leave(left, now),
            (Flaw::RefusedIsCharged, Err(No::TooSoon { remaining, .. })) => self.leave(left - whole(remaining), now),
            (Flaw::WaitCut, Err(No::TooSoon { asked, remaining, retry_after })) => {
                let retry_after = Duration::from_micros(u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX));
                return Err(No::TooSoon { asked, remaining, retry_after });
            }
            (Flaw::PauseTellsItsEnd, Err(No::Paused { asked, .. })) => {
                let end = self.law.pause_end(now).expect("a pause");
                return Err(No::Paused { asked, retry_after: Duration::from_nanos(end - now) });
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
        if self.flaw == Flaw::ChangeResumes {
            self.law.resume(now);
        }
        let from = |now| (whole(now), self.law.left(now));
        let changed = match self.flaw {
            Flaw::RetroactiveCredit => Some(from(self.last.min(now))),
            Flaw::RewoundChange => Some(from(now)),
            Flaw::FullAfterChange => Some((whole(now), whole(spec.burst()))),
            _ => None,
        };
        match changed {
            Some((from, left)) if self.spec.interval().is_some() => {
                self.law.restart(spec, &from, &left.max(Exact::zero()));
            }
            _ => self.law.set_quota(spec, now),
        }
        if self.flaw == Flaw::FractionCutAtRateZero && spec.interval().is_none() {
            self.law.cut_fraction();
        }
        self.spec = spec;
    }

    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        if self.flaw == Flaw::UpToIsAllOrNothing {
            return if self.law.try_acquire_n(n, now).is_ok() { n } else { 0 };
        }
        self.law.acquire_up_to(n, now)
    }

    fn refund(&mut self, n: u64, now: u64) {
        match self.flaw {
            Flaw::RefundLostInPause if self.law.is_paused(now) => {}
            Flaw::RefundCutsFraction if !self.law.is_paused(now) => {
                self.leave(self.law.left(now).floor() + whole(n), now);
            }
            Flaw::RefundOverfills if self.law.available(now) == self.spec.burst() => {
                self.spare = n.min(self.spec.burst());
            }
            _ => self.law.refund(n, now),
        }
    }

    fn reset(&mut self, now: u64) {
        if self.flaw == Flaw::ResetResumes {
            self.law.resume(now);
        }
        self.law.reset(now);
    }

    fn pause_until(&mut self, end: u64, now: u64) {
        let before = self.law.pause_end(now);
        match self.flaw {
            Flaw::PauseOnlyGrows if before.is_some_and(|before| end < before) => {}
            Flaw::PauseAccrues if end > now => self.law.hold(end),
            Flaw::RewoundResume if before.is_some() && end <= now && self.spec.interval().is_some() => {
                self.leave(self.law.left(now), now);
            }
            _ => {
                self.law.pause_until(end, now);
                match self.flaw {
                    Flaw::PauseFills if end > now => self.law.reset(now),
                    Flaw::PauseEmpties if end > now => self.law.empty(now),
                    Flaw::RewoundPause if self.law.pause_end(now) > Some(end) => self.law.resume(now),
                    _ => {}
                }
            }
        }
    }

    fn resume(&mut self, now: u64) {
        self.pause_until(now, now);
    }
}

fn is_found(flaw: Flaw, sequences: u32) -> bool {
    search(|setup| Flawed::new(flaw, setup), sequences, 0).is_err()
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
        Flaw::FractionCutAtRateZero,
        Flaw::InitialIgnored,
        Flaw::PauseAccrues,
        Flaw::PauseFills,
        Flaw::PauseEmpties,
        Flaw::PauseOnlyGrows,
        Flaw::MaxPauseIgnored,
        Flaw::PauseTellsItsEnd,
        Flaw::RewoundResume,
        Flaw::RewoundPause,
        Flaw::PauseComesBack,
        Flaw::ChangeResumes,
        Flaw::ResetResumes,
        Flaw::RefundLostInPause,
        Flaw::RefundCutsFraction,
        Flaw::RefundOverfills,
        Flaw::UpToIsAllOrNothing,
    ] {
        assert!(is_found(flaw, 40_000), "{flaw:?} was not found");
    }
}

#[test]
fn a_bucket_without_a_flaw_is_not_taken_for_a_flawed_one() {
    assert!(!is_found(Flaw::None, 256));
}
