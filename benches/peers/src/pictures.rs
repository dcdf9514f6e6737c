//! The pictures of the suites that have one.

use plotters::style::RGBColor;

use crate::chart::{Axis, BLACK, BLUE, Chart, Key, Marks, Panel, RED, Row, Sign, nice};
use crate::machine;
use crate::record::Case;
use crate::suites::{keyed, pacing};

const GREEN: RGBColor = RGBColor(0, 158, 115);
const PURPLE: RGBColor = RGBColor(170, 68, 153);
const ORANGE: RGBColor = RGBColor(221, 150, 20);

/// A system in a picture.
struct Line {
    /// As it is called in the cases.
    system: &'static str,
    meaning: &'static str,
    colour: RGBColor,
}

/// In the order in which they are drawn: what lies below others first.
const PACED: [Line; 6] = [
    Line { system: pacing::CONTROL, meaning: "bare schedule", colour: BLACK },
    Line { system: "rate-net", meaning: "rate-net", colour: ORANGE },
    Line { system: "leaky-bucket", meaning: "leaky-bucket", colour: PURPLE },
    Line { system: "throttle-net", meaning: "throttle-net", colour: GREEN },
    Line { system: "governor", meaning: "governor", colour: RED },
    Line { system: "tollgate", meaning: "tollgate", colour: BLUE },
];

const KEYED: [Line; 6] = [
    Line { system: keyed::FLOOR, meaning: "the floor", colour: BLACK },
    Line { system: "mutexed map", meaning: "mutexed map", colour: PURPLE },
    Line { system: "rate-net", meaning: "rate-net", colour: ORANGE },
    Line { system: "throttle-net (PerKey)", meaning: "throttle-net", colour: GREEN },
    Line { system: "governor (DashMap)", meaning: "governor", colour: RED },
    Line { system: "tollgate", meaning: "tollgate", colour: BLUE },
];

/// What share of each rate is delivered.
pub(crate) fn pacing(cases: &[Case]) -> Chart {
    let panel = |tasks: usize| {
        let points = pacing::RATES.map(|rate| (f64::from(rate), pacing::name(rate, tasks)));
        Panel {
            heading: format!("{tasks} {} in a loop", if tasks == 1 { "task" } else { "tasks" }),
            remark: "burst 1: permits one by one".to_owned(),
            x: Axis::logarithmic("permits a second, as configured".to_owned(), 100.0..30_000.0),
            marks: lines(&PACED, cases, &points, "delivered"),
        }
    };
    let panels = vec![panel(1), panel(50)];
    let top = highest(&panels).max(110.0);
    Chart {
        title: "How much of the configured rate is delivered".to_owned(),
        subtitle: machine::line(),
        legend: legend(&PACED),
        rows: vec![Row { y: Axis::linear("delivered, %".to_owned(), 0.0..top, 5.0), panels }],
    }
}

/// What a call costs with more and more keys.
pub(crate) fn keyed(cases: &[Case]) -> Chart {
    let panel = |heading: &str, remark: &str, kind: &str, key: &str, draw: &str| {
        let points = keyed::SIZES.map(|keys| (keys as f64, keyed::name(kind, key, keys, draw, 1)));
        Panel {
            heading: heading.to_owned(),
            remark: remark.to_owned(),
            x: Axis::logarithmic("keys".to_owned(), 1_000.0..6_000_000.0),
            marks: lines(&KEYED, cases, &points, "ns"),
        }
    };
    let row = |panels: Vec<Panel>| {
        let top = nice(1.02 * highest(&panels).max(10.0));
        Row { y: Axis::linear("ns a call".to_owned(), 0.0..top, 5.0), panels }
    };
    Chart {
        title: "What a yes costs for one key of many, on one thread".to_owned(),
        subtitle: machine::line(),
        legend: legend(&KEYED),
        rows: vec![
            row(vec![
                panel("known u64 keys", "all asked for alike", "hit", "u64", "uniform"),
                panel("known u64 keys", "the k-th 1/k as often as the first", "hit", "u64", "zipf"),
            ]),
            row(vec![
                panel("first sight of u64 keys", "", "first_sight", "u64", ""),
                panel("first sight of strings", "", "first_sight", "string", ""),
            ]),
        ],
    }
}

fn legend(lines: &[Line]) -> Vec<Key> {
    let key = |line: &Line| Key { sign: Sign::Line, colour: line.colour, meaning: line.meaning.to_owned() };
    lines.iter().rev().map(key).collect()
}

/// The medians of a metric at the points that were measured, each given by its place and its case.
fn lines(lines: &[Line], cases: &[Case], points: &[(f64, String)], metric: &str) -> Vec<Marks> {
    let mut marks = Vec::new();
    for Line { system, colour, .. } in lines {
        let measured: Vec<(f64, f64)> = points
            .iter()
            .filter_map(|(place, name)| {
                let case = cases.iter().find(|case| case.name == *name)?;
                let row = case.rows.iter().find(|row| row.system == *system)?;
                Some((*place, row.median(metric)?))
            })
            .collect();
        marks.push(Marks::Line { colour: *colour, points: measured.clone() });
        marks.push(Marks::Dots { colour: *colour, points: measured });
    }
    marks
}

/// The highest point of all lines.
fn highest(panels: &[Panel]) -> f64 {
    let points = panels.iter().flat_map(|panel| &panel.marks).map(|marks| match marks {
        Marks::Line { points, .. } => points.iter().map(|point| point.1).fold(0.0, f64::max),
        _ => 0.0,
    });
    points.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::svg;
    use crate::record;

    #[test]
    fn what_was_measured_is_drawn_and_what_failed_is_left_out() {
        let case = |name: String, figure: f64| Case {
            name,
            about: String::new(),
            rows: vec![
                record::Row::new("tollgate").number("delivered", "%", figure),
                record::Row::failed("governor", "panicked"),
            ],
        };
        let cases = [case(pacing::name(100, 1), 100.0), case(pacing::name(5_000, 1), 99.9)];
        let chart = pacing(&cases);
        let drawn = |colour: RGBColor| {
            let line = chart.rows[0].panels[0].marks.iter().find_map(|marks| match marks {
                Marks::Line { colour: other, points } if *other == colour => Some(points.clone()),
                _ => None,
            });
            line.unwrap_or_default()
        };
        assert_eq!(drawn(BLUE), [(100.0, 100.0), (5_000.0, 99.9)]);
        assert_eq!(drawn(RED), []);
        let svg = svg(&chart).unwrap();
        for word in ["bare schedule", "tollgate", "1 task in a loop", "50 tasks in a loop", "delivered, %"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word} is missing in:\n{svg}");
        }
    }

    #[test]
    fn a_picture_of_nothing_can_be_drawn() {
        assert!(svg(&pacing(&[])).unwrap().ends_with("</svg>\n"));
        assert!(svg(&keyed(&[])).unwrap().ends_with("</svg>\n"));
    }
}
