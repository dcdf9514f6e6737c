//! What may pass: a rate and a burst.

use std::fmt;
use std::time::Duration;

use crate::interval::Interval;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// How much may pass: a rate (permits per period) and a burst (the most that can pass at one instant from rest).
///
/// A quota is a plain value. It does nothing until a limiter is built from it, or is given it by `set_quota`.
///
/// | written | means |
/// |---|---|
/// | `Quota::per_second(100)` | 100 per second. A [`TokenBucket`](crate::TokenBucket) lets 100 pass at once from rest, a [`Shaper`](crate::Shaper) one every 10 ms |
/// | `Quota::per_second(100).burst(20)` | 100 per second, at most 20 at one instant |
/// | `Quota::every(interval)?` | one per interval, never two at one instant |
/// | `Quota::new(980_000_000, ten_seconds)?` | any number of permits in any period |
/// | `Quota::per_second(0).burst(5)` | five permits, and none after them |
/// | `Quota::UNLIMITED` | everything passes |
///
/// # Exactness
///
/// The *emission interval* T is period / permits, kept as an exact fraction: 3 per second means one third of a second, and
/// a decision never rounds. Where T can't be kept exactly (see [`rate_loss_ppb`](Self::rate_loss_ppb)) it is rounded *up*
/// once, when the limiter is built: cost and capacity stay linear in n, so a burst is never short and only the rate is
/// lower, by a fraction that can be asked for.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// let mails = Quota::per_minute(5).burst(1);
/// let api = Quota::per_second(100).burst(20);
/// let backup = Quota::every(Duration::from_secs(3600))?;
/// let bytes = Quota::new(2_500_000, Duration::from_secs(30 * 24 * 3600))?;
/// assert_eq!(bytes.rate_loss_ppb(), 0);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    permits: u64,
    period: Duration,
    burst: Option<u64>,
    unlimited: bool,
}

impl Quota {
    /// Lets everything pass. Its burst has no meaning.
    pub const UNLIMITED: Self =
        Self { permits: u64::MAX, period: Duration::from_secs(1), burst: None, unlimited: true };

    /// The largest burst that a limiter can keep: 2^57 permits. A larger one counts as this.
    ///
    /// A limiter counts in one 64-bit word, which can't tell more permits apart. (Rates have a bound of the
    /// same kind, which [`rate_loss_ppb`](Self::rate_loss_ppb) tells.)
    pub const MAX_BURST: u64 = 1 << 57;

    /// Allows `permits` per second. 0 is allowed: the burst and nothing after it (for policing, say with
    /// [`burst`](Self::burst) how much that is; else it is 0 as well).
    #[must_use]
    pub const fn per_second(permits: u64) -> Self {
        Self::per(permits, 1)
    }

    /// Allows `permits` per minute of 60 seconds.
    #[must_use]
    pub const fn per_minute(permits: u64) -> Self {
        Self::per(permits, 60)
    }

    /// Allows `permits` per hour of 3,600 seconds.
    #[must_use]
    pub const fn per_hour(permits: u64) -> Self {
        Self::per(permits, HOUR)
    }

    /// Allows `permits` per day of 86,400 seconds.
    #[must_use]
    pub const fn per_day(permits: u64) -> Self {
        Self::per(permits, DAY)
    }

    const fn per(permits: u64, seconds: u64) -> Self {
        Self { permits, period: Duration::from_secs(seconds), burst: None, unlimited: false }
    }

    /// Allows one permit per `interval`, with a burst of 1.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroPeriod`] if `interval` is zero. For no limit at all there is [`Quota::UNLIMITED`].
    pub const fn every(interval: Duration) -> Result<Self, QuotaError> {
        Self::new(1, interval)
    }

    /// Allows `permits` per `period`. 0 permits are lawful: the burst and nothing after it.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroPeriod`] if `period` is zero.
    pub const fn new(permits: u64, period: Duration) -> Result<Self, QuotaError> {
        if period.is_zero() {
            return Err(QuotaError::ZeroPeriod { permits });
        }
        Ok(Self { permits, period, burst: None, unlimited: false })
    }

