//! The queue to the thread that writes records.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uncork_flow::FlowRecord;

use crate::{Outcome, RecordsSummary, Sink};

/// Maximum number of records that wait in the queue: more than the ring of `uncork steer` holds, so that a recorder which was
/// stopped for a while loses none of them here.
const ROOM: usize = 20_480;
/// Maximum number of records taken from the queue before they are written.
const BATCH: usize = 512;
/// How long the first record waits for others: waking the thread costs more than writing a record.
const GATHERING: Duration = Duration::from_millis(10);
/// How long to wait if no write is due.
const LONG: Duration = Duration::from_hours(24);

/// Accepts records of responses and connections.
#[derive(Clone, Debug)]
pub struct Records {
    queue: SyncSender<QueueEntry>,
    tally: Arc<Tally>,
}

#[derive(Debug)]
enum QueueEntry {
    Record(Arc<FlowRecord>),
    Reopen,
}

/// Counts of records written and lost so far.
#[derive(Debug, Default)]
pub struct Tally {
    written: AtomicU64,
    lost: AtomicU64,
    /// A problem that has not been reported.
    problem: Mutex<Option<String>>,
}

/// The writing thread. It ends when all [`Records`] are dropped.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<()>,
    tally: Arc<Tally>,
}

pub(crate) fn start(sink: Box<dyn Sink>) -> io::Result<(Records, Writer)> {
    let (queue, received) = sync_channel(ROOM);
    let tally = Arc::new(Tally::default());
    let writers = Arc::clone(&tally);
    let named = thread::Builder::new().name("records".to_owned());
    let thread = named.spawn(move || write(&received, sink, &writers))?;
    Ok((Records { queue, tally: Arc::clone(&tally) }, Writer { thread, tally }))
}

impl Records {
    /// Queues a record, if there is room.
    pub fn leave(&self, record: impl Into<Arc<FlowRecord>>) {
        let record = record.into();
        if self.queue.try_send(QueueEntry::Record(record)).is_err() {
            self.tally.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Goes on in a new file after log rotation has renamed this one.
    pub fn reopen(&self) {
        let _ended = self.queue.send(QueueEntry::Reopen);
    }

    /// The counters.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}

impl Tally {
    /// The counts so far.
    pub fn summary(&self) -> RecordsSummary {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RecordsSummary { written: read(&self.written), lost: read(&self.lost) }
    }

    /// Why records are not written. Each problem is returned once.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn add(&self, outcome: Outcome, is_failing: &mut bool) {
        self.written.fetch_add(outcome.written, Ordering::Relaxed);
        self.lost.fetch_add(outcome.lost, Ordering::Relaxed);
        if outcome.problem.is_some() && !*is_failing {
            *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = outcome.problem;
            *is_failing = true;
        } else if outcome.written > 0 {
            *is_failing = false;
        }
    }
}

impl Writer {
    /// Waits until the last record is written. All [`Records`] must be dropped.
    pub fn end(self) -> RecordsSummary {
        // The thread can only panic, and a panic prints its own message.
        let _ended = self.thread.join();
        self.tally.summary()
    }
}

/// Writes received records. A file of lines is complete whenever the queue is empty.
fn write(received: &Receiver<QueueEntry>, mut sink: Box<dyn Sink>, tally: &Tally) {
    let (mut is_failing, mut more_wait) = (false, false);
    loop {
        let first = received.recv_timeout(sink.patience().unwrap_or(LONG));
        let is_over = matches!(first, Err(RecvTimeoutError::Disconnected));
        if first.is_ok() && !more_wait {
            thread::sleep(GATHERING);
        }
        let rest = received.try_iter().take(BATCH);
        let mut taken = 0;
        for entry in first.into_iter().chain(rest) {
            match entry {
                QueueEntry::Record(record) => sink.take(record),
                QueueEntry::Reopen => tally.add(sink.reopen(), &mut is_failing),
            }
            taken += 1;
        }
        more_wait = taken > BATCH;
        if is_over {
            tally.add(sink.end(), &mut is_failing);
            return;
        }
        if sink.patience().is_some_and(|patience| patience.is_zero()) {
            tally.add(sink.flush(), &mut is_failing);
        }
    }
}
