//! A slot and its two atomics: how it is read, exchanged and given to a newcomer. See the module above for the protocol.

use super::places::Line;
use super::state::State;
use crate::sync::{AtomicU64, Ordering};

/// A place for the state of one key.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) word: AtomicU64,
    /// The fingerprint of the key.
    pub(super) tag: AtomicU64,
}

/// Where a key was found.
pub(super) enum Found<'a> {
    Slot(&'a Slot, State),
    /// The slot says that the state is in a queue.
    Waited(&'a Slot, State),
    /// Nowhere, or its slot is being taken over.
    Nowhere,
}

impl Slot {
    #[inline]
    pub(super) fn load(&self) -> State {
        // Acquire: see the module.
        State::from_bits(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn tag(&self) -> u64 {
        // Acquire: see the module.
        self.tag.load(Ordering::Acquire)
    }

    /// Whether the word is still `seen`, so that what was read since is true.
    #[inline]
    pub(super) fn still(&self, seen: State) -> bool {
        self.load() == seen
    }

    /// Replaces `seen` by `next`, if that is still the word. Else what the word is instead.
    #[inline]
    pub(super) fn exchange(&self, seen: State, next: State) -> Result<(), State> {
        // Release and Acquire: see the module. What was exchanged had been loaded with Acquire before.
        match self.word.compare_exchange(seen.bits(), next.bits(), Ordering::Release, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(word) => Err(State::from_bits(word)),
        }
    }

    /// The slot as that of a key, if it is that one's.
    #[inline]
    fn found_by(&self, fingerprint: u64) -> Option<Found<'_>> {
        let word = self.load();
        let found = if word.is_key() { Found::Slot(self, word) } else { Found::Waited(self, word) };
        ((word.is_key() || word.is_waited()) && self.tag() == fingerprint).then_some(found)
    }

    /// The slot as that of a key that is known to have it.
    pub(super) fn found(&self) -> Found<'_> {
        match self.load() {
            word if word.is_key() => Found::Slot(self, word),
            word => Found::Waited(self, word),
        }
    }

    /// Writes a slot that the caller has marked.
    pub(super) fn settle(&self, fingerprint: u64, word: State) {
        // Release: see the module. Nobody else writes a marked slot.
        self.tag.store(fingerprint, Ordering::Release);
        self.word.store(word.bits(), Ordering::Release);
    }
}

impl Line {
    /// The slot of a key in this line.
    #[inline]
    pub(super) fn find(&self, fingerprint: u64) -> Option<Found<'_>> {
        // Tags before words only to pass over the slots of others, all four at once: nobody can foretell which it is.
        let mut matching = 0u32;
        for (index, slot) in self.0.iter().enumerate() {
            matching |= u32::from(slot.tag() == fingerprint) << index;
        }
        while matching != 0 {
            let found = self.0.get(matching.trailing_zeros() as usize).and_then(|slot| slot.found_by(fingerprint));
            if found.is_some() {
                return found;
            }
            matching &= matching.wrapping_sub(1);
        }
        None
    }

    /// How many slots were never used.
    pub(super) fn empty(&self) -> usize {
        self.0.iter().filter(|slot| slot.load().is_empty()).count()
    }

    /// The slot of a key in this line, where it will seldom be.
    pub(super) fn find_rarely(&self, fingerprint: u64) -> Option<Found<'_>> {
        self.0.iter().filter(|slot| slot.tag() == fingerprint).find_map(|slot| slot.found_by(fingerprint))
    }
}
