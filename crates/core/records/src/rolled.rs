//! Roll-ups next to the records of a sample.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use uncork_flow::FlowRecord;
use uncork_rollup::{RollupSpec, Rollups, Sample};

use crate::rollup_files::write_rollup;
use crate::{Outcome, RecordsSpec, Sink, clock};

/// How long after its end a period waits for records of responses and connections that began in it. Later ones are in another
/// file of the period: files of a period add up.
const GRACE: Duration = Duration::from_mins(1);

/// Counts each record, and passes those of the sample on.
pub(crate) struct Rolled {
    rollups: Rollups,
    directory: PathBuf,
    sample: Sample,
    /// Records that are in the roll-ups alone, since the last file.
    counted: u64,
    /// After the begin of the last period that got its first file, and the number of further files.
    first_until: u64,
    parts: u64,
    records: Box<dyn Sink>,
}

impl Rolled {
    pub(crate) fn new(spec: &RecordsSpec, rollup: RollupSpec, records: Box<dyn Sink>) -> Self {
        Self {
            rollups: Rollups::new(rollup),
            directory: spec.path.clone(),
            sample: spec.sample,
            counted: 0,
            first_until: 0,
            parts: 0,
            records,
        }
    }

    /// How long until a period is due.
    fn until_due(&self) -> Option<Duration> {
        let due = self.rollups.next_end()?.saturating_add(GRACE.as_nanos() as u64);
        Some(Duration::from_nanos(due.saturating_sub(now())))
    }

    /// Writes the roll-ups that are due. What cannot be written waits: its size is limited.
    fn write(&mut self, is_end: bool) -> Outcome {
        let due = now().saturating_sub(GRACE.as_nanos() as u64);
        let ended = if is_end { self.rollups.take() } else { self.rollups.take_ended(due) };
        let mut outcome = Outcome::default();
        for mut rollup in ended {
            if rollup.start_ns() < self.first_until {
                self.parts += 1;
                rollup.set_part(self.parts);
            }
            self.first_until = self.first_until.max(rollup.start_ns() + 1);
            if let Err(error) = write_rollup(&self.directory, &rollup) {
                let lost = if is_end { rollup.records() } else { 0 };
                outcome = outcome.and(Outcome::failed(&self.directory, &error, lost));
                // It has the same host and period.
                let _ = self.rollups.merge(&rollup);
            }
        }
        if outcome.problem.is_none() {
            outcome.written = std::mem::take(&mut self.counted);
        }
        outcome
    }
}

fn now() -> u64 {
    clock::today().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

impl Sink for Rolled {
    fn take(&mut self, record: Arc<FlowRecord>) {
        // Every record of a server has a time.
        let is_counted = self.rollups.add(&record).is_ok();
        if self.sample.has(&record) {
            self.records.take(record);
        } else if is_counted {
            self.counted += 1;
        }
    }

    fn patience(&self) -> Option<Duration> {
        [self.records.patience(), self.until_due()].into_iter().flatten().min()
    }

    fn flush(&mut self) -> Outcome {
        let is_due = self.until_due().is_some_and(|left| left.is_zero());
        let rolled = if is_due { self.write(false) } else { Outcome::default() };
        rolled.and(self.records.flush())
    }

    fn reopen(&mut self) -> Outcome {
        self.records.reopen()
    }

    fn end(&mut self) -> Outcome {
        self.write(true).and(self.records.end())
    }
}
