//! Runs of a scenario on threads of their own. The calling thread answers signals, reports progress, and lets other threads
//! of Python work.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use uncork_lab::{Engine, EngineError, FinishedRun, Item, Scenario, run_items};

use crate::error::{bug, worded};

/// How often the calling thread looks for a signal.
const TICK: Duration = Duration::from_millis(50);

/// How a call wants its runs.
pub(crate) struct Work {
    pub(crate) engine: Engine,
    /// Threads; as many as there are processors by default.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Called with the number of finished runs, and of all.
    pub(crate) progress: Option<Py<PyAny>>,
}

/// After an exception no more runs start. Runs that have started end by themselves, and their results are dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Work {
    /// Runs `items`. An exception of a signal or of `progress` ends the call at once.
    pub(crate) fn play(
        &self,
        py: Python<'_>,
        scenario: &Arc<Scenario>,
        items: Vec<Item>,
    ) -> PyResult<Vec<FinishedRun>> {
        let stop = Stop(Arc::default());
        let (sender, receiver) = mpsc::channel();
        let receiver = Mutex::new(receiver);
        let worker = {
            let (scenario, engine, jobs) = (Arc::clone(scenario), self.engine, self.jobs());
            let stop = Arc::clone(&stop.0);
            thread::spawn(move || {
                run_items((&scenario, engine), &items, jobs, &stop, &|_, progress| {
                    // The call may have ended with an exception.
                    let _ = sender.send(progress);
                })
            })
        };
        let mut reported = 0;
        loop {
            let next = py.detach(|| {
                let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                receiver.recv_timeout(TICK).map(|first| receiver.try_iter().last().unwrap_or(first))
            });
            match (next, &self.progress) {
                // Threads count before they report, so a smaller number may come later.
                (Ok(now), Some(progress)) if now.done > reported => {
                    reported = now.done;
                    progress.call1(py, (now.done, now.total))?;
                }
                (Err(RecvTimeoutError::Disconnected), _) => break,
                _ => {}
            }
            py.check_signals()?;
        }
        // A panic has printed its place.
        let ended: Result<_, EngineError> =
            py.detach(|| worker.join()).map_err(|_| bug("a run panicked"))?;
        ended.map_err(|error| worded(py, "scenario", &error.message))
    }

    fn jobs(&self) -> usize {
        let processors = || thread::available_parallelism().ok();
        self.jobs.or_else(processors).map_or(1, NonZeroUsize::get)
    }
}
