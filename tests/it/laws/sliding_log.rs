//! At most `limit` in every half-open span `(t-W, t]`, exactly.

use super::reference::{Counts, Pause, Window};
use super::statement::{self, Statement};

/// Every grant: when, and how many permits. The times rise.
#[derive(Clone, Debug)]
pub(crate) struct SlidingLog {
    grants: Vec<(u128, u128)>,
    /// For how long it was held in all. Its own time, less by that, begins at 0.
    held: u128,
}

impl Counts for SlidingLog {
    // The law takes 2^20. A ring of that size a limiter would take minutes; it is tested by itself.
    const MOST: u64 = 1 << 10;
    const STATEMENT: Statement = statement::sliding_log;

    fn nothing() -> Self {
        Self { grants: Vec::new(), held: 0 }
    }

    fn fit(&self, n: u64, now: u128, window: Window) -> bool {
        self.counted(now, window) + u128::from(n) <= window.limit.into()
    }

    fn add(&mut self, n: u64, now: u128, _: Window) {
        self.grants.push((now, n.into()));
    }

    fn counted(&self, now: u128, window: Window) -> u128 {
        self.grants.iter().filter(|grant| grant.0 + window.length > now).map(|grant| grant.1).sum()
    }

    fn newest(now: u128, _: Window) -> u128 {
        now
    }

    fn begin(&mut self, count: u128, now: u128, _: Window) {
        self.grants = vec![(now, count)];
    }

    fn since(&self, now: u128) -> u128 {
        now.max(self.held)
    }

    /// Every grant keeps its age, also one that is yet to come by a clock that was set back.
    fn hold(&mut self, pause: Pause, _: Option<Window>) -> u128 {
        let from = pause.from.max(self.held);
        let shifted = |then: u128| (then + pause.to).saturating_sub(from);
        for grant in &mut self.grants {
            grant.0 = shifted(grant.0);
        }
        self.held = shifted(self.held);
        shifted(pause.newest.max(from))
    }

    /// The newest first.
    fn take_back(&mut self, n: u64, now: u128, window: Window) {
        let mut left = u128::from(n);
        for grant in self.grants.iter_mut().rev().filter(|grant| grant.0 + window.length > now) {
            let taken = left.min(grant.1);
            (grant.1, left) = (grant.1 - taken, left - taken);
        }
    }
}
