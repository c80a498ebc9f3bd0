//! Charts as SVG text: static, self-contained, made for inlining into a page that holds
//! [`style`]. Colours come from classes, text takes the page's colour.

mod axis;
mod canvas;
mod cdf;
mod chart;
mod downsample;
mod palette;
mod ranges;
mod timeline;

pub use axis::{Axis, Scale};
pub use cdf::steps;
pub use chart::{Band, Chart, Line, Rule, Side};
pub use downsample::downsample;
pub use palette::{Ink, style};
pub use ranges::{Range, RangeChart, RangePanel};
pub use timeline::{Phase, Span, Timeline, TimelineRow};
