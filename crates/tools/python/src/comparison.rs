//! `compare`: the options of `uncork compare`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use pyo3::prelude::*;
use uncork_lab::{CompareError, CompareSpec, Engine, SweepResults, items};

use crate::error::{of_option, worded};
use crate::lab_run::LabRun;
use crate::work::Work;

/// Compares controllers. `options` has the names and values of the command line. Others have their defaults.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
pub(crate) fn compare(
    py: Python<'_>,
    options: Vec<(String, String)>,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<LabRun> {
    let pairs = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let spec = CompareSpec::of_options(pairs).map_err(|error| of_option(py, &error))?;
    let wrong = |error: CompareError| worded(py, spec.option_of(&error), &error.to_string());
    let scenario = Arc::new(spec.scenario(None).map_err(wrong)?);
    let work = Work { engine: Engine::Sim, jobs, progress };
    let runs = work.play(py, &scenario, items(&scenario))?;
    let sampled = spec.scenario(Some(spec.sample_every(&runs))).map_err(wrong)?;
    let run = LabRun::new(py, &scenario, SweepResults::new(runs), spec.command());
    Ok(LabRun { sampled: Some(Arc::new(sampled)), ..run })
}
