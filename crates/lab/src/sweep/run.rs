//! Running some of a scenario's runs.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use uncork_flow::SeriesPoint;

use super::plan::Item;
use crate::evaluate::{RunOutcome, run_item};
use crate::parallel;
use crate::run::Progress;
use crate::scenario::Scenario;

/// What one run left.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    /// Its records.
    pub outcome: RunOutcome,
    /// The inside of its flows, by time; empty if nobody asked for it.
    pub series: Vec<SeriesPoint>,
}

impl FinishedRun {
    /// Which run it is.
    pub fn item(&self) -> Item {
        Item { cell: self.outcome.cell, seed: self.outcome.seed }
    }
}

/// Runs `items` on up to `jobs` threads and hands each run over as it ends, with how far all of them
/// are, from whatever thread it ran on. When `stop` is set, no more are begun. What is given back is
/// in the order of `items`, whatever the number of threads.
pub fn run_items(
    scenario: &Scenario,
    items: &[Item],
    jobs: usize,
    stop: &AtomicBool,
    finished: &(dyn Fn(&FinishedRun, Progress) + Sync),
) -> Vec<FinishedRun> {
    let so_far = Mutex::new(Progress { total: items.len(), ..Progress::default() });
    parallel::map_until(stop, items.len(), jobs, |index| {
        let Item { cell, seed } = items[index];
        let instance = scenario.instance(cell, seed);
        let (outcome, series) = run_item(scenario, (cell, seed), &instance);
        let run = FinishedRun { outcome, series };
        let progress = {
            let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
            so_far.done += 1;
            so_far.packets += run.outcome.packets;
            *so_far
        };
        finished(&run, progress);
        run
    })
}
