//! The emission interval T in the unit of a word: chosen once, when a quota is put to use.

use crate::quota::Quota;

/// Width of the time field of a word.
pub(crate) const FIELD_BITS: u32 = 59;

/// The longest debt that a word may hold: half of its time field, so that the other half is left for time to pass.
const LONGEST_DEBT: u128 = 1 << (FIELD_BITS - 1);

/// The finest unit is 2^-29 ns: the field then still holds 2^30 ns, more than a second.
const FINEST: i32 = -29;

/// The largest den of an exact unit of 1/den ns, for the same reason: the field then still holds a second.
const LARGEST_DEN: u128 = (1 << FIELD_BITS) / 1_000_000_000;

/// The finest unit of a table of keys is 2^-7 ns: the field then spans 2^52 ns, which is 52 days. Moving the origin of all its keys
/// takes a version of the quota, so it must be seldom.
const FINEST_FOR_TABLE: i32 = -7;

/// The largest den of an exact unit in a table, for the same reason.
const LARGEST_DEN_FOR_TABLE: u128 = 1 << FINEST_FOR_TABLE.unsigned_abs();

/// T as a whole number of ticks, and what a tick is.
///
/// With T = num/den ns in lowest terms a tick is 1/den ns, so T, n*T and burst*T are whole numbers and nothing is ever
/// rounded. Where that does not fit the word, a tick is the finest power of two of a nanosecond that does, and T is
/// rounded up here, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Ticks per nanosecond; 0 if time gives nothing (rate 0) or takes nothing (unlimited).
    pub(crate) mul: u32,
    /// A tick is 2^shift ns if that is longer than a nanosecond; then `mul` is 1.
    pub(crate) shift: u8,
    /// T in ticks: what one permit costs; 0 if unlimited.
    pub(crate) ticks: u64,
    /// Whether the instant of a grant from rest is rounded up to a tick (it is rounded down otherwise; both are the same
    /// unless a tick is longer than a nanosecond).
    pub(crate) round_up: bool,
}

impl Interval {
    /// Chooses the unit for a debt of up to `span` permits, which is at most [`Quota::MAX_BURST`].
    pub(crate) fn fit(quota: &Quota, burst: u64, span: u64) -> Self {
        Self::fit_to(quota, burst, span, LARGEST_DEN, FINEST)
    }

    /// Chooses the unit for all keys of a table. It is exact if T has a den of at most 128; else a tick is the finest power of two
    /// of a nanosecond that fits, 2^-7 at the finest, and T is rounded up, once. The field spans 52 days or more.
    pub(crate) fn fit_for_table(quota: &Quota, burst: u64, span: u64) -> Self {
        Self::fit_to(quota, burst, span, LARGEST_DEN_FOR_TABLE, FINEST_FOR_TABLE)
    }

    fn fit_to(quota: &Quota, burst: u64, span: u64, largest_den: u128, finest: i32) -> Self {
        if quota.is_unlimited() {
            return Self { mul: 0, shift: 0, ticks: 0, round_up: false };
        }
        if quota.permits() == 0 {
            // No time tells the unit, so it is as fine as fits: what was left of another quota may be a fraction.
            return Self {
                mul: 0,
                shift: 0,
                ticks: to_u64(LONGEST_DEBT.checked_div(span.into()).unwrap_or(1)),
                round_up: false,
            };
        }
        let exact = Exact::of(quota);
        let fits = |ticks: u128| ticks.checked_mul(u128::from(span.max(1))).is_some_and(|debt| debt <= LONGEST_DEBT);
        if exact.den <= largest_den && fits(exact.num) {
            return Self { mul: to_u32(exact.den), shift: 0, ticks: to_u64(exact.num), round_up: false };
        }
        // The search ends: as the unit grows T falls to two ticks at most, and twice the largest span fits.
        let mut exponent = finest;
        while !fits(exact.ticks(exponent, burst)) {
            exponent = exponent.saturating_add(1);
        }
        Self {
            mul: 1 << exponent.min(0).unsigned_abs(),
            shift: u8::try_from(exponent.max(0)).unwrap_or(u8::MAX),
            ticks: to_u64(exact.ticks(exponent, burst)),
            round_up: burst <= 1,
        }
    }

