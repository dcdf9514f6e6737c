//! How a version of a [`Rate`] is kept in atomics.

use super::gcra::Rate;
use super::pause::Pausable;
use crate::cell::Record;
use crate::interval::Interval;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Nanos;

/// The set of one version.
#[derive(Default)]
pub(crate) struct RateSet {
    /// The fields of [`Interval`] other than T: `mul | shift << 32 | round_up << 40`, and `held << 41`.
    scale: AtomicU64,
    cost: AtomicU64,
    capacity: AtomicU64,
    origin: AtomicU64,
}

impl Record for Rate {
    type Set = RateSet;

    fn store(&self, set: &RateSet) {
        let Interval { mul, shift, ticks, round_up } = self.interval;
        let scale = u64::from(mul) | u64::from(shift) << 32 | u64::from(round_up) << 40 | u64::from(self.held) << 41;
        // Release: pairs with the Acquire in `load`; see `Cell`.
        set.scale.store(scale, Ordering::Release);
        set.cost.store(ticks, Ordering::Release);
        set.capacity.store(self.capacity, Ordering::Release);
        set.origin.store(self.origin.get(), Ordering::Release);
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of scale have these widths")]
    #[inline]
    fn load(set: &RateSet) -> Self {
        // Acquire: pairs with the Release in `store`; see `Cell`.
        let scale = set.scale.load(Ordering::Acquire);
        Self {
            interval: Interval {
                mul: scale as u32,
                shift: (scale >> 32) as u8,
                ticks: set.cost.load(Ordering::Acquire),
                round_up: (scale >> 40) & 1 == 1,
            },
            capacity: set.capacity.load(Ordering::Acquire),
            origin: Nanos::new(set.origin.load(Ordering::Acquire)),
            held: (scale >> 41) & 1 == 1,
        }
    }
}

impl Pausable for Rate {
    #[inline]
    fn held(&self) -> bool {
        self.held
    }

    #[inline]
    fn released(self) -> Self {
        Self { held: false, ..self }
    }
}
