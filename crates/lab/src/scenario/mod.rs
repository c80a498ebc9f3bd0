//! Scenarios: paths, traffic, and what is asked of them, as a file describes them.
//!
//! [`Scenario::parse`] reads a text into cells; [`Scenario::instance`] makes a run of one of them.

mod axis;
mod draw;
mod instance;
mod keys;
mod limits;
mod measured;
mod model;
mod names;
mod plan;
mod question;
mod read;
mod set;

pub(crate) use axis::Places;
pub use limits::Load;
pub use measured::Carries;
pub use model::{Axis, Cell, Class, Instance, Scenario};
pub(crate) use names::MetricUnit;
pub(crate) use plan::FlowPlan;
#[cfg(test)]
pub(crate) use plan::Plan;
pub use question::{
    Expectation, Figure, FigureKind, Metric, Published, Quantity, Selection, Statistic, Threshold,
};
pub use uncork_config::{ConfigError as ScenarioError, Place, Source};

/// Files beside a scenario, such as traces.
pub trait Files {
    /// The text of the file that the scenario calls `name`.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in words.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// The path of the preset `name`.
pub(crate) fn preset_path(name: &str, files: &dyn Files) -> Option<uncork_path::PathSpec> {
    read::preset_path(name, files)
}

impl Scenario {
    /// Reads the scenario `name` from `text`. The values of `set`, by the dotted keys of their places,
    /// stand for those of the text: TOML, or a string if they are not. All cells are checked.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place.
    pub fn parse(
        name: &str,
        text: &str,
        set: &[(String, String)],
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        read::scenario(name, text, set, files).map_err(|error| error.within(text, set))
    }

    /// What is allowed, and probably a mistake.
    pub fn warnings(&self) -> Vec<String> {
        limits::unfinishable(&self.cells)
    }

    /// About how much a run of the cell of index `cell` is.
    ///
    /// # Panics
    ///
    /// If there is no such cell.
    pub fn load(&self, cell: usize) -> Load {
        Load::of_run(&self.cells[cell])
    }
}
