//! Charts as static, self-contained SVG text, to be inlined into a page that includes [`style`].
//! Colours come from CSS classes; text has the page's colour.

mod axis;
mod bars;
mod canvas;
mod cdf;
mod chart;
mod downsample;
mod heat_colours;
mod heat_map;
mod palette;
mod timeline;

pub(crate) use axis::{Axis, Scale};
pub(crate) use bars::{BarChart, BarMark};
pub(crate) use cdf::climb;
pub(crate) use chart::{Chart, ChartLabels, ChartLine, Dot, Dots, Mark, Rule, Side};
pub(crate) use downsample::downsample;
#[cfg(test)]
pub(crate) use heat_colours::diverging;
pub(crate) use heat_colours::heat_style;
pub(crate) use heat_map::HeatGrid;
pub(crate) use palette::COLOURS;
#[cfg(test)]
pub(crate) use palette::DASHES;
pub(crate) use palette::{Ink, style};
pub(crate) use timeline::{Timeline, TimelineRow};
