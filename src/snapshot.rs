//! A look at a limiter.

use std::time::Duration;

/// What a limiter would answer at one instant: one consistent value, taken without a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The most that can ever be admitted at once; `u64::MAX` if unlimited.
    pub limit: u64,
    /// The largest n that would be admitted at that instant, never above `limit`.
    pub remaining: u64,
    /// The time until one permit is there: zero if one is, `None` if never.
    pub retry_after: Option<Duration>,
    /// The time until the full `limit` is there: zero if it is, `None` if never (rate 0).
    pub reset_after: Option<Duration>,
}
