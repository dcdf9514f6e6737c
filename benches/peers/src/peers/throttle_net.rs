//! `throttle-net`: a bucket whose waiters book their slot on arrival, and a queue in front of it.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use throttle_net::{Clock, Eviction, ManualClock, PerKey, Queue, SystemClock, Throttle, TokioClock};
use tokio::runtime::Builder;

use super::{Clocked, Decide, DecideKey, Law, Wait};

fn with_clock<C: Clock>(law: Law, clock: C) -> Throttle<C> {
    Throttle::builder().rate(law.permits, law.period).burst(law.burst).clock(clock).try_build().expect("a sound quota")
}

pub(crate) fn throttle(law: Law) -> Throttle {
    with_clock(law, SystemClock::new())
}

/// On tokio's clock, which tests can pause.
pub(crate) fn throttle_on_tokio(law: Law) -> Throttle<TokioClock> {
    with_clock(law, TokioClock::new())
}

impl<C: Clock> Decide for Throttle<C> {
    #[inline]
    fn decide(&self) -> bool {
        self.try_acquire()
    }
}

pub(crate) struct Manual {
    throttle: Throttle<Arc<ManualClock>>,
    clock: Arc<ManualClock>,
}

pub(crate) fn manual(law: Law) -> Manual {
    let clock = Arc::new(ManualClock::new());
    Manual { throttle: with_clock(law, Arc::clone(&clock)), clock }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.throttle.try_acquire_with_cost(n)
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

impl<C: Clock + 'static> Wait for Throttle<C> {
    async fn wait(&self, n: u32) {
        self.acquire_with_cost(n).await.expect("n within the burst");
    }
}

/// Its queue, one key, one priority, and room for all.
pub(crate) struct Queued<C: Clock>(Queue<Throttle<C>, (), C>);

pub(crate) fn queue(law: Law) -> Queued<SystemClock> {
    Queued(Queue::builder().capacity(1 << 20).build(throttle(law)))
}

/// On tokio's clock, which tests can pause.
pub(crate) fn queue_on_tokio(law: Law) -> Queued<TokioClock> {
    Queued(Queue::builder().capacity(1 << 20).build(throttle_on_tokio(law)).with_clock(TokioClock::new()))
}

impl<C: Clock> Queued<C> {
    /// Waits for one permit until the deadline; true if it was granted.
    pub(crate) async fn within(&self, deadline: Duration) -> bool {
        self.0.acquire((), 0, Some(deadline)).await.is_ok()
    }
}

impl<C: Clock + 'static> Wait for Queued<C> {
    async fn wait(&self, n: u32) {
        self.0.acquire_with_cost((), 0, None, n).await.expect("room in the queue and n within the burst");
    }
}

/// A table for so many keys. A quarter more, so that none of its shards overflows.
pub(crate) fn keyed<K: Hash + Eq + Clone + Send + Sync + 'static>(law: Law, keys: usize) -> PerKey<K> {
    let table = PerKey::builder().rate(law.permits, law.period).burst(law.burst);
    table.eviction(Eviction::capacity(keys + keys / 4)).try_build().expect("a sound quota")
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> DecideKey<K> for PerKey<K> {
    #[inline]
    fn decide(&self, key: &K) -> bool {
        self.try_acquire(key)
    }
}

/// What it says of four permits where three fit.
pub(crate) fn too_large() -> String {
    let throttle = throttle(Law::per_second(3).burst(3));
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(throttle.acquire_with_cost(4)).expect_err("four do not fit").to_string()
}
