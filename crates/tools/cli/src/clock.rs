//! The wall clock, for progress and run times. Results do not depend on it.

use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

#[expect(clippy::disallowed_methods, reason = "the command line is the outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Time used by some work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    cpu: Duration,
    threads: usize,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wall, cpu, threads } = self;
        let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, "{wall:.2} s, {cpu:.2} s of processor time on {threads} thread{plural}")
    }
}

/// Measures the time used from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { start: now(), cpu: cpu_time() }
    }

    /// The time used since the start, on up to `threads` threads.
    pub(crate) fn cost(&self, threads: usize) -> Cost {
        Cost { wall: self.start.elapsed(), cpu: cpu_time().saturating_sub(self.cpu), threads }
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
