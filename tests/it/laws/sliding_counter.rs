//! Admit while `previous*(W - elapsed) + (current + n)*W <= limit*W`, in whole numbers.

use super::reference::{Counts, Window};
use super::statement::{self, Statement};

/// The counts of the window `index` and of the one before it.
#[derive(Clone, Debug)]
pub(crate) struct SlidingCounter {
    index: u128,
    previous: u128,
    current: u128,
}

impl SlidingCounter {
    /// The same when the time is `now`.
    fn at(&self, now: u128, window: Window) -> Self {
        let index = now / window.length;
        match index.checked_sub(self.index) {
            Some(0) => self.clone(),
            Some(1) => Self { index, previous: self.current, current: 0 },
            Some(_) => Self { index, previous: 0, current: 0 },
            None => panic!("the time went back"),
        }
    }

    /// What a counter makes of it that is wrong about the window before: it takes one for it that is a window older.
    pub(super) fn stale(&self, now: u128, window: Window) -> Self {
        match now / window.length - self.index {
            2 => Self { index: now / window.length, previous: self.current, current: 0 },
            _ => self.clone(),
        }
    }

    /// `W` times the count, the previous window weighted by the part of it that a window ending at `now` overlaps.
    pub(super) fn weighted(&self, now: u128, window: Window) -> u128 {
        let Self { previous, current, .. } = self.at(now, window);
        previous * (window.length - now % window.length) + current * window.length
    }
}

impl Counts for SlidingCounter {
    const MOST: u64 = 1 << 28;
    const STATEMENT: Statement = statement::sliding_counter;

    fn nothing() -> Self {
        Self { index: 0, previous: 0, current: 0 }
    }

    fn fit(&self, n: u64, now: u128, window: Window) -> bool {
        self.weighted(now, window) + u128::from(n) * window.length <= u128::from(window.limit) * window.length
    }

    fn add(&mut self, n: u64, now: u128, window: Window) {
        *self = self.at(now, window);
        self.current += u128::from(n);
    }

    fn counted(&self, now: u128, window: Window) -> u128 {
        // Only a clock that was set back makes it more than the limit, and no more than the largest one is kept of it.
        self.weighted(now, window).div_ceil(window.length).min(Self::MOST.into())
    }

    fn newest(now: u128, window: Window) -> u128 {
        now - now % window.length
    }

    fn begin(&mut self, count: u128, now: u128, window: Window) {
        *self = Self { index: now / window.length, previous: 0, current: count };
    }

    /// Of the current window first, then of the previous one.
    fn take_back(&mut self, n: u64, now: u128, window: Window) {
        let mut rolled = self.at(now, window);
        let n = u128::from(n);
        rolled.previous = rolled.previous.saturating_sub(n.saturating_sub(rolled.current));
        rolled.current = rolled.current.saturating_sub(n);
        // The window stays where it is: a refund alone uses no time.
        *self = match rolled.index - self.index {
            0 => rolled,
            1 => Self { current: rolled.previous, ..self.clone() },
            _ => self.clone(),
        };
    }
}
