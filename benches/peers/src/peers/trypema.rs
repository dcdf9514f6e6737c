//! `trypema`: a sliding window of buckets per key. It has no waiting, and no bucket law: its limit is the burst per period.

use std::sync::Arc;

use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::{Decide, DecideKey, Law};

pub(crate) struct Absolute {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

/// At most as many as the law grants in a period, in windows as long as the period.
pub(crate) fn absolute(law: Law) -> Absolute {
    let seconds = law.period.as_secs();
    let provider = LocalRateLimiterProvider::builder()
        .window_size(WindowSize::seconds_or_panic(seconds))
        .bucket_size(BucketSize::milliseconds_or_panic(10))
        .disable_cleanup()
        .build()
        .expect("a sound configuration");
    let rate = RateLimit::per_second_or_panic(f64::from(law.permits) / law.period.as_secs_f64());
    Absolute { provider, rate }
}

impl Decide for Absolute {
    #[inline]
    fn decide(&self) -> bool {
        matches!(self.provider.absolute().inc("key", &self.rate, 1), RateLimitDecision::Allowed)
    }
}

/// Its keys are strings.
impl DecideKey<String> for Absolute {
    #[inline]
    fn decide(&self, key: &String) -> bool {
        matches!(self.provider.absolute().inc(key, &self.rate, 1), RateLimitDecision::Allowed)
    }
}
