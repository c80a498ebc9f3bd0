//! Scenarios: paths, traffic, and what is asked of them, as a file describes them.

mod axis;
mod model;
mod question;

pub use model::{Axis, Cell, Class, Instance, Scenario};
pub use question::{
    Expectation, Figure, FigureKind, Metric, Published, Quantity, Selection, Statistic, Threshold,
};
