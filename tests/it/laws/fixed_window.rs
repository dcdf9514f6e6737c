//! At most `limit` per window; windows are `[k*W, (k+1)*W)` from time 0.

use super::reference::{Counts, Window};
use super::statement::{self, Statement};

/// What passed, and in which window.
#[derive(Clone, Debug)]
pub(crate) struct FixedWindow {
    grants: Vec<(u128, u128)>,
}

impl FixedWindow {
    fn in_window(&self, index: u128) -> u128 {
        self.grants.iter().filter(|grant| grant.0 == index).map(|grant| grant.1).sum()
    }
}

impl Counts for FixedWindow {
    const MOST: u64 = u64::MAX;
    const STATEMENT: Statement = statement::fixed_window;

    fn nothing() -> Self {
        Self { grants: Vec::new() }
    }

    fn fit(&self, n: u64, now: u128, window: Window) -> bool {
        self.counted(now, window) + u128::from(n) <= window.limit.into()
    }

    fn add(&mut self, n: u64, now: u128, window: Window) {
        self.grants.push((now / window.length, n.into()));
    }

    fn counted(&self, now: u128, window: Window) -> u128 {
        self.in_window(now / window.length)
    }

    fn newest(now: u128, window: Window) -> u128 {
        now - now % window.length
    }

    fn begin(&mut self, count: u128, now: u128, window: Window) {
        self.grants = vec![(now / window.length, count)];
    }

    fn take_back(&mut self, n: u64, now: u128, window: Window) {
        let index = now / window.length;
        let left = self.in_window(index).saturating_sub(n.into());
        self.grants.retain(|grant| grant.0 != index);
        self.grants.push((index, left));
    }
}
