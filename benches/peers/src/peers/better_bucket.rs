//! `better-bucket`: a token bucket whose reservations tell how long to sleep.

use std::sync::Arc;
use std::time::Duration;

use better_bucket::Bucket;
use throttle_net::{Clock, ManualClock, SystemClock, TokioClock};

use super::{Clocked, Decide, Law, Wait};

fn with_clock<C: Clock>(law: Law, clock: C) -> Bucket<C> {
    let builder = Bucket::builder().capacity(law.burst).refill(law.permits, law.period).initial(law.burst);
    builder.build_with_clock(clock).expect("a sound quota")
}

pub(crate) fn bucket(law: Law) -> Bucket {
    with_clock(law, SystemClock::new())
}

/// On tokio's clock, which tests can pause.
pub(crate) fn bucket_on_tokio(law: Law) -> Bucket<TokioClock> {
    with_clock(law, TokioClock::new())
}

impl<C: Clock> Decide for Bucket<C> {
    #[inline]
    fn decide(&self) -> bool {
        self.try_acquire(1)
    }
}

pub(crate) struct Manual {
    bucket: Bucket<Arc<ManualClock>>,
    clock: Arc<ManualClock>,
}

pub(crate) fn manual(law: Law) -> Manual {
    let clock = Arc::new(ManualClock::new());
    Manual { bucket: with_clock(law, Arc::clone(&clock)), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.bucket.try_acquire(n)
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

impl<C: Clock + 'static> Wait for Bucket<C> {
    /// As its documentation has it: reserve, then sleep with an async timer.
    async fn wait(&self, n: u32) {
        let wait = self.reserve(n, Duration::MAX).expect("n within the burst");
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}
