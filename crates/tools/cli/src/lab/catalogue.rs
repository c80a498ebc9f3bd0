//! The built-in scenarios.

use uncork_lab::{Builtin, Suite};
use uncork_report::{Align, Column, Table};

use super::source;
use crate::failure::Failure;
use crate::values::Color;
use crate::{color, stdout};

/// Prints the names and titles of the built-in scenarios.
pub(super) fn list() -> Result<(), Failure> {
    let mut rows = Vec::new();
    // The scenarios of a suite are listed in its file.
    let members: Vec<String> = Suite::all().flat_map(|suite| suite.members).collect();
    let alone = |builtin: &&Builtin| members.iter().all(|member| member != builtin.name);
    for builtin in Builtin::all().iter().filter(alone) {
        let scenario =
            builtin.parse(&[]).map_err(|error| source::wrong(&error, builtin.name, Color::Auto))?;
        let (cells, seeds) = (scenario.cells.len(), scenario.seeds);
        let runs = cells as u64 * u64::from(seeds);
        let runs = format!("{cells} x {seeds} = {runs}");
        rows.push(vec![scenario.name, scenario.title, runs]);
    }
    for suite in Suite::all() {
        rows.push(vec![
            suite.name.to_owned(),
            suite.title,
            format!("suite of {}", suite.members.len()),
        ]);
    }
    rows.sort_by(|one, other| one[0].cmp(&other[0]));
    let columns = vec![
        Column::new("name", Align::Left),
        Column::new("title", Align::Left),
        Column::new("cells x seeds = runs", Align::Right),
    ];
    stdout::write(Table { columns, rows }.fit(color::terminal(Color::Never)).as_bytes())
}

/// Prints the file of the built-in scenario `name`.
pub(super) fn show(name: &str) -> Result<(), Failure> {
    if let Some(suite) = Suite::find(name) {
        return stdout::data(suite.text.as_bytes());
    }
    let builtin = Builtin::find(name).ok_or_else(|| source::unknown("<NAME>", name, ""))?;
    stdout::data(builtin.text.as_bytes())
}
