//! Flows of unlimited data over one path, from the options of `uncork compare`.

use pyo3::prelude::*;
use uncork_cc::{CcSpec, Either};
use uncork_lab::{CompareSpec, Workload};
use uncork_path::PathSpec;
use uncork_sim::{RunSpec, Workload as Traffic};
use uncork_units::Time;

use crate::error::{input, of_option, worded};
use crate::steered::FlowSpec;

/// Points of the time series of a run.
const SAMPLES: u64 = 500;

/// The controller `name`, given at `place`.
pub(crate) fn named(py: Python<'_>, place: &str, name: &str) -> PyResult<FlowSpec> {
    let parsed: Result<CcSpec, _> = name.parse();
    parsed.map(Either::B).map_err(|error| worded(py, place, &error.to_string()))
}

/// A run of `flows` over the path of `options`, which also have duration and seed.
pub(crate) fn over(
    py: Python<'_>,
    options: &[(String, String)],
    flows: &[FlowSpec],
) -> PyResult<RunSpec<FlowSpec>> {
    let pairs = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let spec = CompareSpec::of_options(pairs).map_err(|error| of_option(py, &error))?;
    let Ok([path]) = <[PathSpec; 1]>::try_from(spec.paths()) else {
        return Err(input(py, "path", "an option has several values", "give one value of each"));
    };
    let Workload::Duration(duration) = spec.workload else {
        return Err(input(py, "duration", "is missing", "write duration='30s'"));
    };
    let end = Time::ZERO + duration;
    let flows = flows.iter().map(|cc| uncork_sim::FlowSpec::new(*cc, Traffic::Until(end)));
    let run = RunSpec {
        host_jitter: spec.host_jitter,
        sample_every: Some(duration.divided_by(SAMPLES)),
        ..RunSpec::over(path, flows.collect(), spec.first_seed, end)
    };
    run.check().map_err(|error| input(py, "run", &error.to_string(), "change the path"))?;
    Ok(run)
}
