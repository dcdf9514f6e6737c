//! The least that any lock-free limiter does: one reading of the clock, one load and one compare-and-swap.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Clock, DefaultClock};

use super::Decide;

#[derive(Debug)]
pub(crate) struct Floor<C = DefaultClock> {
    word: AtomicU64,
    clock: C,
}

pub(crate) fn floor() -> Floor {
    with_clock(DefaultClock)
}

pub(crate) fn with_clock<C>(clock: C) -> Floor<C> {
    Floor { word: AtomicU64::new(0), clock }
}

impl<C: Clock + Send + Sync> Decide for Floor<C> {
    #[inline]
    fn decide(&self) -> bool {
        let now = self.clock.now().get();
        let seen = self.word.load(Ordering::Acquire);
        // A lost exchange counts as well: the floor does not try again.
        let next = now.max(seen.saturating_add(1));
        let _ = self.word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire);
        true
    }
}
