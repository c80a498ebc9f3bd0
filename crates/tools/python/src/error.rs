//! Bad input as the exception of the package, which has place, problem and remedy.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use uncork_lab::{OptionError, ScenarioError, Source};

/// `InputError(place, problem, remedy)`.
pub(crate) fn input(py: Python<'_>, place: &str, problem: &str, remedy: &str) -> PyErr {
    let class = py.import("uncork.measure.errors").and_then(|it| it.getattr("InputError"));
    match class.and_then(|class| class.call1((place, problem, remedy))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The error of another crate at `place`. Its text is the problem and, after a semicolon, the remedy. Of a value it may be
/// only what is expected.
pub(crate) fn worded(py: Python<'_>, place: &str, text: &str) -> PyErr {
    let (problem, remedy) = match text.split_once("; ") {
        Some(parts) => parts,
        None if text.starts_with("expected") => ("invalid value", text),
        None => (text, ""),
    };
    input(py, place, problem, remedy)
}

/// An option of a comparison that cannot be used. Its name is the keyword's.
pub(crate) fn of_option(py: Python<'_>, error: &OptionError) -> PyErr {
    let name = error.option().replace('-', "_");
    match error {
        OptionError::Value { value, reason, .. } => worded(py, &format!("{name}={value}"), reason),
        _ => worded(py, &name, &error.to_string()),
    }
}

/// An error in the scenario `name` with the values of `set`. The marked line is a note of the exception.
pub(crate) fn in_scenario(
    py: Python<'_>,
    (name, set): (&str, &[(String, String)]),
    error: &ScenarioError,
) -> PyErr {
    let place = match &error.place().source {
        Source::Set(nth) => format!("set {}", set.get(*nth).map_or("", |(key, _)| key)),
        Source::File { name, .. } => format!("{name}, line {}", error.line()),
        Source::Text => format!("{name}, line {}", error.line()),
    };
    let hints = [error.expectation(), error.suggestion()];
    let remedy: Vec<&str> = hints.into_iter().flatten().collect();
    let exception = input(py, &place, error.message(), &remedy.join("; "));
    let noted = exception.value(py).call_method1("add_note", (error.render(name, false),));
    noted.err().unwrap_or(exception)
}

/// A failure of this module, not of its input.
pub(crate) fn bug(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{what}; this is a bug in uncork: please report it with the call"
    ))
}
