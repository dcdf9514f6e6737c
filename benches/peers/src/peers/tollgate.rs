//! This crate.

use std::time::Duration;

use tollgate::{Clock, CoarseClock, Keyed, ManualClock, Quota, Shaper, Timer, TokenBucket, Waitable};

use super::{Clocked, Decide, DecideKey, Law, Wait};

pub(crate) fn quota(law: Law) -> Quota {
    Quota::new(law.permits.into(), law.period).expect("no zero period").burst(law.burst.into())
}

pub(crate) fn bucket(law: Law) -> TokenBucket {
    TokenBucket::new(quota(law))
}

/// Reads the time that a thread stores once a millisecond.
pub(crate) fn coarse(law: Law) -> TokenBucket<CoarseClock> {
    TokenBucket::with_clock(quota(law), CoarseClock::new(Duration::from_millis(1)))
}

impl<C: Clock + Send + Sync> Decide for TokenBucket<C> {
    #[inline]
    fn decide(&self) -> bool {
        self.try_acquire().is_ok()
    }
}

pub(crate) struct Manual {
    pub(crate) bucket: TokenBucket<ManualClock>,
    clock: ManualClock,
}

pub(crate) fn manual(law: Law) -> Manual {
    let clock = ManualClock::new();
    Manual { bucket: TokenBucket::with_clock(quota(law), clock.clone()), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.bucket.try_acquire_n(n.into()).is_ok()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

pub(crate) fn shaper(law: Law) -> Shaper {
    Shaper::new(quota(law))
}

/// Waits with one shared timer thread, for permits that leave evenly also far below a millisecond.
pub(crate) fn precise(law: Law) -> Shaper {
    Shaper::builder(quota(law)).timer(Timer::Precise).build()
}

impl<A: Waitable + Send + Sync + 'static> Wait for Shaper<A> {
    async fn wait(&self, n: u32) {
        let _permit = self.acquire_n(n.into()).await.expect("no bound, and nobody closes it");
    }
}

/// A table for so many keys.
pub(crate) fn keyed<K>(law: Law, keys: usize) -> Keyed<K> {
    Keyed::token_bucket(quota(law)).max_keys(keys).build().expect("memory for them")
}

impl DecideKey<u64> for Keyed<u64> {
    #[inline]
    fn decide(&self, key: &u64) -> bool {
        self.try_acquire(key).is_ok()
    }
}

impl DecideKey<String> for Keyed<String> {
    #[inline]
    fn decide(&self, key: &String) -> bool {
        self.try_acquire(key.as_str()).is_ok()
    }
}

/// What it says of four permits where three fit.
pub(crate) fn too_large() -> String {
    bucket(Law::per_second(3).burst(3)).try_acquire_n(4).expect_err("four do not fit").to_string()
}
