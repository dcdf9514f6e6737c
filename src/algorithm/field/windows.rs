//! The windows of a key: the index of one since that in which the version began, and the counts.

use std::time::Duration;

use super::{Admission, FieldLaw};
use crate::algorithm::pause;
use crate::algorithm::window::{Kind, Windows};
use crate::algorithm::windowed::Windowed;
use crate::cell::Cell;
use crate::quota::Quota;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

impl<K: Kind> FieldLaw for Windowed<K> {
    type Record = Windows<K>;

    fn version(quota: &Quota, since: Nanos, before: Option<&Windows<K>>) -> Windows<K> {
        Windows::for_table(quota, since, before)
    }

    #[inline]
    fn admit_in_64_bits(windows: &Windows<K>, field: u64, now: Nanos, n: u64) -> Option<u64> {
        windows.admit_in_64_bits(field, now, n)
    }

    fn admit(windows: &Windows<K>, field: u64, now: Nanos, n: u64) -> Admission {
        if n == 0 {
            return Admission::Granted(field);
        }
        match windows.admit(field, now, n) {
            // Nothing is taken of what is unlimited.
            Some(_) if windows.unlimited => Admission::Granted(field),
            Some(counts) => windows.field(&counts).map_or(Admission::Beyond, Admission::Granted),
            None => Admission::Refused(windows.refusal(field, now, n)),
        }
    }

    fn snapshot_of(windows: &Windows<K>, field: u64, now: Nanos) -> Snapshot {
        windows.snapshot(field, now)
    }

    fn refunded(windows: &Windows<K>, field: u64, now: Nanos, n: u64) -> u64 {
        windows.refunded(field, now, n)
    }

    fn emptied(windows: &Windows<K>, field: u64, _now: Nanos) -> u64 {
        windows.emptied(field)
    }

    fn horizon(windows: &Windows<K>, field: u64) -> Nanos {
        u64::try_from(windows.horizon(field)).map_or(Nanos::MAX, Nanos::new)
    }

    fn rest(windows: &Windows<K>, field: u64) -> Option<Nanos> {
        u64::try_from(windows.faded(field)).ok().map(Nanos::new)
    }

    fn carried(windows: &Windows<K>, field: u64, next: &Windows<K>) -> u64 {
        windows.carried(field, next)
    }

    fn law(quota: Quota, windows: &Windows<K>, field: u64) -> Self {
        Self { cell: Cell::new(quota, windows, field, windows.end, Duration::MAX) }
    }

    fn state(&self) -> (Windows<K>, u64) {
        pause::look(&self.cell, |windows, field| (*windows, field))
    }
}
