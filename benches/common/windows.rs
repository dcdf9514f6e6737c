//! Quotas for the laws that count windows.

use std::time::Duration;

use tollgate::Quota;

/// Windows of which no benchmark uses up one, and that roll over while it runs.
pub(crate) fn long() -> Quota {
    Quota::new(1 << 26, Duration::from_millis(100)).expect("no zero period")
}

/// The same for a log, whose ring is small enough to stay in a cache.
pub(crate) fn short() -> Quota {
    Quota::new(1 << 12, Duration::from_micros(10)).expect("no zero period")
}
