//! `leaky-bucket`: a mutexed line, refilled in steps of at least a millisecond.

use std::time::Duration;

use leaky_bucket::RateLimiter;
use tokio::runtime::{Builder, Runtime};

use super::{Clocked, Decide, Law, Wait};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Its interval must be a millisecond or more: a faster law refills several permits each.
pub(crate) fn limiter(law: Law) -> RateLimiter {
    build(law, true)
}

/// Without its fairness, which costs a mutex a call.
pub(crate) fn unfair(law: Law) -> RateLimiter {
    build(law, false)
}

fn build(law: Law, fair: bool) -> RateLimiter {
    let (interval, refill) = if law.interval() >= MILLISECOND {
        (law.interval(), 1)
    } else {
        (MILLISECOND, law.permits as usize / (law.period.as_millis() as usize))
    };
    let burst = law.burst as usize;
    RateLimiter::builder().interval(interval).refill(refill).max(burst.max(refill)).initial(burst).fair(fair).build()
}

impl Decide for RateLimiter {
    #[inline]
    fn decide(&self) -> bool {
        self.try_acquire(1)
    }
}

impl Wait for RateLimiter {
    async fn wait(&self, n: u32) {
        self.acquire(n as usize).await;
    }
}

/// On tokio's paused clock.
pub(crate) struct Manual {
    runtime: Runtime,
    limiter: RateLimiter,
}

pub(crate) fn manual(law: Law) -> Manual {
    paused(|| limiter(law))
}

/// With exactly the interval that is asked for, also where it panics.
pub(crate) fn every(interval: Duration) -> Manual {
    paused(|| RateLimiter::builder().interval(interval).max(1).initial(1).build())
}

fn paused(build: impl FnOnce() -> RateLimiter) -> Manual {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let limiter = runtime.block_on(async { build() });
    Manual { runtime, limiter }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.runtime.block_on(async { self.limiter.try_acquire(n as usize) })
    }

    fn advance(&self, span: Duration) {
        self.runtime.block_on(tokio::time::advance(span));
    }
}
