//! Known counter-examples, run against every system that has the feature: what the law allows, and what was admitted.

mod numbers;
mod threads;
mod waits;
mod words;

use std::io;
use std::ops::RangeInclusive;

use super::{Emit, Size};
use crate::isolate::Failure;
use crate::record::{Case, Row};

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    numbers::run(size, emit)?;
    emit(words::too_large(size))?;
    threads::run(size, emit)?;
    waits::run(size, emit)
}

/// What a system admitted, beside the least and the most that the law allows.
fn verdict(system: &str, due: &RangeInclusive<u64>, admitted: Result<u64, Failure>) -> Row {
    match admitted {
        Ok(admitted) => Row::new(system)
            .number("least", "", *due.start() as f64)
            .number("allowed", "", *due.end() as f64)
            .number("admitted", "", admitted as f64)
            .flag("lawful", due.contains(&admitted)),
        Err(failure) => Row::failed(system, failure),
    }
}

fn case(name: &str, about: &str, rows: Vec<Row>) -> Case {
    Case { name: name.to_owned(), about: about.to_owned(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;
    use crate::suites::tiny;

    #[test]
    fn tollgate_is_lawful_in_every_case() {
        let cases = tiny(run);
        assert!(cases.len() >= 11, "{}", cases.len());
        for case in &cases {
            let ours: Vec<&Row> = case.rows.iter().filter(|row| row.system.starts_with("tollgate")).collect();
            assert!(!ours.is_empty(), "{}", case.name);
            if case.name == "starved" {
                // In real time, of which a test must not promise anything.
                continue;
            }
            for row in ours {
                let lawful = row.get("lawful").map(|figure| figure.value.clone());
                assert_eq!(lawful, Some(Value::Flag(true)), "{}: {row:?}", case.name);
            }
        }
    }

    #[test]
    fn what_lies_outside_of_the_law_is_not_lawful() {
        let lawful = |admitted| verdict("x", &(1..=2), Ok(admitted)).get("lawful").map(|figure| figure.value.clone());
        assert_eq!([0, 1, 2, 3].map(lawful), [false, true, true, false].map(|flag| Some(Value::Flag(flag))));
    }
}
