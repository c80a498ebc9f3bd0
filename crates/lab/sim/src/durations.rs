//! The durations that a flow measures for each packet.

use uncork_flow::{Distribution, Quantiles};

/// How many durations wait.
const RECENT: usize = 7;

/// A [`Distribution`] behind a few recent durations. With thousands of flows its cells are in no cache, and each
/// duration would wait for several lines of memory; here eight wait together.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Durations {
    /// In nanoseconds.
    recent: [u32; RECENT],
    count: u32,
    all: Distribution,
}

impl Durations {
    pub(crate) fn new() -> Self {
        Self { recent: [0; RECENT], count: 0, all: Distribution::new() }
    }

    /// Records a duration in nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        match (u32::try_from(nanos), self.recent.get_mut(self.count as usize)) {
            (Ok(nanos), Some(free)) => {
                *free = nanos;
                self.count += 1;
            }
            _ => self.record_all(nanos),
        }
    }

    /// Records the durations that wait, and one more.
    #[inline(never)]
    fn record_all(&mut self, nanos: u64) {
        self.settle();
        self.all.record(nanos);
    }

    fn settle(&mut self) {
        let count = std::mem::take(&mut self.count) as usize;
        self.all.record_all(&self.recent[..count]);
    }

    /// The flow is idle: frees unused memory.
    pub(crate) fn rest(&mut self) {
        self.settle();
        self.all.shrink();
    }

    /// The quantiles in milliseconds; `None` if nothing was recorded.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        self.settled().quantiles()
    }

    /// All that was recorded.
    pub(crate) fn settled(&self) -> Distribution {
        let mut all = self.all.clone();
        all.record_all(&self.recent[..self.count as usize]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At each count of waiting durations, and with one that is too long to wait.
    #[test]
    fn has_the_quantiles_of_all_durations() {
        let (mut durations, mut all) = (Durations::new(), Distribution::new());
        assert_eq!(durations.quantiles(), None);
        for index in 0..1_000_u64 {
            let nanos =
                if index == 500 { 5_000_000_000 } else { index * index * 7_000 % 90_000_000 };
            durations.record(nanos);
            all.record(nanos);
            assert_eq!(durations.quantiles(), all.quantiles(), "{index}");
            assert_eq!(durations.settled().p99_ms(), all.p99_ms(), "{index}");
        }
        durations.rest();
        assert_eq!(durations.quantiles(), all.quantiles());
    }
}
