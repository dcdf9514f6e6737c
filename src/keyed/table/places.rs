//! Where the state of a key may be.
//!
//! A cache line holds four slots, and two neighbouring lines are a *pair*, which processors like to fetch together. A fingerprint
//! names a *home* line and a *far* one, and may be anywhere in the pairs of these two. A newcomer goes home, or next door if the
//! home line is full, as long as the pair has room enough; else to the emptier of both pairs. Where both are full, the pair that
//! is the spare one of its stripe takes it.
//!
//! Half of all slots are enough for `max_keys`. Then 93 of 100 keys are in their home line, 2 next door and 5 far away, and there
//! are practically no newcomers without a place: none in 120 million, see the example `keys`. (Simpler choices: one pair alone would
//! refuse 2 in 100 at the end, and the emptier one of two lines would put 27 of 100 far away.)

use super::KeyedError;
use super::slot::Slot;

/// Slots in a cache line. A model's table is full with a few keys.
const SLOTS: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 1 } else { 4 };

/// Four slots in a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [Slot; SLOTS]);

/// Two lines that are fetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Pair([Line; 2]);

impl Pair {
    pub(super) const SLOTS: usize = 2 * SLOTS;
}

/// The slots of a table.
#[derive(Debug)]
pub(super) struct Places {
    /// Those in which any key may be, then a spare one for each stripe.
    pairs: Box<[Pair]>,
    /// How many lines there are before the spare ones.
    lines: usize,
    /// The number of stripes, a power of two, less one.
    last_stripe: u64,
}

/// A fingerprint whose bits are spread, since it may come from a hasher that does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread(u64);

impl Spread {
    /// The halves of a product, folded, as in wyhash (Wang Yi, 2019).
    #[inline]
    pub(super) const fn of(fingerprint: u64) -> Self {
        let product = ((fingerprint ^ 0x9e37_79b9_7f4a_7c15) as u128).wrapping_mul(0xd1b5_4a32_d192_ed03);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        Self(product as u64 ^ (product >> u64::BITS) as u64)
    }
}

impl Places {
    /// So many pairs, and spare ones for so many stripes, which are a power of two.
    pub(super) fn new(pairs: usize, stripes: usize) -> Result<Self, KeyedError> {
        let spare = if pairs > 0 { stripes } else { 0 };
        let all = super::boxed(pairs.saturating_add(spare), Pair::default)?;
        Ok(Self { pairs: all, lines: pairs.saturating_mul(2), last_stripe: (stripes as u64).saturating_sub(1) })
    }

    /// The home line of a key, and the one next door. There may be none at all.
    #[inline]
    pub(super) fn home(&self, key: Spread) -> Option<[&Line; 2]> {
        self.around(scaled(key.0, self.lines))
    }

    /// The far line of a key and the one next to it, unless there are no others.
    pub(super) fn far(&self, key: Spread) -> Option<[&Line; 2]> {
        if self.lines <= 2 {
            return None;
        }
        let (home, far) = (scaled(key.0, self.lines), scaled(key.0.rotate_left(32), self.lines));
        let next = |line: usize| line.checked_sub(2).unwrap_or(self.lines.saturating_sub(1));
        self.around(if far / 2 == home / 2 { next(far) } else { far })
    }

    /// The spare lines of a key's stripe.
    pub(super) fn spare(&self, key: Spread) -> Option<[&Line; 2]> {
        self.around(self.lines.saturating_add(self.stripe(key).saturating_mul(2)))
    }

    /// All lines in which a key may be, the likelier ones first.
    pub(super) fn all(&self, key: Spread) -> impl Iterator<Item = &Line> {
        [self.home(key), self.far(key), self.spare(key)].into_iter().flatten().flatten()
    }

    /// The stripe whose lock a newcomer takes.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below the number of stripes, which is a usize")]
    pub(super) fn stripe(&self, key: Spread) -> usize {
        (key.0 & self.last_stripe) as usize
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.pairs.iter().flat_map(|pair| &pair.0).flat_map(|line| &line.0)
    }

    /// In bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.pairs)
    }

    /// A line and its neighbour.
    #[inline]
    fn around(&self, line: usize) -> Option<[&Line; 2]> {
        let [even, odd] = &self.pairs.get(line / 2)?.0;
        Some(if line % 2 == 0 { [even, odd] } else { [odd, even] })
    }
}

/// A number below `end`, each as often as any other; 0 if there is none.
#[inline]
fn scaled(spread: u64, end: usize) -> usize {
    // Below `end`, which is a usize.
    usize::try_from((u128::from(spread).wrapping_mul(end as u128)) >> u64::BITS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ptr;

    use super::*;

    /// Numbers without a pattern, the same in every run (splitmix64).
    fn random(seed: u64) -> impl Iterator<Item = u64> {
        (1..).map(move |step: u64| {
            let mut mixed = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
            for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
                mixed = (mixed ^ (mixed >> shift)).wrapping_mul(factor);
            }
            mixed ^ (mixed >> 31)
        })
    }

    #[test]
    fn the_lines_of_a_key_are_six_and_never_one_twice() {
        for (pairs, lines) in [(0, 0), (1, 4), (2, 6), (3, 6), (1_000, 6)] {
            for stripes in [1, 4] {
                let places = Places::new(pairs, stripes).unwrap();
                for fingerprint in random(1).take(1_000) {
                    let key = Spread::of(fingerprint);
                    assert!(places.stripe(key) < stripes);
                    let all: HashSet<*const Line> = places.all(key).map(ptr::from_ref).collect();
                    assert_eq!((all.len(), places.all(key).count()), (lines, lines), "{pairs} pairs");
                    let spare = places.spare(key).map(|[line, _]| ptr::from_ref(line));
                    let own = places.slots().nth((pairs + places.stripe(key)) * Pair::SLOTS);
                    assert_eq!(spare.map(<*const Line>::cast), own.map(ptr::from_ref));
                }
            }
        }
    }

    #[test]
    fn a_line_and_its_neighbour_share_128_bytes() {
        let places = Places::new(7, 1).unwrap();
        for fingerprint in random(2).take(100) {
            let [home, next] = places.home(Spread::of(fingerprint)).unwrap().map(|line| ptr::from_ref(line).addr());
            assert_eq!((home / 128, home.abs_diff(next)), (next / 128, 64));
        }
    }

    #[test]
    fn fingerprints_with_a_pattern_are_spread_like_others() {
        let places = Places::new(500, 1).unwrap();
        for step in (0..64).map(|bit| 1 << bit).chain([3, 1_000, 0x0101_0101_0101_0101]) {
            let mut keys = HashSet::new();
            let (mut home, mut far) = ([0; 1_000], [0; 1_000]);
            for key in (0..4_000u64).map(|count| count.wrapping_mul(step)).filter(|key| keys.insert(*key)) {
                let spread = Spread::of(key);
                home[scaled(spread.0, places.lines)] += 1;
                far[scaled(spread.0.rotate_left(32), places.lines)] += 1;
            }
            // Four in a line on average. Of as many random numbers, a line has more than 20 once in ten million times.
            assert!(home.iter().chain(&far).all(|count| *count <= 20), "step {step:#x}");
        }
    }
}
