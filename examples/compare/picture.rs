//! Draws a comparison: one lane a law, all on one time axis.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::replay::{Comparison, Law, Replay};
use crate::scale::Scale;
use crate::seconds::short;
use crate::setting::{Bucket, Windows};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

// All in pixels. The picture is made to be shown at about half of its size.
const WIDTH: i32 = 1_640;
const MARGIN: i32 = 30;
const HEAD: i32 = 150;
/// Where the lanes begin; left of it stand the names.
const LANES: i32 = 350;
const FOOT: i32 = 96;
/// The room of a mark, and so the distance of two above each other.
const MARK: i32 = 18;
/// Two that are nearer to each other than this would cover each other.
const NEAR: i32 = 13;
/// The highest pile that has all of that room.
const PILE: i32 = 9;
/// The room of three lines of text.
const LANE: i32 = 104;
/// The room above and below the marks of a lane.
const EDGE: i32 = 16;
const SMALL: f64 = 24.0;

/// The colours differ for those who see few of them too.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const RED: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 140, 105);
const BLACK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(95, 95, 95);
const PALE: RGBColor = RGBColor(225, 225, 225);

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Arrival,
    Admitted,
    Refused,
    Served,
}

/// Marks of one kind side by side; those that would cover each other are piled up.
#[derive(Debug)]
struct Pile {
    sign: Sign,
    /// Where each mark lies, and how many lie below it.
    marks: Vec<(i32, i32)>,
}

impl Pile {
    fn of(sign: Sign, lefts: impl IntoIterator<Item = i32>) -> Self {
        let mut marks: Vec<(i32, i32)> = Vec::new();
        for left in lefts {
            // In order, so only the marks since the one that is furthest down can be in the way.
            let free = |level: i32| !marks.iter().rev().take(64).any(|mark| mark.1 == level && left - mark.0 < NEAR);
            let level = (0..64).find(|level| free(*level)).unwrap_or(64);
            marks.push((left, level));
        }
        Self { sign, marks }
    }

    fn levels(&self) -> i32 {
        self.marks.iter().map(|mark| mark.1 + 1).max().unwrap_or(0)
    }

    fn height(&self) -> i32 {
        self.levels().min(PILE) * MARK
    }

    /// Where the mark of that number lies above the ground.
    fn above(&self, level: i32) -> i32 {
        let room =
            if self.levels() > PILE { (self.height() - MARK) * level / (self.levels() - 1) } else { level * MARK };
        room + MARK / 2
    }
}

/// What stands in a lane, from above to below.
struct Lane {
    name: &'static str,
    words: Vec<String>,
    admitted: Pile,
    refused: Pile,
    served: Option<Pile>,
    edges: Vec<i32>,
}

impl Lane {
    fn arrivals(comparison: &Comparison, scale: &Scale) -> Self {
        let times = &comparison.pattern.times;
        Self {
            name: "requests",
            words: vec![format!("{} in all", times.len())],
            admitted: Pile::of(Sign::Arrival, times.iter().map(|&time| scale.place(time))),
            refused: Pile::of(Sign::Refused, []),
            served: None,
            edges: Vec::new(),
        }
    }

    fn of(replay: &Replay, comparison: &Comparison, scale: &Scale) -> Self {
        let (setting, times) = (comparison.pattern.setting, &comparison.pattern.times);
        let places = |admitted: bool| {
            let of_kind = times.iter().zip(&replay.served).filter(move |(_, served)| served.is_some() == admitted);
            of_kind.map(|(&time, _)| scale.place(time)).collect::<Vec<_>>()
        };
        let served: Vec<u64> = replay.served.iter().flatten().copied().collect();
        let words = if replay.law.has_windows() { Windows(setting).to_string() } else { Bucket(setting).to_string() };
        let has_edges = matches!(replay.law, Law::FixedWindow | Law::SlidingCounter);
        Self {
            name: match replay.law {
                Law::SlidingCounter => "sliding counter",
                law => law.name(),
            },
            words: vec![words, format!("{} admitted, {} refused", served.len(), times.len() - served.len())],
            admitted: Pile::of(Sign::Admitted, places(true)),
            refused: Pile::of(Sign::Refused, places(false)),
            served: (replay.law == Law::LeakyQueue)
                .then(|| Pile::of(Sign::Served, served.iter().map(|&time| scale.place(time)))),
            edges: if has_edges { scale.multiples(setting.window) } else { Vec::new() },
        }
    }