    /// The most permits whose cost a word can hold as a debt; everything if they cost nothing.
    pub(crate) fn most(&self) -> u64 {
        LONGEST_DEBT.checked_div(self.ticks.into()).map_or(u64::MAX, to_u64)
    }

    /// By how many parts per billion, at most, 1/T is below the rate of `quota`.
    pub(crate) fn loss_ppb(&self, quota: &Quota) -> u64 {
        if self.mul == 0 {
            return 0;
        }
        let Exact { num, den } = Exact::of(quota);
        let kept = u128::from(self.ticks).checked_mul(den).and_then(|kept| {
            let unit = 1u128.checked_shl(u32::from(self.shift))?;
            kept.checked_mul(unit)
        });
        if num.checked_mul(u128::from(self.mul)) == kept && kept.is_some() {
            return 0;
        }
        let ticks_too_long = if self.shift > 0 && !self.round_up { 2 * BILLION } else { BILLION };
        ticks_too_long.div_ceil(self.ticks.max(1)).min(BILLION)
    }
}

const BILLION: u64 = 1_000_000_000;

/// T = num/den ns in lowest terms. `num` is below 2^94, `den` below 2^64.
struct Exact {
    num: u128,
    den: u128,
}

impl Exact {
    /// For a quota with a rate above 0.
    fn of(quota: &Quota) -> Self {
        let (period, permits) = (quota.period().as_nanos(), u128::from(quota.permits()).max(1));
        let (mut a, mut b) = (period, permits);
        while b != 0 {
            (a, b) = (b, a.checked_rem(b).unwrap_or(0));
        }
        let divisor = a;
        let divided = |value: u128| value.checked_div(divisor).unwrap_or(value);
        Self { num: divided(period), den: divided(permits) }
    }

    /// T in units of 2^exponent ns, rounded up.
    ///
    /// A unit longer than a nanosecond also makes times coarse: a span between two grants may be read up to one unit, less
    /// a nanosecond, too long. With a burst of 1 the instant of a grant is rounded up instead. With more, where the full
    /// burst must pass at one instant, T is made that much longer, so that spans in order of time still keep the law.
    fn ticks(&self, exponent: i32, burst: u64) -> u128 {
        let size = exponent.unsigned_abs();
        if exponent <= 0 {
            return self.num.checked_shl(size).unwrap_or(u128::MAX).div_ceil(self.den);
        }
        let in_units = |num: u128| {
            let rest = u128::from(num.trailing_zeros() < size && num != 0);
            num.checked_shr(size).unwrap_or(0).saturating_add(rest).div_ceil(self.den)
        };
        if burst <= 1 {
            in_units(self.num).max(1)
        } else {
            in_units(self.num.saturating_sub(self.den)).saturating_add(1)
        }
    }
}

// Nothing is cut below: `fit` has bounded every value. One beyond the bound would be the maximum, which refuses.

