//! What was found, before it is printed.

use serde_json::{Value as Json, json};

use crate::stats::Summary;

/// A case of a suite: what was done, and what each system made of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// A sentence for people.
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
}

/// The figures of one system.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) system: String,
    pub(crate) figures: Vec<Figure>,
}

/// A figure by name.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(Summary),
    Flag(bool),
    Words(String),
}

/// The metric under which a system that gave no figures is told.
pub(crate) const FAILED: &str = "failed";

impl Row {
    pub(crate) fn new(system: &str) -> Self {
        Self { system: system.to_owned(), figures: Vec::new() }
    }

    /// A system that gave no figures, and why.
    pub(crate) fn failed(system: &str, why: impl ToString) -> Self {
        Self::new(system).words(FAILED, why.to_string())
    }

    /// Adds the summary of a metric's measurements; without any, nothing.
    pub(crate) fn spread(
        mut self,
        metric: &'static str,
        unit: &'static str,
        measured: impl IntoIterator<Item = f64>,
    ) -> Self {
        if let Some(summary) = Summary::of(measured) {
            self.figures.push(Figure { metric, unit, value: Value::Number(summary) });
        }
        self
    }

    pub(crate) fn number(mut self, metric: &'static str, unit: &'static str, figure: f64) -> Self {
        self.figures.push(Figure { metric, unit, value: Value::Number(Summary::exact(figure)) });
        self
    }

    pub(crate) fn flag(mut self, metric: &'static str, flag: bool) -> Self {
        self.figures.push(Figure { metric, unit: "", value: Value::Flag(flag) });
        self
    }

    pub(crate) fn words(mut self, metric: &'static str, words: String) -> Self {
        self.figures.push(Figure { metric, unit: "", value: Value::Words(words) });
        self
    }

    pub(crate) fn get(&self, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric)
    }

    /// The median of a metric.
    pub(crate) fn median(&self, metric: &str) -> Option<f64> {
        match self.get(metric)?.value {
            Value::Number(summary) => Some(summary.median),
            _ => None,
        }
    }
}

/// The case as objects, one a figure. A figure of several rounds has two more, its least and its largest.
pub(crate) fn json(suite: &str, case: &Case) -> Vec<Json> {
    let mut objects = Vec::new();
    for row in &case.rows {
        for Figure { metric, unit, value } in &row.figures {
            let object = |metric: &str, value: Json| {
                json!({
                    "suite": suite, "case": case.name, "system": row.system,
                    "metric": metric, "value": value, "unit": unit,
                })
            };
            match value {
                Value::Number(summary) => {
                    objects.push(object(metric, json!(summary.median)));
                    if summary.samples > 1 {
                        objects.push(object(&format!("{metric}_min"), json!(summary.min)));
                        objects.push(object(&format!("{metric}_max"), json!(summary.max)));
                    }
                }
                Value::Flag(flag) => objects.push(object(metric, json!(flag))),
                Value::Words(words) => objects.push(object(metric, json!(words))),
            }
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_an_object_and_its_ends_are_two_more() {
        let row =
            Row::new("tollgate").spread("ns", "ns", [3.0, 1.0, 2.0]).flag("lawful", true).number("admitted", "", 7.0);
        let failed = Row::failed("other", "panicked: no");
        let case = Case { name: "granted".into(), about: String::new(), rows: vec![row, failed] };
        let lines: Vec<String> = json("decisions", &case).iter().map(Json::to_string).collect();
        let line = |system: &str, metric: &str, value: &str, unit: &str| {
            format!(
                r#"{{"case":"granted","metric":"{metric}","suite":"decisions","system":"{system}","unit":"{unit}","value":{value}}}"#
            )
        };
        assert_eq!(
            lines,
            [
                line("tollgate", "ns", "2.0", "ns"),
                line("tollgate", "ns_min", "1.0", "ns"),
                line("tollgate", "ns_max", "3.0", "ns"),
                line("tollgate", "lawful", "true", ""),
                line("tollgate", "admitted", "7.0", ""),
                line("other", "failed", "\"panicked: no\"", ""),
            ]
        );
    }

    #[test]
    fn no_measurements_are_no_figure() {
        assert!(Row::new("x").spread("ns", "ns", []).figures.is_empty());
        assert_eq!(Row::new("x").spread("ns", "ns", [4.0]).median("ns"), Some(4.0));
        assert_eq!(Row::failed("x", "why").median(FAILED), None);
    }
}
