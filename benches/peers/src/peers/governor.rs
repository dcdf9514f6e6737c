//! `governor`: GCRA on one word; waiters ask again until they get their permit.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, FakeRelativeClock, QuantaUpkeepClock, ReasonablyRealtime};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{Clocked, Decide, DecideKey, Law, Wait};

pub(crate) type Direct<C = DefaultClock> =
    RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

fn some(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

pub(crate) fn quota(law: Law) -> Quota {
    let quota = if law.period == Duration::from_secs(1) {
        Quota::per_second(some(law.permits))
    } else {
        Quota::with_period(law.interval()).expect("no zero period")
    };
    quota.allow_burst(some(law.burst))
}

pub(crate) fn bucket(law: Law) -> Direct {
    RateLimiter::direct(quota(law))
}

/// Reads the time that quanta's upkeep thread stores once a millisecond.
pub(crate) fn coarse(law: Law) -> Direct<QuantaUpkeepClock> {
    let clock = QuantaUpkeepClock::from_interval(Duration::from_millis(1)).expect("no other upkeep thread");
    RateLimiter::direct_with_clock(quota(law), clock)
}

impl<C: Clock + Send + Sync> Decide for Direct<C>
where
    C::Instant: Send + Sync,
{
    #[inline]
    fn decide(&self) -> bool {
        self.check().is_ok()
    }
}

pub(crate) struct Manual {
    limiter: Direct<FakeRelativeClock>,
    clock: FakeRelativeClock,
}

pub(crate) fn manual(law: Law) -> Manual {
    let clock = FakeRelativeClock::default();
    Manual { limiter: RateLimiter::direct_with_clock(quota(law), clock.clone()), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.limiter.check_n(some(n)).is_ok_and(|decision| decision.is_ok())
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

impl<C: Clock + ReasonablyRealtime + Send + Sync + 'static> Wait for Direct<C>
where
    C::Instant: Send + Sync,
{
    async fn wait(&self, n: u32) {
        if n == 1 {
            self.until_ready().await;
        } else {
            self.until_n_ready(some(n)).await.expect("n within the burst");
        }
    }
}

/// Its default table, a `DashMap`, which grows as keys come.
pub(crate) fn keyed<K: Hash + Eq + Clone>(law: Law) -> DefaultKeyedRateLimiter<K> {
    RateLimiter::keyed(quota(law))
}

impl<K: Hash + Eq + Clone + Send + Sync> DecideKey<K> for DefaultKeyedRateLimiter<K> {
    #[inline]
    fn decide(&self, key: &K) -> bool {
        self.check_key(key).is_ok()
    }
}

/// What it says of four permits where three fit.
pub(crate) fn too_large() -> String {
    let limiter = bucket(Law::per_second(3).burst(3));
    limiter.check_n(some(4)).expect_err("four do not fit").to_string()
}
