//! Draws rows of panels into one SVG. The examples share it: each takes it in with `#[path]`.
//!
//! What is to be seen is said with [`Chart`] and its parts, in the units of the axes. [`svg`] places and draws it.

mod axis;
mod draw;

pub(crate) use axis::{Axis, counts, grouped, nice};
pub(crate) use draw::svg;
use plotters::style::RGBColor;

/// The colours of what is drawn, which those who see few colours can tell apart too.
pub(crate) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(crate) const RED: RGBColor = RGBColor(213, 94, 0);
pub(crate) const BLACK: RGBColor = RGBColor(40, 40, 40);

/// A picture: a title, what its colours mean, and rows of panels.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) legend: Vec<Key>,
    pub(crate) rows: Vec<Row>,
}

/// An entry of the legend.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) sign: Sign,
    pub(crate) colour: RGBColor,
    pub(crate) meaning: String,
}

/// The shape of which the legend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Area,
    Line,
    Dot,
}

/// Panels side by side, which share the vertical axis.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) y: Axis,
    pub(crate) panels: Vec<Panel>,
}

/// One plot. Marks are drawn in their order. Dots outside of it are left out; everything else must lie within.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) heading: String,
    pub(crate) remark: String,
    pub(crate) x: Axis,
    pub(crate) marks: Vec<Marks>,
}

/// What is drawn in a panel.
#[derive(Debug)]
pub(crate) enum Marks {
    /// Figures of spans that follow each other, each of them `width` wide; where a figure is 0 nothing is drawn.
    Steps { colour: RGBColor, width: f64, figures: Vec<f64> },
    /// A dot a point.
    Dots { colour: RGBColor, points: Vec<(f64, f64)> },
    /// A line from point to point.
    Line { colour: RGBColor, points: Vec<(f64, f64)> },
    /// Text that begins at a point.
    Text { at: (f64, f64), text: String },
}
