//! The limiters, one a file, each used as its own documentation says is fastest, behind a few small traits.

pub(crate) mod better_bucket;
pub(crate) mod floor;
pub(crate) mod governor;
pub(crate) mod leaky_bucket;
pub(crate) mod mutex;
pub(crate) mod rate_net;
pub(crate) mod ratelimit;
pub(crate) mod semaphore;
pub(crate) mod throttle_net;
pub(crate) mod throttlecrab;
pub(crate) mod tollgate;
pub(crate) mod trypema;

use std::time::Duration;

/// What all limiters of a case are set to: `permits` a period, and a burst that is there at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Law {
    pub(crate) permits: u32,
    pub(crate) period: Duration,
    pub(crate) burst: u32,
}

impl Law {
    pub(crate) const fn per_second(permits: u32) -> Self {
        Self { permits, period: Duration::from_secs(1), burst: 1 }
    }

    pub(crate) const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// The time from one permit to the next, rounded down to the nanosecond.
    pub(crate) fn interval(self) -> Duration {
        self.period / self.permits
    }
}

/// Says yes or no at once, by its own clock.
pub(crate) trait Decide: Send + Sync {
    fn decide(&self) -> bool;
}

/// Says yes or no for a key, by its own clock.
pub(crate) trait DecideKey<K>: Send + Sync {
    fn decide(&self, key: &K) -> bool;
}

/// Says yes or no on a clock that only the caller moves.
pub(crate) trait Clocked {
    fn take(&self, n: u32) -> bool;
    fn advance(&self, span: Duration);
}

/// Makes tasks wait for their permits. What it can't grant is a panic: the suites ask for nothing that is refused.
pub(crate) trait Wait: Send + Sync + 'static {
    fn wait(&self, n: u32) -> impl Future<Output = ()> + Send;
}
