//! Places the parts of a [`Chart`] and draws them.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{BLACK, Chart, Key, Marks, Panel, Row, Sign};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

// All in pixels. The picture is made to be shown at about half of its size: marks lie on whole pixels, and so they lie finer.
const WIDTH: i32 = 1_640;
const MARGIN: i32 = 30;
const HEAD: i32 = 200;
const ROW: i32 = 470;
const PANEL_HEAD: i32 = 84;
const GAP: i32 = 48;
const LEFT_LABELS: i32 = 160;
const BOTTOM_LABELS: i32 = 74;
const SMALL: f64 = 25.0;
const DOT: i32 = 4;
const STROKE: u32 = 3;

const GREY: RGBColor = RGBColor(95, 95, 95);
const PALE: RGBColor = RGBColor(225, 225, 225);

/// Draws a chart and returns the text of the SVG.
pub(crate) fn svg(chart: &Chart) -> Result<String, DrawingAreaErrorKind<io::Error>> {
    let mut text = String::new();
    let height = HEAD + ROW * i32::try_from(chart.rows.len()).unwrap_or(0) + MARGIN / 2;
    let area = SVGBackend::with_string(&mut text, (WIDTH.unsigned_abs(), height.unsigned_abs())).into_drawing_area();
    area.fill(&WHITE)?;
    head(&area, chart)?;
    for (row, index) in chart.rows.iter().zip(0..) {
        panels(&area, row, HEAD + ROW * index)?;
    }
    area.present()?;
    drop(area);
    Ok(text)
}

fn head(area: &Area, chart: &Chart) -> Drawn {
    area.draw_text(&chart.title, &bold(36.0, BLACK), (MARGIN, MARGIN))?;
    area.draw_text(&chart.subtitle, &plain(28.0, GREY), (MARGIN, MARGIN + 50))?;
    let (mut left, middle) = (MARGIN, MARGIN + 120);
    for Key { sign, colour, meaning } in &chart.legend {
        match sign {
            Sign::Area => {
                area.draw(&Rectangle::new([(left, middle - 10), (left + 30, middle + 10)], tint(*colour).filled()))?;
                area.draw(&PathElement::new(
                    [(left, middle - 10), (left + 30, middle - 10)],
                    colour.stroke_width(STROKE),
                ))?;
            }
            Sign::Line => {
                area.draw(&PathElement::new([(left, middle), (left + 30, middle)], colour.stroke_width(STROKE)))?
            }
            Sign::Dot => area.draw(&Circle::new((left + 15, middle), DOT + 2, colour.filled()))?,
        }
        let style = plain(SMALL, BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(meaning, &style, (left + 42, middle))?;
        left += 42 + wide(meaning) + 36;
    }
    Ok(())
}

fn panels(area: &Area, row: &Row, top: i32) -> Drawn {
    let count = i32::try_from(row.panels.len()).unwrap_or(1).max(1);
    let width = (WIDTH - LEFT_LABELS - MARGIN) / count - GAP;
    let mut left = MARGIN;
    for (index, panel) in row.panels.iter().enumerate() {
        let labels = if index == 0 { LEFT_LABELS } else { 0 };
        let right = left + labels + width;
        let place = area.clone().shrink((left, top), ((right - left + GAP).unsigned_abs(), ROW.unsigned_abs()));
        plot(&place, row, panel, labels)?;
        left = right + GAP;
    }
    Ok(())
}

/// Draws a panel, with the labels of the row's axis if it has room for them.
fn plot(area: &Area, row: &Row, panel: &Panel, labels: i32) -> Drawn {
    area.draw_text(&panel.heading, &bold(27.0, BLACK), (labels, 4))?;
    area.draw_text(&panel.remark, &plain(SMALL, GREY), (labels, 42))?;
    let (x, y) = (&panel.x, &row.y);
    let mut plot = ChartBuilder::on(area)
        .margin_top(PANEL_HEAD)
        .margin_right(GAP)
        .margin_bottom(GAP / 2)
        .set_label_area_size(LabelAreaPosition::Left, labels)
        .set_label_area_size(LabelAreaPosition::Bottom, BOTTOM_LABELS)
        .build_cartesian_2d(x.clone(), y.clone())?;
    plot.configure_mesh()
        .bold_line_style(PALE)
        .axis_style(GREY)
        .label_style(plain(SMALL, BLACK))
        .axis_desc_style(plain(SMALL, BLACK))
        .x_desc(&x.label)
        .y_desc(&y.label)
        .draw()?;

    for marks in &panel.marks {
        match marks {
            Marks::Steps { colour, width, figures } => {
                for outline in outlines(*width, figures) {
                    let (left, right) = (outline[0].0, outline[outline.len() - 1].0);
                    let base = y.range.start;
                    let area = [&[(left, base)], &outline[..], &[(right, base)]].concat();
                    plot.draw_series([Polygon::new(area, tint(*colour))])?;
                    plot.draw_series([PathElement::new(outline, colour.stroke_width(STROKE))])?;
                }
            }
            Marks::Dots { colour, points } => {
                let seen = points.iter().filter(|(at, figure)| x.range.contains(at) && y.range.contains(figure));
                plot.draw_series(seen.map(|&point| Circle::new(point, DOT, colour.filled())))?;
            }
            Marks::Line { colour, points } => {
                plot.draw_series([PathElement::new(points.clone(), colour.stroke_width(STROKE))])?;
            }
            Marks::Text { at, text } => {
                plot.draw_series([Text::new(text.clone(), *at, plain(SMALL, BLACK))])?;
            }
        }
    }
    Ok(())
}

/// The upper edges of steps, one for each stretch without a 0.
fn outlines(width: f64, figures: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let mut outlines: Vec<Vec<_>> = Vec::new();
    let mut before = 0.0;
    let mut left = 0.0;
    for &figure in figures {
        if figure > 0.0 {
            if before <= 0.0 {
                outlines.push(Vec::new());
            }
            if let Some(outline) = outlines.last_mut() {
                outline.extend([(left, figure), (left + width, figure)]);
            }
        }
        before = figure;
        left += width;
    }
    outlines
}

/// The colour of the area under a curve: opaque, so that one in front of another looks the same.
fn tint(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let tint = |part: u8| part / 5 * 2 + 153;
    RGBColor(tint(red), tint(green), tint(blue))
}

fn plain(size: f64, colour: RGBColor) -> TextStyle<'static> {
    style(FontStyle::Normal, size, colour)
}

