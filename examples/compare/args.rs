//! The command line.

use std::env;
use std::path::PathBuf;

use clap::Parser;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};

use crate::pattern::USUAL;
use crate::seconds;
use crate::setting::Setting;

/// The largest limit and capacity, which every law takes.
const MOST: u64 = 1 << 20;

const DETAILS: &str = "\
Times:
  Plain decimal numbers of seconds from 0 to 18446744073.709551615, to the nanosecond: 12, 12.5. They must be in order; equal
  ones are requests at one instant. What is negative, out of order, no number (nan, inf, 1e3), too large, or finer than a
  nanosecond is refused with its line (or its number among the arguments) and the reason. In a file, one time a line; what
  follows a # and empty lines do not count.

Rate:
  For times of one's own and without --rate it is the limit over the window, so that the laws can be compared: 0.5 per second
  for 5 per 10 s. It is rounded up to a billionth.

Output:
  fixed window, sliding log, sliding count, token bucket    ok or -- for each request
  leaky queue                                               when it is served, or 'rej'
  Times are rounded up to the nanosecond. Pictures go to --charts, one a pattern.

Exit code:
  0 if all was replayed, 1 if a picture or the outcome could not be written, 2 for input that is refused";

/// Replays requests through every law, and draws what becomes of them.
///
/// Without times it replays the patterns of the articles from which the laws are known, each with its own setting; options
/// override it. Times of one's own are judged by a limit of 5 per 10 s, and a capacity of 5 at the same rate.
#[derive(Clone, Debug, Parser)]
#[command(name = "compare", after_long_help = DETAILS)]
pub(crate) struct Args {
    /// Times in seconds at which requests arrive, instead of the patterns
    #[arg(value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) times: Vec<String>,

    /// A file with such times, one a line; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "times", value_parser = path())]
    pub(crate) file: Option<PathBuf>,

    /// Requests per window, for the window laws
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MOST))]
    limit: Option<u64>,

    /// Length of a window in seconds
    #[arg(long, value_name = "SECONDS", value_parser = window)]
    window: Option<u64>,

    /// Size of the bucket and of the queue
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=MOST))]
    capacity: Option<u64>,

    /// Requests per second, for the bucket and the queue
    #[arg(long, value_name = "PER_SECOND", value_parser = number)]
    rate: Option<u64>,

    /// Folder for the pictures [default: compare in cargo's target folder]
    #[arg(long, value_name = "DIR", value_parser = path())]
    charts: Option<PathBuf>,
}

impl Args {
    /// What the laws are set to: what was asked for, else what suits the pattern.
    pub(crate) fn over(&self, setting: Setting) -> Setting {
        Setting {
            limit: self.limit.unwrap_or(setting.limit),
            window: self.window.unwrap_or(setting.window),
            capacity: self.capacity.unwrap_or(setting.capacity),
            rate: self.rate.unwrap_or(setting.rate),
        }
    }

    /// What times of one's own are judged by. Unless a rate was asked for it is that of the windows.
    pub(crate) fn setting(&self) -> Setting {
        let setting = self.over(USUAL);
        Setting { rate: self.rate.unwrap_or_else(|| setting.rate_of_windows()), ..setting }
    }

    /// The folder for the pictures.
    pub(crate) fn charts(&self) -> PathBuf {
        let target = || env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        self.charts.clone().unwrap_or_else(|| target().join("compare"))
    }
}

fn path() -> impl TypedValueParser<Value = PathBuf> {
    NonEmptyStringValueParser::new().map(PathBuf::from)
}

fn number(text: &str) -> Result<u64, String> {
    seconds::billionths(text).map_err(|reason| reason.to_string())
}

fn window(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err("a window of no length would limit nothing: at least 0.000000001 is needed".to_owned()),
        window => Ok(window),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::try_parse_from([&["compare"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound_and_documents_what_it_takes() {
        Args::command().debug_assert();
        let help = Args::command().render_long_help().to_string();
        for word in [
            "--limit",
            "--window",
            "--capacity",
            "--rate",
            "--file",
            "--charts",
            "in order",
            "nan",
            "Exit code",
            "5 per 10 s",
        ] {
            assert!(help.contains(word), "{word} is missing in:\n{help}");
        }
    }

    #[test]
    fn options_override_the_setting_of_a_pattern_one_by_one() {
        assert_eq!(parse(&[]).unwrap().setting(), USUAL);
        let args = parse(&["--limit", "7", "--rate", "0.5", "1", "2"]).unwrap();
        assert_eq!(args.setting(), Setting { limit: 7, rate: 500_000_000, ..USUAL });
        assert_eq!(args.times, ["1", "2"]);
        let args = parse(&["--window", "0.25", "--capacity", "0"]).unwrap();
        assert_eq!(args.setting(), Setting { window: 250_000_000, capacity: 0, rate: 20_000_000_000, ..USUAL });
    }

    #[test]
    fn times_of_ones_own_are_judged_at_the_rate_of_the_windows_unless_told_otherwise() {
        let rate = |args: &[&str]| parse(args).unwrap().setting().rate;
        assert_eq!(rate(&["--limit", "7", "--window", "60", "1"]), 116_666_667);
        assert_eq!(rate(&["--limit", "0", "1"]), 0);
        assert_eq!(rate(&["--limit", "1", "--window", "18446744073.709551615", "1"]), 1);
        assert_eq!(rate(&["--limit", "1048576", "--window", "0.000000001", "1"]), u64::MAX);
    }

    #[test]
    fn a_negative_time_is_taken_for_a_time_and_not_for_an_option() {
        assert_eq!(parse(&["-1"]).unwrap().times, ["-1"]);
    }

    #[test]
    fn pictures_go_where_they_are_told() {
        assert!(parse(&[]).unwrap().charts().ends_with("compare"));
        assert_eq!(parse(&["--charts", "docs/charts"]).unwrap().charts(), PathBuf::from("docs/charts"));
    }

    #[test]
    fn values_that_make_no_sense_are_refused_with_the_reason() {
        for (args, reason) in [
            (&["--window", "0"][..], "would limit nothing"),
            (&["--window", "-1"], "--window"),
            (&["--window=-1"], "it is negative"),
            (&["--rate", "nan"], "no plain decimal number"),
            (&["--rate", "20000000000"], "above 18446744073"),
            (&["--limit", "1048577"], "0..=1048576"),
            (&["--capacity", "1.5"], "--capacity"),
            (&["--file", ""], "a value is required"),
            (&["--file", "x", "1"], "cannot be used with"),
        ] {
            let message = parse(args).unwrap_err();
            assert!(message.contains(reason), "{args:?}: {message}");
        }
    }
}
