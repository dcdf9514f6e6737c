//! Keys, and the order in which they are asked for.

/// A key type that is measured.
pub(crate) trait Key: Clone + Send + Sync + 'static {
    /// The word for it in the names of cases.
    const NAME: &'static str;

    /// The key of that number. All are different.
    fn number(number: usize) -> Self;
}

impl Key for u64 {
    const NAME: &'static str = "u64";

    fn number(number: usize) -> Self {
        mix(number as Self)
    }
}

impl Key for String {
    const NAME: &'static str = "string";

    fn number(number: usize) -> Self {
        format!("client:{number:010}")
    }
}

/// How often keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// All alike.
    Uniform,
    /// The k-th key 1/k as often as the first.
    Zipf,
}

impl Draw {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// So many numbers of keys below `keys`, the same in every run.
    pub(crate) fn sequence(self, keys: usize, length: usize) -> Vec<usize> {
        let random = (0..length).map(|index| (mix(index as u64) >> 11) as f64 / (1u64 << 53) as f64);
        match self {
            Self::Uniform => random.map(|share| ((share * keys as f64) as usize).min(keys - 1)).collect(),
            Self::Zipf => {
                let mut sum = 0.0;
                let sums: Vec<f64> = (1..=keys)
                    .map(|rank| {
                        sum += 1.0 / rank as f64;
                        sum
                    })
                    .collect();
                random.map(|share| sums.partition_point(|&below| below <= share * sum).min(keys - 1)).collect()
            }
        }
    }
}

/// Spreads numbers over all of 64 bits, each to another one: the finalizer of splitmix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_keys_are_different() {
        assert_eq!((0..10_000).map(u64::number).collect::<HashSet<_>>().len(), 10_000);
        assert_eq!((0..10_000).map(String::number).collect::<HashSet<_>>().len(), 10_000);
    }

    #[test]
    fn uniform_keys_are_drawn_alike_and_zipf_keys_by_their_rank() {
        let counts = |draw: Draw| {
            let mut counts = [0usize; 10];
            for key in draw.sequence(10, 100_000) {
                counts[key] += 1;
            }
            counts
        };
        for count in counts(Draw::Uniform) {
            assert!(count.abs_diff(10_000) < 500, "{count}");
        }
        let zipf = counts(Draw::Zipf);
        let first = 100_000.0 / (1..=10).map(|rank| 1.0 / f64::from(rank)).sum::<f64>();
        for (rank, count) in (1..).zip(zipf) {
            assert!((count as f64 - first / f64::from(rank)).abs() < 600.0, "{zipf:?}");
        }
    }
}
