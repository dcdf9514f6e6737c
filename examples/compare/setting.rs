//! What the laws are set to.

use std::fmt;
use std::time::Duration;

use tollgate::{Quota, QuotaError};

use crate::seconds::short;

/// A limit per window for the window laws; a rate and a capacity for the bucket and the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) limit: u64,
    /// In nanoseconds.
    pub(crate) window: u64,
    pub(crate) capacity: u64,
    /// Billionths of a permit per second.
    pub(crate) rate: u64,
}

impl Setting {
    pub(crate) fn windows(self) -> Result<Quota, QuotaError> {
        Quota::new(self.limit, Duration::from_nanos(self.window))
    }

    /// The rate at which the limit comes back, rounded up to a billionth.
    pub(crate) fn rate_of_windows(self) -> u64 {
        let rate = (u128::from(self.limit) * 1_000_000_000_000_000_000).div_ceil(u128::from(self.window));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    pub(crate) fn bucket(self) -> Result<Quota, QuotaError> {
        // A billionth of a permit a second is a permit in a billion seconds.
        Ok(Quota::new(self.rate, Duration::from_secs(1_000_000_000))?.burst(self.capacity))
    }
}

/// What the window laws are set to, in the words of the article.
pub(crate) struct Windows(pub(crate) Setting);

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {} per {} s", self.0.limit, short(self.0.window))
    }
}

/// What the bucket and the queue are set to.
pub(crate) struct Bucket(pub(crate) Setting);

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capacity {}, rate {}/s", self.0.capacity, short(self.0.rate))
    }
}