fn to_u32(value: u128) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn to_u64(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fit(permits: u64, period: Duration, burst: u64) -> Interval {
        Interval::fit(&Quota::new(permits, period).unwrap(), burst, burst)
    }

    #[test]
    fn ordinary_quotas_are_exact() {
        for (permits, secs, den) in
            [(3, 1, 3), (2004, 1, 501), (980_000_000, 10, 49), (2_500_000, 2_592_000, 1), (1, 1, 1)]
        {
            let interval = fit(permits, Duration::from_secs(secs), permits);
            assert_eq!((interval.mul, interval.shift, interval.round_up), (den, 0, false), "{permits} per {secs} s");
            assert_eq!(
                u128::from(interval.ticks) * u128::from(permits),
                u128::from(secs) * 1_000_000_000 * u128::from(den)
            );
            assert_eq!(interval.loss_ppb(&Quota::new(permits, Duration::from_secs(secs)).unwrap()), 0);
        }
    }

    #[test]
    fn every_extreme_fits_with_the_finest_unit_and_never_a_shorter_interval() {
        let periods = [Duration::from_nanos(1), Duration::from_secs(1), Duration::from_secs(u64::MAX), Duration::MAX];
        let counts = [1, 2, 3, 1_000_003, (1 << 57) - 1, 1 << 57, u64::MAX];
        for period in periods {
            for permits in counts {
                for burst in [0, 1, 2, 1_000, Quota::MAX_BURST] {
                    let interval = fit(permits, period, burst);
                    let debt = u128::from(interval.ticks) * u128::from(burst.max(1));
                    assert!(debt <= LONGEST_DEBT, "{permits} per {period:?} burst {burst}");
                    // T in the word >= T asked for: ticks * 2^shift / mul >= period / permits, in 2^-64 units where it fits.
                    let Exact { num, den } = Exact::of(&Quota::new(permits, period).unwrap());
                    let kept = u128::from(interval.ticks).checked_mul(den).and_then(|kept| {
                        1u128.checked_shl(interval.shift.into()).and_then(|unit| kept.checked_mul(unit))
                    });
                    if let (Some(kept), Some(asked)) = (kept, num.checked_mul(interval.mul.into())) {
                        assert!(kept >= asked, "{permits} per {period:?} burst {burst}: {interval:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_table_is_exact_up_to_128_parts_and_its_field_spans_52_days() {
        let table = |quota: &Quota, burst| Interval::fit_for_table(quota, burst, burst);
        for permits in 1..=1_000 {
            let quota = Quota::per_second(permits);
            let interval = table(&quota, 10);
            assert_eq!(interval.loss_ppb(&quota) == 0, Exact::of(&quota).den <= 128, "{permits} per second");
            assert!(interval.mul <= 128);
        }
        for period in [1, 1_000_000_007, u64::MAX] {
            for permits in [1, 129, 131, 1_000_003, u64::MAX] {
                for burst in [0, 1, 2, 1_000, Quota::MAX_BURST] {
                    let quota = Quota::new(permits, Duration::from_nanos(period)).unwrap();
                    let interval = table(&quota, burst);
                    let unit = u128::from(interval.mul);
                    let days = ((1 << FIELD_BITS) / unit) << interval.shift;
                    assert!(days >= 52 * 86_400_000_000_000, "{quota:?} burst {burst}");
                    // ticks * 2^shift / mul >= period / permits.
                    let kept = (u128::from(interval.ticks) << interval.shift).saturating_mul(u128::from(permits));
                    assert!(kept >= u128::from(period) * unit, "{quota:?} burst {burst}: {interval:?}");
                }
            }
        }
    }

    #[test]
    fn the_loss_is_told() {
        assert_eq!([1, 2].map(|burst| Quota::per_second(1_000_000_007).burst(burst).rate_loss_ppb()), [2, 2]);
        // 214,577 ticks of 2^24 ns an hour, and one more since times are read in them.
        assert_eq!(Quota::per_hour(1).burst(1 << 40).rate_loss_ppb(), 2_000_000_000_u64.div_ceil(214_578));
        assert_eq!(Quota::per_second(u64::MAX).rate_loss_ppb(), BILLION);
        assert_eq!(Quota::per_second(0).rate_loss_ppb(), 0);
        assert_eq!(Quota::UNLIMITED.rate_loss_ppb(), 0);
    }

    #[test]
    fn an_interval_is_rounded_up_to_a_longer_unit_unless_it_is_one() {
        let exact = Exact { num: 3 << 5, den: 1 };
        assert_eq!([4, 5, 6].map(|exponent| exact.ticks(exponent, 1)), [6, 3, 2]);
        assert_eq!([4, 5, 6].map(|exponent| exact.ticks(exponent, 2)), [7, 4, 3]);
    }
}
