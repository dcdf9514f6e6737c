//! Laws with a bug put in on purpose: the comparison with the reference must find each of them.

use std::time::Duration;

use super::differential::search;
use super::fixed_window::FixedWindow;
use super::reference::{Counts, Pause, Reference, Window};
use super::sliding_counter::SlidingCounter;
use super::sliding_log::SlidingLog;
use super::statement::Statement;
use crate::differential::{Bucket, Difference};
use crate::reference::{Answer, No, Setup, Spec, View};

/// Bugs that any law can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// One more than the limit passes.
    LimitAndOne,
    /// A refused request counts as far as there was room.
    RefusedIsCounted,
    /// A refused request makes its time the newest.
    RefusedUsesTime,
    /// A time that went back begins an older window again.
    RewoundClock,
    /// The wait told is cut to whole microseconds.
    WaitCut,
    /// What was there at first is always the limit.
    InitialIgnored,
    /// A new limit begins with nothing counted.
    LimitForgets,
    /// A new window length begins with nothing counted.
    LengthForgets,
    /// Setting the same quota again begins anew.
    SameQuotaForgets,
    /// A limiter that was unlimited begins with all that the limit allows.
    UnlimitedStartsFull,
    /// Time goes on in a pause.
    PauseAccrues,
    /// After a pause nothing counts.
    PauseForgets,
    /// An earlier end does not shorten a pause.
    PauseOnlyGrows,
    MaxPauseIgnored,
    /// The wait told in a pause is the one to its end, even where too little will be left then.
    PauseTellsItsEnd,
    /// A pause that is over lasts again when the clock is set back into it.
    PauseComesBack,
    /// A new quota ends a pause.
    ChangeResumes,
    /// A reset ends a pause.
    ResetResumes,
    /// Permits given back in a pause are lost.
    RefundLostInPause,
    /// Permits given back beyond those that count are kept.
    RefundOverfills,
    /// Permits of an older window can be given back to this one.
    RefundsOlder,
    /// All that was asked for or nothing.
    UpToIsAllOrNothing,
}

struct Flawed<L> {
    flaw: Flaw,
    law: Reference<L>,
    /// Permits beyond the limit.
    spare: u64,
    /// Permits that passed since the limiter was built, less those given back.
    passed: u64,
}

impl<L: Counts> Flawed<L> {
    fn new(flaw: Flaw, mut setup: Setup) -> Self {
        setup.spec = flawed(flaw, setup.spec);
        match flaw {
            Flaw::InitialIgnored => setup.initial = None,
            Flaw::MaxPauseIgnored => setup.max_pause = Duration::MAX,
            _ => {}
        }
        Self { flaw, law: Reference::new(setup), spare: 0, passed: 0 }
    }
}

fn flawed(flaw: Flaw, spec: Spec) -> Spec {
    match (flaw, spec) {
        (Flaw::LimitAndOne, Spec::Rate { permits, period, burst }) => {
            Spec::new(permits.saturating_add(1), period, burst)
        }
        _ => spec,
    }
}

