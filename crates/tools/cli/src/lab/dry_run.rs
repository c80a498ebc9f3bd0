//! `uncork lab run --dry-run`: the runs that would be performed, and their estimated time.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use uncork_lab::{Engine, Item, SWEEP_FILES, Scenario, Shard};

use super::work::Work;
use crate::clock;
use crate::failure::Failure;
use crate::stdout;
use crate::values::Format;

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
#[derive(Debug, Serialize)]
struct DryRunPlan {
    schema: &'static str,
    /// Measured packets per second and thread; null for runs in real time.
    packets_per_s: Option<f64>,
    scenarios: Vec<ScenarioPlan>,
}

/// The plan of one scenario.
#[derive(Debug, Serialize)]
struct ScenarioPlan {
    name: String,
    cells: usize,
    runs: usize,
    /// Finished runs in the directory.
    kept: usize,
    flows: u64,
    packets: u64,
    threads: usize,
    seconds: f64,
    files: Vec<String>,
}

/// Prints the plan of `works`.
pub(super) fn print(works: &[Work<'_>], on: Engine, format: Format) -> Result<(), Failure> {
    let speed = (!on.is_in_real_time()).then(|| calibrate(on)).flatten();
    let scenarios: Result<_, Failure> = works.iter().map(|work| plan(work, speed)).collect();
    let plan =
        DryRunPlan { schema: "uncork.dry-run/1", packets_per_s: speed, scenarios: scenarios? };
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&plan).unwrap_or_default() + "\n",
        Format::Human | Format::Csv => plan.text(),
    };
    stdout::write(text.as_bytes())
}

fn plan(work: &Work<'_>, speed: Option<f64>) -> Result<ScenarioPlan, Failure> {
    let scenario = &work.sweep.scenario;
    let items = work.args.shard.unwrap_or(Shard::WHOLE).of(&uncork_lab::items(scenario));
    let (kept, missing) = work.kept(&items)?;
    let (mut flows, mut packets, mut real) = (0_u64, 0_u64, 0.0);
    for Item { cell, .. } in &missing {
        let load = scenario.load(*cell);
        flows = flows.saturating_add(load.flows);
        packets = packets.saturating_add(load.packets);
        real += scenario.cells[*cell].end.as_nanos() as f64 / 1e9;
    }
    let threads = work.jobs().min(missing.len().max(1));
    let busy = speed.map_or(real, |speed| packets as f64 / speed);
    let place = work.directory.as_ref().map(super::directory::RunDirectory::results);
    let files = |place: &Path| {
        let whole = work.args.shard.is_none_or(Shard::is_whole);
        let results = SWEEP_FILES.into_iter().filter(|_| whole);
        let names = results.chain(["runs/sweep.json", "runs/runs.archive"]);
        names.map(|name| place.join(name).display().to_string()).collect()
    };
    Ok(ScenarioPlan {
        name: scenario.name.clone(),
        cells: scenario.cells.len(),
        runs: items.len(),
        kept: kept.len(),
        flows,
        packets,
        threads,
        seconds: busy / threads as f64,
        files: place.map(files).unwrap_or_default(),
    })
}

/// Packets simulated per second and thread, measured in a short run.
fn calibrate(on: Engine) -> Option<f64> {
    let none = std::collections::BTreeMap::new();
    let scenario = Scenario::parse("calibration", CALIBRATION, &[], &none).ok()?;
    let (items, stop) = (uncork_lab::items(&scenario), AtomicBool::new(false));
    let start = clock::now();
    let runs = uncork_lab::run_items((&scenario, on), &items, 1, &stop, &|_, _| {}).ok()?;
    let packets: u64 = runs.iter().map(|run| run.outcome.packets).sum();
    Some(packets as f64 / start.elapsed().as_secs_f64()).filter(|speed| speed.is_finite())
}

impl DryRunPlan {
    fn text(&self) -> String {
        let mut text = String::new();
        for plan in &self.scenarios {
            let ScenarioPlan { name, cells, runs, kept, flows, packets, threads, .. } = plan;
            let there =
                if *kept > 0 { format!(", {kept} of them there already") } else { String::new() };
            let _infallible = write!(
                text,
                "{name}\n  cells    {cells}\n  runs     {runs}{there}\n  flows    {flows}\n  packets  \
                 about {packets}\n  time     about {} on {threads} threads\n",
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
    use super::*;

    #[test]
    fn span_uses_a_readable_unit() {
        let spans = [0.04, 12.4, 180.0, 9000.0].map(span);
        assert_eq!(spans, ["40 ms", "12 s", "3 min", "2.5 h"]);
    }
}
