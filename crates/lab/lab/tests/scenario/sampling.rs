//! Sampling of the parameter space instead of all combinations.

use std::collections::BTreeSet;

use uncork_lab::Scenario;

use super::common::{parse, scenario};

const SAMPLED: &str = r#"
[run]
seeds = 1
[path]
rate = "20mbit"
rtt = "20ms"
[flow.main]
cc = "cubic"
transfer = "10kB"
[matrix]
sample = 40
cross = ["flow.main.cc"]
"path.loss" = { from = "0.01%", to = "1%", scale = "log" }
"path.rtt" = { from = "10ms", to = "90ms" }
"flow.main.count" = { from = 1, to = 5 }
"path.queue" = ["droptail", "fq_codel"]
"flow.main.cc" = ["cubic", "bbr3"]
"#;

/// The value that each cell has on the axis `key`.
fn values(scenario: &Scenario, key: &str) -> Vec<String> {
    let axis = scenario.axes.iter().position(|axis| axis.key == key).expect(key);
    let value = |cell: &uncork_lab::Cell| scenario.axes[axis].values[cell.point[axis]].clone();
    scenario.cells.iter().map(value).collect()
}

/// `12.3ms` as milliseconds, `0.5%` as percent.
fn number(text: &str) -> f64 {
    let scale = if text.ends_with("us") { 1e-3 } else { 1.0 };
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits.parse::<f64>().expect(text) * scale
}

#[test]
fn each_part_of_a_range_has_one_point() {
    let scenario = scenario(SAMPLED, &[]);
    assert_eq!(scenario.cells.len(), 40 * 2);
    let part = |text: &String| ((number(text) - 10.0) / 2.0) as usize;
    let parts: BTreeSet<usize> = values(&scenario, "path.rtt").iter().map(part).collect();
    assert_eq!(parts, (0..40).collect());
    // Two decades on a logarithmic scale: twenty parts in each.
    let part = |text: &String| (20.0 * (number(text) / 0.01).log10()) as usize;
    let parts: BTreeSet<usize> = values(&scenario, "path.loss").iter().map(part).collect();
    assert!(parts.len() >= 38, "rounding to four digits moves only a few: {parts:?}");
    let counts: BTreeSet<String> = values(&scenario, "flow.main.count").into_iter().collect();
    assert_eq!(counts, ["1", "2", "3", "4", "5"].map(str::to_owned).into());
}

#[test]
fn list_is_sampled_evenly_and_crossed_axis_runs_at_each_point() {
    let scenario = scenario(SAMPLED, &[]);
    let queues = values(&scenario, "path.queue");
    assert_eq!(queues.iter().filter(|queue| *queue == "droptail").count(), 40);
    let rtts = values(&scenario, "path.rtt");
    let ccs = values(&scenario, "flow.main.cc");
    for pair in 0..40 {
        assert_eq!(rtts[2 * pair], rtts[2 * pair + 1]);
        assert_eq!(ccs[2 * pair..2 * pair + 2], ["cubic", "bbr3"]);
    }
    // Axes are drawn independently.
    assert!(rtts.iter().zip(&queues).any(|(rtt, queue)| number(rtt) < 50.0 && queue == "fq_codel"));
}

#[test]
fn equal_seeds_draw_equal_points() {
    let rtts = |text: &str, set: &[&str]| values(&scenario(text, set), "path.rtt");
    assert_eq!(rtts(SAMPLED, &[]), rtts(SAMPLED, &[]));
    assert_ne!(rtts(SAMPLED, &[]), rtts(SAMPLED, &["matrix.sample_seed=2"]));
    let without = SAMPLED.replace("\"path.queue\" = [\"droptail\", \"fq_codel\"]\n", "");
    assert_eq!(rtts(SAMPLED, &[]), rtts(&without, &[]), "another axis does not change them");
    assert_eq!(rtts(SAMPLED, &["matrix.sample=7"]).len(), 14);
    let range = "matrix.\"path.rtt\"={ from = \"1ms\", to = \"2ms\" }";
    assert!(rtts(SAMPLED, &[range]).iter().all(|rtt| number(rtt) <= 2.0));
}

#[test]
fn invalid_sampling_is_rejected() {
    for (old, new, message) in [
        ("sample = 40\n", "", "`cross` in [matrix] belongs to a sample"),
        ("sample = 40\ncross = [\"flow.main.cc\"]\n", "", "is a range, and its values are drawn"),
        ("sample = 40", "sample = 20000", "20000 is out of range"),
        ("sample = 40", "sample = 9999", "the matrix has 19998 cells"),
        ("\"flow.main.cc\"]", "\"path.rtt\"]", "is crossed with the sample"),
        ("\"flow.main.cc\"]", "\"path.rt\"]", "the matrix has no axis `path.rt`"),
        ("to = \"90ms\"", "to = \"90%\"", "have different units"),
        ("to = \"90ms\"", "to = \"9ms\"", "this range is empty"),
        ("from = \"0.01%\"", "from = \"0%\"", "a logarithmic range begins above 0"),
        ("\"log\"", "\"lag\"", "lag"),
        ("from = \"10ms\"", "from = \"soon\"", "an end of a range is a number"),
    ] {
        let text = SAMPLED.replacen(old, new, 1);
        assert_ne!(text, SAMPLED, "{old}");
        let error = parse(&text, &[]).expect_err(message);
        assert!(error.message().contains(message), "{}", error.render("test.toml", false));
    }
}

#[test]
fn series_are_of_the_requested_seeds() {
    let text = SAMPLED.replace("seeds = 1\n", "seeds = 5\nfirst_seed = 3\nsample = \"1s\"\n");
    let sampled = |set: &[&str]| -> Vec<u64> {
        let scenario = scenario(&text, set);
        let is_sampled = |seed: &u64| scenario.instance(0, *seed).run.sample_every.is_some();
        (3..8).filter(is_sampled).collect()
    };
    assert_eq!(sampled(&[]), [3]);
    assert_eq!(sampled(&["run.series={ seeds = [4, 7] }"]), [4, 7]);
    let error = parse(&text, &["run.series={ seeds = [8] }"]).expect_err("no such run");
    assert!(error.message().contains("8 is out of range"), "{}", error.message());
    let error = parse(SAMPLED, &["run.series={ seeds = [1] }"]).expect_err("nothing is sampled");
    assert_eq!(error.suggestion(), Some("add sample = \"100ms\" to [run]"));
}
