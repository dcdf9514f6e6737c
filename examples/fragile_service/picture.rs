//! The picture of a run: what arrived at the service, and how it was answered.

use std::ops::Range;
use std::time::Duration;

use crate::args::Args;
use crate::chart::{Axis, BLACK, BLUE, Chart, Key, Marks, Panel, RED, Row, Sign, counts, grouped, nice};
use crate::phase::{self, Phase};
use crate::service::{Answer, Call, PEACE};

/// Up to so many times the rate there is room in the upper panels.
const ROOM: f64 = 8.0;

/// Describes the calls of all phases: above how many came, below a moment of each phase call by call.
pub(crate) fn picture(args: &Args, phases: &[(Phase, Vec<Call>)]) -> Chart {
    let phases: Vec<_> = phases.iter().map(|(phase, calls)| Seen::new(*phase, calls)).collect();
    let (bin, moment) = (bin(args.rate), moment(args.rate));
    let rate = args.rate as f64;
    let key = |sign, colour, meaning: &str| Key { sign, colour, meaning: meaning.to_owned() };

    let rates: Vec<_> = phases.iter().map(|seen| seen.rates(args, bin)).collect();
    let highest = rates.iter().flat_map(|(served, down)| served.iter().chain(down)).copied().fold(rate, f64::max);
    // Where no call came, nothing is drawn. So the lowest figure is that of one call. Above there is room for words.
    let (least, top) = (1.0 / bin.as_secs_f64(), (2.0 * highest).max(ROOM * rate));
    let overview = Row {
        y: Axis::logarithmic("calls a second".to_owned(), least..top),
        panels: phases.iter().zip(rates).map(|(seen, rates)| seen.overview(args, bin, rates)).collect(),
    };
    let most = phase::law(args).most_in(moment);
    let close_up = Row {
        y: Axis::linear("calls, counted".to_owned(), 0.0..1.15 * most, 6.0),
        panels: phases.iter().map(|seen| seen.close_up(args, moment)).collect(),
    };

    Chart {
        title: format!("{} tasks call a service that bears {} calls a second: what it saw", args.tasks, grouped(rate)),
        subtitle: phases.iter().map(Seen::in_short).collect::<Vec<_>>().join(" · "),
        legend: vec![
            key(Sign::Area, BLUE, "answered 200"),
            key(Sign::Area, RED, "answered 503: it has fallen over"),
            key(Sign::Dot, BLUE, "one call, 200"),
            key(Sign::Dot, RED, "503"),
            key(Sign::Line, BLACK, "what it bears"),
        ],
        rows: vec![overview, close_up],
    }
}

/// How long calls are counted for one figure: long enough for 25 of them at the rate, within limits, and a whole part of
/// a second.
fn bin(rate: u64) -> Duration {
    Duration::from_secs_f64(nice(25.0 / rate as f64).clamp(0.02, 1.0))
}

/// How long a moment is that shows single calls: long enough for 50 of them at the rate, within limits.
fn moment(rate: u64) -> Duration {
    Duration::from_secs_f64(nice(50.0 / rate as f64).clamp(0.001, 1.0))
}

/// A phase as the service saw it. Times count from the first call.
struct Seen {
    phase: Phase,
    calls: Vec<Call>,
}

impl Seen {
    fn new(phase: Phase, calls: &[Call]) -> Self {
        let first = calls.first().map_or(Duration::ZERO, |call| call.at);
        let calls = calls.iter().map(|&Call { at, answer }| Call { at: at.saturating_sub(first), answer }).collect();
        Self { phase, calls }
    }

    fn times(&self, wanted: Answer) -> impl Iterator<Item = Duration> {
        self.calls.iter().filter(move |call| call.answer == wanted).map(|call| call.at)
    }

    /// The calls that made the service fall over, by their index. When up again, it bears the first call at least. So each
    /// of them is the first 503 after something else.
    fn falls(&self) -> impl Iterator<Item = usize> {
        let down = |index: usize| self.calls[index].answer == Answer::Down;
        (0..self.calls.len()).filter(move |&index| down(index) && (index == 0 || !down(index - 1)))
    }

    /// When the service asked for peace, if it did.
    fn asked(&self) -> Option<Duration> {
        self.times(Answer::AsksForPeace).next()
    }

    fn in_short(&self) -> String {
        let fell = match self.falls().count() {
            0 => "it stands".to_owned(),
            1 => "it falls over once".to_owned(),
            falls => format!("it falls over {falls} times"),
        };
        format!("{}: {fell}", self.phase.name())
    }

