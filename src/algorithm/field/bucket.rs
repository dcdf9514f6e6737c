//! The bucket of a key: its theoretical arrival time in ticks since the version began.
#![expect(clippy::arithmetic_side_effects, reason = "ticks, bounded as in algorithm::gcra")]

use std::time::Duration;

use super::{Admission, FieldLaw};
use crate::algorithm::Gcra;
use crate::algorithm::gcra::{self, Rate, Ticks};
use crate::algorithm::pause;
use crate::cell::Cell;
use crate::interval::Interval;
use crate::quota::Quota;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

impl FieldLaw for Gcra {
    type Record = Rate;

    fn version(quota: &Quota, since: Nanos, before: Option<&Rate>) -> Rate {
        let burst = quota.policing_burst();
        let interval = Interval::fit_for_table(quota, burst, burst);
        if !is_stopped(&interval) {
            return Rate { origin: since, ..Rate::new(interval, burst) };
        }
        // As in `Left::start`, the unit of the version before keeps a fraction of a permit.
        let ticks = before.map_or(interval.ticks, |before| interval.ticks.min(before.interval.ticks.max(1)));
        stopped(Rate { origin: since, ..Rate::new(Interval { ticks, ..interval }, burst) })
    }

    #[inline]
    fn admit_in_64_bits(rate: &Rate, tat: u64, now: Nanos, n: u64) -> Option<u64> {
        // What a field holds besides at a rate of 0 is beyond the capacity, so that it says nothing here.
        rate.admit_in_64_bits(tat, now, n)
    }

    fn admit(rate: &Rate, tat: u64, now: Nanos, n: u64) -> Admission {
        if n == 0 {
            return Admission::Granted(tat);
        }
        let (rate, debt) = plain(rate, tat);
        let now = judged(&rate, tat, now);
        match rate.admit(debt, now, n) {
            Some(next) => gcra::field(next + Ticks::from(tat - debt)).map_or(Admission::Beyond, Admission::Granted),
            None => Admission::Refused(rate.refusal(debt, now, n)),
        }
    }

    fn snapshot_of(rate: &Rate, tat: u64, now: Nanos) -> Snapshot {
        let (rate, debt) = plain(rate, tat);
        rate.snapshot(debt, judged(&rate, tat, now))
    }

    fn refunded(rate: &Rate, tat: u64, now: Nanos, n: u64) -> u64 {
        let (rate, debt) = plain(rate, tat);
        not_before_origin(rate.refunded(debt, now, n)) + (tat - debt)
    }

    fn emptied(rate: &Rate, tat: u64, now: Nanos) -> u64 {
        let (rate, debt) = plain(rate, tat);
        not_before_origin(rate.filled(debt, now)) + (tat - debt)
    }

    fn rest(rate: &Rate, tat: u64) -> Option<Nanos> {
        if tat == 0 || rate.interval.ticks == 0 {
            return Some(Nanos::ZERO);
        }
        let (rate, debt) = plain(rate, tat);
        if is_stopped(&rate.interval) {
            return (debt == 0).then_some(rate.origin);
        }
        let at = rate.nanos_at(debt.into())?;
        u64::try_from(at.max(0)).ok().map(Nanos::new)
    }

    #[inline]
    fn is_at_rest(rate: &Rate, tat: u64, now: Nanos) -> bool {
        // The same without a division.
        tat == 0 || rate.interval.ticks == 0 || Ticks::from(tat) <= rate.at(now)
    }

    fn carried(rate: &Rate, tat: u64, next: &Rate) -> u64 {
        let change = next.origin;
        if next.interval.ticks == 0 || Self::rest(rate, tat).is_some_and(|rest| rest <= change) {
            return 0;
        }
        let (rate, debt) = plain(rate, tat);
        let left = rate.left(debt, change, rate.capacity, rate.origin);
        let (shared, _) = plain(next, 0);
        gcra::first_field(left.arrival(&shared) + laps(next, left.since()))
    }

    fn law(quota: Quota, rate: &Rate, tat: u64) -> Self {
        let (rate, debt) = plain(rate, tat);
        Self { cell: Cell::new(quota, &rate, debt, rate.origin, Duration::MAX) }
    }

    fn state(&self) -> (Rate, u64) {
        match pause::look(&self.cell, |rate, tat| (*rate, tat)) {
            (rate, 0) => from_earlier(rate),
            state => state,
        }
    }
}

/// A bucket that is full from its origin on, as one that was not before: a field of 0 says that of a key in a table.
fn from_earlier(rate: Rate) -> (Rate, u64) {
    let Interval { mul, shift, .. } = rate.interval;
    if mul == 0 || rate.origin == Nanos::ZERO {
        return (rate, 0);
    }
    // Long ticks are 1 a unit; those of which the clock has not seen one are rounded up.
    let unit = Duration::from_nanos(1u64.checked_shl(shift.into()).unwrap_or(u64::MAX));
    (Rate { origin: rate.origin.saturating_sub(unit), ..rate }, mul.into())
}

/// Whether time gives nothing.
fn is_stopped(interval: &Interval) -> bool {
    interval.mul == 0 && interval.ticks > 0
}

