//! Where a time lies on the axis. In whole numbers, since a nanosecond is lost in a floating point number of years.

use std::ops::Range;

/// About how many labels an axis has.
const LABELS: i128 = 10;
/// The most edges of windows that are worth drawing.
const MOST_EDGES: i128 = 60;

/// An axis from one time to another, in pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    times: Range<i128>,
    pixels: Range<i32>,
}

impl Scale {
    /// An axis with all the times on it, and a little room on both sides.
    pub(crate) fn of(times: impl Iterator<Item = u64>, pixels: Range<i32>) -> Self {
        let (mut first, mut last) = (u64::MAX, 0);
        for time in times {
            (first, last) = (first.min(time), last.max(time));
        }
        let (first, last) = (i128::from(first.min(last)), i128::from(last));
        // A single instant has a second around it.
        let room = if first == last { 500_000_000 } else { (last - first) / 40 + 1 };
        Self { times: first - room..last + room, pixels }
    }

    pub(crate) fn place(&self, time: u64) -> i32 {
        let (span, pixels) = (self.times.end - self.times.start, i128::from(self.pixels.end - self.pixels.start));
        let along = (i128::from(time) - self.times.start) * pixels / span;
        self.pixels.start + i32::try_from(along).unwrap_or(0)
    }

    /// The places and times of the labels: multiples of a 1, 2 or 5 with noughts.
    pub(crate) fn ticks(&self) -> Vec<(i32, u64)> {
        let least = (self.times.end - self.times.start) / LABELS;
        let powers = std::iter::successors(Some(1_i128), |power| power.checked_mul(10));
        let steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
        let step = steps.into_iter().find(|step| *step >= least).unwrap_or(least);
        self.every(step).filter_map(|time| u64::try_from(time).ok()).map(|time| (self.place(time), time)).collect()
    }

    /// The places of all multiples of a length; none if there are too many to tell them apart.
    pub(crate) fn multiples(&self, length: u64) -> Vec<i32> {
        let length = i128::from(length);
        if (self.times.end - self.times.start) / length > MOST_EDGES {
            return Vec::new();
        }
        self.every(length).filter_map(|time| u64::try_from(time).ok()).map(|time| self.place(time)).collect()
    }

    fn every(&self, step: i128) -> impl Iterator<Item = i128> {
        let first = -(-self.times.start).div_euclid(step) * step;
        let end = self.times.end;
        (0..).map(move |index| first + index * step).take_while(move |time| *time < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_time_lie_within_the_axis() {
        for (first, last) in [(0, 0), (0, 1), (0, u64::MAX), (u64::MAX, u64::MAX), (8_000_000_000, 10_800_000_000)] {
            let scale = Scale::of([last, first].into_iter(), 100..1_100);
            let places = [first, last].map(|time| scale.place(time));
            assert!(places.iter().all(|place| (100..=1_100).contains(place)), "{places:?}");
            assert!(first == last || places[0] < places[1], "{places:?}");
        }
    }

    #[test]
    fn labels_stand_at_round_times() {
        let seconds =
            |first, last| Scale::of([first, last].into_iter(), 0..1_000).ticks().into_iter().map(|tick| tick.1);
        let half = 500_000_000;
        assert!(seconds(8_000_000_000, 10_800_000_000).eq((16..=21).map(|halves| halves * half)));
        assert!(seconds(u64::MAX - 10, u64::MAX).count() > 2);
        assert!((4..=11).contains(&seconds(0, u64::MAX).count()));
    }

    #[test]
    fn edges_are_left_out_where_they_would_be_a_blur() {
        let scale = Scale::of([0, 30_000_000_000].into_iter(), 0..1_000);
        assert_eq!(scale.multiples(10_000_000_000).len(), 4);
        assert_eq!(scale.multiples(1), []);
    }
}
