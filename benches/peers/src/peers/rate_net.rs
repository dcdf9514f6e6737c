//! `rate-net`: its limiter without keys; waiters ask again until they get their permit.

use std::sync::Arc;
use std::time::Duration;

use rate_net::{CoarseClock, DirectLimiter, Eviction, RateLimiter};
use throttle_net::{Clock, ManualClock, SystemClock, TokioClock};

use super::{Clocked, Decide, DecideKey, Law, Wait};

fn with_clock<C: Clock + Clone>(law: Law, clock: C) -> DirectLimiter<C> {
    let builder = RateLimiter::builder().quota(law.permits, law.period).burst(law.burst);
    builder.clock(clock).try_build_direct().expect("a sound quota")
}

pub(crate) fn direct(law: Law) -> DirectLimiter {
    with_clock(law, SystemClock::new())
}

/// On tokio's clock, which tests can pause.
pub(crate) fn direct_on_tokio(law: Law) -> DirectLimiter<TokioClock> {
    with_clock(law, TokioClock::new())
}

/// Reads the time that a thread stores once a millisecond.
pub(crate) fn coarse(law: Law) -> DirectLimiter<CoarseClock> {
    with_clock(law, CoarseClock::spawn(Duration::from_millis(1)).expect("a thread"))
}

impl<C: Clock + Clone> Decide for DirectLimiter<C> {
    #[inline]
    fn decide(&self) -> bool {
        self.check().is_allow()
    }
}

pub(crate) struct Manual {
    limiter: DirectLimiter<Arc<ManualClock>>,
    clock: Arc<ManualClock>,
}

pub(crate) fn manual(law: Law) -> Manual {
    let clock = Arc::new(ManualClock::new());
    Manual { limiter: with_clock(law, Arc::clone(&clock)), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.limiter.check_n(n).is_allow()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

impl<C: Clock + Clone + 'static> Wait for DirectLimiter<C> {
    async fn wait(&self, n: u32) {
        self.try_until_ready_n(n).await.expect("n within the burst");
    }
}

/// A table for so many keys. A quarter more, so that none of its shards overflows.
pub(crate) fn keyed(law: Law, keys: usize) -> RateLimiter {
    let table = RateLimiter::builder().quota(law.permits, law.period).burst(law.burst);
    table.eviction(Eviction::capacity(keys + keys / 4)).try_build().expect("a sound quota")
}

impl DecideKey<u64> for RateLimiter {
    #[inline]
    fn decide(&self, key: &u64) -> bool {
        self.check(*key).is_allow()
    }
}

impl DecideKey<String> for RateLimiter {
    #[inline]
    fn decide(&self, key: &String) -> bool {
        self.check_bytes(key).is_allow()
    }
}
