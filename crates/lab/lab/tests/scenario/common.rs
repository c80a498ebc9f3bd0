//! Scenarios used by tests.

use std::collections::BTreeMap;

use uncork_lab::{Files, Scenario, ScenarioError};

/// Files by name.
pub(crate) struct ScenarioFiles(BTreeMap<&'static str, &'static str>);

impl Files for ScenarioFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        self.0.get(name).map(|text| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    }
}

/// The files available to the scenarios of the tests.
pub(crate) fn scenario_files() -> ScenarioFiles {
    ScenarioFiles(BTreeMap::from([
        ("arrivals.txt", "0 1000\n0.5 2000\n1.25 3000\n"),
        ("bad.txt", "0 1000\nsoon 2000\n"),
        ("sizes.txt", "0 0\n10000 0.5\n1000000 1\n"),
    ]))
}

/// Parses `text` with `set`, given as `key=value`.
pub(crate) fn parse(text: &str, set: &[&str]) -> Result<Scenario, ScenarioError> {
    let set: Vec<(String, String)> = set
        .iter()
        .map(|set| set.split_once('=').expect("key=value"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Scenario::parse("test", text, &set, &scenario_files())
}

/// Parses a valid scenario.
pub(crate) fn scenario(text: &str, set: &[&str]) -> Scenario {
    parse(text, set).unwrap_or_else(|error| panic!("{}", error.render("test.toml", false)))
}

/// A scenario with a bit of everything.
pub(crate) const EXAMPLE: &str = r#"# A lossy last mile.
title = "10 MB over a lossy last mile"
about = "What random loss costs."
assumptions = ["The buffer is not known."]

[run]
end = "120s"
seeds = 3 # few
sample = "100ms"

[path]
rate = "20mbit" # of the wire
rtt = "50ms"
buffer = "1bdp"
loss = "1%"

[flow.main]
cc = "bbr3"
transfer = "10MB"

[flow.cross]
cc = ["cubic", "reno"]
count = 2
bulk = "10s"
background = true

[matrix]
"path.loss" = ["0%", "0.5%", "1%"] # of packets
"flow.main.cc" = ["cubic", "bbr1", "bbr3"]

[[threshold]]
metric = "completion.p50"
where = { "path.loss" = "1%", "flow.main.cc" = "bbr3" }
max = "30s"

[[threshold]]
metric = "goodput.p50"
flow = "main"
over = { "flow.main.cc" = "cubic" }
min = 0.5

[[figure]]
kind = "lines"
title = "Completion"
x = "path.loss"
by = "flow.main.cc"
metric = "completion.p50"
published = [["LiteSpeed 2019", "1%", "8.6s"]]

[[figure]]
kind = "heatmap"
title = "Gain"
x = "path.loss"
y = "flow.main.cc"
metric = "goodput.mean"
over = { "flow.main.cc" = "cubic" }

[[published]]
what = "CUBIC, 1 % loss"
value = "8.6 s"
source = "LiteSpeed 2019, Table 1"
metric = "completion.p50"
where = { "path.loss" = "1%", "flow.main.cc" = "cubic" }
min = "4s"
max = "20s"
range_from = "half to twice"
"#;