    /// The room that its marks take below the ground, on which what is admitted stands and from which what is refused hangs.
    fn below(&self) -> i32 {
        let served = self.served.as_ref().map_or(0, |served| served.height().max(MARK) + EDGE + MARK);
        self.refused.height() + served
    }

    fn height(&self) -> i32 {
        (2 * EDGE + self.admitted.height() + self.below()).max(LANE)
    }

    /// The room above the ground, so that the marks stand in the middle.
    fn above(&self) -> i32 {
        (self.height() + self.admitted.height() - self.below()) / 2
    }
}

/// Draws a comparison and returns the text of the SVG.
pub(crate) fn svg(comparison: &Comparison) -> Result<String, DrawingAreaErrorKind<io::Error>> {
    let ends = comparison.replays.iter().flat_map(|replay| replay.served.iter().flatten());
    let scale = Scale::of(comparison.pattern.times.iter().chain(ends).copied(), LANES + MARGIN..WIDTH - 2 * MARGIN);
    let lanes: Vec<Lane> = std::iter::once(Lane::arrivals(comparison, &scale))
        .chain(comparison.replays.iter().map(|replay| Lane::of(replay, comparison, &scale)))
        .collect();
    let height = HEAD + lanes.iter().map(Lane::height).sum::<i32>() + FOOT;

    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH.unsigned_abs(), height.unsigned_abs())).into_drawing_area();
    area.fill(&WHITE)?;
    head(&area, comparison)?;
    axis(&area, &scale, height - FOOT)?;
    let bottom = height - FOOT;
    area.draw(&PathElement::new([(MARGIN, bottom), (WIDTH - MARGIN, bottom)], GREY.stroke_width(2)))?;
    let mut top = HEAD;
    for lane in &lanes {
        draw(&area, lane, top)?;
        top += lane.height();
    }
    area.present()?;
    drop(area);
    Ok(text)
}

fn head(area: &Area, comparison: &Comparison) -> Drawn {
    area.draw_text(comparison.pattern.title, &bold(34.0), (MARGIN, MARGIN))?;
    let mut left = MARGIN;
    for (sign, meaning) in [
        (Sign::Arrival, "a request"),
        (Sign::Admitted, "admitted"),
        (Sign::Refused, "refused"),
        (Sign::Served, "served from the queue"),
    ] {
        mark(area, sign, (left + MARK / 2, MARGIN + 78))?;
        let style = plain(BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(meaning, &style, (left + MARK + 10, MARGIN + 78))?;
        left += MARK + 10 + wide(meaning) + 30;
    }
    dashed(area, left, MARGIN + 64, MARGIN + 92)?;
    let style = plain(BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text("the edge of a window", &style, (left + 16, MARGIN + 78))
}

/// The seconds below all lanes, with a line through them at each label.
fn axis(area: &Area, scale: &Scale, bottom: i32) -> Drawn {
    for (left, time) in scale.ticks() {
        area.draw(&PathElement::new([(left, HEAD), (left, bottom)], PALE.stroke_width(2)))?;
        let style = plain(BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&short(time), &style, (left, bottom + 12))?;
    }
    let style = plain(GREY).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_text("seconds", &style, ((LANES + WIDTH - MARGIN) / 2, bottom + 48))
}

fn draw(area: &Area, lane: &Lane, top: i32) -> Drawn {
    let (bottom, ground) = (top + lane.height(), top + lane.above());
    area.draw(&PathElement::new([(MARGIN, top), (WIDTH - MARGIN, top)], GREY.stroke_width(2)))?;
    area.draw_text(lane.name, &bold(26.0), (MARGIN, top + 10))?;
    for (line, words) in (1..).zip(&lane.words) {
        area.draw_text(words, &plain(GREY), (MARGIN, top + 12 + 30 * line))?;
    }
    for &left in &lane.edges {
        dashed(area, left, top, bottom)?;
    }
    area.draw(&PathElement::new([(LANES, ground), (WIDTH - MARGIN, ground)], GREY.stroke_width(2)))?;
    if let Some(served) = &lane.served {
        let floor = ground + lane.below();
        for (from, to) in lane.admitted.marks.iter().zip(&served.marks) {
            let (from, to) = ((from.0, ground - lane.admitted.above(from.1)), (to.0, floor - served.above(to.1)));
            area.draw(&PathElement::new([from, to], GREEN.mix(0.45).stroke_width(2)))?;
        }
        served.marks.iter().try_for_each(|at| mark(area, served.sign, (at.0, floor - served.above(at.1))))?;
    }
    lane.refused
        .marks
        .iter()
        .try_for_each(|at| mark(area, Sign::Refused, (at.0, ground + lane.refused.above(at.1))))?;
    lane.admitted
        .marks
        .iter()
        .try_for_each(|at| mark(area, lane.admitted.sign, (at.0, ground - lane.admitted.above(at.1))))
}

/// Draws a mark around its middle. Their shapes differ too, for those who see no colours.
fn mark(area: &Area, sign: Sign, (left, top): (i32, i32)) -> Drawn {
    let reach = MARK / 2 - 3;
    match sign {
        Sign::Arrival => area.draw(&Circle::new((left, top), reach, BLACK.filled())),
        Sign::Admitted => area.draw(&Circle::new((left, top), reach + 1, BLUE.filled())),
        Sign::Refused => {
            let (near, far) = ((left - reach, left + reach), (top - reach, top + reach));
            area.draw(&PathElement::new([(near.0, far.0), (near.1, far.1)], RED.stroke_width(4)))?;
            area.draw(&PathElement::new([(near.0, far.1), (near.1, far.0)], RED.stroke_width(4)))
        }
        Sign::Served => {
            let reach = reach + 2;
            let corners = [(left, top - reach), (left + reach, top), (left, top + reach), (left - reach, top)];
            area.draw(&Polygon::new(corners, GREEN.filled()))
        }
    }
}

fn dashed(area: &Area, left: i32, top: i32, bottom: i32) -> Drawn {
    (top..bottom).step_by(12).try_for_each(|from| {
        area.draw(&PathElement::new([(left, from), (left, (from + 7).min(bottom))], BLACK.stroke_width(2)))
    })
}

fn plain(colour: RGBColor) -> TextStyle<'static> {
    style(FontStyle::Normal, SMALL, colour)
}

fn bold(size: f64) -> TextStyle<'static> {
    style(FontStyle::Bold, size, BLACK)
}

