//! The command line.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};

use crate::phase::Phase;

/// The time within which a run ends, whatever its arguments.
pub(crate) const WHOLE_RUN: Duration = Duration::from_secs(20);

/// The longest phase in seconds: 4 of the 20 seconds are kept for connecting and for a slow machine.
const LONGEST_PHASE: u64 = {
    let mut seconds = 1;
    while together(seconds + 1) <= WHOLE_RUN.as_secs() - 4 {
        seconds += 1;
    }
    seconds
};

/// How long all phases last together if phases last `seconds`.
const fn together(seconds: u64) -> u64 {
    let (mut phase, mut sum) = (0, 0);
    while phase < Phase::ALL.len() {
        sum += Phase::ALL[phase].seconds(seconds);
        phase += 1;
    }
    sum
}

/// The most tasks: each has both ends of a connection in this process, which may often open no more than 1024 files.
const MOST_TASKS: u64 = 400;

const DETAILS: &str = "\
Law of the service:
  In every span W at most rate * W + tasks + 1 + rate * 5 ms calls arrive. One call more, and the service answers 503 for a
  second. The tolerance is made of what a shaper lets go in a span at most (1 + rate * W, and 5 ms to catch up with late
  timers) and of one call of each task that may be under way when the span begins. So a machine that stalls cannot topple
  the shaped phases, and callers that are too fast for good topple the service soon.

  In the phase deadlines it answers one call midway 429 with Retry-After: 1. From then on, for that second, it bears
  tasks + 1 + rate * 505 ms calls: those that were under way, and what a shaper lets go until it is paused. One call more is
  a fall. The law above goes on, so those who waited for the end must not leave in a burst.

Progress: a line a second on standard error, counted since the phase began, and on a terminal a bar

Outcome: a line a phase, as a table or with --json as one object
  phase         unlimited (no limiter), shaped (one shaper for all tasks), or deadlines (the same with tasks that wait for a
                random short time, some of which give up before it is over; the seed is fixed)
  configured    calls per second that the service bears and the shaper grants, as given by --rate
  delivered     calls per second that were answered 200: their number less one over the time from first to last arrival of
                any call, the second of peace included; null with fewer than two arrivals
  falls         how often the service fell over
  refused       calls answered 503 or 429, and permits that the shaper refused: not in time, or paused
  spacing_p50   microseconds from one arrival at the service to the next, half of them are at most this; an even pace has
                1,000,000 / rate; null with fewer than two arrivals
  spacing_p99   the same for 99 of 100
  errors        calls and attempts to connect that failed; in the table only

Picture: arrivals.svg, drawn from all calls that arrived; times count from a phase's first call
  above         calls a second, counted in equal steps of time, and as a line the rate that the service bears; the scale is
                logarithmic
  below         a moment of each phase: each call a dot, as high as there are calls from the first one shown to it, and as a
                line the most that the law allows from that one on

Exit code:
  0 if the service stood through shaped and deadlines, 1 if it fell over in one (or no call was served there, or it did not
  come to its 429, or the run could not be made), 2 for arguments that are refused";

/// Calls a service that falls over when it is called too fast: first without a limiter, then through a shared shaper, then through one with callers that have no time.
///
/// Progress goes to standard error, the outcome to standard output. A run ends by itself within 20 seconds.
#[derive(Clone, Debug, Parser)]
#[command(name = "fragile_service", after_long_help = DETAILS)]
pub(crate) struct Args {
    /// Calls per second that the service bears, and that the shaper grants
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rate: u64,

    /// Tasks that call it, each over its own connection, one call at a time
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=MOST_TASKS))]
    pub(crate) tasks: u64,

    /// Length of a phase in seconds; the last one takes a second more
    #[arg(long, default_value_t = 4, value_parser = seconds)]
    pub(crate) seconds: u64,

    /// Print one JSON object a phase instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder for the picture of the run, arrivals.svg [default: fragile_service in cargo's target folder]
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new().map(PathBuf::from))]
    pub(crate) charts: Option<PathBuf>,
}

impl Args {
    /// Returns the folder for the picture.
    pub(crate) fn charts(&self) -> PathBuf {
        let target = || env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        self.charts.clone().unwrap_or_else(|| target().join("fragile_service"))
    }
}

/// Reads the length of a phase; a range alone would not say why it ends where it does.
fn seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=LONGEST_PHASE) => Ok(seconds),
        _ => Err(format!(
            "a whole number from 1 to {LONGEST_PHASE} is needed: {} phases must end within {} s",
            Phase::ALL.len(),
            WHOLE_RUN.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::try_parse_from([&["fragile_service"], args].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound_and_documents_every_field() {
        Args::command().debug_assert();
        let help = Args::command().render_long_help().to_string();
        for word in [
            "--rate",
            "--tasks",
            "--seconds",
            "--json",
            "--charts",
            "spacing_p99",
            "microseconds",
            "5 ms",
            "deadlines",
            "429",
        ] {
            assert!(help.contains(word), "{word} is missing in:\n{help}");
        }
    }

    #[test]
    fn a_run_without_arguments_takes_the_defaults() {
        let args = parse(&[]).unwrap();
        assert_eq!((args.rate, args.tasks, args.seconds, args.json), (500, 50, 4, false));
        assert!(args.charts().ends_with("fragile_service"));
    }

    #[test]
    fn the_picture_goes_where_it_is_told() {
        assert_eq!(parse(&["--charts", "docs/charts"]).unwrap().charts(), PathBuf::from("docs/charts"));
    }

    #[test]
    fn values_that_make_no_sense_are_refused_with_the_range() {
        for (arg, value, range) in [
            ("--rate", "0", "1..=1000000"),
            ("--rate", "1000001", "1..=1000000"),
            ("--tasks", "0", "1..=400"),
            ("--tasks", "401", "1..=400"),
            ("--seconds", "0", "from 1 to 5"),
            ("--seconds", "6", "must end within 20 s"),
            ("--seconds", "1.5", "a whole number"),
            ("--charts", "", "a value is required"),
        ] {
            let message = parse(&[arg, value]).unwrap_err();
            assert!(message.contains(arg) && message.contains(range), "{arg} {value}: {message}");
        }
    }

    #[test]
    fn the_longest_phases_end_in_time() {
        let args = parse(&["--seconds", "5"]).unwrap();
        assert_eq!(together(args.seconds), 16);
    }
}
