//! The presets, for `uncork lab presets`.

use uncork_lab::{Preset, PresetValue};
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
    let value = |preset: &Preset, key: &str| {
        let value = preset.values.iter().find(|value| value.key == key);
        value.map_or_else(String::new, PresetValue::value)
    };
    let row = |preset: Preset| {
        let path = preset.path();
        let rate = path.map_or_else(String::new, |path| path.link.nominal_rate().to_string());
        let [rtt, loss] = ["rtt", "loss"].map(|key| value(&preset, key));
        vec![preset.name, rate, rtt, loss, preset.title]
    };
    let column = |name: &str, align| Column { group: String::new(), name: name.to_owned(), align };
    let columns = vec![
        column("name", Align::Left),
        column("rate", Align::Right),
        column("RTT", Align::Right),
        column("loss", Align::Right),
        column("title", Align::Left),
    ];
    let rows = Preset::all().into_iter().map(row).collect();
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
