//! An instant as a number of nanoseconds, and its checked conversions.

use std::fmt;
use std::time::Duration;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_MICRO: u64 = 1_000;

/// An instant on a clock: nanoseconds since the clock's origin.
///
/// Values of different clocks have different origins and mean nothing to each other. Every `u64` is a valid instant. The
/// last one, [`Nanos::MAX`], lies 584 years after the origin; all arithmetic here saturates at the two ends and never panics.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::Nanos;
///
/// let start = Nanos::from_millis(250);
/// let end = start.saturating_add(Duration::from_millis(750));
/// assert_eq!(end, Nanos::from_secs(1));
/// assert_eq!(end.saturating_since(start), Duration::from_millis(750));
/// assert_eq!(end.to_string(), "1s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// The last instant that can be told, 584 years after the origin.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes an instant of `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Makes an instant of `secs` seconds after the origin; more than 584 years count as [`Nanos::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// Makes an instant of `millis` milliseconds after the origin; more than 584 years count as [`Nanos::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// Makes an instant of `micros` microseconds after the origin; more than 584 years count as [`Nanos::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(NANOS_PER_MICRO))
    }

    /// Returns the instant `span` later, [`Nanos::MAX`] at the latest.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(span)))
    }

    /// Returns the instant `span` earlier, [`Nanos::ZERO`] at the earliest.
    #[must_use]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_of(span)))
    }

    /// Returns the time from `earlier` to this instant, and zero when `earlier` is in fact the later one.
    #[must_use]
    pub const fn saturating_since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The whole length of `span` in nanoseconds, at most `u64::MAX`.
///
/// The seconds saturate by themselves from 18,446,744,074 on; one second less, and only the last addition can.
const fn nanos_of(span: Duration) -> u64 {
    span.as_secs().saturating_mul(NANOS_PER_SEC).saturating_add(span.subsec_nanos() as u64)
}

/// `nanos` nanoseconds as a span, [`Duration::MAX`] if there are more.
pub(crate) fn span(nanos: u128) -> Duration {
    if let Ok(nanos) = u64::try_from(nanos) {
        return Duration::from_nanos(nanos);
    }
    let per_sec = u128::from(NANOS_PER_SEC);
    let secs = u64::try_from(nanos.checked_div(per_sec).unwrap_or(0));
    let rest = u32::try_from(nanos.checked_rem(per_sec).unwrap_or(0)).unwrap_or(0);
    secs.map_or(Duration::MAX, |secs| Duration::new(secs, rest))
}

impl From<u64> for Nanos {
    /// Takes `nanos` as nanoseconds since the origin.
    fn from(nanos: u64) -> Self {
        Self(nanos)
    }
}

impl From<Duration> for Nanos {
    /// Takes `since_origin` as the time since the origin; more than 584 years count as [`Nanos::MAX`].
    fn from(since_origin: Duration) -> Self {
        Self(nanos_of(since_origin))
    }
}

impl fmt::Display for Nanos {
    /// Writes the time since the origin like a [`Duration`], for example `1.5s` or `250ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_multiply_and_saturate() {
        fn check(from: fn(u64) -> Nanos, unit: u64) {
            let last = u64::MAX / unit;
            assert_eq!(from(0), Nanos::ZERO);
            assert_eq!(from(1).get(), unit);
            assert_eq!(Some(from(last).get()), last.checked_mul(unit));
            assert_eq!(from(last.saturating_add(1)), Nanos::MAX);
            assert_eq!(from(u64::MAX), Nanos::MAX);
        }
        check(Nanos::from_secs, NANOS_PER_SEC);
        check(Nanos::from_millis, NANOS_PER_MILLI);
        check(Nanos::from_micros, NANOS_PER_MICRO);
    }

    #[test]
    fn a_duration_converts_exactly_up_to_the_last_instant() {
        let last = Duration::from_nanos(u64::MAX);
        let cases = [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::new(1, 1), 1_000_000_001),
            (last.saturating_sub(Duration::from_nanos(1)), u64::MAX - 1),
            (last, u64::MAX),
            (last.saturating_add(Duration::from_nanos(1)), u64::MAX),
            (Duration::from_secs(18_446_744_074), u64::MAX),
            (Duration::MAX, u64::MAX),
        ];
        for (span, nanos) in cases {
            assert_eq!(Nanos::from(span), Nanos::new(nanos), "{span:?}");
        }
        assert_eq!(Nanos::from(7_u64).get(), 7);
    }

    #[test]
    fn adding_and_subtracting_stop_at_the_ends() {
        let one = Duration::from_nanos(1);
        assert_eq!(Nanos::ZERO.saturating_sub(one), Nanos::ZERO);
        assert_eq!(Nanos::new(1).saturating_sub(one), Nanos::ZERO);
        assert_eq!(Nanos::MAX.saturating_sub(Duration::MAX), Nanos::ZERO);
        assert_eq!(Nanos::MAX.saturating_add(one), Nanos::MAX);
        assert_eq!(Nanos::new(u64::MAX - 1).saturating_add(one), Nanos::MAX);
        assert_eq!(Nanos::ZERO.saturating_add(Duration::MAX), Nanos::MAX);
        assert_eq!(Nanos::new(5).saturating_add(Duration::ZERO), Nanos::new(5));
    }

    #[test]
    fn the_time_since_a_later_instant_is_zero() {
        assert_eq!(Nanos::new(5).saturating_since(Nanos::new(3)), Duration::from_nanos(2));
        assert_eq!(Nanos::new(3).saturating_since(Nanos::new(5)), Duration::ZERO);
        assert_eq!(Nanos::MAX.saturating_since(Nanos::ZERO), Duration::from_nanos(u64::MAX));
        assert_eq!(Nanos::ZERO.saturating_since(Nanos::MAX), Duration::ZERO);
    }

    #[test]
    fn a_span_is_exact_up_to_the_longest_duration() {
        let longest = Duration::MAX.as_nanos();
        for nanos in [0, 1, u128::from(u64::MAX), u128::from(u64::MAX) + 1, longest - 1, longest] {
            assert_eq!(span(nanos).as_nanos(), nanos);
        }
        assert_eq!(span(longest + 1), Duration::MAX);
        assert_eq!(span(u128::MAX), Duration::MAX);
    }

    #[test]
    fn it_reads_like_a_duration() {
        assert_eq!(Nanos::ZERO.to_string(), "0ns");
        assert_eq!(Nanos::from_millis(1_500).to_string(), "1.5s");
        assert_eq!(Nanos::MAX.to_string(), "18446744073.709551615s");
    }
}
