//! The laws with a largest limit: what makes one of them, or changes its quota, says so.

use super::{LimiterBuilder, SlidingCounter, SlidingLog};
use crate::algorithm::sealed::Algorithm as _;
use crate::algorithm::{SlidingCounterLaw, SlidingLogLaw};
use crate::clock::{Clock, DefaultClock};
use crate::quota::{Quota, QuotaError};
use crate::time::Nanos;

impl SlidingCounter {
    /// The largest limit: 2^28 permits per window. One word holds both counts.
    pub const MAX_LIMIT: u64 = SlidingCounterLaw::MAX_LIMIT;

    /// Makes a limiter at rest, the whole limit there, on the [`DefaultClock`].
    ///
    /// # Errors
    ///
    /// [`QuotaError::BeyondSlidingCounter`] if the limit is above [`MAX_LIMIT`](Self::MAX_LIMIT).
    pub fn new(quota: Quota) -> Result<Self, QuotaError> {
        Self::with_clock(quota, DefaultClock)
    }
}

impl<C: Clock> SlidingCounter<C> {
    /// Makes a limiter at rest on a clock of the caller's.
    ///
    /// # Errors
    ///
    /// As [`new`](SlidingCounter::new).
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, QuotaError> {
        SlidingCounterLaw::check(&quota)?;
        Ok(Self::at_rest(quota, clock))
    }

    /// Changes the quota of the live limiter, as [`Limiter::set_quota`](super::Limiter::set_quota) says for windows.
    ///
    /// # Errors
    ///
    /// As [`new`](SlidingCounter::new); then nothing has changed.
    pub fn set_quota(&self, quota: Quota) -> Result<(), QuotaError> {
        self.set_quota_at(quota, self.clock.now())
    }

    /// [`set_quota`](Self::set_quota) at a given time.
    ///
    /// # Errors
    ///
    /// As [`set_quota`](Self::set_quota).
    pub fn set_quota_at(&self, quota: Quota, now: impl Into<Nanos>) -> Result<(), QuotaError> {
        SlidingCounterLaw::check(&quota)?;
        self.algorithm.set_quota(quota, now.into());
        Ok(())
    }
}

impl<C: Clock> LimiterBuilder<SlidingCounterLaw, C> {
    /// Builds the limiter.
    ///
    /// # Errors
    ///
    /// As [`SlidingCounter::new`](SlidingCounter::new).
    pub fn build(self) -> Result<SlidingCounter<C>, QuotaError> {
        SlidingCounterLaw::check(&self.quota)?;
        Ok(self.build_lawful())
    }
}

impl SlidingLog {
    /// The largest limit: 2^20 permits per window. The time of each is kept.
    pub const MAX_LIMIT: u64 = SlidingLogLaw::MAX_LIMIT;

    /// Makes a limiter at rest, the whole limit there, on the [`DefaultClock`].
    ///
    /// # Errors
    ///
    /// [`QuotaError::BeyondSlidingLog`] if the limit is above [`MAX_LIMIT`](Self::MAX_LIMIT).
    pub fn new(quota: Quota) -> Result<Self, QuotaError> {
        Self::with_clock(quota, DefaultClock)
    }
}

impl<C: Clock> SlidingLog<C> {
    /// Makes a limiter at rest on a clock of the caller's.
    ///
    /// # Errors
    ///
    /// As [`new`](SlidingLog::new).
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, QuotaError> {
        SlidingLogLaw::check(&quota)?;
        Ok(Self::at_rest(quota, clock))
    }

    /// Changes the quota of the live limiter, as [`Limiter::set_quota`](super::Limiter::set_quota) says for a log.
    ///
    /// # Errors
    ///
    /// As [`new`](SlidingLog::new); then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SlidingLog};
    ///
    /// let logins = SlidingLog::new(Quota::per_minute(5))?;
    /// logins.set_quota(Quota::per_minute(10))?;
    /// assert_eq!(logins.available(), 10);
    /// assert!(logins.set_quota(Quota::per_minute(SlidingLog::MAX_LIMIT + 1)).is_err());
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) -> Result<(), QuotaError> {
        self.set_quota_at(quota, self.clock.now())
    }

    /// [`set_quota`](Self::set_quota) at a given time.
    ///
    /// # Errors
    ///
    /// As [`set_quota`](Self::set_quota).
    pub fn set_quota_at(&self, quota: Quota, now: impl Into<Nanos>) -> Result<(), QuotaError> {
        SlidingLogLaw::check(&quota)?;
        self.algorithm.set_quota(quota, now.into());
        Ok(())
    }
}

impl<C: Clock> LimiterBuilder<SlidingLogLaw, C> {
    /// Builds the limiter.
    ///
    /// # Errors
    ///
    /// As [`SlidingLog::new`](SlidingLog::new).
    pub fn build(self) -> Result<SlidingLog<C>, QuotaError> {
        SlidingLogLaw::check(&self.quota)?;
        Ok(self.build_lawful())
    }
}
