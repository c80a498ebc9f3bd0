//! Timing of code.

use std::time::{Duration, Instant};

/// Times short pieces of code, corrected for the cost of reading the clock.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    overhead: Duration,
}

/// Total time of a number of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    time: Duration,
    calls: u64,
}

impl Timer {
    /// A timer calibrated with the cost of reading the clock: the median of many empty measurements.
    pub fn calibrated() -> Self {
        let raw = Self { overhead: Duration::ZERO };
        let mut empty: Vec<Duration> = (0..10_001).map(|_| raw.time(|| ()).1).collect();
        empty.sort_unstable();
        Self { overhead: empty[empty.len() / 2] }
    }

    /// Runs `code` and measures its duration.
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the clock")]
    pub fn time<T>(&self, code: impl FnOnce() -> T) -> (T, Duration) {
        let start = Instant::now();
        let result = code();
        (result, start.elapsed().saturating_sub(self.overhead))
    }
}

impl Tally {
    /// Adds `calls` calls that took `time` together.
    pub fn add(&mut self, time: Duration, calls: u64) {
        self.time += time;
        self.calls += calls;
    }

    /// Nanoseconds per call.
    pub fn nanos_per_call(&self) -> f64 {
        self.time.as_nanos() as f64 / self.calls.max(1) as f64
    }
}