    /// Sets the burst: the most that can pass at one instant from rest, never one more or less.
    ///
    /// 0 admits nothing. Without a call of `burst` it is the permits per period for limiters that answer at once
    /// (policing), and 1 for a [`Shaper`](crate::Shaper). Above [`MAX_BURST`](Self::MAX_BURST) it counts as that.
    #[must_use]
    pub const fn burst(self, burst: u64) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// The permits per [`period`](Self::period).
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The period in which [`permits`](Self::permits) may pass.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Whether this is [`Quota::UNLIMITED`].
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.unlimited
    }

    /// Tells by how many parts per billion, at most, the rate that a [`TokenBucket`](crate::TokenBucket) keeps is lower
    /// than the one asked for. 0 means that it is exact.
    ///
    /// With T = num/den ns in lowest terms it is exact while den is at most 576,460,752 and burst * num at most 2^58: for whole
    /// nanoseconds that is a burst worth 9.1 years, for 2,004 per second (den 501) one worth 6.6 days. Beyond, T is rounded up
    /// to the finest power of two of a nanosecond that fits: by less than one such unit, or two where the unit is longer than
    /// a nanosecond and the burst above 1 (times are then read in whole units as well). Rates above 2^29 permits per
    /// nanosecond count as that.
    ///
    /// ```
    /// # use tollgate::Quota;
    /// assert_eq!(Quota::per_second(2004).rate_loss_ppb(), 0);
    /// assert_eq!(Quota::per_day(1).burst(1_000_000).rate_loss_ppb(), 1);
    /// ```
    #[must_use]
    pub fn rate_loss_ppb(&self) -> u64 {
        Interval::fit(self, self.policing_burst(), self.policing_burst()).loss_ppb(self)
    }

    /// The burst of a limiter that answers at once.
    pub(crate) fn policing_burst(&self) -> u64 {
        self.burst.unwrap_or(self.permits).min(Self::MAX_BURST)
    }

    /// The burst of a limiter that makes callers wait for their place.
    pub(crate) fn shaping_burst(&self) -> u64 {
        self.burst.unwrap_or(1).min(Self::MAX_BURST)
    }
}

/// Why a [`Quota`] could not be made, or is not one that a law takes. Says what was wrong and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The period is zero, so the rate would have no bound. [`Quota::UNLIMITED`] says that nothing is limited.
    ZeroPeriod {
        /// The permits that were asked for in that period.
        permits: u64,
    },
    /// The limit is too large for a [`SlidingCounter`](crate::SlidingCounter), which keeps two counts in one word. A
    /// [`TokenBucket`](crate::TokenBucket) takes every limit.
    BeyondSlidingCounter {
        /// The permits per window that were asked for.
        asked: u64,
        /// The most that it takes.
        most: u64,
    },
    /// The limit is too large for a [`SlidingLog`](crate::SlidingLog), which keeps the time of every permit. A
    /// [`SlidingCounter`](crate::SlidingCounter) takes 2^28, and a [`TokenBucket`](crate::TokenBucket) every limit.
    BeyondSlidingLog {
        /// The permits per window that were asked for.
        asked: u64,
        /// The most that it takes.
        most: u64,
    },
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod { permits } => write!(
                f,
                "{permits} permits per zero time: the period must be at least 1 ns (for no limit use Quota::UNLIMITED)"
            ),
            Self::BeyondSlidingCounter { asked, most } => write!(
                f,
                "{asked} permits per window: a sliding counter takes at most {most} (for larger limits use TokenBucket)"
            ),
            Self::BeyondSlidingLog { asked, most } => write!(
                f,
                "{asked} permits per window: a sliding log takes at most {most} (for larger limits use SlidingCounter up to 2^28, \
                 else TokenBucket)"
            ),
        }
    }
}

impl std::error::Error for QuotaError {}
