//! How a version of [`Windows`] is kept in atomics.

use std::marker::PhantomData;

use super::pause::Pausable;
use super::window::{Kind, Windows};
use crate::cell::Record;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Nanos;

/// The set of one version.
#[derive(Default)]
pub(crate) struct WindowSet {
    /// The lower 64 bits of W.
    length: AtomicU64,
    /// The others, and what is small: `length >> 64 | bits << 32 | unlimited << 40 | held << 41`.
    rest: AtomicU64,
    limit: AtomicU64,
    origin: AtomicU64,
    end: AtomicU64,
}

impl<K: Kind> Record for Windows<K> {
    type Set = WindowSet;

    #[expect(clippy::cast_possible_truncation, reason = "the halves of the length, of 94 bits at most")]
    fn store(&self, set: &WindowSet) {
        let flags = u64::from(self.unlimited) << 40 | u64::from(self.held) << 41;
        // Release: pairs with the Acquire in `load`; see `Cell`.
        set.length.store(self.length as u64, Ordering::Release);
        set.rest.store((self.length >> 64) as u64 | u64::from(self.bits) << 32 | flags, Ordering::Release);
        set.limit.store(self.limit, Ordering::Release);
        set.origin.store(self.origin, Ordering::Release);
        set.end.store(self.end.get(), Ordering::Release);
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of rest have these widths")]
    #[inline]
    fn load(set: &WindowSet) -> Self {
        // Acquire: pairs with the Release in `store`; see `Cell`.
        let rest = set.rest.load(Ordering::Acquire);
        Self {
            length: u128::from(rest as u32) << 64 | u128::from(set.length.load(Ordering::Acquire)),
            limit: set.limit.load(Ordering::Acquire),
            origin: set.origin.load(Ordering::Acquire),
            bits: u32::from((rest >> 32) as u8),
            unlimited: (rest >> 40) & 1 == 1,
            held: (rest >> 41) & 1 == 1,
            end: Nanos::new(set.end.load(Ordering::Acquire)),
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Pausable for Windows<K> {
    #[inline]
    fn held(&self) -> bool {
        self.held
    }

    #[inline]
    fn released(self) -> Self {
        Self { held: false, ..self }
    }
}
