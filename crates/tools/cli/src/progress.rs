//! Progress of a command's runs on stderr.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use uncork_config::visible;
use uncork_lab::{FinishedRun, Item, Progress, Scenario};

use crate::clock;
use crate::forecast::Forecast;

/// Shorter commands do not show a bar.
const UNTIL_BAR: Duration = Duration::from_millis(500);
/// Update interval of the bar.
const BAR_TICK: Duration = Duration::from_millis(100);
/// Update interval in a log file.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The runs of a command, scenario by scenario.
pub(crate) struct ProgressTracker {
    started: Instant,
    state: Mutex<BarState>,
}

#[derive(Debug)]
struct BarState {
    forecast: Forecast,
    /// Names of the scenarios.
    names: Vec<String>,
    /// Index of the current scenario.
    current: usize,
    /// Its finished runs, its total runs, and the packets of the former.
    progress: Progress,
    /// When the last line was logged.
    last_line: Duration,
}

impl ProgressTracker {
    /// A tracker for all runs of `scenarios`.
    pub(crate) fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Self {
        let scenarios: Vec<&Scenario> = scenarios.into_iter().collect();
        let cells = scenarios.iter().map(|scenario| {
            let runs = scenario.seeds as usize;
            scenario.cells.iter().map(|cell| (cell.expected_packets(), runs)).collect()
        });
        Self::new(Forecast::new(cells), scenarios.iter().map(|one| one.name.clone()).collect())
    }

    fn new(forecast: Forecast, names: Vec<String>) -> Self {
        let state = BarState {
            forecast,
            names,
            current: 0,
            progress: Progress::default(),
            last_line: Duration::ZERO,
        };
        Self { started: clock::now(), state: Mutex::new(state) }
    }

    /// Only `items` of the scenario with this number are run.
    pub(crate) fn expect(&self, scenario: usize, items: &[Item]) {
        let mut left = vec![0; items.iter().map(|item| item.cell + 1).max().unwrap_or(0)];
        for item in items {
            left[item.cell] += 1;
        }
        self.with(|state, _| state.forecast.keep(scenario, left));
    }

    /// Starts `items` of the scenario with this number.
    pub(crate) fn begin(&self, scenario: usize, items: &[Item]) {
        self.expect(scenario, items);
        self.with(|state, _| {
            state.current = scenario;
            state.progress = Progress { total: items.len(), ..Progress::default() };
        });
    }

    /// A run of the current scenario has finished.
    pub(crate) fn finished(&self, run: &FinishedRun, progress: Progress) {
        self.with(|state, elapsed| {
            let (cell, packets) = (run.outcome.cell, run.outcome.packets);
            state.forecast.finished((state.current, cell), packets, elapsed);
            state.progress = progress;
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut BarState, Duration) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state, self.started.elapsed())
    }
}

impl BarState {
    /// `rfc9743-loss (3 of 18), 20 of 48 runs, 12345 packets, 1 minute: 5 minutes left`
    fn text(&self, elapsed: Duration) -> String {
        let Progress { done, total, packets } = self.progress;
        let several = self.names.len() > 1;
        let name = self.names.get(self.current).filter(|_| several);
        let name =
            name.map(|name| format!("{name} ({} of {})", self.current + 1, self.names.len()));
        let packets = (packets > 0).then(|| format!("{packets} packets"));
        let runs = format!("{done} of {total} runs");
        let parts: Vec<String> = name.into_iter().chain([runs]).chain(packets).collect();
        let whole = if several { " in all" } else { "" };
        let left = match self.forecast.left(elapsed) {
            Some(left) => format!("about {} left{whole}", HumanDuration(left)),
            None => "no run is over yet".to_owned(),
        };
        let line = format!("{} after {}: {left}", parts.join(", "), HumanDuration(elapsed));
        visible(&line).into_owned()
    }
}

/// Where progress is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgressWatcher {
    Quiet,
    Terminal,
    Log,
}

impl ProgressWatcher {
    /// Progress on stderr, unless `quiet`.
    pub(crate) fn of_stderr(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Terminal,
            (false, false) => Self::Log,
        }
    }

    /// Runs `work`, which reports to `tracker`, and shows the progress. When the user sets `stop`,
    /// prints what happens next.
    pub(crate) fn watch<T>(
        self,
        tracker: &ProgressTracker,
        stop: Option<&AtomicBool>,
        work: impl FnOnce() -> T,
    ) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || match self {
                Self::Quiet => {}
                Self::Terminal => draw_bar(tracker, &receiver, stop),
                Self::Log => log(tracker, &receiver),
            });
            let result = work();
            drop(sender); // ends the watching thread
            result
        })
    }
}

/// Whether the work finishes within `span`.
fn ends_within(receiver: &Receiver<()>, span: Duration) -> bool {
    receiver.recv_timeout(span) == Err(RecvTimeoutError::Disconnected)
}

fn draw_bar(tracker: &ProgressTracker, receiver: &Receiver<()>, stop: Option<&AtomicBool>) {
    if ends_within(receiver, UNTIL_BAR) {
        return;
    }
    let style = ProgressStyle::with_template("{bar:20} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    loop {
        tracker.with(|state, elapsed| {
            bar.set_length(state.progress.total as u64);
            bar.set_position(state.progress.done as u64);
            bar.set_message(if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                "waiting for the runs under way; Ctrl-C ends at once".to_owned()
            } else {
                state.text(elapsed)
            });
        });
        bar.tick();
        if ends_within(receiver, BAR_TICK) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Prints a line every [`LINE_INTERVAL`], across all scenarios.
fn log(tracker: &ProgressTracker, receiver: &Receiver<()>) {
    loop {
        let wait = tracker
            .with(|state, elapsed| (state.last_line + LINE_INTERVAL).saturating_sub(elapsed));
        if ends_within(receiver, wait) {
            return;
        }
        let line = tracker.with(|state, elapsed| {
            state.last_line = elapsed;
            state.text(elapsed)
        });
        eprintln!("uncork: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn state(names: &[&str], cells: usize) -> BarState {
        let cells = (0..names.len()).map(|_| vec![(1, 10); cells]);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ProgressTracker::new(Forecast::new(cells), names).state.into_inner().unwrap()
    }

    #[test]
    fn line_shows_the_progress() {
        let mut state = state(&["mine"], 1);
        state.progress = Progress { done: 0, total: 10, packets: 0 };
        assert_message!("0 of 10", state.text(seconds(20)));
        state.forecast.finished((0, 0), 700, seconds(20));
        state.progress = Progress { done: 1, total: 10, packets: 700 };
        assert_message!("1 of 10", state.text(seconds(30)));
    }

    #[test]
    fn line_of_a_suite_names_the_scenario_and_the_total_time() {
        let mut state = state(&["first", "second", "third"], 1);
        state.current = 1;
        state.forecast.keep(0, [0]);
        state.forecast.finished((1, 0), 0, seconds(10));
        state.progress = Progress { done: 1, total: 10, packets: 0 };
        assert_message!("2 of 3", state.text(seconds(10)));
    }

    #[test]
    fn watching_returns_the_result() {
        for watcher in [ProgressWatcher::Quiet, ProgressWatcher::Terminal, ProgressWatcher::Log] {
            let tracker = ProgressTracker::new(Forecast::new([vec![(1, 1)]]), Vec::new());
            assert_eq!(watcher.watch(&tracker, None, || 7), 7);
        }
    }
}
