//! `merge_rollups`: many files of roll-ups as one for each day, which an engine then reads at once; and the damaged files among them.

use std::path::PathBuf;

use pyo3::prelude::*;
use uncork_records::{MergeError, Metric, Period, RollupSpec};

use crate::error::{input, worded};

/// Why each of the files is damaged, by the hash in its name; none of files that are whole, or have another name.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
pub(crate) fn rollup_damage(py: Python<'_>, files: Vec<PathBuf>) -> Vec<Option<String>> {
    py.detach(|| files.iter().map(|file| uncork_records::rollup_damage(file)).collect())
}

/// Merges roll-ups into files of `directory`, one for each day, named after `name`. They have the bins of `metrics` alone. Returns their paths.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
pub(crate) fn merge_rollups(
    py: Python<'_>,
    files: Vec<PathBuf>,
    directory: PathBuf,
    name: String,
    metrics: Vec<String>,
) -> PyResult<Vec<PathBuf>> {
    let spec = RollupSpec { period: Period::DAY, max_rows: usize::MAX, ..RollupSpec::new(name) };
    let is_wanted = |metric: &Metric| metrics.iter().any(|name| name == metric.name());
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(is_wanted).collect();
    let mut merged = Vec::new();
    let done = py.detach(|| {
        uncork_records::merge_rollups(&files, &directory, &spec, &metrics, |day| {
            merged.push(day.file);
        })
    });
    done.map_err(|error| match error {
        MergeError::Invalid(file, reason) => worded(py, &file.display().to_string(), &reason),
        error => input(py, "records", &error.to_string(), "repair the disk, or the files"),
    })?;
    Ok(merged)
}
