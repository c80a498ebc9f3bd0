//! `uncork lab run --dry-run`: the runs that would be performed, and their estimated time.

use std::time::Duration;

use uncork_lab::{CostForecast, DryRunDocument, Engine, Item, RunCost, SWEEP_FILES, ScenarioPlan};

use super::directory::RunDirectory;
use super::place::Place;
use super::work::Work;
use crate::failure::Failure;
use crate::values::{Format, TextFormat};
use crate::{clock, print};

/// How long runs are begun to measure what they cost, of all scenarios together.
const BUDGET: Duration = Duration::from_millis(1500);

/// Prints the plan of `works`.
pub(super) fn print(works: &[Work<'_>], on: Engine, format: Format) -> Result<(), Failure> {
    let cells: usize = works.iter().map(|work| work.sweep.scenario.cells.len()).sum();
    let (mut plans, mut measured) = (Vec::new(), (!on.is_in_real_time()).then(RunCost::default));
    for work in works {
        let forecast = if on.is_in_real_time() { None } else { Some(forecast(work, on, cells)?) };
        measured = measured.zip(forecast.as_ref()).map(|(sum, one)| sum.plus(one.measured));
        plans.push(plan(work, forecast.as_ref())?);
    }
    let format = match format {
        Format::Json => TextFormat::Json,
        Format::Human | Format::Csv => TextFormat::Human,
    };
    let speed = measured.and_then(RunCost::packets_per_second);
    print::document(format, &DryRunDocument::new(speed, plans), DryRunDocument::text)
}

/// The forecast of `work`, for its part of the budget: of `cells` cells in all.
fn forecast(work: &Work<'_>, on: Engine, cells: usize) -> Result<CostForecast, Failure> {
    let scenario = &work.sweep.scenario;
    let part = scenario.cells.len() as f64 / cells.max(1) as f64;
    let start = clock::now();
    let clocks = || [clock::thread_cpu_time(), start.elapsed()];
    let of = (scenario, on);
    let forecast = CostForecast::measure(of, work.jobs(), BUDGET.mul_f64(part), &clocks);
    forecast.map_err(Failure::of_engine)
}

fn plan(work: &Work<'_>, forecast: Option<&CostForecast>) -> Result<ScenarioPlan, Failure> {
    let items = work.items();
    let (_, mut missing) = work.kept(&items)?;
    missing.sort_by_key(Item::order);
    let place = work.directory.as_ref().map(RunDirectory::results);
    let files = |place: &Place| {
        let whole = work.args.shard().is_whole();
        let results = SWEEP_FILES.into_iter().filter(|_| whole);
        let archive = match place {
            Place::Directory(_) => "runs/runs.archive",
            Place::Store(_) => "runs/runs-*.archive",
        };
        let names = results.chain(["runs/sweep.json", archive]);
        names.map(|name| place.join(name).to_string()).collect()
    };
    let files = place.map(files).unwrap_or_default();
    let forecast = (forecast, work.jobs());
    Ok(ScenarioPlan::new(&work.sweep.scenario, (&missing, items.len()), forecast, files))
}
