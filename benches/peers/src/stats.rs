//! What many measurements say together.

/// The middle and the ends of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) samples: usize,
}

impl Summary {
    /// Summarises measurements; of none there is nothing to say.
    pub(crate) fn of(measured: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measured.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max, samples: sorted.len() })
    }

    /// A figure that was found once.
    pub(crate) fn exact(figure: f64) -> Self {
        Self { median: figure, min: figure, max: figure, samples: 1 }
    }
}

/// The figure below which a share `q` of the sorted figures lies; of none there is none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list, from 0 to its length")]
pub(crate) fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = ((sorted.len() as f64 * q) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied()
}

/// How many pairs stand in another order than their numbers.
pub(crate) fn inversions(order: &[usize]) -> u64 {
    sort_counting(&mut order.to_vec())
}

/// Merges and counts: for each number how many larger ones stand before it.
fn sort_counting(order: &mut [usize]) -> u64 {
    if order.len() < 2 {
        return 0;
    }
    let (left, right) = order.split_at_mut(order.len() / 2);
    let mut inverted = sort_counting(left) + sort_counting(right);
    let (mut from_left, mut from_right) = (0, 0);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while from_left < left.len() || from_right < right.len() {
        let take_left = from_right == right.len() || from_left < left.len() && left[from_left] <= right[from_right];
        if take_left {
            merged.push(left[from_left]);
            from_left += 1;
        } else {
            merged.push(right[from_right]);
            from_right += 1;
            inverted += (left.len() - from_left) as u64;
        }
    }
    order.copy_from_slice(&merged);
    inverted
}

/// The most of the sorted times that lie within any half-open window `[t, t + span)`.
pub(crate) fn most_within(sorted: &[f64], span: f64) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (last, &time) in sorted.iter().enumerate() {
        while time - sorted[first] >= span {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_middle_and_both_ends() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([3.0]), Some(Summary::exact(3.0)));
        let odd = Summary::of([9.0, 1.0, 4.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max, odd.samples), (4.0, 1.0, 9.0, 3));
        assert_eq!(Summary::of([1.0, 2.0, 4.0, 9.0]).unwrap().median, 3.0);
    }

    #[test]
    fn a_quantile_is_a_figure_of_the_list() {
        let sorted: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!([0.0, 0.01, 0.5, 0.99, 1.0].map(|q| quantile(&sorted, q)), [0.0, 1.0, 50.0, 99.0, 99.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn inversions_agree_with_counting_every_pair() {
        let naive = |order: &[usize]| {
            let pairs = order.iter().enumerate().flat_map(|(at, a)| order[at..].iter().map(move |b| (a, b)));
            pairs.filter(|(a, b)| a > b).count() as u64
        };
        // A fixed sequence without a pattern.
        let mut state = 1usize;
        for length in 0..40 {
            let order: Vec<usize> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    state >> 58
                })
                .collect();
            assert_eq!(inversions(&order), naive(&order), "{order:?}");
        }
        assert_eq!(inversions(&[0, 1, 2, 3]), 0);
        assert_eq!(inversions(&[3, 2, 1, 0]), 6);
    }

    #[test]
    fn a_window_holds_its_beginning_and_not_its_end() {
        assert_eq!(most_within(&[], 1.0), 0);
        assert_eq!(most_within(&[0.0, 1.0, 2.0], 1.0), 1);
        assert_eq!(most_within(&[0.0, 0.5, 1.0, 1.25, 9.0], 1.0), 3);
        assert_eq!(most_within(&[5.0, 5.0, 5.0], 1.0), 3);
    }
}
