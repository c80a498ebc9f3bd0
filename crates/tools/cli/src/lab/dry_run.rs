//! `uncork lab run --dry-run`: the runs that would be performed, and their estimated time.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use uncork_lab::{DryRunDocument, Engine, SWEEP_FILES, ScenarioPlan, calibration};

use super::directory::RunDirectory;
use super::work::Work;
use crate::failure::Failure;
use crate::values::{Format, TextFormat};
use crate::{clock, print};

/// Prints the plan of `works`.
pub(super) fn print(works: &[Work<'_>], on: Engine, format: Format) -> Result<(), Failure> {
    let speed = (!on.is_in_real_time()).then(|| calibrate(on)).flatten();
    let scenarios: Result<_, Failure> = works.iter().map(|work| plan(work, speed)).collect();
    let format = match format {
        Format::Json => TextFormat::Json,
        Format::Human | Format::Csv => TextFormat::Human,
    };
    print::document(format, &DryRunDocument::new(speed, scenarios?), DryRunDocument::text)
}

fn plan(work: &Work<'_>, speed: Option<f64>) -> Result<ScenarioPlan, Failure> {
    let items = work.items();
    let (_, missing) = work.kept(&items)?;
    let place = work.directory.as_ref().map(RunDirectory::results);
    let files = |place: &Path| {
        let whole = work.args.shard().is_whole();
        let results = SWEEP_FILES.into_iter().filter(|_| whole);
        let names = results.chain(["runs/sweep.json", "runs/runs.archive"]);
        names.map(|name| place.join(name).display().to_string()).collect()
    };
    let files = place.map(files).unwrap_or_default();
    let speed = (speed, work.jobs());
    Ok(ScenarioPlan::new(&work.sweep.scenario, (&missing, items.len()), speed, files))
}

/// Packets simulated per second and thread, measured in a short run.
fn calibrate(on: Engine) -> Option<f64> {
    let scenario = calibration()?;
    let (items, stop) = (uncork_lab::items(&scenario), AtomicBool::new(false));
    let start = clock::now();
    let runs = uncork_lab::run_items((&scenario, on), &items, 1, &stop, &|_, _| {}).ok()?;
    let packets: u64 = runs.iter().map(|run| run.outcome.packets).sum();
    Some(packets as f64 / start.elapsed().as_secs_f64()).filter(|speed| speed.is_finite())
}
