//! The bucket of a key: its theoretical arrival time in ticks since the version began.

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
        // Without a rate no time tells the unit, as in `Left::start`.
        let ticks = match before {
            Some(before) if interval.mul == 0 => interval.ticks.min(before.interval.ticks.max(1)),
            _ => interval.ticks,
        };
        Rate { origin: since, ..Rate::new(Interval { ticks, ..interval }, burst) }
    }

    #[inline]
    fn admit_in_64_bits(rate: &Rate, tat: u64, now: Nanos, n: u64) -> Option<u64> {
        rate.admit_in_64_bits(tat, now, n)
    }

    fn admit(rate: &Rate, tat: u64, now: Nanos, n: u64) -> Admission {
        if n == 0 {
            return Admission::Granted(tat);
        }
        let now = judged(rate, tat, now);
        match rate.admit(tat, now, n) {
            Some(next) => gcra::field(next).map_or(Admission::Beyond, Admission::Granted),
            None => Admission::Refused(rate.refusal(tat, now, n)),
        }
    }

    fn snapshot(rate: &Rate, tat: u64, now: Nanos) -> Snapshot {
        rate.snapshot(tat, judged(rate, tat, now))
    }

    fn refunded(rate: &Rate, tat: u64, now: Nanos, n: u64) -> u64 {
        not_before_origin(rate.refunded(tat, now, n))
    }

    fn emptied(rate: &Rate, tat: u64, now: Nanos) -> u64 {
        not_before_origin(rate.filled(tat, now))
    }

    fn rest(rate: &Rate, tat: u64) -> Option<Nanos> {
        if tat == 0 || rate.interval.ticks == 0 {
            return Some(Nanos::ZERO);
        }
        let at = rate.nanos_at(tat.into())?;
        u64::try_from(at.max(0)).ok().map(Nanos::new)
    }

    fn carried(rate: &Rate, tat: u64, next: &Rate) -> u64 {
        let change = next.origin;
        if next.interval.ticks == 0 || Self::rest(rate, tat).is_some_and(|rest| rest <= change) {
            return 0;
        }
        gcra::first_field(rate.left(tat, change, rate.capacity, rate.origin).arrival(next))
    }

    fn law(quota: Quota, rate: &Rate, tat: u64) -> Self {
        Self { cell: Cell::new(quota, rate, tat, rate.origin, Duration::MAX) }
    }

    fn state(&self) -> (Rate, u64) {
        pause::look(&self.cell, |rate, tat| (*rate, tat))
    }
}

/// The time at which a call at `now` counts: a key at rest has the whole burst, so a clock that is behind the version, at whose
/// beginning that is there, counts as that.
fn judged(rate: &Rate, tat: u64, now: Nanos) -> Nanos {
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
            assert_eq!(Gcra::snapshot(&rate, 0, Nanos::new(now)).remaining, 3);
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
}
