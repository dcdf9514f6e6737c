//! The word of a slot: what a table knows of one key, in 64 bits.

use crate::interval::FIELD_BITS;

/// How many versions of the quota a word can name; they are numbered from 1.
pub(super) const VERSIONS: usize = 15;

const GENERATION: u64 = 1 << FIELD_BITS;
const VERSION_SHIFT: u32 = FIELD_BITS + 1;
const FIELD: u64 = GENERATION - 1;

const _: () = assert!(VERSIONS < 1 << (u64::BITS - VERSION_SHIFT));

const EMPTY: u64 = 0;
const MARK: u64 = 1;
const WAITED: u64 = 2;

/// The state of one key, or what else a slot is.
///
/// ```text
///  63     60      59      58                                      0
/// +---------+----------+------------------------------------------+
/// | version |generation| field                                    |
/// +---------+----------+------------------------------------------+
/// ```
///
/// - `version`: the quota under which the word was written. 0 is none: the field then says what the slot is instead of the
///   state of a key, which is *empty*, *marked* (being taken over) or *waited* (the state is in a queue).
/// - `generation`: turned by each take-over, so that a call that has read the word of the slot's last owner can't write to its
///   new one, whatever was given back meanwhile; and by each walk, so that a word of an old version is not taken for one of the
///   version that has its number next. What remains possible: a thread that sleeps between its load and its exchange through two
///   of these (or a multiple), and finds the very same word, charges one request to another key or by an old quota.
/// - `field`: what the law counts, as in the [`Word`](crate::word::Word) of a limiter. 0 is a key never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

impl State {
    #[inline]
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// A key at rest under the first version.
    pub(super) const fn first() -> Self {
        Self(1 << VERSION_SHIFT)
    }

    #[inline]
    pub(super) const fn version(self) -> usize {
        (self.0 >> VERSION_SHIFT) as usize
    }

    #[inline]
    pub(super) const fn field(self) -> u64 {
        self.0 & FIELD
    }

    /// Whether it is the state of a key.
    #[inline]
    pub(super) const fn is_key(self) -> bool {
        self.version() != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        !self.is_key() && self.field() == EMPTY
    }

    pub(super) const fn is_waited(self) -> bool {
        !self.is_key() && self.field() == WAITED
    }

    /// The same slot with the state of its key under `version`; both fit.
    #[inline]
    pub(super) fn with_key(self, version: usize, field: u64) -> Self {
        debug_assert!((1..=VERSIONS).contains(&version) && field <= FIELD, "{version} {field}");
        Self((version as u64) << VERSION_SHIFT | self.0 & GENERATION | field & FIELD)
    }

    /// The same slot with the state of its key under `version`, as a walk leaves it; both fit.
    pub(super) fn walked(self, version: usize, field: u64) -> Self {
        Self(self.with_key(version, field).0 ^ GENERATION)
    }

    /// The same slot, about to be another key's.
    pub(super) const fn marked(self) -> Self {
        Self((self.0 & GENERATION) ^ GENERATION | MARK)
    }

    /// The same slot, whose key's state is in a queue.
    pub(super) const fn waited(self) -> Self {
        Self(self.0 & GENERATION | WAITED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_at_its_edges_and_leaves_the_others_alone() {
        for field in [0, 1, FIELD - 1, FIELD] {
            for version in [1, 2, VERSIONS] {
                for slot in [State(0), State(GENERATION), State(u64::MAX)] {
                    let state = slot.with_key(version, field);
                    assert_eq!((state.version(), state.field(), state.is_key()), (version, field, true));
                    assert_eq!(state.0 & GENERATION, slot.0 & GENERATION);
                    assert_eq!(State::from_bits(state.bits()), state);
                    assert!(!state.is_empty() && !state.is_waited());
                }
            }
        }
    }

    #[test]
    fn a_take_over_and_a_walk_turn_the_generation_and_nothing_else_does() {
        let slot = State::first().with_key(3, 77);
        for turned in [slot.marked(), slot.marked().with_key(3, 77), slot.marked().waited(), slot.walked(3, 77)] {
            assert_ne!(turned.0 & GENERATION, slot.0 & GENERATION);
        }
        assert_eq!(slot.marked().with_key(1, 0).marked().with_key(3, 77), slot);
        assert_eq!(slot.waited().with_key(3, 77), slot);
    }

    #[test]
    fn what_is_no_key_is_one_thing() {
        let (empty, marked, waited) = (State(0), State(0).marked(), State(0).waited());
        assert_eq!([empty, marked, waited].map(State::is_key), [false; 3]);
        assert_eq!([empty, marked, waited].map(State::is_empty), [true, false, false]);
        assert_eq!([empty, marked, waited].map(State::is_waited), [false, false, true]);
    }
}
