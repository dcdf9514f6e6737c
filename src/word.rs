//! The word: all that a limiter or a shaper knows, in 64 bits.

use crate::interval::FIELD_BITS;

/// How many versions of the quota a word can name.
pub(crate) const VERSIONS: usize = 1 << VERSION_BITS;

const VERSION_BITS: u32 = 3;
const BEHIND: u64 = 1 << FIELD_BITS;
const WAITING: u64 = BEHIND << 1;
const VERSION_SHIFT: u32 = FIELD_BITS + 2;
const FIELD: u64 = BEHIND - 1;

const _: () = assert!(VERSION_SHIFT + VERSION_BITS == u64::BITS);

/// The state of a limiter, and two flags for the queue in front of it.
///
/// ```text
///  63     61 60      59     58                                      0
/// +---------+-------+------+------------------------------------------+
/// | version |waiting|behind| field                                    |
/// +---------+-------+------+------------------------------------------+
/// ```
///
/// - `version`: the quota under which the word was written, as an index into the ring of sets in [`Cell`](crate::cell::Cell).
/// - `waiting`: somebody stands in line (or the shaper is closed); only the holder of the queue's lock writes the word.
/// - `behind`: permits left late, and the schedule has not caught up with the clock yet. In a limiter, which has no schedule:
///   something was granted since the pause that this version tells of has ended.
/// - `field`: what the law counts. For a bucket the theoretical arrival time, in ticks of that quota since its origin.
///
/// The initial word is zero: version 0, and a field of zero, which is a limiter at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn version(self) -> usize {
        (self.0 >> VERSION_SHIFT) as usize
    }

    #[inline]
    pub(crate) const fn field(self) -> u64 {
        self.0 & FIELD
    }

    #[inline]
    pub(crate) const fn is_waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    #[inline]
    pub(crate) const fn is_behind(self) -> bool {
        self.0 & BEHIND != 0
    }

    /// The same word with another field, which fits.
    #[inline]
    pub(crate) fn with_field(self, field: u64) -> Self {
        debug_assert!(field <= FIELD, "{field} does not fit the field");
        Self((self.0 & !FIELD) | (field & FIELD))
    }

    #[inline]
    pub(crate) const fn with_waiting(self, waiting: bool) -> Self {
        Self(if waiting { self.0 | WAITING } else { self.0 & !WAITING })
    }

    #[inline]
    pub(crate) const fn with_behind(self, behind: bool) -> Self {
        Self(if behind { self.0 | BEHIND } else { self.0 & !BEHIND })
    }

    /// Whether both hold the same field under the same version, whatever their flags.
    pub(crate) const fn same_field(self, other: Self) -> bool {
        self.with_waiting(false).with_behind(false).0 == other.with_waiting(false).with_behind(false).0
    }

    /// The same word under the next version of the quota.
    pub(crate) const fn with_next_version(self) -> Self {
        Self(self.0.wrapping_add(1 << VERSION_SHIFT))
    }

    /// The version after this one.
    pub(crate) const fn next_version(self) -> usize {
        self.with_next_version().version()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_at_its_edges_and_leaves_the_others_alone() {
        for field in [0, 1, FIELD - 1, FIELD] {
            for (waiting, behind) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut word = Word::default().with_field(field).with_waiting(waiting).with_behind(behind);
                for step in 0..=VERSIONS {
                    assert_eq!(word.version(), step % VERSIONS);
                    assert_eq!(word.next_version(), (step + 1) % VERSIONS);
                    assert_eq!((word.field(), word.is_waiting(), word.is_behind()), (field, waiting, behind));
                    assert_eq!(Word::from_bits(word.bits()), word);
                    word = word.with_next_version();
                }
            }
        }
    }

    #[test]
    fn the_fields_fill_the_word() {
        let full = Word::from_bits(u64::MAX);
        assert_eq!((full.version(), full.field()), (VERSIONS - 1, FIELD));
        assert!(full.is_waiting() && full.is_behind());
    }
}
