//! The crate's limiters, as the comparison asks them.

use std::time::Duration;

use tollgate::{FixedWindow, FixedWindowLaw, Limiter, LimiterBuilder, ManualClock, Policing, Quota};
use tollgate::{SlidingCounter, SlidingCounterLaw, SlidingLog, SlidingLogLaw};

use crate::differential::{Bucket, view};
use crate::reference::{Answer, Setup, Spec, View, answer};

/// A law by the way in which it is built and changed: those with a largest limit may say no.
pub(crate) trait Build: Policing {
    fn builder(quota: Quota) -> LimiterBuilder<Self>
    where
        Self: Sized;
    fn build(builder: LimiterBuilder<Self, ManualClock>) -> Limiter<Self, ManualClock>
    where
        Self: Sized;
    fn change(limiter: &Limiter<Self, ManualClock>, quota: Quota)
    where
        Self: Sized;
    fn change_at(limiter: &Limiter<Self, ManualClock>, quota: Quota, now: u64)
    where
        Self: Sized;
}

macro_rules! build {
    ($law:ident, $limiter:ident $(, $unwrap:ident)?) => {
        impl Build for $law {
            fn builder(quota: Quota) -> LimiterBuilder<Self> {
                $limiter::builder(quota)
            }
            fn build(builder: LimiterBuilder<Self, ManualClock>) -> $limiter<ManualClock> {
                builder.build()$(.$unwrap())?
            }
            fn change(limiter: &$limiter<ManualClock>, quota: Quota) {
                limiter.set_quota(quota)$(.$unwrap())?
            }
            fn change_at(limiter: &$limiter<ManualClock>, quota: Quota, now: u64) {
                limiter.set_quota_at(quota, now)$(.$unwrap())?
            }
        }
    };
}

build!(FixedWindowLaw, FixedWindow);
build!(SlidingCounterLaw, SlidingCounter, unwrap);
build!(SlidingLogLaw, SlidingLog, unwrap);

/// A limiter that is told the time with each call.
pub(crate) struct Told<A>(Limiter<A, ManualClock>);

/// A limiter that reads the time from its clock.
pub(crate) struct Clocked<A>(Limiter<A, ManualClock>);

fn build<A: Build>(setup: Setup) -> Limiter<A, ManualClock> {
    let Setup { spec, initial, max_pause, built } = setup;
    let builder = A::builder(spec.quota()).max_pause(max_pause).clock(ManualClock::at(built));
    A::build(match initial {
        Some(permits) => builder.initial(permits),
        None => builder,
    })
}

impl<A: Build> Told<A> {
    pub(crate) fn new(setup: Setup) -> Self {
        Self(build(setup))
    }
}

impl<A: Build> Clocked<A> {
    pub(crate) fn new(setup: Setup) -> Self {
        Self(build(setup))
    }

    fn at(&self, now: u64) -> &Limiter<A, ManualClock> {
        self.0.clock().set(now);
        &self.0
    }
}

impl<A: Build> Bucket for Told<A> {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        answer(self.0.try_acquire_n_at(n, now))
    }
    fn peek(&mut self, n: u64, now: u64) -> Answer {
        answer(self.0.peek_at(n, now))
    }
    fn available(&mut self, now: u64) -> u64 {
        self.0.available_at(now)
    }
    fn snapshot(&mut self, now: u64) -> View {
        view(self.0.snapshot_at(now))
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        A::change_at(&self.0, spec.quota(), now);
    }
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        self.0.acquire_up_to_at(n, now)
    }
    fn refund(&mut self, n: u64, now: u64) {
        self.0.refund_at(n, now);
    }
    fn reset(&mut self, now: u64) {
        self.0.reset_at(now);
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        self.0.pause_until_at(end, now);
    }
    fn resume(&mut self, now: u64) {
        self.0.resume_at(now);
    }
}

impl<A: Build> Bucket for Clocked<A> {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        answer(self.at(now).try_acquire_n(n))
    }
    fn peek(&mut self, n: u64, now: u64) -> Answer {
        answer(self.at(now).peek(n))
    }
    fn available(&mut self, now: u64) -> u64 {
        self.at(now).available()
    }
    fn snapshot(&mut self, now: u64) -> View {
        view(self.at(now).snapshot())
    }
    fn set_quota(&mut self, spec: Spec, now: u64) {
        A::change(self.at(now), spec.quota());
    }
    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        self.at(now).acquire_up_to(n)
    }
    fn refund(&mut self, n: u64, now: u64) {
        self.at(now).refund(n);
    }
    fn reset(&mut self, now: u64) {
        self.at(now).reset();
    }
    fn pause_until(&mut self, end: u64, now: u64) {
        match end.checked_sub(now) {
            Some(span) => self.at(now).pause_for(Duration::from_nanos(span)),
            None => self.at(now).pause_until(end),
        }
    }
    fn resume(&mut self, now: u64) {
        self.at(now).resume();
    }
}
