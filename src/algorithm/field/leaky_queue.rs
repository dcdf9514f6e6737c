//! The queue of a key that tells when: the instant at which its server is free, in ticks since the version began.
#![expect(clippy::arithmetic_side_effects, reason = "ticks, bounded as in algorithm::gcra")]

use std::time::Duration;

use super::bucket::judged;
use super::{Admission, FieldLaw};
use crate::algorithm::LeakyQueueLaw;
use crate::algorithm::gcra::{self, Rate, Ticks};
use crate::algorithm::leaky_queue::{admit, free_from, idle_in, start};
use crate::algorithm::pause;
use crate::cell::Cell;
use crate::interval::Interval;
use crate::quota::Quota;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

impl FieldLaw for LeakyQueueLaw {
    type Record = Rate;

    fn version(quota: &Quota, since: Nanos, _before: Option<&Rate>) -> Rate {
        idle_in(quota, since, Interval::fit_for_table)
    }

    #[inline]
    fn admit_in_64_bits(rate: &Rate, free_at: u64, now: Nanos, n: u64) -> Option<u64> {
        // Without a rate, and without a limit, a field is something else.
        if rate.interval.mul == 0 || rate.interval.ticks == 0 {
            return None;
        }
        rate.admit_in_64_bits(free_at, now, n)
    }

    fn admit(rate: &Rate, free_at: u64, now: Nanos, n: u64) -> Admission {
        if n == 0 {
            return Admission::Granted(free_at);
        }
        let now = judged(rate, free_at, now);
        match admit(rate, free_at, now, n) {
            Some(next) => gcra::field(next).map_or(Admission::Beyond, Admission::Granted),
            None => Admission::Refused(rate.refusal(free_at, now, n)),
        }
    }

    fn snapshot_of(rate: &Rate, free_at: u64, now: Nanos) -> Snapshot {
        rate.snapshot(free_at, judged(rate, free_at, now))
    }

    /// A start that was told stands: nothing can be given back.
    fn refunded(_rate: &Rate, free_at: u64, _now: Nanos, _n: u64) -> u64 {
        free_at
    }

    /// A start that was told stands: nothing can be given back.
    fn emptied(_rate: &Rate, free_at: u64, _now: Nanos) -> u64 {
        free_at
    }

    fn rest(rate: &Rate, free_at: u64) -> Option<Nanos> {
        if free_at == 0 {
            return Some(Nanos::ZERO);
        }
        // At a rate of 0 one was served, and nobody will be.
        let at = rate.nanos_at(free_at.into())?;
        u64::try_from(at.max(0)).ok().map(Nanos::new)
    }

    fn carried(rate: &Rate, free_at: u64, next: &Rate) -> u64 {
        if Self::rest(rate, free_at).is_some_and(|rest| rest <= next.origin) {
            return 0;
        }
        let Interval { mul, shift, ticks, .. } = next.interval;
        let (told, change) = (free_from(rate, free_at), Ticks::from(next.origin.get()));
        if mul == 0 {
            // A rate of 0 serves nobody after those who were told a start.
            let waits = told.get().saturating_sub(next.origin.get());
            return gcra::first_field(Ticks::from(ticks) + Ticks::from(waits));
        }
        // The one whom a rate of 0 served takes a T of what follows.
        let taken = if rate.interval.mul == 0 { ticks } else { 0 };
        let parts = if rate.interval == next.interval && shift == 0 {
            // Nothing is rounded.
            Ticks::from(free_at) + (Ticks::from(rate.origin.get()) - change) * Ticks::from(mul)
        } else {
            (Ticks::from(told.get()) - change) * Ticks::from(mul)
        };
        let whole = parts >> shift;
        let free_at = whole + Ticks::from(whole << shift < parts) + Ticks::from(taken);
        // One who began more than a T ago is done.
        gcra::first_field(free_at.max(0))
    }

    fn law(quota: Quota, rate: &Rate, free_at: u64) -> Self {
        Self { cell: Cell::new(quota, rate, free_at, rate.origin, Duration::MAX) }
    }

    fn state(&self) -> (Rate, u64) {
        pause::look(&self.cell, |rate, free_at| (*rate, free_at))
    }
}

impl LeakyQueueLaw {
    /// The start of a request that comes at `now`, before which the field was `free_at`.
    pub(crate) fn start_of(rate: &Rate, free_at: u64, now: Nanos) -> Nanos {
        start(rate, free_at, now)
    }
}
