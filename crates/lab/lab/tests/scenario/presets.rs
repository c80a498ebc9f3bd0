//! Paths that start from a preset.

use uncork_lab::{Preset, Scenario};
use uncork_path::{Buffer, PathSpec, RateSpec};
use uncork_units::{Rate, TimeDelta};

use crate::common::{parse, scenario};

const FLOW: &str = "[flow.main]\ncc = \"bbr3\"\ntransfer = \"100kB\"\n";

fn text(path: &str) -> String {
    format!("[path]\n{path}\n{FLOW}")
}

fn path(scenario: &Scenario, cell: usize) -> PathSpec {
    scenario.instance(cell, 1).run.paths[0].clone()
}

#[test]
fn every_preset_runs_in_a_scenario() {
    for preset in Preset::all() {
        let scenario = scenario(&text(&format!("preset = \"{}\"", preset.name)), &[]);
        assert_eq!(Some(path(&scenario, 0)), preset.path(), "{}", preset.name);
        let record = &uncork_sim::run(&scenario.instance(0, 1).run).flows[0];
        assert_eq!(record.bytes_delivered, 100_000, "{}", preset.name);
    }
}

#[test]
fn a_paths_keys_override_its_preset() {
    let own = "preset = \"lte\"\nrtt = \"77ms\"\nbuffer = \"50p\"";
    let path = path(&scenario(&text(own), &[]), 0);
    assert_eq!((path.rtt, path.link.buffer), (TimeDelta::from_millis(77), Buffer::Packets(50)));
    let lte = Preset::find("lte").and_then(|preset| preset.path()).expect("a path");
    assert_eq!((path.link.rate, path.jitter, path.uplink), (lte.link.rate, lte.jitter, lte.uplink));
}

#[test]
fn a_rate_of_any_kind_replaces_the_rate_of_a_preset() {
    let constant = path(&scenario(&text("preset = \"lte\"\nrate = \"3mbit\""), &[]), 0);
    assert_eq!(constant.link.rate, RateSpec::Constant(Rate::from_mbit(3)));
    let traced = path(&scenario(&text("preset = \"fibre\"\ntrace = \"fcc-2016-1\""), &[]), 0);
    assert!(matches!(traced.link.rate, RateSpec::Trace(_)));
}

#[test]
fn a_paths_tables_are_merged_with_its_preset() {
    let own = "preset = \"cable\"\nuplink = { rate = \"5mbit\" }";
    let uplink = path(&scenario(&text(own), &[]), 0).uplink.expect("an uplink");
    assert_eq!(uplink.rate, RateSpec::Constant(Rate::from_mbit(5)));
    assert_eq!(
        (uplink.buffer, uplink.queue.to_string().as_str()),
        (Buffer::Packets(1000), "pie:target=10ms")
    );
    let own = "preset = \"lte\"\nlte = { mean = \"9mbit\" }";
    let RateSpec::Lte(lte) = path(&scenario(&text(own), &[]), 0).link.rate else { panic!("lte") };
    assert_eq!((lte.mean, lte.correlation), (Rate::from_mbit(9), TimeDelta::from_secs(5)));
}

#[test]
fn the_matrix_and_set_vary_presets_and_their_values() {
    let matrix =
        "[matrix]\n\"path.preset\" = [\"dsl\", \"satellite-geo\"]\n\"path.rtt\" = [\"40ms\"]\n";
    let varied = format!("{}{matrix}", text("preset = \"lte\""));
    let cells = scenario(&varied, &["path.loss=2%"]);
    let rates = [0, 1].map(|cell| path(&cells, cell).link.nominal_rate());
    assert_eq!(rates, [Rate::from_bits_per_sec(5_660_000), Rate::from_mbit(50)]);
    assert!([0, 1].iter().all(|cell| path(&cells, *cell).rtt == TimeDelta::from_millis(40)));
    let set = scenario(&text("preset = \"lte\""), &["path.preset=datacenter"]);
    assert_eq!(path(&set, 0).rtt, TimeDelta::from_micros(250));
}

#[test]
fn sources_of_used_values_are_listed_as_assumptions() {
    let own = "preset = \"lte\"\nbuffer = \"50p\"";
    let lines = scenario(&format!("assumptions = [\"Mine.\"]\n{}", text(own)), &[]).assumptions;
    assert_eq!(lines[0], "Mine.");
    let of = |key: &str| {
        lines.iter().filter(|line| line.starts_with(&format!("[path] {key} = "))).count()
    };
    assert_eq!((of("rtt"), of("lte"), of("buffer"), lines.len()), (1, 1, 0, 6));
    assert!(
        lines
            .iter()
            .any(|line| line.contains("rtt = 21ms, preset lte: Ofcom, Mobile Matters 2024"))
    );
}

#[test]
fn unknown_preset_suggests_the_nearest() {
    let error = parse(&text("preset = \"satelite-leo\""), &[]).unwrap_err();
    let shown = error.render("test.toml", false);
    assert!(shown.contains("test.toml:2:10"), "{shown}");
    assert!(shown.contains("did you mean `satellite-leo`?"), "{shown}");
}

#[test]
fn errors_in_preset_values_point_to_the_preset() {
    let error =
        parse(&text("preset = \"lte\"\nrate_steps = [[\"5s\", \"1mbit\"]]"), &[]).unwrap_err();
    assert!(error.message().contains("`rate_steps` has no meaning here"), "{error}");
    let error = parse(&text("preset = \"lte\"\njitter_distribution = \"bel\""), &[]).unwrap_err();
    assert!(error.render("test.toml", false).contains("test.toml:3:23"), "{error}");
    let error =
        parse(&text("preset = \"lte\"\nown_per_flow = true\nrtt = \"10us\""), &[]).unwrap_err();
    assert!(error.message().contains("cannot hold one packet"), "{error}");
    assert!(error.render("test.toml", false).contains("test.toml:2:10"), "{error}");
}
