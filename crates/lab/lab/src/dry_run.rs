//! What a sweep would run, and for how long: `docs/schemas/dry-run-1.json`.

use std::fmt::Write as _;

use serde::Serialize;

use crate::scenario::{Scenario, SizeEstimate};
use crate::sweep::Item;

const SCHEMA: &str = "uncork.dry-run/1";
/// Packets that are simulated in the time that a point of a time series takes.
const PACKETS_PER_POINT: f64 = 1.0;
/// The same, with the files that have it.
const PACKETS_PER_WRITTEN_POINT: f64 = 12.0;

/// A short run that measures the speed of this machine.
const CALIBRATION: &str = r#"
    title = "Calibration"
    [run]
    end = "5s"
    seeds = 1
    [path]
    rate = "100mbit"
    rtt = "20ms"
    loss = "0.01%"
    [flow.main]
    cc = ["cubic", "bbr3"]
    count = 4
    bulk = "5s"
"#;

/// The plan of all scenarios.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DryRunDocument {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Packets per second and thread, as just measured; null for runs in real time.
    packets_per_s: Option<f64>,
    /// The plan of each scenario.
    scenarios: Vec<ScenarioPlan>,
}

/// The plan of one scenario.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScenarioPlan {
    /// Its name.
    name: String,
    /// Cells of its matrix.
    cells: usize,
    /// Runs of all cells and seeds.
    runs: usize,
    /// Finished runs in the directory.
    kept: usize,
    /// Flows of the missing runs.
    flows: u64,
    /// Their packets, about.
    packets: u64,
    /// Points of their time series, at most.
    points: u64,
    /// Threads that they run on.
    threads: usize,
    /// How long they take, about.
    seconds: f64,
    /// Files that they write.
    files: Vec<String>,
}

/// The scenario that measures the speed of a machine, in a short run. `None` if it is wrong, which a test excludes.
pub fn calibration() -> Option<Scenario> {
    Scenario::parse("calibration", CALIBRATION, &[], &crate::builtin::NoFiles).ok()
}

impl ScenarioPlan {
    /// The plan of the `missing` runs of `all` on up to `jobs` threads, at a `speed` in packets per second and thread or in real time,
    /// and the `files` that they write.
    pub fn new(
        scenario: &Scenario,
        (missing, all): (&[Item], usize),
        (speed, jobs): (Option<f64>, usize),
        files: Vec<String>,
    ) -> Self {
        let loads = missing.iter().map(|item| scenario.load(item.cell, item.seed));
        let load = loads.fold(SizeEstimate::default(), SizeEstimate::plus);
        let ends = missing.iter().map(|item| scenario.cells[item.cell].end.as_nanos() as f64);
        let per_point =
            if files.is_empty() { PACKETS_PER_POINT } else { PACKETS_PER_WRITTEN_POINT };
        let steps = load.packets as f64 + load.points as f64 * per_point;
        let threads = jobs.min(missing.len().max(1));
        let busy = speed.map_or_else(|| ends.sum::<f64>() / 1e9, |speed| steps / speed);
        Self {
            name: scenario.name.clone(),
            cells: scenario.cells.len(),
            runs: all,
            kept: all - missing.len(),
            flows: load.flows,
            packets: load.packets,
            points: load.points,
            threads,
            seconds: busy / threads as f64,
            files,
        }
    }
}

impl DryRunDocument {
    /// The plan of `scenarios`, at this speed.
    pub fn new(packets_per_s: Option<f64>, scenarios: Vec<ScenarioPlan>) -> Self {
        Self { schema: SCHEMA, packets_per_s, scenarios }
    }

    /// A paragraph for each scenario.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for plan in &self.scenarios {
            let ScenarioPlan { name, cells, runs, kept, flows, packets, points, threads, .. } =
                plan;
            let there =
                if *kept > 0 { format!(", {kept} of them there already") } else { String::new() };
            let points =
                if *points > 0 { format!("  points   at most {points}\n") } else { String::new() };
            let _infallible = write!(
                text,
                "{name}\n  cells    {cells}\n  runs     {runs}{there}\n  flows    {flows}\n  packets  \
                 about {packets}\n{points}  time     about {} on {threads} threads\n",
                span(plan.seconds)
            );
            for (nth, file) in plan.files.iter().enumerate() {
                let _infallible =
                    writeln!(text, "  {:8} {file}", if nth == 0 { "files" } else { "" });
            }
        }
        text + &match self.packets_per_s {
            Some(speed) => format!(
                "A short run went at {:.1} million packets a second and thread on this machine; other \
                 runs may take half or three times as long. Nothing was written.\n",
                speed / 1e6
            ),
            None => {
                "Runs take real time, each until its end at most. Nothing was written.\n".to_owned()
            }
        }
    }
}

/// `40 ms`, `12 s`, `3 min`, `2.5 h`
fn span(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        1.0..120.0 => format!("{seconds:.0} s"),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        let title = "`uncork lab run --dry-run --format json`";
        assert_schema!(DryRunDocument, "dry-run-1", title);
    }

    #[test]
    fn the_calibration_is_a_scenario() {
        assert!(calibration().is_some());
    }

    #[test]
    fn span_uses_a_readable_unit() {
        let spans = [0.04, 12.4, 180.0, 9000.0].map(span);
        assert_eq!(spans, ["40 ms", "12 s", "3 min", "2.5 h"]);
    }
}
