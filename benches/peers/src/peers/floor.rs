//! The least that any lock-free limiter does: one reading of the clock, one load and one compare-and-swap.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Clock, DefaultClock};

use super::{Decide, DecideKey};

#[derive(Debug)]
pub(crate) struct Floor<C = DefaultClock> {
    word: AtomicU64,
    clock: C,
}

pub(crate) fn floor() -> Floor {
    with_clock(DefaultClock)
}

pub(crate) fn with_clock<C>(clock: C) -> Floor<C> {
    Floor { word: AtomicU64::new(0), clock }
}

impl<C: Clock + Send + Sync> Decide for Floor<C> {
    #[inline]
    fn decide(&self) -> bool {
        let now = self.clock.now().get();
        let seen = self.word.load(Ordering::Acquire);
        // A lost exchange counts as well: the floor does not try again.
        let next = now.max(seen.saturating_add(1));
        let _ = self.word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire);
        true
    }
}

/// The least that a table does: one reading of the clock, and one load and compare-and-swap somewhere in an array of 32 bytes a key.
#[derive(Debug)]
pub(crate) struct Table {
    words: Vec<AtomicU64>,
}

pub(crate) fn table(keys: usize) -> Table {
    Table { words: (0..4 * keys).map(|_| AtomicU64::new(0)).collect() }
}

impl Table {
    /// The word of a key, by its upper bits: no hash is computed.
    #[inline]
    fn exchange(&self, key: u64) -> bool {
        let place = (u128::from(key) * (self.words.len() as u128 / 4)) >> 64;
        let word = &self.words[4 * place as usize];
        let now = DefaultClock.now().get();
        let seen = word.load(Ordering::Acquire);
        let _ = word.compare_exchange(seen, now.max(seen.saturating_add(1)), Ordering::AcqRel, Ordering::Acquire);
        true
    }
}

/// The key is a hash already.
impl DecideKey<u64> for Table {
    #[inline]
    fn decide(&self, key: &u64) -> bool {
        self.exchange(*key)
    }
}

/// Reads the end of the key, where its number stands.
impl DecideKey<String> for Table {
    #[inline]
    fn decide(&self, key: &String) -> bool {
        let end = key.as_bytes().last_chunk().map_or(0, |end| u64::from_le_bytes(*end));
        self.exchange(end.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}
