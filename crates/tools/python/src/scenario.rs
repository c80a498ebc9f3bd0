//! `run`: a scenario.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use uncork_lab::{Builtin, Engine, Files, Scenario, Suite, SweepResults, items};

use crate::error::{in_scenario, input, worded};
use crate::lab_run::LabRun;
use crate::work::Work;

/// Runs a scenario: `text` of the file `given`, or the built-in one with this name. `set` overrides values, and `command`
/// repeats the run.
#[pyfunction]
#[pyo3(signature = (given, *, text, set, on, command, jobs, progress))]
#[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
#[expect(clippy::too_many_arguments, reason = "the package has the documented face")]
pub(crate) fn run(
    py: Python<'_>,
    given: &str,
    text: Option<&str>,
    set: Vec<(String, String)>,
    on: &str,
    command: String,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<LabRun> {
    let engine = engine(py, on)?;
    let parsed = match text {
        Some(text) => {
            let path = Path::new(given);
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            Scenario::parse(&name, text, &set, &Directory(path.parent().unwrap_or(Path::new(""))))
        }
        None => Builtin::find(given).ok_or_else(|| unknown(py, given))?.parse(&set),
    };
    let scenario = parsed.map_err(|error| in_scenario(py, (given, &set), &error))?;
    engine.check(&scenario).map_err(|error| worded(py, &format!("on={on}"), &error.message))?;
    let scenario = Arc::new(scenario);
    let runs = Work { engine, jobs, progress }.play(py, &scenario, items(&scenario))?;
    Ok(LabRun::new(py, &scenario, SweepResults::new(runs), command))
}

/// Engines in real time make network namespaces, and stay with the program.
fn engine(py: Python<'_>, on: &str) -> PyResult<Engine> {
    let place = format!("on={on}");
    let engine: Engine =
        on.parse().map_err(|_| input(py, &place, "unknown engine", "use sim or quic-sim"))?;
    if engine.is_in_real_time() {
        let remedy = format!("use sim or quic-sim, or run the program: uncork lab run --on {on}");
        return Err(input(py, &place, "not possible in the process of Python", &remedy));
    }
    Ok(engine)
}

fn unknown(py: Python<'_>, name: &str) -> PyErr {
    if let Some(suite) = Suite::find(name) {
        let remedy = format!("run one of {}", suite.members.join(", "));
        return input(py, name, "a suite of several scenarios", &remedy);
    }
    let remedy = match Builtin::near(name).as_slice() {
        [] => "`uncork lab list` lists them".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    input(py, name, "no built-in scenario has this name, and files end in .toml", &remedy)
}

/// The files next to a scenario.
struct Directory<'a>(&'a Path);

impl Files for Directory<'_> {
    fn read(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.0.join(name)).map_err(|error| error.to_string())
    }
}
