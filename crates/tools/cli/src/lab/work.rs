//! The runs of a scenario: stored ones, and new ones that are stored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use uncork_lab::{FinishedRun, Item, Shard};

use super::args::RunArgs;
use super::directory::{DirectoryError, RunDirectory, StoredCopy};
use super::finish::Finish;
use super::merge::run_in_words;
use super::place::Place;
use super::source::Sweep;
use super::writer::RunWriter;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::progress::{ProgressTracker, ProgressWatcher};
use crate::values::jobs;

pub(super) fn open(place: &Place, sweep: &Sweep, resume: bool) -> Result<RunDirectory, Failure> {
    RunDirectory::open(place, &sweep.manifest, resume).map_err(|error| refused(place, error))
}

fn refused(place: &Place, error: DirectoryError) -> Failure {
    let shown = format!("'{place}' of '--output <DIR>'");
    match error {
        DirectoryError::HasRuns => Failure::Usage(format!(
            "{shown} has runs already; add --resume to go on with them, or use another directory"
        )),
        DirectoryError::Other(difference) => Failure::Usage(format!(
            "{shown} has runs of another experiment: {difference}; use another directory"
        )),
        DirectoryError::Manifest(error) => Failure::Usage(format!("{shown}: {error}")),
        DirectoryError::InUse => Failure::Environment(format!(
            "{shown} is in use by another process; wait until it is done, or use another directory"
        )),
        DirectoryError::Io(error) => place.failure(&error),
    }
}

/// A scenario to run, or a part of it.
pub(super) struct Work<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) sweep: &'a Sweep,
    pub(super) directory: Option<RunDirectory>,
    /// The command that continues after an interruption.
    pub(super) again: String,
}

impl Work<'_> {
    /// Runs it, and finishes it if it is the whole scenario.
    pub(super) fn run(
        &self,
        tracker: (&ProgressTracker, usize),
        stop: &AtomicBool,
        finish: &mut Finish<'_>,
    ) -> Result<(), Failure> {
        let stopwatch = Stopwatch::start();
        let shard = self.args.shard();
        let runs = self.runs(&self.items(), tracker, stop)?;
        let results = self.directory.as_ref().map(RunDirectory::results);
        if shard.is_whole() {
            let cost = stopwatch.cost(self.jobs());
            finish.finish(self.sweep, runs, cost, results)
        } else {
            self.note_shard(shard, runs.len());
            Ok(())
        }
    }

    /// The runs of the scenario in this shard.
    pub(super) fn items(&self) -> Vec<Item> {
        let shard = self.args.shard();
        shard.of(&uncork_lab::items(&self.sweep.scenario))
    }

    /// The runs of all `items`: existing ones, and new ones that are stored. In `tracker` they
    /// belong to the scenario with that number.
    pub(super) fn runs(
        &self,
        items: &[Item],
        tracker: (&ProgressTracker, usize),
        stop: &AtomicBool,
    ) -> Result<Vec<FinishedRun>, Failure> {
        let writer = |directory: &RunDirectory| {
            let writer = directory.writer(&self.sweep.manifest);
            writer.map_err(|error| refused(directory.results(), error))
        };
        // Lock before reading: otherwise a run stored by another process in between would exist
        // twice.
        let writer = self.directory.as_ref().map(writer).transpose()?;
        let (mut runs, mut missing) = self.kept(items)?;
        missing.sort_by_key(Item::order);
        runs.append(&mut self.run_items(&missing, (tracker, writer.as_ref()), stop)?);
        if runs.len() < items.len() {
            return Err(self.interrupted(runs.len(), items.len()));
        }
        Ok(runs)
    }

    /// Number of parallel runs.
    pub(super) fn jobs(&self) -> usize {
        match self.args.runs.jobs {
            None => self.args.on.usual_jobs(jobs(None)),
            asked => jobs(asked),
        }
    }

    /// The existing runs of `items`, and the missing items.
    pub(super) fn kept(&self, items: &[Item]) -> Result<(Vec<FinishedRun>, Vec<Item>), Failure> {
        let Some(directory) = &self.directory else { return Ok((Vec::new(), items.to_vec())) };
        let (mut runs, mut missing) = (Vec::new(), Vec::new());
        let unreadable = |error: io::Error| directory.results().failure(&error);
        let mut reader = directory.reader().map_err(unreadable)?;
        for damage in reader.damage() {
            self.note(&format!("{damage}; what was there is run again"));
        }
        for item in items {
            let mut damaged = Vec::new();
            let copies = reader.copies(*item).map_err(unreadable)?.into_iter();
            let mut good = copies.filter_map(|StoredCopy { path, run }| {
                run.map_err(|damage| damaged.push((path, damage))).ok()
            });
            if let Some(run) = good.next() {
                runs.push(*run);
                continue;
            }
            drop(good);
            for (path, damage) in damaged {
                let run = run_in_words(&self.sweep.scenario, *item);
                self.note(&format!("{path}: {run}: {damage}; it is run again"));
            }
            missing.push(*item);
        }
        if !runs.is_empty() {
            self.note(&format!("{} of {} runs are there already", runs.len(), items.len()));
        }
        Ok((runs, missing))
    }

    /// Runs `items` and stores each when finished. Stops after a run that cannot be stored.
    fn run_items(
        &self,
        items: &[Item],
        ((tracker, nth), writer): ((&ProgressTracker, usize), Option<&RunWriter>),
        stop: &AtomicBool,
    ) -> Result<Vec<FinishedRun>, Failure> {
        let failed: Mutex<Option<io::Error>> = Mutex::default();
        let watcher = ProgressWatcher::of_stderr(self.args.output.quiet);
        tracker.begin(nth, items);
        let runs = watcher.watch(tracker, Some(stop), || {
            let of = (&self.sweep.scenario, self.args.on);
            uncork_lab::run_items(of, items, self.jobs(), stop, &|run, progress| {
                let kept = writer.map_or(Ok(()), |writer| writer.keep(run));
                if let Err(error) = kept {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    stop.store(true, Ordering::Relaxed);
                }
                tracker.finished(run, progress);
            })
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.or_else(|| writer.and_then(|writer| writer.sync().err()));
        match (failed, &self.directory) {
            (Some(error), Some(directory)) => {
                Err(Failure::unkept(directory.results(), &error, &self.again))
            }
            _ => runs.map_err(Failure::of_engine),
        }
    }

    fn interrupted(&self, done: usize, all: usize) -> Failure {
        Failure::Interrupted(match &self.directory {
            Some(directory) => format!(
                "{done} of {all} runs are kept in '{}'; go on with: {}",
                directory.results(),
                self.again,
            ),
            None => "runs are kept only with -o DIR".to_owned(),
        })
    }

    fn note_shard(&self, shard: Shard, runs: usize) {
        self.note(&format!(
            "shard {shard} is complete with {runs} runs; when all are: uncork lab merge DIR... -o \
             DIR"
        ));
    }

    fn note(&self, text: &str) {
        if !self.args.output.quiet {
            eprintln!("note: {text}");
        }
    }
}
