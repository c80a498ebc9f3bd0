//! The result of a comparison or a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use uncork_lab::{DataTable, Engine, SWEEP_FILES, Scenario, SweepResults, items};
use uncork_report::lab::LabDocument;
use uncork_terminal::Style;

use crate::cells;
use crate::error::bug;
use crate::table::Table;
use crate::work::Work;

/// All runs of a scenario, and their evaluation.
#[pyclass(frozen, module = "uncork._native")]
pub(crate) struct LabRun {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) results: SweepResults,
    pub(crate) command: String,
    pub(crate) document: LabDocument,
    /// The same with time series of the first seed, for a comparison: its runs say how long the series are.
    pub(crate) sampled: Option<Arc<Scenario>>,
}

#[pymethods]
impl LabRun {
    /// The document, as `--format json` prints it.
    fn json(&self) -> String {
        self.document.to_json()
    }

    /// The table of results, as `--format csv` prints it.
    fn csv(&self) -> String {
        self.document.csv()
    }

    /// What `uncork compare` prints.
    fn short_text(&self) -> String {
        self.document.short_text(Style::Plain)
    }

    /// What `uncork lab run` prints.
    fn text(&self) -> String {
        self.document.text(Style::Plain)
    }

    /// Reasons to distrust the scenario.
    fn warnings(&self) -> Vec<String> {
        self.scenario.warnings().iter().map(ToString::to_string).collect()
    }

    /// The table of [`LabRun::csv`] with its types.
    fn cells(&self) -> PyResult<Table> {
        cells::table(&self.document).map(Table::of).map_err(|error| bug(&error.to_string()))
    }

    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, DataTable::Flows)
    }

    fn objects(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, DataTable::Objects)
    }

    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, DataTable::Series)
    }

    /// The same with time series, if it has none because it is a comparison. Runs the first seed again.
    fn with_series(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let Some(scenario) = &self.sampled else { return Ok(None) };
        let work = Work { engine: Engine::Sim, jobs: None, progress: None };
        let first = items(scenario).into_iter().filter(|item| item.seed == scenario.first_seed);
        let runs = work.play(py, scenario, first.collect())?;
        let results = self.results.with_series(runs);
        Ok(Some(Self::new(py, scenario, results, self.command.clone())))
    }

    /// The files that `-o` writes, by name.
    fn files(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, Vec<u8>>> {
        let contents = py.detach(|| {
            let document = self.results.document(&self.scenario, self.command.clone(), true);
            self.results.files(&self.scenario, &document)
        });
        let contents = contents.map_err(|error| bug(&error.to_string()))?;
        Ok(SWEEP_FILES.into_iter().zip(contents).collect())
    }
}

impl LabRun {
    pub(crate) fn new(
        py: Python<'_>,
        scenario: &Arc<Scenario>,
        results: SweepResults,
        command: String,
    ) -> Self {
        let document = py.detach(|| results.document(scenario, command.clone(), false));
        Self { scenario: Arc::clone(scenario), results, command, document, sampled: None }
    }

    /// Through Parquet, which defines the columns: there is one definition.
    fn table(&self, py: Python<'_>, table: DataTable) -> PyResult<Table> {
        let read = || {
            let file =
                self.results.table(&self.scenario, table).map_err(|error| error.to_string())?;
            Table::of_parquet(file).map_err(|error| error.to_string())
        };
        py.detach(read).map_err(|error: String| bug(&error))
    }
}
