//! What a sweep would run, and for how long: `docs/schemas/dry-run-1.json`.

use std::fmt::Write as _;

use serde::Serialize;

use crate::forecast::{CostForecast, makespan};
use crate::scenario::{Scenario, SizeEstimate};
use crate::sweep::Item;

const SCHEMA: &str = "uncork.dry-run/1";
/// Packets that are simulated in the time that a point of a time series takes.
const PACKETS_PER_POINT: f64 = 1.0;
/// The same, with the files that have it.
const PACKETS_PER_WRITTEN_POINT: f64 = 12.0;
/// CPU time of the evaluation for each flow, after the runs and on one thread, on the machine of docs/evidence/forecasts.md.
const SECONDS_PER_FLOW: f64 = 18e-6;
/// The same for each cell.
const SECONDS_PER_CELL: f64 = 1e-3;

/// The plan of all scenarios.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DryRunDocument {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Packets per second of CPU time, as just measured; null for runs in real time.
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
    /// Their CPU time, about; null for runs in real time.
    cpu_seconds: Option<f64>,
    /// How long they take, about, if other programs are as busy as now.
    seconds: f64,
    /// Files that they write.
    files: Vec<String>,
}

impl ScenarioPlan {
    /// The plan of the `missing` runs of `all` on up to `jobs` threads, and the `files` that they write. Without a forecast, runs
    /// take real time.
    pub fn new(
        scenario: &Scenario,
        (missing, all): (&[Item], usize),
        (forecast, jobs): (Option<&CostForecast>, usize),
        files: Vec<String>,
    ) -> Self {
        let load = |item: &Item| scenario.load(item.cell, item.seed);
        let sum = missing.iter().map(load).fold(SizeEstimate::default(), SizeEstimate::plus);
        let threads = jobs.min(missing.len().max(1));
        let per_point =
            if files.is_empty() { PACKETS_PER_POINT } else { PACKETS_PER_WRITTEN_POINT };
        let run_seconds = |item: &Item| match forecast {
            Some(forecast) => {
                let points = load(item).points as f64 * per_point;
                forecast.runs[item.cell].seconds + points * forecast.seconds_per_packet()
            }
            None => scenario.cells[item.cell].end.as_nanos() as f64 / 1e9,
        };
        let stretch = forecast.map_or(1.0, |forecast| forecast.stretch);
        let cells = scenario.cells.len();
        let evaluation = SECONDS_PER_FLOW * sum.flows as f64 + SECONDS_PER_CELL * cells as f64;
        let packets = |forecast: &CostForecast| {
            missing.iter().map(|item| forecast.runs[item.cell].packets).sum::<f64>().round() as u64
        };
        Self {
            name: scenario.name.clone(),
            cells,
            runs: all,
            kept: all - missing.len(),
            flows: sum.flows,
            packets: forecast.map_or(sum.packets, packets),
            points: sum.points,
            threads,
            cpu_seconds: forecast
                .map(|_| missing.iter().map(run_seconds).sum::<f64>() + evaluation),
            seconds: (makespan(missing.iter().map(run_seconds), threads) + evaluation) * stretch,
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
                "The beginnings of some runs went at {:.1} million packets per second of CPU time on \
                 this machine. Nothing was written.\n",
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
    use crate::forecast::RunCost;

    #[test]
    fn schema_is_current() {
        let title = "`uncork lab run --dry-run --format json`";
        assert_schema!(DryRunDocument, "dry-run-1", title);
    }

    /// Three flows of one cell.
    const EVALUATION: f64 = 3.0 * SECONDS_PER_FLOW + SECONDS_PER_CELL;

    fn plan(files: Vec<String>) -> ScenarioPlan {
        let text = r#"
            title = "Samples"
            [run]
            end = "2s"
            seeds = 3
            sample = "1ms"
            [path]
            rate = "10mbit"
            rtt = "20ms"
            [flow.main]
            cc = "reno"
            bulk = "end"
        "#;
        let scenario = Scenario::parse("samples", text, &[], &crate::builtin::NoFiles).unwrap();
        let run = RunCost { packets: 1000.0, seconds: 0.5 };
        let forecast = CostForecast { runs: vec![run], measured: run, stretch: 2.0 };
        let items = crate::sweep::items(&scenario);
        ScenarioPlan::new(&scenario, (&items, 3), (Some(&forecast), 2), files)
    }

    /// 2,000 points in the run of one seed.
    #[test]
    fn plan_points_of_time_series_take_more_time_if_they_are_written() {
        let [read, written] = [vec![], vec!["series.parquet".to_owned()]].map(plan);
        assert_eq!((read.points, read.packets, read.threads), (2000, 3000, 2));
        let seconds = [read, written].map(|plan| plan.cpu_seconds.unwrap() - EVALUATION);
        assert_eq!(seconds.map(|seconds| (seconds * 1e6).round() as u64), [2_500_000, 13_500_000]);
    }

    /// One thread has the run with the points, of 1.5 s, the other one the two others.
    #[test]
    fn plan_other_programs_are_busy_takes_longer_on_the_wall_clock() {
        let seconds = plan(Vec::new()).seconds;
        assert!((seconds - 2.0 * (1.5 + EVALUATION)).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn span_uses_a_readable_unit() {
        let spans = [0.04, 12.4, 180.0, 9000.0].map(span);
        assert_eq!(spans, ["40 ms", "12 s", "3 min", "2.5 h"]);
    }
}
