//! `ratelimit`: a token bucket of several atomics. It tells how long to sleep, and callers ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimit::{Builder, Clock, Ratelimiter, StdClock, TryWaitError};

use super::{Clocked, Decide, Law, Wait};

fn with_clock<C: Clock>(law: Law, initial: u32, clock: C) -> Ratelimiter<C> {
    let builder = Builder::with_clock(law.permits.into(), clock).period(law.period);
    builder.max_tokens(law.burst.into()).initial_available(initial.into()).build().expect("a sound quota")
}

pub(crate) fn bucket(law: Law) -> Ratelimiter {
    with_clock(law, law.burst, StdClock::new())
}

impl<C: Clock + Send + Sync> Decide for Ratelimiter<C> {
    #[inline]
    fn decide(&self) -> bool {
        self.try_wait().is_ok()
    }
}

/// Nanoseconds that only the caller adds to.
#[derive(Clone, Default)]
pub(crate) struct Moved(Arc<AtomicU64>);

impl Clock for Moved {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

pub(crate) struct Manual {
    pub(crate) bucket: Ratelimiter<Moved>,
    clock: Moved,
}

pub(crate) fn manual(law: Law) -> Manual {
    starting_with(law, law.burst)
}

/// With some permits there at the start instead of the full burst.
pub(crate) fn starting_with(law: Law, initial: u32) -> Manual {
    let clock = Moved::default();
    Manual { bucket: with_clock(law, initial, clock.clone()), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.bucket.try_wait_n(n.into()).is_ok()
    }

    fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.clock.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl<C: Clock + Send + Sync + 'static> Wait for Ratelimiter<C> {
    /// Its documented loop, with tokio's sleep instead of the thread's.
    async fn wait(&self, n: u32) {
        loop {
            match self.try_wait_n(n.into()) {
                Ok(()) => return,
                Err(TryWaitError::Insufficient(wait)) => tokio::time::sleep(wait).await,
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// What it says of four permits where three fit.
pub(crate) fn too_large() -> String {
    let limiter = bucket(Law::per_second(3).burst(3));
    limiter.try_wait_n(4).expect_err("four do not fit").to_string()
}
