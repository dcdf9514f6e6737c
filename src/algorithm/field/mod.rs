//! The one-word laws as a table of keys uses them: pure arithmetic on a version and a field, no atomics and no clock.
//!
//! All keys of a table share its version, so a version can't begin at an instant of a key's own, as that of a limiter does: its
//! origin is the instant of the change. A field of 0 is a key at rest, which is one that was never seen.

mod bucket;
#[cfg(test)]
mod edges;
mod leaky_queue;
#[cfg(test)]
mod reference;
mod windows;

use super::sealed;
use crate::cell::Record;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A law whose state is one field of a word.
pub(crate) trait FieldLaw: sealed::Algorithm {
    /// One version of the quota.
    type Record: Record + PartialEq;

    /// The version of `quota` for all keys from `since` on, in the unit of a table, that follows `before`. Under it a field of 0 is a
    /// key at rest.
    fn version(quota: &Quota, since: Nanos, before: Option<&Self::Record>) -> Self::Record;

    /// The field after the usual grant of `n`, above 0, in machine words. `None` says nothing: it may be refused, or not fit.
    fn admit_in_64_bits(record: &Self::Record, field: u64, now: Nanos, n: u64) -> Option<u64>;

    /// What the law says to `n` more. A request of none is granted, and leaves the field as it is.
    fn admit(record: &Self::Record, field: u64, now: Nanos, n: u64) -> Admission;

    /// The key at `now`, for a look.
    fn snapshot_of(record: &Self::Record, field: u64, now: Nanos) -> Snapshot;

    /// The field after `n` permits were given back, never above `field`.
    fn refunded(record: &Self::Record, field: u64, now: Nanos, n: u64) -> u64;

    /// The field after all permits were given back, never above `field`.
    fn emptied(record: &Self::Record, field: u64, now: Nanos) -> u64;

    /// The first instant from which on a field is as good as 0, for ever after: [`Nanos::ZERO`] if it is at any time, `None` if it
    /// never is, within 584 years.
    fn rest(record: &Self::Record, field: u64) -> Option<Nanos>;

    /// Whether that instant has come.
    fn is_at_rest(record: &Self::Record, field: u64, now: Nanos) -> bool {
        Self::rest(record, field).is_some_and(|rest| rest <= now)
    }

    /// The instant by which a field at rest was at rest by every clock: who is new later than that is new by every clock.
    fn horizon(record: &Self::Record, field: u64) -> Nanos {
        Self::rest(record, field).unwrap_or(Nanos::MAX)
    }

    /// The field under `next` that carries what is left under `record`, as a change of the quota does at the instant at which
    /// `next` begins; what is at rest then stays at rest. [`FIELD_END`](super::gcra::FIELD_END) if it does not fit: then the origin must move first.
    fn carried(record: &Self::Record, field: u64, next: &Self::Record) -> u64;

    /// The law in a cell of its own, for a queue.
    fn law(quota: Quota, record: &Self::Record, field: u64) -> Self;

    /// The state of a law in a cell of its own.
    fn state(&self) -> (Self::Record, u64);
}

/// What a law says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes, and this is the field then.
    Granted(u64),
    /// Yes, but the field can't hold it: the origin must move first.
    Beyond,
    /// No.
    Refused(Refused),
}
