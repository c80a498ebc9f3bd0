//! Progress on stderr.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use uncork_play::Tally;

/// Update interval on a terminal.
const TICK: Duration = Duration::from_millis(200);
/// Update interval in a log file, in ticks.
const LOG_TICKS: u32 = 50;

/// Runs `work` and meanwhile shows the progress in `tally` towards `total` items called `what`.
pub(super) fn watch<T>(
    is_quiet: bool,
    (total, what): (usize, &str),
    tally: &Tally,
    work: impl FnOnce() -> T,
) -> T {
    if is_quiet {
        return work();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| show((total, what), tally, &is_over));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    })
}

fn show((total, what): (usize, &str), tally: &Tally, is_over: &AtomicBool) {
    let is_terminal = std::io::stderr().is_terminal();
    let bar = if is_terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let template = ProgressStyle::with_template("{msg} after {elapsed}");
    bar.set_style(template.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    for tick in 1.. {
        thread::park_timeout(TICK);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let bytes = HumanBytes(tally.bytes());
        let line = format!("{} of {total} {what}, {bytes}", tally.done());
        if is_terminal {
            bar.set_message(line);
            bar.tick();
        } else if tick % LOG_TICKS == 0 {
            eprintln!("uncork: {line} after {} s", bar.elapsed().as_secs());
        }
    }
    bar.finish_and_clear();
}
