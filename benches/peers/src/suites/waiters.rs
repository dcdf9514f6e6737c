//! All that make tasks wait, for the suites that measure it.

use std::pin::pin;

use crate::peers::{
    Law, Wait, better_bucket, governor, leaky_bucket, rate_net, ratelimit, semaphore, throttle_net, tollgate,
};
use crate::rounds::Contender;

/// A measurement of anything that makes tasks wait.
pub(crate) trait OfWaiters: Clone + Send + Sync + 'static {
    type Found: Send + 'static;

    /// Measures the limiter that `make` builds; it must be called within a runtime.
    fn of<W: Wait>(&self, make: fn(Law) -> W) -> Self::Found;
}

/// That measurement of every system that has waits.
pub(crate) fn contenders<M: OfWaiters>(measure: &M) -> Vec<Contender<M::Found>> {
    vec![
        contender("tollgate", measure, tollgate::shaper),
        contender("tollgate (precise timer)", measure, tollgate::precise),
        contender("governor", measure, governor::bucket),
        contender("throttle-net", measure, throttle_net::throttle),
        contender("throttle-net (Queue)", measure, throttle_net::queue),
        contender("rate-net", measure, rate_net::direct),
        contender("better-bucket (reserve)", measure, better_bucket::bucket),
        contender("leaky-bucket", measure, leaky_bucket::limiter),
        contender("ratelimit (sleep and retry)", measure, ratelimit::bucket),
        contender("tokio Semaphore (refilled)", measure, semaphore::refilled),
    ]
}

pub(crate) fn contender<M: OfWaiters, W: Wait>(
    system: &'static str,
    measure: &M,
    make: fn(Law) -> W,
) -> Contender<M::Found> {
    let measure = measure.clone();
    Contender::new(system, move || measure.of(make))
}

/// Waits for `n` permits and counts how often the task is polled for it.
pub(crate) async fn counting_polls(limiter: &impl Wait, n: u32) -> u32 {
    let (mut wait, mut polls) = (pin!(limiter.wait(n)), 0);
    std::future::poll_fn(|cx| {
        polls += 1;
        wait.as_mut().poll(cx)
    })
    .await;
    polls
}
