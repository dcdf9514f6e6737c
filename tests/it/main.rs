//! Integration tests: one module a subject.
#![allow(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use std::time::Duration;

use tollgate::{ManualClock, Quota, TokenBucket};

mod bucket_changes;
mod bucket_clock;
mod bucket_control;
mod bucket_extremes;
mod bucket_flaws;
mod bucket_pauses;
mod bucket_rates;
mod bucket_refusals;
mod bucket_threads;
mod bucket_traces;
mod differential;
mod keyed;
#[cfg(feature = "tokio")]
mod keyed_runtimes;
mod keyed_waiting;
mod keyed_waiting_changes;
mod keyed_waiting_random;
mod keyed_waiting_reports;
mod keyed_waiting_threads;
mod laws;
mod laws_seeds;
mod leaky_queue;
mod limiter_types;
mod over_bucket;
mod over_log;
#[cfg(feature = "tokio")]
mod over_paused;
mod over_random;
mod over_windows;
mod reference;
mod shaper_absent;
mod shaper_blocking;
mod shaper_cancel;
mod shaper_deadline;
mod shaper_edges;
mod shaper_lateness;
mod shaper_order;
mod shaper_pause;
mod shaper_polls;
mod shaper_quota;
mod shaper_random;
mod shaper_rates;
mod shaper_reference;
mod shaper_refund;
#[cfg(feature = "tokio")]
mod shaper_runtimes;
mod shaper_threads;
mod shaper_types;
#[cfg(feature = "tokio")]
mod simulation;
mod sliding_log;
mod tasks;
mod window_changes;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const NANOSECOND: Duration = Duration::from_nanos(1);

/// A full bucket whose clock stands at 0.
fn bucket(permits: u64, period: Duration, burst: u64) -> TokenBucket<ManualClock> {
    TokenBucket::with_clock(quota(permits, period, burst), ManualClock::new())
}

fn quota(permits: u64, period: Duration, burst: u64) -> Quota {
    Quota::new(permits, period).expect("the period is not zero").burst(burst)
}

/// Takes a permit at `now`, or after exactly the wait that is told; the time at which it came.
fn take_when_due(bucket: &TokenBucket<ManualClock>, now: Duration) -> Duration {
    let Err(refused) = bucket.try_acquire_at(now) else { return now };
    let due = now + refused.retry_after().expect("a rate above 0");
    assert_eq!(bucket.try_acquire_at(due), Ok(()), "after the wait told");
    due
}