    fn answers(&self) -> String {
        let answers = [Answer::Served, Answer::Down, Answer::AsksForPeace].map(|answer| self.times(answer).count());
        let codes = answers.into_iter().zip([200, 503, 429]).filter(|&(count, _)| count > 0);
        let words: Vec<_> = codes.map(|(count, code)| format!("{} × {code}", grouped(count as f64))).collect();
        if words.is_empty() { "no calls".to_owned() } else { format!("answers: {}", words.join(", ")) }
    }

    /// Calls a second that were answered 200, and 503. Those that came after the end, being under way then, are left out.
    fn rates(&self, args: &Args, bin: Duration) -> (Vec<f64>, Vec<f64>) {
        let seconds = self.phase.seconds(args.seconds);
        let bins = usize::try_from(Duration::from_secs(seconds).as_nanos() / bin.as_nanos()).unwrap_or(0);
        let rates = |answer| {
            let counts = counts(self.times(answer), bin, bins);
            counts.into_iter().map(|count| f64::from(count) / bin.as_secs_f64()).collect()
        };
        (rates(Answer::Served), rates(Answer::Down))
    }

    fn overview(&self, args: &Args, bin: Duration, (served, down): (Vec<f64>, Vec<f64>)) -> Panel {
        let (width, end) = (bin.as_secs_f64(), self.phase.seconds(args.seconds) as f64);
        let rate = args.rate as f64;
        let mut marks = vec![
            Marks::Steps { colour: RED, width, figures: down },
            Marks::Steps { colour: BLUE, width, figures: served },
            Marks::Line { colour: BLACK, points: vec![(0.0, rate), (end, rate)] },
        ];
        if let Some(asked) = self.asked() {
            marks.push(Marks::Text {
                at: (asked.as_secs_f64(), ROOM / 2.0 * rate),
                text: format!("429, Retry-After: {}", PEACE.as_secs()),
            });
        }
        Panel {
            heading: match self.phase {
                Phase::Unlimited => "unlimited: no limiter",
                Phase::Shaped => "shaped: one Shaper for all",
                Phase::Deadlines => "deadlines: in a hurry, one 429",
            }
            .to_owned(),
            remark: self.answers(),
            x: Axis::linear(format!("seconds, in steps of {} ms", grouped(milliseconds(bin))), 0.0..end, end),
            marks,
        }
    }

    /// The beginning of the phase or, if the service asked for peace, the end of the pause.
    fn close_up(&self, args: &Args, moment: Duration) -> Panel {
        let (zero, start) = match self.asked() {
            Some(asked) => (asked, (asked + PEACE).saturating_sub(moment / 2)),
            None => (Duration::ZERO, Duration::ZERO),
        };
        let first = self.calls.partition_point(|call| call.at < start);
        let place = |at: Duration| milliseconds(at.saturating_sub(zero));
        // A little room on the left, for what comes at once.
        let range = place(start) - milliseconds(moment) / 25.0..place(start + moment);

        let dots = |answer| {
            let calls = self.calls[first..].iter().enumerate().take_while(|(_, call)| call.at < start + moment);
            let answered = calls.filter(|(_, call)| call.answer == answer);
            answered.map(|(index, call)| (place(call.at), (index + 1) as f64)).collect()
        };
        let begin = self.calls.get(first).map_or(start, |call| call.at.min(start + moment));
        let law = phase::law(args);
        let most = |at: Duration| (place(at), law.most_in(at.saturating_sub(begin)));

        let fall = self.falls().find(|&index| index >= first && self.calls[index].at < start + moment);
        Panel {
            heading: match self.asked() {
                Some(_) => "the pause ends, call by call".to_owned(),
                None => format!("the first {} ms, call by call", grouped(milliseconds(moment))),
            },
            remark: match fall {
                Some(index) => format!("call {} is one too many", index - first + 1),
                None => self.spacing(start..start + moment),
            },
            x: Axis::linear(
                format!("ms since {}", if self.asked().is_some() { "the 429" } else { "the first call" }),
                range,
                6.0,
            ),
            marks: vec![
                Marks::Line { colour: BLACK, points: vec![most(begin), most(start + moment)] },
                Marks::Dots { colour: RED, points: dots(Answer::Down) },
                Marks::Dots { colour: BLUE, points: dots(Answer::Served) },
            ],
        }
    }

