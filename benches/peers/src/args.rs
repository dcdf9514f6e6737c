//! The command line.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// What a yes or a no costs
    Decisions,
    /// The same for one key of many, and what memory a key takes
    Keyed,
    /// What rate is delivered, and how evenly
    Pacing,
    /// What waiting costs, and in which order the waiters leave
    Waiting,
    /// What known counter-examples make of each limiter
    Faults,
    /// All of them
    All,
}

impl Suite {
    /// The suites that are run for this.
    pub(crate) fn each(self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::Decisions, Self::Keyed, Self::Pacing, Self::Waiting, Self::Faults],
            one => vec![one],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decisions => "decisions",
            Self::Keyed => "keyed",
            Self::Pacing => "pacing",
            Self::Waiting => "waiting",
            Self::Faults => "faults",
            Self::All => "all",
        }
    }
}

const DETAILS: &str = "\
Tables:
  One a case. A figure of several rounds is its median, with the least and the largest behind it. The systems take turns in
  every round (A B C, B C A, ...), so what the machine does meanwhile meets them all. A system that panics, or does not end, is
  reported as such and left out of the rest of the case. The head tells the machine and the versions.

  A cell like 29.5 (21.0..48.3) is such a median with its range: where ranges overlap much, the machine was busy, and the order
  of the systems says little. ns is the time of one call. ratio_to_floor is that time by that of the floor in the same round;
  the floor does no more than read tollgate's clock, load a word and exchange it. In faults, least and allowed are the fewest and
  the most that the law of the case lets pass; lawful is NO where what was admitted lies outside of them.

JSON:
  One object a line: suite, case, system, metric, value, unit. A metric of several rounds has two lines more, NAME_min and
  NAME_max. A system without figures has the metric 'failed', with the reason as its value. The head goes to standard error.

Exit code:
  0 when all that was asked for was measured, failed systems included, 1 if a picture or the outcome can't be written, 2 for
  arguments that are refused";

/// Measures tollgate beside other rate limiters, in one run on one machine.
#[derive(Clone, Debug, Parser)]
#[command(name = "peers", after_long_help = DETAILS)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_enum)]
    pub(crate) suite: Suite,

    /// Print one JSON object a figure instead of tables
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print one small table a suite, in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Measure briefly: a suite ends within 50 seconds
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder for the pictures of the suites that have one
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new().map(PathBuf::from))]
    pub(crate) charts: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::try_parse_from([&["peers"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound_and_documents_what_it_takes() {
        Args::command().debug_assert();
        let help = Args::command().render_long_help().to_string();
        for word in ["decisions", "keyed", "pacing", "waiting", "faults", "--json", "--quick", "--charts", "Exit code"]
        {
            assert!(help.contains(word), "{word} is missing in:\n{help}");
        }
    }

    #[test]
    fn a_suite_is_asked_for_by_its_name() {
        for suite in Suite::All.each() {
            let args = parse(&[suite.name(), "--quick", "--json", "--charts", "docs/charts"]).unwrap();
            assert_eq!((args.suite, args.suite.each()), (suite, vec![suite]));
            assert!(args.quick && args.json && !args.markdown);
            assert_eq!(args.charts, Some(PathBuf::from("docs/charts")));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        for (args, reason) in [
            (&[][..], "<SUITE>"),
            (&["everything"], "invalid value 'everything'"),
            (&["all", "--json", "--markdown"], "cannot be used with"),
            (&["all", "--charts", ""], "a value is required"),
        ] {
            let message = parse(args).unwrap_err();
            assert!(message.contains(reason), "{args:?}: {message}");
        }
    }
}
