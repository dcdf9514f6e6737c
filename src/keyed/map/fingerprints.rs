//! A hash map of what is a hash already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Slots by fingerprint.
pub(super) type Fingerprints = HashMap<u64, usize, BuildHasherDefault<AsItIs>>;

/// Takes a fingerprint as its own hash.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Nothing but a `u64` is hashed.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
}

/// Spreads a fingerprint, which may come from a hasher that does not (the finalizer of splitmix64, Steele et al. 2014). No two
/// become the same.
#[inline]
pub(super) const fn mixed(fingerprint: u64) -> u64 {
    let mixed = (fingerprint ^ (fingerprint >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The bytes that a map of this capacity has allocated: a power of two of places, an eighth of them empty, each with a byte of
/// its own.
pub(super) fn allocated(map: &Fingerprints) -> usize {
    match map.capacity() {
        0 => 0,
        capacity => {
            let places = capacity.saturating_mul(8).div_ceil(7).next_power_of_two();
            places.saturating_mul(size_of::<(u64, usize)>().saturating_add(1)).saturating_add(16)
        }
    }
}
