//! A session: events from the kernel or from a record, to the tracker and to files.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;
use uncork_diag::DiagError;
use uncork_flow::FlowRecord;
use uncork_records::{Records, RecordsError, RecordsSpec, RecordsSummary, Writer};

use crate::event::{Event, Moment, Pass};
use crate::exporter::Exporter;
use crate::live::{Live, default_controller, now};
use crate::metrics::{METRICS_TYPE, metrics};
use crate::policy_choice::{Policies, PolicyChoice};
use crate::tape::{TapeError, TapeReader, TapeWriter};
use crate::tracker::Tracker;

/// How often to look for close events between passes.
const TICK: Duration = Duration::from_millis(100);

/// What to watch, and what to leave.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// The time between two passes.
    pub period: Duration,
    /// A recorded session to replay, instead of the live kernel.
    pub replay: Option<PathBuf>,
    /// Whether a replay takes the time of the session. Otherwise it is as fast as possible.
    pub in_real_time: bool,
    /// Where to record the session.
    pub record: Option<PathBuf>,
    /// Where the records of connections go.
    pub records: Option<RecordsSpec>,
    /// Where Prometheus asks.
    pub listen: Option<SocketAddr>,
}

impl WatchSpec {
    /// A pass over the live kernel each `period`, which leaves nothing.
    pub const fn live(period: Duration) -> Self {
        let (in_real_time, listen) = (false, None);
        Self { period, replay: None, in_real_time, record: None, records: None, listen }
    }
}

