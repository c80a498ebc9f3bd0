//! The wall clock, for progress and for the cost of a run. No result depends on it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use uncork_lab::RunCost;

#[expect(clippy::disallowed_methods, reason = "the command line is the outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What work costs from its start on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { start: now(), cpu: cpu_time() }
    }

    /// What it cost so far, on up to `threads` threads.
    pub(crate) fn cost(&self, threads: usize) -> RunCost {
        RunCost {
            cpu_s: cpu_time().saturating_sub(self.cpu).as_secs_f64(),
            wall_s: self.start.elapsed().as_secs_f64(),
            threads: threads as u64,
        }
    }
}

/// Processor time of this process, all threads together.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