/// At a rate of 0 a TAT tells no time, but a key that had used times after that at which the rate became 0, by a clock that was
/// set back, must not be given them again by the next quota. So a field is `laps * (capacity + 1) + TAT`, where the laps are the time
/// from the origin to the instant from which the key counts, rounded up. A lap is 1 ns if 2^40 ns (18 minutes) fit the field then,
/// and else as much longer as it takes for those to fit.
fn stopped(rate: Rate) -> Rate {
    let most = Ticks::from(gcra::FIELD_END - rate.capacity) / (Ticks::from(rate.capacity) + 1);
    let mut shift = 0;
    while most << shift < LONGEST_STEP && most > 0 {
        shift += 1;
    }
    Rate { interval: Interval { shift, ..rate.interval }, ..rate }
}

/// How far a clock may be set back, at the least, in nanoseconds.
const LONGEST_STEP: Ticks = 1 << 40;

/// The version as it counts for a key alone, and the TAT in it.
fn plain(rate: &Rate, tat: u64) -> (Rate, u64) {
    if !is_stopped(&rate.interval) {
        return (*rate, tat);
    }
    let turn = rate.capacity + 1;
    let laps = Duration::from_nanos((tat / turn) << rate.interval.shift);
    let interval = Interval { shift: 0, ..rate.interval };
    (Rate { interval, origin: rate.origin.saturating_add(laps), ..*rate }, tat % turn)
}

/// What the field holds besides the TAT under `rate` if the key counts from `since`.
fn laps(rate: &Rate, since: Nanos) -> Ticks {
    if !is_stopped(&rate.interval) {
        return 0;
    }
    let (after, shift) = (Ticks::from(since.get().saturating_sub(rate.origin.get())), rate.interval.shift);
    let turn = Ticks::from(rate.capacity) + 1;
    let most = Ticks::from(gcra::FIELD_END - rate.capacity) / turn;
    let count = (after >> shift) + Ticks::from((after >> shift) << shift < after);
    count.min(most) * turn
}

/// The time at which a call at `now` counts: a key at rest has the whole burst, so a clock that is behind the version, at whose
/// beginning that is there, counts as that.
pub(super) fn judged(rate: &Rate, tat: u64, now: Nanos) -> Nanos {
    if tat == 0 { now.max(rate.origin) } else { now }
}

/// The earliest TAT that a field holds is that of a key at rest, which keeps what it got by a clock behind its origin.
fn not_before_origin(tat: Ticks) -> u64 {
    u64::try_from(tat.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refused::Refused;

    fn version(quota: Quota, since: u64) -> Rate {
        Gcra::version(&quota, Nanos::new(since), None)
    }

    fn granted(rate: &Rate, tat: u64, now: u64, n: u64) -> u64 {
        match Gcra::admit(rate, tat, Nanos::new(now), n) {
            Admission::Granted(tat) => tat,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_never_seen_has_the_burst_at_any_time() {
        let rate = version(Quota::per_second(10).burst(3), 1_000);
        for now in [0, 999, 1_000, 1_001, 1 << 40] {
            let full = granted(&rate, 0, now, 3);
            assert_eq!(Gcra::snapshot_of(&rate, 0, Nanos::new(now)).remaining, 3);
            assert!(matches!(
                Gcra::admit(&rate, full, Nanos::new(now), 1),
                Admission::Refused(Refused::TooSoon { .. })
            ));
        }
    }

    #[test]
    fn a_grant_that_leaves_the_field_is_told_and_fits_the_next_version() {
        let quota = Quota::per_second(3).burst(3);
        let rate = version(quota, 0);
        let now = Nanos::MAX;
        assert_eq!(Gcra::admit(&rate, 5, now, 2), Admission::Beyond);
        let next = Gcra::version(&quota, now, Some(&rate));
        let tat = Gcra::carried(&rate, 5, &next);
        assert!(matches!(Gcra::admit(&next, tat, now, 3), Admission::Granted(_)));
    }

    #[test]
    fn the_same_quota_carries_to_itself_wherever_the_clock_steps() {
        let quota = Quota::per_second(300_000_000).burst(4);
        let (rate, period) = (version(quota, 1_000), 40);
        for tat in 1..=period * 12 {
            for change in [0, 1, 990, 999, 1_000, 1_001, 1_013, 1_100, 5_000] {
                let next = version(quota, change);
                let carried = Gcra::carried(&rate, tat, &next);
                let rest = Gcra::rest(&rate, tat).unwrap();
                if rest.get() <= change {
                    assert_eq!(carried, 0);
                } else {
                    assert_eq!(Ticks::from(carried) - next.at(Nanos::new(1_000)), tat.into(), "TAT {tat} at {change}");
                }
            }
        }
    }

    #[test]
    fn whether_a_bucket_is_at_rest_is_told_as_when() {
        for quota in [
            Quota::per_second(3).burst(3),
            Quota::per_second(300_000_000).burst(4),
            Quota::per_second(980_000_007).burst(7),
            Quota::per_day(1).burst(2),
            Quota::per_second(0).burst(2),
            Quota::UNLIMITED,
        ] {
            let rate = version(quota, 1_000);
            for tat in (0..200).chain([1 << 40, 1 << 58]) {
                let rest = Gcra::rest(&rate, tat);
                let around = rest.map_or(0, Nanos::get);
                for now in [0, 1, 999, 1_000, around.saturating_sub(1), around, around.saturating_add(1), u64::MAX] {
                    let now = Nanos::new(now);
                    assert_eq!(
                        Gcra::is_at_rest(&rate, tat, now),
                        rest.is_some_and(|rest| rest <= now),
                        "{quota:?} {tat} {now}"
                    );
                }
            }
        }
    }
}