    /// Says how far apart the calls of a span are, on average.
    fn spacing(&self, span: Range<Duration>) -> String {
        let within: Vec<_> = self.calls.iter().map(|call| call.at).filter(|at| span.contains(at)).collect();
        match within[..] {
            [first, .., last] => {
                let mean = milliseconds(last - first) / (within.len() - 1) as f64;
                format!("{} calls, one per {} ms", grouped(within.len() as f64), grouped(mean))
            }
            _ => "less than two calls".to_owned(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::chart::svg;

    fn args(args: &[&str]) -> Args {
        Args::try_parse_from([&["fragile_service"], args].concat()).unwrap()
    }

    fn call(milliseconds: u64, answer: Answer) -> Call {
        Call { at: Duration::from_millis(milliseconds), answer }
    }

    fn dots(panel: &Panel) -> Vec<(f64, f64)> {
        let dots = panel.marks.iter().filter_map(|marks| match marks {
            Marks::Dots { points, .. } => Some(points.clone()),
            _ => None,
        });
        dots.flatten().collect()
    }

    #[test]
    fn phases_without_a_call_are_drawn() {
        let chart = picture(&args(&[]), &Phase::ALL.map(|phase| (phase, Vec::new())));
        let svg = svg(&chart).unwrap();
        for words in ["unlimited: it stands", "no calls", "less than two calls", "what it bears"] {
            assert!(svg.contains(words), "{words} is missing in:\n{svg}");
        }
    }

    #[test]
    fn arguments_at_the_edges_are_drawn() {
        for rate in ["1", "7", "1000000"] {
            for tasks in ["1", "400"] {
                let calls: Vec<_> = (0..2_000).map(|at| call(at, Answer::Served)).collect();
                let args = args(&["--rate", rate, "--tasks", tasks, "--seconds", "1"]);
                let svg = svg(&picture(&args, &[(Phase::Deadlines, calls)])).unwrap();
                assert!(
                    svg.contains("<circle") && !svg.contains("NaN") && !svg.contains("inf"),
                    "{rate} {tasks}: {svg}"
                );
            }
        }
    }

    #[test]
    fn a_fall_is_the_first_503_after_something_else() {
        use Answer::{AsksForPeace, Down, Served};
        let calls = [Served, Down, Down, Served, AsksForPeace, Down].map(|answer| call(0, answer));
        let seen = Seen::new(Phase::Unlimited, &calls);
        assert_eq!(seen.falls().collect::<Vec<_>>(), [1, 5]);
        assert_eq!(seen.in_short(), "unlimited: it falls over 2 times");
        assert_eq!(seen.answers(), "answers: 2 × 200, 3 × 503, 1 × 429");
    }

    #[test]
    fn rates_are_counted_from_the_first_call_and_by_answer() {
        let calls =
            [call(70, Answer::Served), call(119, Answer::Served), call(120, Answer::Down), call(9_000, Answer::Down)];
        let seen = Seen::new(Phase::Shaped, &calls);
        let (served, down) = seen.rates(&args(&["--seconds", "1"]), Duration::from_millis(50));
        assert_eq!((served.len(), &served[..2], &down[..2]), (20, &[40.0, 0.0][..], &[0.0, 20.0][..]));
        assert_eq!(down.iter().sum::<f64>(), 20.0);
    }

    #[test]
    fn the_close_up_shows_the_beginning_or_the_end_of_the_pause() {
        let args = args(&[]);
        let moment = moment(args.rate);
        assert_eq!(moment, Duration::from_millis(100));

        let calls: Vec<_> = (0..100).map(|index| call(3 + 2 * index, Answer::Served)).collect();
        let panel = Seen::new(Phase::Shaped, &calls).close_up(&args, moment);
        let dots_of_shaped = dots(&panel);
        assert_eq!((dots_of_shaped.len(), dots_of_shaped[0], dots_of_shaped[49]), (50, (0.0, 1.0), (98.0, 50.0)));
        assert_eq!(panel.remark, "50 calls, one per 2 ms");

        let calls = [call(0, Answer::Served), call(10, Answer::AsksForPeace), call(1_011, Answer::Served)];
        let panel = Seen::new(Phase::Deadlines, &calls).close_up(&args, moment);
        assert_eq!(dots(&panel), [(1_001.0, 1.0)]);
        assert!(panel.x.range.contains(&950.0) && panel.x.label.ends_with("429"), "{panel:?}");
    }

    #[test]
    fn the_line_of_the_law_begins_with_the_first_call_shown() {
        let args = args(&[]);
        let calls = [call(0, Answer::AsksForPeace), call(1_010, Answer::Served)];
        let panel = Seen::new(Phase::Deadlines, &calls).close_up(&args, moment(args.rate));
        let Marks::Line { points, .. } = &panel.marks[0] else { panic!("{panel:?}") };
        assert_eq!(points[..], [(1_010.0, 53.5), (1_050.0, 73.5)]);
    }
}
