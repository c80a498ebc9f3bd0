//! Scenarios: paths, traffic and evaluations, as defined by a file.
//!
//! [`Scenario::parse`] parses a text into cells; [`Scenario::instance`] creates a run of one of
//! them.

mod axis;
mod demand;
mod draw;
mod instance;
mod keys;
mod limits;
mod measured;
mod model;
mod names;
mod opened;
mod plan;
mod question;
mod read;
mod set;

pub(crate) use axis::{Places, names as axis_names};
pub(crate) use demand::{Amount, Demand, Span, link_bytes};
pub(crate) use instance::usual_spread;
pub(crate) use limits::MAX_CELLS;
pub use limits::SizeEstimate;
pub use measured::Carries;
pub use model::{Axis, Cell, Class, Instance, Scenario};
pub(crate) use model::{AxisPart, distinct};
pub(crate) use names::MetricUnit;
pub(crate) use opened::latest_opening;
pub(crate) use plan::{
    CellPlan, ClientActivity, Connect, Draws, FlowPlan, PathPlan, SingleActivity,
};
pub use question::{
    Expectation, Figure, FigureKind, Metric, Published, PublishedRange, Quantity, Selection,
    Statistic, Threshold,
};
pub use uncork_config::{ConfigError as ScenarioError, Place, Source};

/// Files used by a scenario, such as traces.
pub trait Files {
    /// The text of the file `name`.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, as text.
    fn read(&self, name: &str) -> Result<String, String>;
}

impl Scenario {
    /// Parses the scenario `name` from `text`. `set` replaces values by dotted key, as TOML or, if
    /// invalid, as a string. All cells are validated.
    ///
    /// # Errors
    ///
    /// The first error with its place.
    pub fn parse(
        name: &str,
        text: &str,
        set: &[(String, String)],
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        read::scenario(name, text, set, files).map_err(|error| error.within(text, set))
    }

    /// Probable mistakes that are not errors.
    pub fn warnings(&self) -> Vec<String> {
        limits::unfinishable(&self.cells)
    }

    /// Approximate load of the run of the cell with index `cell` and this seed.
    ///
    /// # Panics
    ///
    /// If `cell` does not exist.
    pub fn load(&self, cell: usize, seed: u64) -> SizeEstimate {
        let every = self.sample_every.filter(|_| self.series_seeds.contains(&seed));
        let points = every.map_or(0, |every| self.cells[cell].points(every));
        SizeEstimate { points, ..SizeEstimate::of_run(&self.cells[cell]) }
    }
}
