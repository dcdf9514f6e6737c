//! How a version of a [`Log`] is kept in atomics.

use super::log::Log;
use super::pause::Pausable;
use crate::cell::Record;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Nanos;

/// The set of one version.
#[derive(Default)]
pub(crate) struct LogSet {
    /// The lower 64 bits of W.
    length: AtomicU64,
    /// The others, and what is small: `length >> 64 | ring << 32 | unlimited << 40 | held << 41`.
    rest: AtomicU64,
    limit: AtomicU64,
    end: AtomicU64,
    offset: AtomicU64,
    from: AtomicU64,
    as_of: AtomicU64,
    used: AtomicU64,
}

impl Record for Log {
    type Set = LogSet;

    #[expect(clippy::cast_possible_truncation, reason = "the halves of the length, of 94 bits at most")]
    fn store(&self, set: &LogSet) {
        let flags = u64::from(self.unlimited) << 40 | u64::from(self.held) << 41;
        // Release: pairs with the Acquire in `load`; see `Cell`.
        set.length.store(self.length as u64, Ordering::Release);
        set.rest.store((self.length >> 64) as u64 | u64::from(self.ring) << 32 | flags, Ordering::Release);
        set.limit.store(self.limit, Ordering::Release);
        set.end.store(self.end.get(), Ordering::Release);
        set.offset.store(self.offset, Ordering::Release);
        set.from.store(self.from, Ordering::Release);
        set.as_of.store(self.as_of, Ordering::Release);
        set.used.store(self.used, Ordering::Release);
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of rest have these widths")]
    #[inline]
    fn load(set: &LogSet) -> Self {
        // Acquire: pairs with the Release in `store`; see `Cell`.
        let rest = set.rest.load(Ordering::Acquire);
        Self {
            length: u128::from(rest as u32) << 64 | u128::from(set.length.load(Ordering::Acquire)),
            limit: set.limit.load(Ordering::Acquire),
            ring: (rest >> 32) as u8,
            unlimited: (rest >> 40) & 1 == 1,
            held: (rest >> 41) & 1 == 1,
            end: Nanos::new(set.end.load(Ordering::Acquire)),
            offset: set.offset.load(Ordering::Acquire),
            from: set.from.load(Ordering::Acquire),
            as_of: set.as_of.load(Ordering::Acquire),
            used: set.used.load(Ordering::Acquire),
        }
    }
}

impl Pausable for Log {
    #[inline]
    fn held(&self) -> bool {
        self.held
    }

    #[inline]
    fn released(self) -> Self {
        Self { held: false, ..self }
    }
}
