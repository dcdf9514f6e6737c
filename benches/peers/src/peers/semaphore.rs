//! tokio's `Semaphore`, refilled by a task as its documentation shows for a token bucket. By itself it has no clock.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::{Decide, Law, Wait};

/// As many permits as the burst, and nothing that brings them back.
pub(crate) struct Permits(Semaphore);

pub(crate) fn permits(law: Law) -> Permits {
    Permits(Semaphore::new(law.burst as usize))
}

impl Decide for Permits {
    #[inline]
    fn decide(&self) -> bool {
        self.0.try_acquire().map(|permit| permit.forget()).is_ok()
    }
}

pub(crate) struct Refilled {
    permits: Arc<Semaphore>,
    refill: JoinHandle<()>,
}

/// Must be called within a runtime.
pub(crate) fn refilled(law: Law) -> Refilled {
    let capacity = law.burst as usize;
    let permits = Arc::new(Semaphore::new(capacity));
    let mut interval = interval(law.interval());
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let refill = tokio::spawn({
        let permits = Arc::clone(&permits);
        async move {
            loop {
                interval.tick().await;
                if permits.available_permits() < capacity {
                    permits.add_permits(1);
                }
            }
        }
    });
    Refilled { permits, refill }
}

impl Wait for Refilled {
    async fn wait(&self, n: u32) {
        self.permits.acquire_many(n).await.expect("nobody closes it").forget();
    }
}

impl Drop for Refilled {
    fn drop(&mut self) {
        self.refill.abort();
    }
}
