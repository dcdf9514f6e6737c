//! Prints what was found: tables for people, objects for programs, small tables for a document.

use std::io::{self, Write};

use crate::record::{self, Case, FAILED, Figure, Row, Value};
use crate::stats::Summary;

/// A figure that stands for a suite in its small table: a column, or what a column shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Highlight {
    pub(crate) case: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) heading: &'static str,
}

/// Prints the head: what was measured, where and when.
pub(crate) fn head(out: &mut impl Write, head: &[(&'static str, String)]) -> io::Result<()> {
    for (word, text) in head {
        writeln!(out, "{word:>9}  {text}")?;
    }
    writeln!(out)
}

/// Prints the objects of a case, one a line.
pub(crate) fn json(out: &mut impl Write, suite: &str, case: &Case) -> io::Result<()> {
    for object in record::json(suite, case) {
        writeln!(out, "{object}")?;
    }
    out.flush()
}

/// Prints a case as a table: a line a system, a column a metric.
pub(crate) fn table(out: &mut impl Write, suite: &str, case: &Case) -> io::Result<()> {
    writeln!(out, "{suite}: {}", case.name)?;
    writeln!(out, "  {}", case.about)?;
    let mut metrics: Vec<&Figure> = Vec::new();
    for figure in case.rows.iter().flat_map(|row| &row.figures) {
        if figure.metric != FAILED && metrics.iter().all(|other| other.metric != figure.metric) {
            metrics.push(figure);
        }
    }
    let heading = |figure: &Figure| match figure.unit {
        "" => figure.metric.to_owned(),
        unit if unit == figure.metric => unit.to_owned(),
        unit => format!("{} [{unit}]", figure.metric),
    };
    let mut lines = vec![std::iter::once(String::new()).chain(metrics.iter().map(|figure| heading(figure))).collect()];
    for row in &case.rows {
        let cells =
            metrics.iter().map(|figure| row.get(figure.metric).map_or_else(String::new, |found| cell(&found.value)));
        lines.push(std::iter::once(row.system.clone()).chain(cells).collect::<Vec<String>>());
    }
    let widths: Vec<usize> = (0..=metrics.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    for (index, line) in lines.iter().enumerate() {
        let mut text = format!("  {:<width$}", line[0], width = widths[0]);
        match index.checked_sub(1).and_then(|row| case.rows[row].get(FAILED)) {
            Some(Figure { value: Value::Words(why), .. }) => text += &format!("  {why}"),
            _ => {
                for (cell, &width) in line[1..].iter().zip(&widths[1..]) {
                    text += &format!("  {cell:>width$}");
                }
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    writeln!(out)?;
    out.flush()
}

/// Prints the highlights of a suite as a table in Markdown: a line a system, in the order in which they appear.
pub(crate) fn markdown(out: &mut impl Write, highlights: &[Highlight], cases: &[Case]) -> io::Result<()> {
    let mut systems: Vec<&str> = Vec::new();
    for row in cases.iter().flat_map(|case| &case.rows) {
        if !systems.contains(&row.system.as_str()) {
            systems.push(&row.system);
        }
    }
    let headings: Vec<&str> = highlights.iter().map(|highlight| highlight.heading).collect();
    writeln!(out, "| | {} |", headings.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(highlights.len()))?;
    for system in systems {
        let cells: Vec<String> = highlights.iter().map(|highlight| short(cases, system, highlight)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            writeln!(out, "| {system} | {} |", cells.join(" | "))?;
        }
    }
    writeln!(out)
}

/// Prints verdicts as a table in Markdown: a line a case, with what the law allows, what the first system did, and which others
/// did something else.
pub(crate) fn verdicts(out: &mut impl Write, cases: &[Case]) -> io::Result<()> {
    let Some(first) = cases.first().and_then(|case| case.rows.first()) else { return Ok(()) };
    writeln!(out, "| | lawful | {} | others that are not |", first.system)?;
    writeln!(out, "|---|---:|---:|---|")?;
    for case in cases {
        let told = |row: &Row| {
            let told = ["admitted", "waited", "said"].map(|metric| row.get(metric));
            told.into_iter().flatten().next().map_or_else(|| "failed".to_owned(), |figure| cell(&figure.value))
        };
        let lawful = |row: &&Row| row.get("lawful").is_some_and(|figure| figure.value == Value::Flag(true));
        let law = match case.rows.iter().find_map(|row| row.median("least").zip(row.median("allowed"))) {
            Some((least, most)) if least == most => number(most),
            Some((least, most)) => format!("{} to {}", number(least), number(most)),
            None => String::new(),
        };
        let own = case.rows.iter().find(|row| row.system == first.system).map_or_else(String::new, told);
        let others: Vec<String> = case
            .rows
            .iter()
            .filter(|row| row.system != first.system && !lawful(row))
            .map(|row| format!("{} {}", row.system, told(row)))
            .collect();
        writeln!(out, "| {} | {law} | {own} | {} |", case.about.trim_end_matches('.'), others.join(", "))?;
    }
    writeln!(out)
}

/// What a system's line says under a heading. What a law forbids is in bold.
fn short(cases: &[Case], system: &str, highlight: &Highlight) -> String {
    let case = cases.iter().find(|case| case.name == highlight.case);
    let row: Option<&Row> = case.and_then(|case| case.rows.iter().find(|row| row.system == system));
    let Some(row) = row else { return String::new() };
    if row.get(FAILED).is_some() {
        return "failed".to_owned();
    }
    let text = match row.get(highlight.metric).map(|figure| &figure.value) {
        Some(Value::Number(summary)) => number(summary.median),
        Some(Value::Flag(flag)) => yes(*flag),
        Some(Value::Words(words)) => words.clone(),
        None => return String::new(),
    };
    let lawful = row.get("lawful").is_none_or(|figure| figure.value != Value::Flag(false));
    if lawful { text } else { format!("**{text}**") }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Number(Summary { median, min, max, samples }) if *samples > 1 => {
            format!("{} ({}..{})", number(*median), number(*min), number(*max))
        }
        Value::Number(summary) => number(summary.median),
        Value::Flag(flag) => yes(*flag),
        Value::Words(words) => words.clone(),
    }
}

fn yes(flag: bool) -> String {
    if flag { "yes" } else { "NO" }.to_owned()
}

/// Writes a figure with three digits or more that mean something, and with commas between thousands.
pub(crate) fn number(figure: f64) -> String {
    let size = figure.abs();
    let places = if figure.fract() == 0.0 || size >= 1_000.0 {
        0
    } else if size >= 100.0 {
        1
    } else {
        2
    };
    let text = format!("{figure:.places$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits: Vec<char> = whole.chars().collect();
    let thousands: Vec<String> = digits.rchunks(3).rev().map(|chunk| chunk.iter().collect()).collect();
    format!("{sign}{}{fraction}", thousands.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn case() -> Case {
        let rows = vec![
            Row::new("tollgate").spread("ns", "ns", [10.0, 12.0, 11.0]).flag("lawful", true),
            Row::new("other").number("ns", "ns", 1234.5).flag("lawful", false),
            Row::failed("third", "panicked: no"),
        ];
        Case { name: "granted".into(), about: "One thread.".into(), rows }
    }

    #[test]
    fn a_table_has_a_line_a_system_and_a_column_a_metric() {
        let expected = "\
decisions: granted
  One thread.
                      ns  lawful
  tollgate  11 (10..12)     yes
  other           1,234      NO
  third     panicked: no

";
        let expected = expected.replace("                      ns", "                     ns");
        assert_eq!(printed(|out| table(out, "decisions", &case())), expected);
    }

    #[test]
    fn the_small_table_shows_highlights_and_marks_what_no_law_allows() {
        let highlights = [Highlight { case: "granted", metric: "ns", heading: "granted, ns" }];
        let text = printed(|out| markdown(out, &highlights, &[case()]));
        assert_eq!(
            text,
            "| | granted, ns |\n|---|---:|\n| tollgate | 11 |\n| other | **1,234** |\n| third | failed |\n\n"
        );
    }

    #[test]
    fn a_table_of_verdicts_names_those_that_break_the_law() {
        let row = |system: &str, admitted: f64, lawful: bool| {
            Row::new(system)
                .number("least", "", 1.0)
                .number("allowed", "", 2.0)
                .number("admitted", "", admitted)
                .flag("lawful", lawful)
        };
        let rows =
            vec![row("tollgate", 2.0, true), row("a", 1.0, true), row("b", 3000.0, false), Row::failed("c", "why")];
        let case = Case { name: "x".into(), about: "What was done.".into(), rows };
        let text = printed(|out| verdicts(out, &[case]));
        assert!(text.ends_with("| What was done | 1 to 2 | 2 | b 3,000, c failed |\n\n"), "{text}");
    }

    #[test]
    fn figures_keep_what_means_something() {
        for (figure, text) in [
            (0.0, "0"),
            (0.123, "0.12"),
            (12.346, "12.35"),
            (123.46, "123.5"),
            (1234.5, "1,234"),
            (1_000_000.0, "1,000,000"),
            (-1500.0, "-1,500"),
            (-0.5, "-0.50"),
        ] {
            assert_eq!(number(figure), text);
        }
    }
}
