//! The crate's shaper, on a clock that is moved by hand.

use std::time::Duration;

use tollgate::{ManualClock, Quota, Refused, Shaper};

use super::Waits;

pub(crate) struct Real {
    shaper: Shaper,
    clock: ManualClock,
}

impl Real {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let shaper = Shaper::builder(super::quota()).catch_up(Duration::ZERO).clock(clock.clone()).build();
        Self { shaper, clock }
    }
}

impl Waits for Real {
    fn acquire(&self, limit: Option<Duration>) -> Result<(), Refused> {
        match limit {
            None => self.shaper.acquire_blocking().map(drop),
            Some(limit) => self.shaper.acquire_blocking_within(limit).map(drop),
        }
    }

    fn try_acquire(&self) -> bool {
        self.shaper.try_acquire().is_ok()
    }

    fn refund(&self) {
        self.shaper.refund(1);
    }

    fn set_quota(&self, quota: Quota) {
        self.shaper.set_quota(quota);
    }

    fn close(&self) {
        self.shaper.close();
    }

    fn now(&self) -> u64 {
        self.clock.now().get()
    }

    fn set_now(&self, now: u64) {
        self.clock.set(now);
    }
}
