//! Running a subset of a scenario's runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use uncork_flow::SeriesPoint;
use uncork_sim::parallel;

use super::plan::Item;
use crate::engine::{Engine, EngineError};
use crate::evaluate::{RunOutcome, outcome};
use crate::scenario::Scenario;

/// Progress of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished runs.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// Data packets simulated so far.
    pub packets: u64,
}

/// Results of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    /// Its records.
    pub outcome: RunOutcome,
    /// Time series of its flows; empty if it was not sampled.
    pub series: Vec<SeriesPoint>,
}

impl FinishedRun {
    /// The run it belongs to.
    pub fn item(&self) -> Item {
        Item { cell: self.outcome.cell, seed: self.outcome.seed }
    }
}

/// Runs `items` on `engine` with up to `jobs` threads. Each finished run is passed on with the
/// overall progress, from the thread it ran on. When `stop` is set, no more runs start, and runs in
/// real time are aborted. The result is in the order of `items`, with any number of threads.
///
/// # Errors
///
/// The first run that the engine cannot execute; no more runs start after that.
pub fn run_items(
    (scenario, engine): (&Scenario, Engine),
    items: &[Item],
    jobs: usize,
    stop: &AtomicBool,
    finished: &(dyn Fn(&FinishedRun, Progress) + Sync),
) -> Result<Vec<FinishedRun>, EngineError> {
    let so_far = Mutex::new(Progress { total: items.len(), ..Progress::default() });
    let failed = Mutex::new(None);
    let runs = parallel::map_until(stop, items.len(), jobs, |index| {
        let Item { cell, seed } = items[index];
        let instance = scenario.instance(cell, seed);
        let played = match engine.play(&instance.run, stop) {
            Ok(played) => played,
            Err(error) => {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
                return None;
            }
        };
        if engine != Engine::Sim && stop.load(Ordering::Relaxed) {
            return None; // It was cut short.
        }
        let (outcome, series) = outcome(scenario, (cell, seed), &instance, played);
        let run = FinishedRun { outcome, series };
        let progress = {
            let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
            so_far.done += 1;
            so_far.packets += run.outcome.packets;
            *so_far
        };
        finished(&run, progress);
        Some(run)
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(runs.into_iter().flatten().collect()),
    }
}
