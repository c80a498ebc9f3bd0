//! The presets, for `uncork lab presets`.

use uncork_lab::{Preset, PresetValue};
use uncork_path::PathSpec;
use uncork_report::{Align, Column, Style, Table};

use crate::failure::Failure;
use crate::stdout;

/// Prints all presets, or the values of the preset `name` with their sources.
pub(super) fn presets(name: Option<&str>) -> Result<(), Failure> {
    let text = match name.and_then(Preset::find) {
        Some(preset) => values(&preset),
        None => list(),
    };
    stdout::write(text.as_bytes())
}

fn list() -> String {
    let rtt = |path: &PathSpec| path.rtt.to_string();
    let mbit = |path: &PathSpec| (path.link.nominal_rate().bits_per_sec() as f64 / 1e6).to_string();
    let loss = |path: &PathSpec| format!("{:.1} %", path.loss.mean() * 100.0);
    let row = |preset: Preset| {
        let path = preset.path()?;
        Some(vec![preset.name, mbit(&path), rtt(&path), loss(&path), preset.title])
    };
    let columns = vec![
        Column::new("name", Align::Left),
        Column::new("Mbit/s", Align::Right),
        Column::new("RTT", Align::Right),
        Column::new("loss", Align::Right),
        Column::new("title", Align::Left),
    ];
    let rows = Preset::all().into_iter().filter_map(row).collect();
    Table { columns, rows }.render(Style::Plain)
}

/// The title, then each value with its source below.
fn values(preset: &Preset) -> String {
    let value = |value: &PresetValue| {
        let PresetValue { key, source, .. } = value;
        format!("{key} = {}\n    {source}\n", value.value())
    };
    let values: Vec<String> = preset.values.iter().map(value).collect();
    format!("{}: {}\n\n{}", preset.name, preset.title, values.concat())
}