/// Why a session cannot begin or go on. The message names the remedy.
#[derive(Debug, Error)]
pub enum WatchError {
    /// The kernel does not report connections.
    #[error(transparent)]
    Kernel(#[from] DiagError),
    /// A recorded session cannot be read.
    #[error("cannot replay '{path}': {1}", path = .0.display())]
    Replay(PathBuf, #[source] TapeError),
    /// The session cannot be recorded.
    #[error("cannot record to '{path}': {1}", path = .0.display())]
    Record(PathBuf, #[source] io::Error),
    /// Records have no place.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Nothing can listen there.
    #[error("cannot listen for Prometheus on {0}: {1}; choose another address with --listen")]
    Listen(SocketAddr, #[source] io::Error),
}

/// What a tick of a session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Nothing to show. The next tick is due after this time.
    Wait(Duration),
    /// A pass over all sockets.
    Passed,
    /// The recorded session is over.
    Ended,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    source: PassSource,
    tracker: Tracker,
    outputs: Outputs,
    warning: Option<String>,
}

#[derive(Debug)]
enum PassSource {
    Live { live: Live, period: Duration, due: Instant, pass: Event },
    Replay(Replay),
}

#[derive(Debug)]
struct Replay {
    path: PathBuf,
    tape: TapeReader<BufReader<File>>,
    /// When the replay began, if it is in real time.
    start: Option<Instant>,
    /// A pass that is not due yet.
    waiting: Option<Event>,
}

/// What a session leaves.
#[derive(Debug)]
struct Outputs {
    tape: Option<(PathBuf, TapeWriter<BufWriter<File>>)>,
    records: Option<(Records, Writer)>,
    exporter: Option<Exporter>,
}

impl Session {
    /// Begins a session.
    ///
    /// # Errors
    ///
    /// If the kernel does not report connections, a file cannot be read or written, or an address is in use.
    pub fn start(spec: &WatchSpec) -> Result<Self, WatchError> {
        let (source, warning) = PassSource::open(spec)?;
        let has_close_events = source.has_close_events();
        let outputs = Outputs {
            tape: spec.record.as_deref().map(|path| tape(path, has_close_events)).transpose()?,
            records: spec.records.as_ref().map(RecordsSpec::open).transpose()?,
            exporter: spec.listen.map(exporter).transpose()?,
        };
        Ok(Self { source, tracker: Tracker::new(has_close_events), outputs, warning })
    }

    /// What is missing, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Where Prometheus asks.
    pub fn address(&self) -> Option<SocketAddr> {
        self.outputs.exporter.as_ref().map(Exporter::address)
    }

    /// What has been seen so far.
    pub const fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// Why records are not written, once for each time that this begins.
    pub fn problem(&self) -> Option<String> {
        self.outputs.records.as_ref().and_then(|(records, _)| records.tally().problem())
    }

    /// Does what is due. Never waits for longer than a pass takes.
    ///
    /// # Errors
    ///
    /// As of [`Self::start`].
    pub fn tick(&mut self) -> Result<Tick, WatchError> {
        self.tick_with(&mut |_, _| {})
    }

    /// [`Self::tick`]. Calls `each` with the socket's cookie and the record of each connection that has ended, before the record
    /// is written.
    ///
    /// # Errors
    ///
    /// As of [`Self::start`].
    pub fn tick_with(
        &mut self,
        each: &mut dyn FnMut(u64, &mut FlowRecord),
    ) -> Result<Tick, WatchError> {
        self.tick_with_policies(&mut WithoutPolicies(each))
    }

    /// [`Self::tick`], with what policies know of each connection.
    ///
    /// # Errors
    ///
    /// As of [`Self::start`].
    pub fn tick_with_policies(&mut self, policies: &mut dyn Policies) -> Result<Tick, WatchError> {
        let Self { source, tracker, outputs, .. } = self;
        match source {
            PassSource::Live { live, period, due, pass } => {
                let mut recorded = Ok(());
                live.close_events(|event| {
                    let took = outputs.take(tracker, event, policies);
                    recorded = std::mem::replace(&mut recorded, Ok(())).and(took);
                })?;
                recorded?;
                let left = due.saturating_duration_since(now());
                if !left.is_zero() {
                    return Ok(Tick::Wait(left.min(TICK)));
                }
                *due = (*due + *period).max(now());
                if let Event::Pass(pass) = pass {
                    live.pass(pass)?;
                    pass.sockets.iter_mut().for_each(|it| it.given = policies.given(it.cookie));
                }
                outputs.take(tracker, pass, policies)?;
                outputs.show(tracker, default_controller);
                Ok(Tick::Passed)
            }
            PassSource::Replay(replay) => {
                let Some((event, left)) = replay.next()? else { return Ok(Tick::Ended) };
                if !left.is_zero() {
                    replay.waiting = Some(event);
                    return Ok(Tick::Wait(left.min(TICK)));
                }
                outputs.take(tracker, &event, policies)?;
                if !matches!(event, Event::Pass(_)) {
                    return Ok(Tick::Wait(Duration::ZERO));
                }
                outputs.show(tracker, || None);
                Ok(Tick::Passed)
            }
        }
    }

    /// The time in a live session; in a replay that of the newest pass.
    pub fn moment(&self) -> Moment {
        match &self.source {
            PassSource::Live { live, .. } => live.moment(),
            PassSource::Replay(_) => self.tracker.at(),
        }
    }

    /// Makes the next pass of a live session due.
    pub fn hasten(&mut self) {
        if let PassSource::Live { due, .. } = &mut self.source {
            *due = now();
        }
    }

    /// Leaves records of connections that are open, too, with what the newest pass saw of them. Calls `each` with each.
    pub fn end_open(&mut self, each: &mut dyn FnMut(u64, &mut FlowRecord)) {
        let Self { tracker, outputs, .. } = self;
        tracker.end_all(|cookie, mut record| {
            each(cookie, &mut record);
            outputs.leave(record);
        });
    }

    /// Ends the session: leaves the records of connections that have ended without a close event, and writes all files.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn end(mut self) -> Result<Option<RecordsSummary>, WatchError> {
        let outputs = self.outputs;
        self.tracker.end_absent(|_, record| outputs.leave(record));
        let Outputs { tape, records, .. } = outputs;
        if let Some((path, mut tape)) = tape {
            tape.flush().map_err(|error| WatchError::Record(path, error))?;
        }
        Ok(records.map(|(records, writer)| {
            drop(records);
            writer.end()
        }))
    }
}

/// Calls it with each record.
struct WithoutPolicies<'a>(&'a mut dyn FnMut(u64, &mut FlowRecord));

impl Policies for WithoutPolicies<'_> {
    fn given(&mut self, _: u64) -> Option<PolicyChoice> {
        None
    }

