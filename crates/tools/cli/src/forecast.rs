//! Estimate of the remaining time of a command's runs.

use std::time::Duration;

/// Runs of one cell, which only differ in their seeds.
#[derive(Clone, Copy, Debug)]
struct Runs {
    /// Expected packets per run.
    expected: f64,
    /// Runs not finished yet.
    left: usize,
    done: usize,
    /// Packets of finished runs.
    measured: f64,
}

/// The work of a command in packets: measured from a cell's finished runs, or else expected from
/// its path and traffic.
#[derive(Debug)]
pub(crate) struct Forecast {
    /// By scenario and cell.
    scenarios: Vec<Vec<Runs>>,
    /// When the remaining time was last reported, and its value.
    reported: Option<(Duration, Duration)>,
}

/// Shorter times are not reported, because they would be over before they are read.
const MIN_SHOWN: Duration = Duration::from_secs(1);

impl Forecast {
    /// For each scenario and cell: expected packets per run, and number of runs.
    pub(crate) fn new(scenarios: impl IntoIterator<Item = Vec<(u64, usize)>>) -> Self {
        let runs = |(expected, left): (u64, usize)| Runs {
            expected: expected.max(1) as f64,
            left,
            done: 0,
            measured: 0.0,
        };
        let scenarios = scenarios.into_iter();
        let scenarios = scenarios.map(|cells| cells.into_iter().map(runs).collect());
        Self { scenarios: scenarios.collect(), reported: None }
    }

    /// Only `left` runs of each cell of a scenario remain, and none of further cells.
    pub(crate) fn keep(&mut self, scenario: usize, left: impl IntoIterator<Item = usize>) {
        let cells = self.scenarios.get_mut(scenario).into_iter().flatten();
        let left = left.into_iter().chain(std::iter::repeat(0));
        cells.zip(left).for_each(|(runs, left)| runs.left = left);
    }

    /// A run of a cell finished `elapsed` after the start. `packets` is 0 if packets are not
    /// counted.
    pub(crate) fn finished(
        &mut self,
        (scenario, cell): (usize, usize),
        packets: u64,
        elapsed: Duration,
    ) {
        let Some(runs) = self.scenarios.get_mut(scenario).and_then(|cells| cells.get_mut(cell))
        else {
            return;
        };
        runs.left = runs.left.saturating_sub(1);
        runs.done += 1;
        runs.measured += if packets > 0 { packets as f64 } else { runs.expected };
        let (done, left) = self.weights();
        let left = elapsed.mul_f64((left / done).min(1e6));
        self.reported = Some((elapsed, left));
    }

    /// Remaining time `elapsed` after the start; `None` until a run has finished.
    pub(crate) fn left(&self, elapsed: Duration) -> Option<Duration> {
        let (at, left) = self.reported?;
        Some((at + left).saturating_sub(elapsed).max(MIN_SHOWN))
    }

    /// Packets of finished and of remaining runs.
    fn weights(&self) -> (f64, f64) {
        let all = || self.scenarios.iter().flatten();
        let done: f64 = all().map(|runs| runs.measured).sum();
        let expected: f64 = all().map(|runs| runs.expected * runs.done as f64).sum();
        // Ratio of actual to expected packets so far.
        let factor = if expected > 0.0 { done / expected } else { 1.0 };
        let each = |runs: &Runs| match runs.done {
            0 => runs.expected * factor,
            done => runs.measured / done as f64,
        };
        (done, all().map(|runs| each(runs) * runs.left as f64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn no_estimate_before_the_first_run() {
        let forecast = Forecast::new([vec![(100, 2)]]);
        assert_eq!(forecast.left(seconds(15)), None);
    }

    /// The two runs take equal times.
    #[test]
    fn estimate_falls_with_the_clock_but_never_to_zero() {
        let mut forecast = Forecast::new([vec![(100, 2)]]);
        forecast.finished((0, 0), 90, seconds(16));
        let remaining: Vec<u64> =
            [16, 20, 30, 40].map(|at| forecast.left(seconds(at)).unwrap().as_secs()).into();
        assert_eq!(remaining, [16, 12, 2, 1]);
    }

    #[test]
    fn expensive_runs_count_more_than_cheap_ones() {
        let mut forecast = Forecast::new([vec![(1000, 9), (9000, 1)]]);
        for n in 1..=9 {
            forecast.finished((0, 0), 1000, seconds(n));
        }
        assert_eq!(forecast.left(seconds(9)), Some(seconds(9)));
    }

    /// Controllers send different numbers of packets over the same path, known after one run of
    /// each.
    #[test]
    fn first_run_of_a_cell_corrects_its_estimate() {
        let mut forecast = Forecast::new([vec![(1000, 10), (1000, 10)]]);
        forecast.finished((0, 0), 100, seconds(1));
        assert_eq!(forecast.left(seconds(1)), Some(seconds(19)));
        forecast.finished((0, 1), 900, seconds(10));
        let mut elapsed = 10;
        let mut before = forecast.left(seconds(elapsed)).unwrap();
        assert_eq!(before, seconds(90));
        for _ in 1..10 {
            for (cell, packets, lasts) in [(0, 100, 1), (1, 900, 9)] {
                elapsed += lasts;
                forecast.finished((0, cell), packets, seconds(elapsed));
                let left = forecast.left(seconds(elapsed)).unwrap();
                assert!(left < before, "{before:?}, then {left:?}");
                before = left;
            }
        }
        assert_eq!(forecast.left(seconds(elapsed)), Some(MIN_SHOWN));
    }

    #[test]
    fn estimate_covers_all_scenarios() {
        let mut forecast = Forecast::new([vec![(10, 1)], vec![(10, 2)], vec![(10, 1)]]);
        forecast.finished((0, 0), 0, seconds(5));
        assert_eq!(forecast.left(seconds(5)), Some(seconds(15)));
        // A run of the second one already exists.
        forecast.keep(1, [1]);
        forecast.finished((1, 0), 0, seconds(10));
        assert_eq!(forecast.left(seconds(10)), Some(seconds(5)));
    }
}
