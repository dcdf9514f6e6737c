//! Decimal numbers, read and written without floating point: seconds to the nanosecond, and rates.

use std::fmt;

/// The nanoseconds of a second, and the billionths of everything else.
const WHOLE: u64 = 1_000_000_000;
/// The digits of a billionth.
const DIGITS: usize = 9;

/// The largest number that is read, 2^64 - 1 billionths: 584 years in seconds.
const LARGEST: &str = "18446744073.709551615";

/// Why a text is no number of whole billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDecimal {
    Empty,
    Negative,
    /// Anything else but digits and one point between them: `nan`, `inf`, `1e3`, `1,5`.
    NotDigits,
    TooFine,
    TooLarge,
}

impl fmt::Display for NotDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a number is missing"),
            Self::Negative => f.write_str("it is negative, and time begins at 0"),
            Self::NotDigits => f.write_str("it is no plain decimal number such as 12 or 12.5"),
            Self::TooFine => write!(f, "it has more than {DIGITS} digits behind the point"),
            Self::TooLarge => write!(f, "it is above {LARGEST}"),
        }
    }
}

/// Reads a plain decimal number and returns its billionths. Exactly, since 0.1 is no floating point number.
pub(crate) fn billionths(text: &str) -> Result<u64, NotDecimal> {
    if let Some(rest) = text.strip_prefix('-') {
        return Err(if rest.starts_with(|c: char| c.is_ascii_digit()) {
            NotDecimal::Negative
        } else {
            NotDecimal::NotDigits
        });
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if text.is_empty() {
        return Err(NotDecimal::Empty);
    }
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(NotDecimal::NotDigits);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DIGITS {
        return Err(NotDecimal::TooFine);
    }
    let number = format!("{whole}{fraction:0<DIGITS$}");
    number.parse().map_err(|_| NotDecimal::TooLarge)
}

/// Writes billionths as Python writes a floating point number: `20.0`, `0.25`; never with an exponent.
pub(crate) fn float(billionths: u64) -> String {
    let (whole, rest) = (billionths / WHOLE, billionths % WHOLE);
    let fraction = format!("{rest:0DIGITS$}");
    let fraction = fraction.trim_end_matches('0');
    format!("{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

/// Writes billionths without an idle point: `20`, `0.25`.
pub(crate) fn short(billionths: u64) -> String {
    let text = float(billionths);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_read_exactly() {
        for (text, expected) in [
            ("0", 0),
            ("8", 8_000_000_000),
            ("9.2", 9_200_000_000),
            ("007.50", 7_500_000_000),
            ("0.000000001", 1),
            ("0.1000000000000", 100_000_000),
            (LARGEST, u64::MAX),
        ] {
            assert_eq!(billionths(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_reason() {
        for (text, expected) in [
            ("", NotDecimal::Empty),
            ("-1", NotDecimal::Negative),
            ("-0.5", NotDecimal::Negative),
            ("--1", NotDecimal::NotDigits),
            ("nan", NotDecimal::NotDigits),
            ("-inf", NotDecimal::NotDigits),
            ("1e3", NotDecimal::NotDigits),
            ("1,5", NotDecimal::NotDigits),
            ("1.", NotDecimal::NotDigits),
            (".5", NotDecimal::NotDigits),
            ("1.2.3", NotDecimal::NotDigits),
            ("+1", NotDecimal::NotDigits),
            ("1 2", NotDecimal::NotDigits),
            ("٣", NotDecimal::NotDigits),
            ("0.0000000001", NotDecimal::TooFine),
            ("18446744073.709551616", NotDecimal::TooLarge),
            ("99999999999999999999999999", NotDecimal::TooLarge),
        ] {
            assert_eq!(billionths(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (number, long, brief) in [
            (0, "0.0", "0"),
            (20_000_000_000, "20.0", "20"),
            (250_000_000, "0.25", "0.25"),
            (1, "0.000000001", "0.000000001"),
        ] {
            assert_eq!((float(number), short(number)), (long.to_owned(), brief.to_owned()));
        }
        assert_eq!(float(u64::MAX), LARGEST);
    }
}
