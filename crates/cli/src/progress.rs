//! How far a run has come, on stderr.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use uncork_lab::Progress;

use crate::clock;

/// Shorter runs show no bar.
const UNTIL_BAR: Duration = Duration::from_millis(500);
/// How often the bar is drawn.
const BAR_TICK: Duration = Duration::from_millis(100);
/// How often a log that is no terminal gets a line.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Who watches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watcher {
    Nobody,
    Terminal,
    Log,
}

impl Watcher {
    /// Whoever reads stderr, unless that is unwanted.
    pub(crate) fn of_stderr(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Nobody,
            (false, true) => Self::Terminal,
            (false, false) => Self::Log,
        }
    }

    /// Does `work`, which tells how far it is, and shows that. When the user sets `stop` it says what
    /// that means.
    pub(crate) fn watch<T>(
        self,
        stop: Option<&AtomicBool>,
        work: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T,
    ) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || match self {
                Self::Nobody => {}
                Self::Terminal => draw_bar(&receiver, stop),
                Self::Log => log(&receiver),
            });
            let result = work(&|progress| {
                // Nobody may be listening; that is no reason to stop.
                let _ = sender.send(progress);
            });
            drop(sender); // ends the watching thread
            result
        })
    }
}

/// The newest of what comes within `span`; `None` when the work is over.
fn newest(receiver: &Receiver<Progress>, span: Duration, mut newest: Progress) -> Option<Progress> {
    let end = clock::now() + span;
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(clock::now())) {
            Ok(progress) => newest = progress,
            Err(RecvTimeoutError::Timeout) => return Some(newest),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn draw_bar(receiver: &Receiver<Progress>, stop: Option<&AtomicBool>) {
    let Some(mut progress) = newest(receiver, UNTIL_BAR, Progress::default()) else { return };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs in {elapsed}{msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(progress.total as u64).with_style(style).with_elapsed(UNTIL_BAR);
    loop {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            bar.set_message("; waiting for the runs under way, Ctrl-C ends at once");
        } else if progress.done > 0 {
            bar.set_message(format!(", {} left", HumanDuration(bar.eta())));
        }
        bar.tick();
        match newest(receiver, BAR_TICK, progress) {
            Some(newer) => progress = newer,
            None => break,
        }
    }
    bar.finish_and_clear();
}

fn log(receiver: &Receiver<Progress>) {
    let mut progress = Progress::default();
    let mut waited = Duration::ZERO;
    while let Some(newer) = newest(receiver, LINE_INTERVAL, progress) {
        progress = newer;
        waited += LINE_INTERVAL;
        eprintln!("{}", line(progress, waited));
    }
}

fn line(progress: Progress, waited: Duration) -> String {
    let Progress { done, total, packets } = progress;
    let seconds = waited.as_secs();
    if total == 0 {
        return format!("uncork: no run is over yet after {seconds} s");
    }
    let left = total.saturating_sub(done);
    let left = waited.checked_div(u32::try_from(done).unwrap_or(u32::MAX)).map(|each| {
        format!(
            ", {} left",
            HumanDuration(each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)))
        )
    });
    let left = left.unwrap_or_default();
    format!("uncork: {done} of {total} runs, {packets} packets after {seconds} s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        let waited = Duration::from_secs(20);
        let progress = Progress { done: 3, total: 30, packets: 21_000 };
        assert_eq!(
            line(progress, waited),
            "uncork: 3 of 30 runs, 21000 packets after 20 s, 3 minutes left"
        );
        assert_eq!(line(Progress::default(), waited), "uncork: no run is over yet after 20 s");
    }

    #[test]
    fn the_newest_progress_counts_until_the_work_is_over() {
        let (sender, receiver) = mpsc::channel();
        for done in 1..=3 {
            sender.send(Progress { done, total: 3, packets: 0 }).unwrap();
        }
        let span = Duration::from_millis(1);
        let progress = newest(&receiver, span, Progress::default()).unwrap();
        assert_eq!(progress.done, 3);
        assert_eq!(newest(&receiver, span, progress), Some(progress));
        drop(sender);
        assert_eq!(newest(&receiver, span, progress), None);
    }

    #[test]
    fn watching_gives_what_the_work_gives() {
        for watcher in [Watcher::Nobody, Watcher::Terminal, Watcher::Log] {
            assert_eq!(watcher.watch(None, |tell| (tell(Progress::default()), 7).1), 7);
        }
    }
}