    fn complete(&mut self, cookie: u64, record: &mut FlowRecord) {
        (self.0)(cookie, record);
    }
}

impl PassSource {
    fn open(spec: &WatchSpec) -> Result<(Self, Option<String>), WatchError> {
        if let Some(path) = &spec.replay {
            return Replay::open(path, spec.in_real_time)
                .map(|replay| (Self::Replay(replay), None));
        }
        let (live, refusal) = Live::open()?;
        let warning = refusal
            .map(|error| format!("{error}; connections that live between two passes are missed"));
        let pass = Event::Pass(Pass::default());
        Ok((Self::Live { live, period: spec.period, due: now(), pass }, warning))
    }

    fn has_close_events(&self) -> bool {
        match self {
            Self::Live { live, .. } => live.has_close_events(),
            Self::Replay(replay) => replay.tape.has_close_events(),
        }
    }
}

impl Replay {
    fn open(path: &Path, in_real_time: bool) -> Result<Self, WatchError> {
        let failed = |error| WatchError::Replay(path.to_owned(), error);
        let file = File::open(path).map_err(|error| failed(error.into()))?;
        let tape = TapeReader::new(BufReader::new(file)).map_err(failed)?;
        let start = in_real_time.then(now);
        Ok(Self { path: path.to_owned(), tape, start, waiting: None })
    }

    /// The next event, and how long it has to wait.
    fn next(&mut self) -> Result<Option<(Event, Duration)>, WatchError> {
        let event = match self.waiting.take() {
            Some(event) => event,
            None => match self.tape.read() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(None),
                Err(error) => return Err(WatchError::Replay(self.path.clone(), error)),
            },
        };
        let left = match (&event, self.start) {
            (Event::Pass(pass), Some(start)) => {
                Duration::from_nanos(pass.at.session_ns).saturating_sub(start.elapsed())
            }
            _ => Duration::ZERO,
        };
        Ok(Some((event, left)))
    }
}

impl Outputs {
    fn take(
        &mut self,
        tracker: &mut Tracker,
        event: &Event,
        policies: &mut dyn Policies,
    ) -> Result<(), WatchError> {
        tracker.take(event, |cookie, mut record| {
            policies.complete(cookie, &mut record);
            self.leave(record);
        });
        let Some((path, tape)) = &mut self.tape else { return Ok(()) };
        let failed = |error| WatchError::Record(path.clone(), error);
        tape.write(event).map_err(failed)?;
        // A session that is killed leaves its passes.
        if matches!(event, Event::Pass(_)) { tape.flush().map_err(failed) } else { Ok(()) }
    }

    fn leave(&self, mut record: FlowRecord) {
        if let Some((records, _)) = &self.records {
            if let Some(service) = &mut record.service {
                (service.client_port, service.end_unix_ns) = (None, None);
            }
            records.leave(record);
        }
    }

    fn show(&self, tracker: &Tracker, default_cc: impl FnOnce() -> Option<String>) {
        if let Some(exporter) = &self.exporter {
            // Text in memory takes every character.
            exporter.show(metrics(tracker, default_cc()).unwrap_or_default());
        }
    }
}

fn tape(
    path: &Path,
    has_close_events: bool,
) -> Result<(PathBuf, TapeWriter<BufWriter<File>>), WatchError> {
    let failed = |error| WatchError::Record(path.to_owned(), error);
    let file = File::create(path).map_err(failed)?;
    let tape = TapeWriter::new(BufWriter::new(file), has_close_events).map_err(failed)?;
    Ok((path.to_owned(), tape))
}

fn exporter(address: SocketAddr) -> Result<Exporter, WatchError> {
    Exporter::start(address, METRICS_TYPE).map_err(|error| WatchError::Listen(address, error))
}