fn bold(size: f64, colour: RGBColor) -> TextStyle<'static> {
    style(FontStyle::Bold, size, colour)
}

fn style(style: FontStyle, size: f64, colour: RGBColor) -> TextStyle<'static> {
    // The backend divides sizes by this.
    let font = FontDesc::new(FontFamily::SansSerif, size * 1.24, style);
    TextStyle::from(font).with_color(colour).into_text_style(&(0, 0))
}

/// About as many pixels as a small text takes, whatever the font.
fn wide(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(0) * 14
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, BLUE};

    fn chart(marks: Vec<Marks>) -> Chart {
        let x = Axis::linear("seconds".to_owned(), 0.0..4.0, 4.0);
        let panel = Panel { heading: "heading".to_owned(), remark: "remark".to_owned(), x, marks };
        Chart {
            title: "title".to_owned(),
            subtitle: "a < b".to_owned(),
            legend: vec![Key { sign: Sign::Line, colour: BLACK, meaning: "meaning".to_owned() }],
            rows: vec![Row { y: Axis::logarithmic("calls".to_owned(), 1.0..100.0), panels: vec![panel] }],
        }
    }

    #[test]
    fn a_chart_without_marks_has_its_words_and_labels() {
        let svg = svg(&chart(vec![])).unwrap();
        for word in ["title", "a &lt; b", "meaning", "heading", "remark", "seconds", "calls", "100"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word} is missing in:\n{svg}");
        }
    }

    #[test]
    fn dots_beyond_the_border_are_left_out() {
        let points = vec![(1.0, 10.0), (3.0, 99.0), (3.0, 101.0), (4.5, 10.0)];
        let svg = svg(&chart(vec![Marks::Dots { colour: BLUE, points }])).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn steps_have_an_outline_for_each_stretch_without_a_0() {
        assert_eq!(outlines(1.0, &[]), [[]; 0]);
        assert_eq!(
            outlines(1.0, &[0.0, 3.0, 4.0, 0.0, 5.0]),
            [vec![(1.0, 3.0), (2.0, 3.0), (2.0, 4.0), (3.0, 4.0)], vec![(4.0, 5.0), (5.0, 5.0)]]
        );
    }
}
