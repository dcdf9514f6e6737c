//! What a run tells: progress on standard error, outcomes on standard output.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::client::Mishaps;
use crate::service::Tally;

/// What came of a phase. The fields, in this order, are the JSON object; `--help` explains them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    phase: &'static str,
    configured: u64,
    delivered: Option<f64>,
    falls: u64,
    refused: u64,
    spacing_p50: Option<f64>,
    spacing_p99: Option<f64>,
    /// Calls that failed, in the table only: over loopback there are none.
    #[serde(skip)]
    errors: u64,
    #[serde(skip)]
    served: u64,
    #[serde(skip)]
    asked: u64,
}

impl Outcome {
    /// Sums a phase up.
    pub(crate) fn new(
        phase: &'static str,
        configured: u64,
        arrivals: &[Duration],
        tally: Tally,
        mishaps: &Mishaps,
    ) -> Self {
        let mut spacings: Vec<_> = arrivals.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        spacings.sort_unstable();
        Self {
            phase,
            configured,
            delivered: delivered(arrivals, tally.served),
            falls: tally.falls,
            refused: tally.refused + mishaps.refusals(),
            spacing_p50: percentile(&spacings, 50).map(microseconds),
            spacing_p99: percentile(&spacings, 99).map(microseconds),
            errors: mishaps.errors(),
            served: tally.served,
            asked: tally.asked,
        }
    }

    /// Returns whether the service never fell over.
    pub(crate) fn stood(&self) -> bool {
        self.falls == 0
    }

    /// Returns whether any call was served. If none was, that nothing fell over says nothing.
    pub(crate) fn served_any(&self) -> bool {
        self.served > 0
    }

    /// Returns whether the service asked for peace. If it did not, that nothing fell over says less.
    pub(crate) fn asked_for_peace(&self) -> bool {
        self.asked > 0
    }
}

/// Says how a phase goes.
pub(crate) fn progress(phase: &str, second: u64, tally: Tally) {
    let Tally { served, refused, falls, .. } = tally;
    say(&format!("{phase:<9} {second:>2} s: {served:>7} served, {refused:>7} refused, {falls:>2} falls"));
}

/// Writes a line to standard error. If nobody listens there, the run goes on.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints the outcomes of a run, as a table or as JSON.
pub(crate) fn print(outcomes: &[Outcome], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        for outcome in outcomes {
            serde_json::to_writer(&mut out, outcome)?;
            writeln!(out)?;
        }
    } else {
        table(&mut out, outcomes)?;
    }
    out.flush()
}

fn table(out: &mut impl Write, outcomes: &[Outcome]) -> io::Result<()> {
    writeln!(
        out,
        "{:<9} {:>12} {:>12} {:>14} {:>14} {:>9} {:>6} {:>7}",
        "phase", "configured", "delivered", "spacing p50", "spacing p99", "refused", "falls", "errors"
    )?;
    for outcome in outcomes {
        let Outcome { phase, configured, falls, refused, errors, .. } = outcome;
        let configured = format!("{configured} /s");
        let delivered = unit(outcome.delivered, "/s");
        let (p50, p99) = (unit(outcome.spacing_p50, "µs"), unit(outcome.spacing_p99, "µs"));
        writeln!(
            out,
            "{phase:<9} {configured:>12} {delivered:>12} {p50:>14} {p99:>14} {refused:>9} {falls:>6} {errors:>7}"
        )?;
    }
    Ok(())
}

fn unit(figure: Option<f64>, unit: &str) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1} {unit}"))
}

/// Calls served a second: n calls are n - 1 intervals, over the time from the first arrival to the last.
fn delivered(arrivals: &[Duration], served: u64) -> Option<f64> {
    let span = arrivals.last()?.saturating_sub(*arrivals.first()?);
    if span.is_zero() {
        return None;
    }
    Some(tenths(served.saturating_sub(1) as f64 / span.as_secs_f64()))
}

/// The smallest of the sorted `spacings` that at least `percent` of 100 of them do not exceed.
fn percentile(spacings: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (spacings.len() * percent).div_ceil(100);
    spacings.get(rank.checked_sub(1)?).copied()
}

fn microseconds(time: Duration) -> f64 {
    tenths(time.as_secs_f64() * 1e6)
}

/// Further digits would be noise.
fn tenths(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(milliseconds: &[u64], tally: Tally) -> Outcome {
        let arrivals: Vec<_> = milliseconds.iter().copied().map(Duration::from_millis).collect();
        Outcome::new("shaped", 500, &arrivals, tally, &Mishaps::default())
    }

    fn served(served: u64) -> Tally {
        Tally { served, ..Tally::default() }
    }

    #[test]
    fn a_json_object_has_the_documented_fields_in_order() {
        let line = serde_json::to_string(&outcome(&[0, 6, 8, 10], served(4))).unwrap();
        let expected = r#"{"phase":"shaped","configured":500,"delivered":300.0,"falls":0,"refused":0,"#;
        assert_eq!(line, format!(r#"{expected}"spacing_p50":2000.0,"spacing_p99":6000.0}}"#));
    }

    #[test]
    fn figures_without_two_arrivals_are_null() {
        for arrivals in [&[][..], &[3]] {
            let line = serde_json::to_string(&outcome(arrivals, served(1))).unwrap();
            assert!(line.contains(r#""delivered":null"#) && line.contains(r#""spacing_p99":null"#), "{line}");
        }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let spacings: Vec<_> = (1..=100).map(Duration::from_micros).collect();
        for (count, percent, expected) in
            [(100, 50, 50), (100, 99, 99), (99, 99, 99), (10, 99, 10), (3, 50, 2), (1, 50, 1)]
        {
            assert_eq!(
                percentile(&spacings[..count], percent),
                Some(Duration::from_micros(expected)),
                "{count} {percent}"
            );
        }
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn the_table_has_a_line_a_phase_and_its_columns_line_up() {
        let mut out = Vec::new();
        let fallen = outcome(&[0, 1], Tally { served: 1, refused: 1, falls: 1, asked: 0 });
        table(&mut out, &[fallen, outcome(&[], Tally::default())]).unwrap();
        let lines: Vec<_> = std::str::from_utf8(&out).unwrap().lines().map(|line| line.chars().count()).collect();
        assert_eq!(lines, [lines[0]; 3]);
    }
}
