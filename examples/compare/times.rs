//! The times at which requests arrive, from the command line, a file or standard input.

use std::fmt;

use crate::seconds::{self, NotDecimal, float};

/// The most times that are taken: beyond, no picture shows anything.
const MOST: usize = 10_000;

/// Where a time stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this line, counted from 1.
    Line(usize),
    /// The argument of that number, counted from 1.
    Argument(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Argument(number) => write!(f, "time {number}"),
        }
    }
}

/// Why times are refused: where, what stands there, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadTimes {
    NotATime { place: Place, text: String, reason: NotDecimal },
    NotText { place: Place },
    Earlier { place: Place, time: u64, before: u64 },
    TooMany { place: Place },
    None,
}

impl fmt::Display for BadTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATime { place, text, reason } => {
                write!(f, "{place}: '{text}' is not a time in seconds: {reason}")?;
                let several = matches!(place, Place::Line(_)) && text.contains([' ', ',', ';']);
                f.write_str(if several { " (one time a line)" } else { "" })
            }
            Self::NotText { place } => write!(f, "{place}: this is no text in UTF-8"),
            Self::Earlier { place, time, before } => write!(
                f,
                "{place}: {} is earlier than {} before it: the times must be in order (sort -n)",
                float(*time),
                float(*before)
            ),
            Self::TooMany { place } => write!(f, "{place}: that is one more than the {MOST} times that are taken"),
            Self::None => f.write_str("there is no time: one a line is needed"),
        }
    }
}

/// Reads times in order from lines. What follows a `#`, and lines without anything else, do not count.
pub(crate) fn from_lines(input: &[u8]) -> Result<Vec<u64>, BadTimes> {
    let mut times = Vec::new();
    for (index, line) in input.split(|byte| *byte == b'\n').enumerate() {
        let place = Place::Line(index + 1);
        let line = std::str::from_utf8(line).map_err(|_| BadTimes::NotText { place: place.clone() })?;
        let text = line.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            add(&mut times, text, place)?;
        }
    }
    if times.is_empty() { Err(BadTimes::None) } else { Ok(times) }
}

/// Reads times in order from arguments.
pub(crate) fn from_arguments(arguments: &[String]) -> Result<Vec<u64>, BadTimes> {
    let mut times = Vec::new();
    for (index, text) in arguments.iter().enumerate() {
        add(&mut times, text.trim(), Place::Argument(index + 1))?;
    }
    if times.is_empty() { Err(BadTimes::None) } else { Ok(times) }
}

fn add(times: &mut Vec<u64>, text: &str, place: Place) -> Result<(), BadTimes> {
    let time = match seconds::billionths(text) {
        Ok(time) => time,
        Err(reason) => return Err(BadTimes::NotATime { place, text: text.escape_debug().collect(), reason }),
    };
    match times.last() {
        Some(&before) if time < before => return Err(BadTimes::Earlier { place, time, before }),
        _ if times.len() == MOST => return Err(BadTimes::TooMany { place }),
        _ => times.push(time),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(input: &[u8]) -> String {
        from_lines(input).unwrap_err().to_string()
    }

    #[test]
    fn lines_hold_a_time_each_and_comments() {
        let input = b"# seconds\n8\n\n  8.5   # half past\r\n9.0\n9\n#10\n";
        assert_eq!(from_lines(input), Ok(vec![8_000_000_000, 8_500_000_000, 9_000_000_000, 9_000_000_000]));
        assert_eq!(from_lines(b"1"), Ok(vec![1_000_000_000]));
    }

    #[test]
    fn a_line_that_is_no_time_is_refused_with_its_number_and_the_reason() {
        for (input, message) in [
            (
                &b"1\nnan\n"[..],
                "line 2: 'nan' is not a time in seconds: it is no plain decimal number such as 12 or 12.5",
            ),
            (b"# x\n\n-1", "line 3: '-1' is not a time in seconds: it is negative, and time begins at 0"),
            (
                b"1 2",
                "line 1: '1 2' is not a time in seconds: it is no plain decimal number such as 12 or 12.5 (one time a line)",
            ),
            (b"1\n2\n18446744074", "line 3: '18446744074' is not a time in seconds: it is above 18446744073.709551615"),
            (
                b"1\x1b[2J",
                "line 1: '1\\u{1b}[2J' is not a time in seconds: it is no plain decimal number such as 12 or 12.5",
            ),
            (b"1\n\xff\n", "line 2: this is no text in UTF-8"),
        ] {
            assert_eq!(refused(input), message);
        }
    }

    #[test]
    fn a_time_before_the_one_above_it_is_refused() {
        let message = "line 3: 1.5 is earlier than 2.0 before it: the times must be in order (sort -n)";
        assert_eq!(refused(b"1\n2\n1.5\n3\n"), message);
    }

    #[test]
    fn no_times_and_too_many_are_refused() {
        for input in [&b""[..], b"\n", b"# 1\n"] {
            assert_eq!(from_lines(input), Err(BadTimes::None));
        }
        let lines = "1\n".repeat(MOST);
        assert_eq!(from_lines(lines.as_bytes()).map(|times| times.len()), Ok(MOST));
        let message = refused((lines + "1\n").as_bytes());
        assert_eq!(message, "line 10001: that is one more than the 10000 times that are taken");
    }

    #[test]
    fn arguments_are_counted() {
        let times = |texts: &[&str]| from_arguments(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(times(&["0", "0.25"]), Ok(vec![0, 250_000_000]));
        let message = times(&["0", "x"]).unwrap_err().to_string();
        assert_eq!(message, "time 2: 'x' is not a time in seconds: it is no plain decimal number such as 12 or 12.5");
    }
}
