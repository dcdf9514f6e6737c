//! What the window laws have in common, written as naively as it can be: one caller, no clock, no word.
//!
//! A law says whether n more fit at an instant, and what a grant leaves. Everything else follows from that by search: what is
//! left is the most that fits, and a wait ends at the first nanosecond at which the request fits.

use std::fmt::Debug;
use std::time::Duration;

use super::statement::Statement;
use crate::differential::Bucket;
use crate::reference::{Answer, MAX_BURST, No, Setup, Spec, View};

/// A limit, and the length of a window in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) limit: u64,
    pub(crate) length: u128,
}

impl Window {
    /// `None` if nothing is limited. A larger limit than a word can count to counts as that.
    pub(crate) fn of(spec: Spec) -> Option<Self> {
        match spec {
            Spec::Unlimited => None,
            Spec::Rate { permits, period, .. } => {
                Some(Self { limit: permits.min(MAX_BURST), length: period.as_nanos() })
            }
        }
    }
}

/// A pause, or the part of one by which it is made longer or shorter. Times are as told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// The begin, or the end so far.
    pub(crate) from: u128,
    /// The end, not before the begin of the whole pause.
    pub(crate) to: u128,
    /// When it was begun or last changed.
    pub(crate) since: u128,
    /// The newest time when it was begun.
    pub(crate) before: u128,
    /// The newest time.
    pub(crate) newest: u128,
}

/// What a law counts. Times are nanoseconds, beyond `u64` where a wait leads there, and never go back: that is seen to before.
pub(crate) trait Counts: Clone + Debug {
    /// The largest limit that is tried at random.
    const MOST: u64;

    /// The law as a statement about what was granted.
    const STATEMENT: Statement;

    fn nothing() -> Self;

    /// Whether `n` more may pass at `now`.
    fn fit(&self, n: u64, now: u128, window: Window) -> bool;

    /// They pass.
    fn add(&mut self, n: u64, now: u128, window: Window);

    /// How many count at `now`; an estimate is rounded up.
    fn counted(&self, now: u128, window: Window) -> u128;

    /// The time that later calls count as at least, once this one has had an effect at `now`.
    fn newest(now: u128, window: Window) -> u128;

    /// From now on `count` permits count as if they had passed at `now`, and nothing else.
    fn begin(&mut self, count: u128, now: u128, window: Window);

    /// When a pause begins that is told at `now`.
    fn since(&self, now: u128) -> u128 {
        now
    }

    /// What counts when a pause begins is what counts when it ends: no time passes between the two. Returns the newest time then.
    ///
    /// A window law opens the window of the end with that count, or the newest window if the clock was set back.
    fn hold(&mut self, pause: Pause, window: Option<Window>) -> u128 {
        let Pause { from, to, since, before, newest } = pause;
        let Some(window) = window else { return since.max(before) };
        let to = to.max(before);
        self.begin(self.counted(from.max(newest), window), to, window);
        Self::newest(to, window)
    }

    /// `n` of those that count at `now` no longer do.
    fn take_back(&mut self, n: u64, now: u128, window: Window);
}

/// The sequential limiter.
#[derive(Clone, Debug)]
pub(crate) struct Reference<L> {
    pub(super) window: Option<Window>,
    pub(super) law: L,
    max_pause: Duration,
    /// The newest time that had an effect, as the law knows it. An earlier one counts as this.
    pub(super) newest: u128,
    /// The instant at which the quota was last changed, or a pause begun or moved; and the newest time then.
    since: u128,
    before: u128,
    /// The end of the last pause, until a grant after it shows that it is over.
    pub(super) pause: Option<u128>,
}

impl<L: Counts> Reference<L> {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { spec, initial, max_pause, built } = setup;
        let window = Window::of(spec);
        let mut new = Self { window, law: L::nothing(), max_pause, newest: 0, since: 0, before: 0, pause: None };
        match (window, initial) {
            (Some(window), Some(initial)) => {
                new.begin((window.limit - initial.min(window.limit)).into(), built.into(), window);
            }
            (None, Some(_)) => new.newest = built.into(),
            (_, None) => {}
        }
        new
    }

    pub(super) fn begin(&mut self, count: u128, now: u128, window: Window) {
        self.law.begin(count, now, window);
        self.newest = L::newest(now, window);
    }

    fn pause_end(&self, now: u64) -> Option<u128> {
        self.pause.filter(|end| *end > now.into())
    }

    pub(crate) fn is_paused(&self, now: u64) -> bool {
        self.pause_end(now).is_some()
    }

    /// What `now` counts as: in a pause, as its end.
    fn time(&self, now: u64) -> u128 {
        let times = [self.pause_end(now).map_or(now.into(), |end| end.max(self.since).max(self.before)), self.newest];
        times.into_iter().fold(0, u128::max)
    }

    /// The first time, not before `now` and the end of a pause, at which `n` fit.
    fn first(&self, n: u64, now: u64) -> u128 {
        let from = self.pause_end(now).unwrap_or_else(|| now.into());
        let Some(window) = self.window else { return from };
        let fit = |at: u128| self.law.fit(n, at.max(self.newest), window);
        if fit(from) {
            return from;
        }
        // Nothing counts for longer than two windows, or in a flawed law for three.
        let (mut too_early, mut late_enough) = (from, from.max(self.newest) + 3 * window.length);
        assert!(fit(late_enough), "{n} never fit into {window:?}: {self:?}");
        while late_enough - too_early > 1 {
            let middle = too_early + (late_enough - too_early) / 2;
            if fit(middle) { late_enough = middle } else { too_early = middle }
        }
        late_enough
    }

    fn wait(&self, n: u64, now: u64) -> Duration {
        duration(self.first(n, now) - u128::from(now))
    }

    /// How many count at `now`.
    pub(crate) fn counted(&self, now: u64) -> u128 {
        self.window.map_or(0, |window| self.law.counted(self.newest.max(now.into()), window))
    }

    /// Counts no time before `now`, or the window that it lies in.
    pub(crate) fn open(&mut self, now: u64) {
        if let Some(window) = self.window {
            self.newest = self.newest.max(L::newest(now.into(), window));
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.window.map_or(u64::MAX, |window| window.limit)
    }
}

