//! The times of a log, in rings of atomics.

use std::sync::OnceLock;

use crate::sync::{AtomicU64, Ordering};

/// The size of the largest ring, as a power of two.
const LARGEST: usize = 21;

/// The largest limit whose times a ring takes: half of the largest ring.
pub(crate) const MOST: u64 = 1 << (LARGEST - 1);

/// Times by position: a place for every position modulo a power of two.
///
/// A ring has room for twice the limit. So what a grant of n writes, n being the limit at most, takes the places of times that no
/// answer rests on while the word says that the grant has not happened yet: those look at the last `limit` positions.
///
/// # Ordering
///
/// Times are stored with `Release` and loaded with `Acquire`: who reads one of a later grant also sees the word that this grant
/// replaced, or the one before, replaced, when it looks again.
#[derive(Default)]
pub(crate) struct Ring(Box<[AtomicU64]>);

impl Ring {
    fn new(size: u8) -> Self {
        Self((0..1u64 << size).map(|_| AtomicU64::new(0)).collect())
    }

    /// Half of the places: the largest limit that it is for.
    pub(crate) fn half(&self) -> u64 {
        self.len() / 2
    }

    /// The number of places, a power of two.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline]
    fn place(&self, position: u64) -> Option<&AtomicU64> {
        let place = position & self.len().wrapping_sub(1);
        self.0.get(usize::try_from(place).ok()?)
    }

    /// The time at `position`. Every position has a place; the time is its own if it is among the last that were written.
    #[inline]
    pub(crate) fn time(&self, position: u64) -> u64 {
        // Acquire: see the type.
        self.place(position).map_or(0, |place| place.load(Ordering::Acquire))
    }

    /// Puts the times before `head` that may still count in a ring as large or larger.
    pub(crate) fn copy_to(&self, larger: &Ring, head: u64) {
        let first = head.saturating_sub(self.half());
        (first..head).for_each(|position| larger.write(position, self.time(position)));
    }

    pub(crate) fn write(&self, position: u64, time: u64) {
        if let Some(place) = self.place(position) {
            // Release: see the type.
            place.store(time, Ordering::Release);
        }
    }
}

/// The rings of a log, one a size, each made when a limit first needs it, and kept. A version of the quota names its own, so that
/// nobody reads a ring that moves.
#[derive(Default)]
pub(crate) struct Rings {
    sizes: [OnceLock<Ring>; LARGEST + 1],
    /// For who has read what is of no version.
    none: Ring,
}

impl Rings {
    /// The size that a limit needs, [`MOST`] at most.
    pub(crate) fn size(limit: u64) -> u8 {
        let places = limit.min(MOST).saturating_mul(2).next_power_of_two();
        u8::try_from(places.trailing_zeros()).unwrap_or(0)
    }

    /// A ring that a version names; `None` while there is none of that size, which no whole version does.
    #[inline]
    pub(crate) fn get(&self, size: u8) -> Option<&Ring> {
        self.sizes.get(usize::from(size))?.get()
    }

    /// The same, or a ring without a time.
    #[inline]
    pub(crate) fn get_or_none(&self, size: u8) -> &Ring {
        self.get(size).unwrap_or(&self.none)
    }

    /// The bytes of all rings that were made.
    pub(crate) fn allocated(&self) -> usize {
        self.sizes.iter().filter_map(OnceLock::get).map(|ring| size_of_val(&*ring.0)).sum()
    }

    /// Makes the ring of that size, unless it is there.
    pub(crate) fn open(&self, size: u8) -> Option<&Ring> {
        self.sizes.get(usize::from(size)).map(|ring| ring.get_or_init(|| Ring::new(size)))
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring of {}", self.len())
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.sizes.iter().filter_map(OnceLock::get)).finish()
    }
}