fn style(style: FontStyle, size: f64, colour: RGBColor) -> TextStyle<'static> {
    // The backend divides sizes by this.
    let font = FontDesc::new(FontFamily::SansSerif, size * 1.24, style);
    TextStyle::from(font).with_color(colour).into_text_style(&(0, 0))
}

/// About as many pixels as a small text takes, whatever the font.
#[allow(clippy::cast_possible_truncation, reason = "it saturates")]
fn wide(text: &str) -> i32 {
    (text.chars().count() as f64 * SMALL * 0.55) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{self, Pattern, USUAL};

    fn drawn(times: Vec<u64>) -> String {
        svg(&Comparison::of(Pattern { name: "x", title: "a < b", setting: USUAL, times }).unwrap()).unwrap()
    }

    #[test]
    fn every_request_has_a_mark_in_every_lane() {
        for pattern in pattern::all() {
            let comparison = Comparison::of(pattern).unwrap();
            let svg = svg(&comparison).unwrap();
            let admitted: usize = comparison.replays.iter().map(|replay| replay.served.iter().flatten().count()).sum();
            // Each is an arrival too, and one of either kind stands in the legend.
            let arrivals = comparison.pattern.times.len();
            assert_eq!(svg.matches("<circle").count(), arrivals + admitted + 2, "{}", comparison.pattern.name);
        }
    }

    #[test]
    fn the_words_stand_there() {
        let svg = drawn(vec![0, 1_500_000_000]);
        for word in
            ["a &lt; b", "fixed window", "sliding counter", "leaky queue", "limit 5 per 10 s", "2 in all", "seconds"]
        {
            assert!(svg.contains(&format!("\n{word}\n")), "{word} is missing in:\n{svg}");
        }
    }

    #[test]
    fn one_time_and_the_ends_of_time_can_be_drawn() {
        for times in [vec![0], vec![u64::MAX], vec![0, u64::MAX], vec![7; 3_000], (0..2_000).collect()] {
            assert!(drawn(times).ends_with("</svg>\n"));
        }
    }

    #[test]
    fn marks_that_would_cover_each_other_are_piled_up() {
        let levels = |lefts: &[i32]| {
            Pile::of(Sign::Admitted, lefts.iter().copied()).marks.iter().map(|mark| mark.1).collect::<Vec<_>>()
        };
        assert_eq!(levels(&[0, 0, 0, NEAR - 1, NEAR, 2 * NEAR]), [0, 1, 2, 3, 0, 0]);
        let pile = Pile::of(Sign::Admitted, [0; 40]);
        assert_eq!(pile.height(), PILE * MARK);
        assert!(pile.above(39) < PILE * MARK);
    }
}
