//! Numbers that suit an axis.

use std::ops::Range;
use std::time::Duration;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis: what it measures, from where to where, and where it has labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) range: Range<f64>,
    pub(crate) ticks: Vec<f64>,
    logarithmic: bool,
}

impl Axis {
    /// Creates an axis with a label at every multiple of a nice number, about `ticks` of them.
    pub(crate) fn linear(label: String, range: Range<f64>, ticks: f64) -> Self {
        let step = nice((range.end - range.start) / ticks);
        let first = (range.start / step - 1e-9).ceil();
        let ticks = (0..).map(|tick| (first + f64::from(tick)) * step);
        let ticks = ticks.take_while(|&tick| tick <= range.end + step * 1e-9).collect();
        Self { label, range, ticks, logarithmic: false }
    }

    /// Creates an axis with a label at every power of ten. It begins with one, which must be above 0.
    pub(crate) fn logarithmic(label: String, range: Range<f64>) -> Self {
        let start = 10_f64.powf((range.start.log10() + 1e-9).floor());
        let powers = std::iter::successors(Some(start), |power| Some(power * 10.0));
        let ticks = powers.take_while(|&power| power <= range.end).collect();
        Self { label, range: start..range.end, ticks, logarithmic: true }
    }

    /// Returns where a figure lies between the start of the axis, 0, and its end, 1. On a logarithmic axis a figure below the
    /// start counts as that.
    fn place(&self, figure: f64) -> f64 {
        let even = |figure: f64| if self.logarithmic { figure.max(self.range.start).log10() } else { figure };
        let (start, end) = (even(self.range.start), even(self.range.end));
        (even(figure) - start) / (end - start)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[allow(clippy::cast_possible_truncation, reason = "it saturates")]
    fn map(&self, figure: &f64, (start, end): (i32, i32)) -> i32 {
        (f64::from(start) + f64::from(end - start) * self.place(*figure)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, figure: &f64) -> String {
        grouped(*figure)
    }
}

/// Writes a figure with commas between thousands, and with three digits behind the point if it needs them.
pub(crate) fn grouped(figure: f64) -> String {
    let text = format!("{figure:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// The least of 1, 2 and 5 times a power of ten that is not less than `figure`.
pub(crate) fn nice(figure: f64) -> f64 {
    let power = 10_f64.powf(figure.log10().floor());
    let close = figure * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|&step| step >= close).unwrap_or(power * 10.0)
}

/// Counts the times in each of so many spans of length `span`, of which the first begins at 0. Later ones are left out.
pub(crate) fn counts(times: impl IntoIterator<Item = Duration>, span: Duration, spans: usize) -> Vec<u32> {
    let mut counts = vec![0; spans];
    for time in times {
        let count = usize::try_from(time.as_nanos() / span.as_nanos()).ok().and_then(|index| counts.get_mut(index));
        if let Some(count) = count {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_number_is_the_next_1_2_or_5() {
        for (figure, expected) in
            [(1.0, 1.0), (1.1, 2.0), (2.0, 2.0), (4.9, 5.0), (5.1, 10.0), (0.05, 0.05), (0.06, 0.1)]
        {
            assert!((nice(figure) - expected).abs() < 1e-9, "{figure}: {}", nice(figure));
        }
    }

    #[test]
    fn a_linear_axis_has_labels_at_multiples_within_its_range() {
        assert_eq!(Axis::linear(String::new(), 0.0..4.0, 4.0).ticks, [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Axis::linear(String::new(), 950.0..1_050.0, 5.0).ticks, [960.0, 980.0, 1_000.0, 1_020.0, 1_040.0]);
    }

    #[test]
    fn a_logarithmic_axis_begins_with_a_power_of_ten() {
        let axis = Axis::logarithmic(String::new(), 20.0..12_000.0);
        assert_eq!((axis.range.clone(), &axis.ticks[..]), (10.0..12_000.0, &[10.0, 100.0, 1_000.0, 10_000.0][..]));
        let axis = Axis::logarithmic(String::new(), 10.0..1_000.0);
        assert_eq!(
            [0.0, 5.0, 10.0, 100.0, 1_000.0].map(|figure| axis.map(&figure, (300, 100))),
            [300, 300, 300, 200, 100]
        );
    }

    #[test]
    fn figures_are_written_with_commas_and_without_idle_noughts() {
        for (figure, text) in
            [(0.0, "0"), (0.02, "0.02"), (100.0, "100"), (1_000.0, "1,000"), (1_234_567.5, "1,234,567.5"), (1e-9, "0")]
        {
            assert_eq!(grouped(figure), text);
        }
    }

    #[test]
    fn a_time_counts_in_the_span_that_it_begins_or_lies_in() {
        let times = [0, 9, 10, 10, 29, 30, 1_000].map(Duration::from_millis);
        assert_eq!(counts(times, Duration::from_millis(10), 3), [2, 2, 1]);
        assert_eq!(counts([], Duration::from_millis(10), 2), [0, 0]);
    }
}
