//! Charts as SVG text: static, self-contained, made for inlining into a page that holds
//! [`style`]. Colours come from classes, text takes the page's colour.

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

pub use axis::{Axis, Scale};
pub use bars::{BarChart, BarMark};
pub use cdf::{climb, steps};
pub use chart::{Chart, Dot, Dots, Labels, Line, Mark, Rule, Side};
pub use downsample::downsample;
pub use heat_colours::heat_style;
pub use heat_map::HeatGrid;
pub(crate) use palette::COLOURS;
pub use palette::{Ink, style};
pub use timeline::{Timeline, TimelineRow};
