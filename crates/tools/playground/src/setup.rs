//! What the page shows of its options before anything runs.

use serde::Serialize;
use uncork_cc::Algorithm;
use uncork_lab::{Preset, Workload};
use uncork_sim::PACKET_BYTES;

use crate::options::{Options, Refusal};

#[derive(Serialize)]
struct Setup {
    title: String,
    command: String,
    scenario: String,
    rate_bps: u64,
    rtt_ns: u64,
    buffer_bytes: u64,
    bdp_bytes: u64,
    columns: Vec<String>,
    is_timed: bool,
    packets: u64,
    controllers: Vec<String>,
    presets: Vec<PresetSetup>,
}

#[derive(Serialize)]
struct PresetSetup {
    name: &'static str,
    title: &'static str,
}

/// The command, the scenario and the numbers of the path as JSON.
///
/// # Errors
///
/// The option that cannot be used.
pub fn setup(text: &str) -> Result<String, Refusal> {
    let Options { spec, scenario, path } = Options::parse(text)?;
    let rate = path.link.nominal_rate();
    let preset = |preset: &Preset| PresetSetup { name: preset.name, title: preset.title };
    let setup = Setup {
        title: scenario.title.clone(),
        command: spec.command(),
        scenario: scenario.text.clone(),
        rate_bps: rate.bits_per_sec(),
        rtt_ns: path.rtt.as_nanos(),
        buffer_bytes: path.link.buffer_bytes(PACKET_BYTES, path.rtt),
        bdp_bytes: rate.bytes_in(path.rtt),
        columns: spec.columns.iter().map(ToString::to_string).collect(),
        is_timed: matches!(spec.workload, Workload::Duration(_)),
        packets: spec.packet_count(),
        controllers: controllers(),
        presets: Preset::all().iter().map(preset).collect(),
    };
    Ok(serde_json::to_string(&setup).unwrap_or_default())
}

/// Every controller, and every controller with one of its options.
fn controllers() -> Vec<String> {
    let with_options = |algorithm: Algorithm| {
        let options = algorithm.options().iter();
        let name = algorithm.name();
        let with = options.map(move |option| format!("{name}:{option}"));
        std::iter::once(name.to_owned()).chain(with)
    };
    Algorithm::ALL.into_iter().flat_map(with_options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_has_command_scenario_and_path() {
        let text = setup("rate=8mbit\nrtt=100ms").unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(value["bdp_bytes"], 100_000);
        assert!(value["scenario"].as_str().is_some_and(|text| text.contains("[path]")));
        assert!(value["presets"].as_array().is_some_and(|presets| presets.len() >= 12));
    }
}
