//! What is built in, and the paths of logs, as text.

use uncork_path::PathSpec;
use uncork_terminal::{Column, Style, Table, Terminal};

use crate::builtin::Builtin;
use crate::logs::{ClientPath, LogPaths};
use crate::preset::{Preset, PresetValue};
use crate::scenario::ScenarioError;
use crate::suite::Suite;

impl Builtin {
    /// A table of the built-in scenarios and suites.
    ///
    /// # Errors
    ///
    /// If one of them is wrong, which a test excludes.
    pub fn list(terminal: Terminal) -> Result<String, ScenarioError> {
        let mut rows = Vec::new();
        // The scenarios of a suite are listed in its file.
        let members: Vec<String> = Suite::all().flat_map(|suite| suite.members).collect();
        let alone = |builtin: &&Self| members.iter().all(|member| member != builtin.name);
        for builtin in Self::all().iter().filter(alone) {
            let scenario = builtin.parse(&[])?;
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
            Column::left("name"),
            Column::left("title"),
            Column::right("cells x seeds = runs"),
        ];
        Ok(Table { columns, rows }.fit(terminal))
    }
}

impl Preset {
    /// A table of all presets.
    pub fn list() -> String {
        let rtt = |path: &PathSpec| path.rtt.to_string();
        let mbit =
            |path: &PathSpec| (path.link.nominal_rate().bits_per_sec() as f64 / 1e6).to_string();
        let loss = |path: &PathSpec| format!("{:.1} %", path.loss.mean() * 100.0);
        let row = |preset: &Self| {
            let path = preset.path()?;
            Some(vec![
                preset.name.into(),
                mbit(&path),
                rtt(&path),
                loss(&path),
                preset.title.into(),
            ])
        };
        let columns = vec![
            Column::left("name"),
            Column::right("Mbit/s"),
            Column::right("RTT"),
            Column::right("loss"),
            Column::left("title"),
        ];
        let rows = Self::all().iter().filter_map(row).collect();
        Table { columns, rows }.render(Style::Plain)
    }

    /// The title, then each value with its source below.
    pub fn text(&self) -> String {
        let value = |value: &PresetValue| {
            let PresetValue { key, source, .. } = value;
            format!("{key} = {}\n    {source}\n", value.value())
        };
        let values: Vec<String> = self.values.iter().map(value).collect();
        format!("{}: {}\n\n{}", self.name, self.title, values.concat())
    }
}

impl LogPaths {
    /// A table. A column without any value is left out.
    pub fn text(&self) -> String {
        type Figure = (&'static str, usize, fn(&ClientPath) -> Option<f64>);
        let paths = &self.paths;
        let figures: [Figure; 4] = [
            ("rtt, ms", 2, |path| path.rtt_ms),
            ("rate, Mbit/s", 2, |path| path.rate_bps.map(|bits| bits / 1e6)),
            ("resent, %", 2, |path| path.resent.map(|share| share * 100.0)),
            ("buffer, kB", 0, |path| path.buffer_bytes.map(|bytes| bytes / 1e3)),
        ];
        let has_any = |(.., value): &Figure| paths.iter().any(|path| value(path).is_some());
        let figures: Vec<Figure> = figures.into_iter().filter(has_any).collect();
        let numbers = figures.iter().map(|(name, ..)| Column::right(name));
        let columns = [Column::left("client"), Column::right("samples")];
        let columns = columns.into_iter().chain(numbers).collect();
        let row = |path: &ClientPath| {
            let cell = |(_, digits, value): &Figure| {
                value(path).map_or("-".to_owned(), |value| format!("{value:.digits$}"))
            };
            let cells = [path.client.clone(), path.samples.to_string()];
            cells.into_iter().chain(figures.iter().map(cell)).collect()
        };
        Table { columns, rows: paths.iter().map(row).collect() }.render(Style::Plain)
    }
}