impl<L: Counts> Bucket for Flawed<L> {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        if self.flaw == Flaw::RewoundClock && !self.law.is_paused(now) {
            if let Some(window) = self.law.window.filter(|window| L::newest(now.into(), *window) < self.law.newest) {
                self.law.begin(0, now.into(), window);
            }
        }
        if n > 0 && n <= self.spare && !self.law.is_paused(now) {
            self.spare -= n;
            return Ok(());
        }
        let pause = self.law.pause;
        let answer = self.law.try_acquire_n(n, now);
        match (self.flaw, answer) {
            (_, Ok(())) => {
                self.passed = self.passed.saturating_add(n);
                if self.flaw == Flaw::PauseComesBack {
                    self.law.pause = pause;
                }
            }
            (Flaw::RefusedIsCounted, Err(No::TooSoon { remaining, .. })) => {
                self.law.acquire_up_to(remaining, now);
            }
            (Flaw::RefusedUsesTime, Err(No::TooSoon { .. })) => {
                let window = self.law.window.expect("a limit");
                self.law.newest = self.law.newest.max(L::newest(now.into(), window));
            }
            (Flaw::WaitCut, Err(No::TooSoon { asked, remaining, retry_after })) => {
                let retry_after = Duration::from_micros(u64::try_from(retry_after.as_micros()).unwrap_or(u64::MAX));
                return Err(No::TooSoon { asked, remaining, retry_after });
            }
            (Flaw::PauseTellsItsEnd, Err(No::Paused { asked, .. })) => {
                let end = u64::try_from(self.law.pause.expect("a pause")).expect("a time");
                return Err(No::Paused { asked, retry_after: Duration::from_nanos(end - now) });
            }
            _ => {}
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
        let (before, after) = (self.law.window, Window::of(spec));
        self.law.set_quota(spec, now);
        let forgets = match (before, after) {
            (None, _) => self.flaw == Flaw::UnlimitedStartsFull,
            (Some(before), Some(after)) if before == after => self.flaw == Flaw::SameQuotaForgets,
            (Some(before), Some(after)) if before.length == after.length => self.flaw == Flaw::LimitForgets,
            _ => self.flaw == Flaw::LengthForgets,
        };
        if forgets {
            let window = Window { limit: 0, length: after.map_or(1, |after| after.length) };
            self.law.law.begin(0, self.law.newest, window);
        }
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
            Flaw::RefundOverfills if self.law.available(now) == self.law.limit() => {
                self.spare = n.min(self.law.limit());
            }
            Flaw::RefundsOlder if self.law.available(now) == self.law.limit() => {
                self.spare = n.min(self.passed);
                self.passed -= self.spare;
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
        let before = self.law.pause.filter(|_| self.law.is_paused(now));
        match self.flaw {
            Flaw::PauseOnlyGrows if before.is_some_and(|before| u128::from(end) < before) => {}
            Flaw::PauseAccrues => {
                let (law, newest) = (self.law.law.clone(), self.law.newest);
                self.law.pause_until(end, now);
                (self.law.law, self.law.newest) = (law, newest);
            }
            _ => {
                self.law.pause_until(end, now);
                if self.flaw == Flaw::PauseForgets && end > now {
                    self.law.reset(now);
                }
            }
        }
    }

    fn resume(&mut self, now: u64) {
        self.pause_until(now, now);
    }
}

/// The flaws of which the comparison with the law `L` does not tell.
fn unfound<L: Counts>() -> Vec<Flaw> {
    let flaws = [
        Flaw::LimitAndOne,
        Flaw::RefusedIsCounted,
        Flaw::RefusedUsesTime,
        Flaw::RewoundClock,
        Flaw::WaitCut,
        Flaw::InitialIgnored,
        Flaw::LimitForgets,
        Flaw::LengthForgets,
        Flaw::SameQuotaForgets,
        Flaw::UnlimitedStartsFull,
        Flaw::PauseAccrues,
        Flaw::PauseForgets,
        Flaw::PauseOnlyGrows,
        Flaw::MaxPauseIgnored,
        Flaw::PauseTellsItsEnd,
        Flaw::PauseComesBack,
        Flaw::ChangeResumes,
        Flaw::ResetResumes,
        Flaw::RefundLostInPause,
        Flaw::RefundOverfills,
        Flaw::RefundsOlder,
        Flaw::UpToIsAllOrNothing,
    ];
    let is_found = |flaw| tells(search::<L, _>(|setup| Flawed::<L>::new(flaw, setup), 20_000, 0));
    flaws.into_iter().filter(|flaw| !is_found(*flaw)).collect()
}

#[test]
fn every_flaw_of_a_fixed_window_is_found() {
    // A fixed window refuses only where something was granted, so that time is used already.
    assert_eq!(unfound::<FixedWindow>(), [Flaw::RefusedUsesTime]);
}

#[test]
fn every_flaw_of_a_sliding_log_is_found() {
    assert_eq!(unfound::<SlidingLog>(), []);
}

#[test]
fn every_flaw_of_a_sliding_counter_is_found() {
    assert_eq!(unfound::<SlidingCounter>(), []);
}

#[test]
fn a_law_without_a_flaw_is_not_taken_for_a_flawed_one() {
    search::<SlidingCounter, _>(|setup| Flawed::<SlidingCounter>::new(Flaw::None, setup), 256, 0).unwrap();
}

/// Defines a law that differs from another in what is written.
macro_rules! variant {
    ($(#[$doc:meta])* $name:ident of $law:ident { $($method:item)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        struct $name($law);

        impl Counts for $name {
            const MOST: u64 = $law::MOST;
            const STATEMENT: Statement = $law::STATEMENT;

            fn nothing() -> Self {
                Self($law::nothing())
            }
            fn newest(now: u128, window: Window) -> u128 {
                $law::newest(now, window)
            }
            fn hold(&mut self, pause: Pause, window: Option<Window>) -> u128 {
                self.0.hold(pause, window)
            }
            fn take_back(&mut self, n: u64, now: u128, window: Window) {
                self.0.take_back(n, now, window);
            }
            $($method)*
        }
    };
}

variant! {
    /// A window begins one nanosecond late.
    LateEdge of FixedWindow {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.fit(n, now.saturating_sub(1), window)
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n, now.saturating_sub(1), window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// What passed exactly one window ago still counts.
    ClosedSpan of SlidingLog {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.fit(n, now, Window { length: window.length + 1, ..window })
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n, now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// A request for several permits is noted once.
    OneTimeARequest of SlidingLog {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.fit(n, now, window)
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n.min(1), now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// After an idle window, the one before it still counts as the previous one.
    StalePrevious of SlidingCounter {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.stale(now, window).fit(n, now, window)
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0 = self.0.stale(now, window);
            self.0.add(n, now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// The weighted count of the previous window is rounded down to whole permits.
    RoundedWeight of SlidingCounter {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.weighted(now, window) / window.length + u128::from(n) <= window.limit.into()
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n, now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// The weight is a floating point number.
    FloatingWeight of SlidingCounter {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            let weighted = self.0.weighted(now, window) as f64 / window.length as f64;
            weighted + n as f64 <= window.limit as f64
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n, now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.counted(now, window)
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

variant! {
    /// The estimate with which a new window length begins is rounded down.
    EstimateRoundedDown of SlidingCounter {
        fn fit(&self, n: u64, now: u128, window: Window) -> bool {
            self.0.fit(n, now, window)
        }
        fn add(&mut self, n: u64, now: u128, window: Window) {
            self.0.add(n, now, window);
        }
        fn counted(&self, now: u128, window: Window) -> u128 {
            self.0.weighted(now, window) / window.length
        }
        fn begin(&mut self, count: u128, now: u128, window: Window) {
            self.0.begin(count, now, window);
        }
    }
}

/// Whether a comparison of `V` with `L` tells of a difference.
fn is_found<L: Counts, V: Counts>() -> bool {
    tells(search::<L, Reference<V>>(Reference::new, 20_000, 0))
}

/// Whether a difference was found, and not only a panic of the flawed law itself.
fn tells(result: Result<(), Difference>) -> bool {
    result.is_err_and(|difference| {
        assert!(difference.0.contains("Setup"), "{difference:?}");
        true
    })
}

#[test]
fn a_window_that_begins_late_is_found() {
    assert!(is_found::<FixedWindow, LateEdge>());
}

#[test]
fn a_span_that_holds_both_of_its_ends_is_found() {
    assert!(is_found::<SlidingLog, ClosedSpan>());
}

#[test]
fn a_log_that_notes_a_large_request_once_is_found() {
    assert!(is_found::<SlidingLog, OneTimeARequest>());
}

#[test]
fn a_previous_window_that_is_not_the_one_before_is_found() {
    assert!(is_found::<SlidingCounter, StalePrevious>());
}

#[test]
fn a_weight_that_is_rounded_down_is_found() {
    assert!(is_found::<SlidingCounter, RoundedWeight>());
}

#[test]
fn a_weight_in_floating_point_is_found() {
    assert!(is_found::<SlidingCounter, FloatingWeight>());
}

#[test]
fn an_estimate_that_is_rounded_down_is_found() {
    assert!(is_found::<SlidingCounter, EstimateRoundedDown>());
}

/// A law for another: the comparison tells them apart.
#[test]
fn no_law_is_taken_for_another() {
    assert!(is_found::<FixedWindow, SlidingLog>());
    assert!(is_found::<FixedWindow, SlidingCounter>());
    assert!(is_found::<SlidingLog, SlidingCounter>());
}