impl<L: Counts> Bucket for Reference<L> {
    fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        self.peek(n, now)?;
        if n == 0 {
            return Ok(());
        }
        if let Some(window) = self.window {
            let time = self.time(now);
            self.law.add(n, time, window);
            self.newest = L::newest(time, window);
        }
        // It was not refused, so the pause is over. A clock that is set back afterwards finds none.
        self.pause = None;
        Ok(())
    }

    fn peek(&mut self, n: u64, now: u64) -> Answer {
        if n == 0 {
            return Ok(());
        }
        if n > self.limit() {
            return Err(No::ExceedsCapacity { asked: n, capacity: self.limit() });
        }
        let retry_after = self.wait(n, now);
        if retry_after.is_zero() {
            Ok(())
        } else if self.is_paused(now) {
            Err(No::Paused { asked: n, retry_after })
        } else {
            Err(No::TooSoon { asked: n, remaining: self.available(now), retry_after })
        }
    }

    fn available(&mut self, now: u64) -> u64 {
        if self.is_paused(now) {
            return 0;
        }
        let Some(window) = self.window else { return u64::MAX };
        let (mut fits, mut too_many) = (0, u128::from(window.limit) + 1);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            let n = u64::try_from(middle).expect("at most the limit");
            if self.law.fit(n, self.time(now), window) { fits = middle } else { too_many = middle }
        }
        u64::try_from(fits).expect("at most the limit")
    }

    fn snapshot(&mut self, now: u64) -> View {
        let limit = self.limit();
        View {
            limit,
            remaining: self.available(now),
            retry_after: (limit > 0).then(|| self.wait(1, now)),
            reset_after: Some(if limit > 0 {
                self.wait(limit, now)
            } else {
                duration(self.pause_end(now).unwrap_or(0).saturating_sub(now.into()))
            }),
        }
    }

    fn set_quota(&mut self, spec: Spec, now: u64) {
        let next = Window::of(spec);
        if next == self.window {
            return;
        }
        let time = self.time(now);
        match (self.window, next) {
            // What counts is kept as it is.
            (Some(old), Some(next)) if old.length == next.length => {
                self.window = Some(next);
                return;
            }
            (_, None) => self.newest = time,
            // Nothing is left.
            (None, Some(next)) => self.begin(next.limit.into(), time, next),
            (Some(old), Some(next)) => self.begin(self.law.counted(time, old), time, next),
        }
        self.window = next;
        self.since = if self.is_paused(now) { self.since.max(now.into()) } else { time };
        self.pause = self.pause_end(now);
    }

    fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        let n = n.min(self.available(now));
        self.try_acquire_n(n, now).expect("as many as are there");
        n
    }

    fn refund(&mut self, n: u64, now: u64) {
        let time = self.time(now);
        if let Some(window) = self.window {
            self.law.take_back(n, time, window);
        }
    }

    /// Nothing counts any more, whatever the time.
    fn reset(&mut self, _: u64) {
        if let Some(window) = self.window {
            self.law.begin(0, self.newest, window);
        }
    }

    fn pause_until(&mut self, end: u64, now: u64) {
        let paused = self.is_paused(now);
        if end <= now && !paused {
            return;
        }
        let longest = u64::try_from(self.max_pause.as_nanos()).unwrap_or(u64::MAX);
        let end = u128::from(end.min(now.saturating_add(longest)));
        let from = self.pause_end(now).unwrap_or_else(|| now.into());
        if paused {
            self.since = self.since.max(now.into());
        } else {
            (self.since, self.before) = (self.law.since(now.into()), self.newest);
        }
        self.pause = (end > now.into()).then_some(end);
        // A clock that was set back to before the pause began ends it when it says so, but that counts as its begin.
        let to = end.max(self.since);
        let pause = Pause { from, to, since: self.since, before: self.before, newest: self.newest };
        self.newest = self.law.hold(pause, self.window);
    }

    fn resume(&mut self, now: u64) {
        self.pause_until(now, now);
    }
}

/// `Duration::MAX` if it is longer than that.
pub(crate) fn duration(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match u64::try_from(nanos / SECOND) {
        Ok(seconds) => Duration::new(seconds, u32::try_from(nanos % SECOND).expect("less than a second")),
        Err(_) => Duration::MAX,
    }
}
