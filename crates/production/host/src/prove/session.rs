//! A test on a live host.

use std::time::Duration;

use thiserror::Error;
use uncork_watch::{RecordsSpec, RecordsSummary, Session, WatchError, WatchSpec};

use super::document::{ProveDocument, RunContext};
use super::guard::{Breach, SafetyMonitor};
use super::schedule::{Arm, Window};
use super::spec::{ProveSpec, SpecError};
use super::verdict::End;
use super::windows::Windows;
use crate::change::{ChangeError, Host, HostTrial, Journal, SkippedSetting, plan, span};

/// A test. It advances when [`Self::tick`] is called.
#[derive(Debug)]
pub struct Prover<H> {
    spec: ProveSpec,
    schedule: Vec<Window>,
    host: H,
    trial: HostTrial,
    session: Session,
    windows: Windows,
    guard: SafetyMonitor,
    phase: ProvePhase,
    /// Session time at which the phase ends, in nanoseconds.
    until_ns: u64,
    outcome: RunContext,
    stop: Option<AbortReason>,
}

/// Where a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProvePhase {
    /// Before the first pass.
    Start,
    /// Connections of this window do not count yet.
    BurnIn(usize),
    /// They count.
    Counting(usize),
    /// The host is restored; the last connections end.
    Draining,
}

/// What a tick did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tick {
    /// No event. The next tick is due after this time.
    Wait(Duration),
    /// A window began; in words, with part and whole.
    Window(String),
    /// The test is over.
    Ended,
}

/// Why a test cannot begin, or cannot be ended. The message names the remedy.
#[derive(Debug, Error)]
pub enum ProveError {
    /// A value makes no test.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The host cannot be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Connections cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

/// Why a test ended early.
#[derive(Debug, Error)]
pub enum AbortReason {
    /// A limit was exceeded.
    #[error("in window {window} ({arm}) {breach}")]
    Breach {
        /// Number of the window.
        window: usize,
        /// Name of its arm.
        arm: String,
        /// The limit.
        breach: Breach,
    },
    /// Somebody else changed a setting of the test.
    #[error("{0}")]
    Disturbed(Box<SkippedSetting>),
    /// The user wants to end it.
    #[error("it was interrupted")]
    Interrupted,
    /// The host could not be changed.
    #[error("{0}")]
    Change(#[from] ChangeError),
    /// Connections could not be watched.
    #[error("{0}")]
    Watch(#[from] WatchError),
}

impl AbortReason {
    fn end(&self, schedule: &[Window]) -> End {
        match self {
            Self::Breach { window, .. } if schedule[window - 1].arm == Arm::B => {
                End::UnsafeCandidate
            }
            _ => End::Early,
        }
    }
}

/// Finds out whether a test is possible, and changes nothing.
///
/// # Errors
///
/// A value that makes no test, or a controller that the host cannot run.
pub fn check(spec: &ProveSpec, host: &mut impl Host) -> Result<(), ProveError> {
    spec.check()?;
    let journal = Journal::new(&host.now().boot);
    for arm in Arm::BOTH {
        plan(host, &spec.desired(arm), &journal).map_err(ChangeError::from)?;
    }
    Ok(())
}

impl<H: Host> Prover<H> {
    /// Begins a test on `host`. No other process may change the host until this one ends. With `records`, each connection that ends
    /// leaves a record.
    ///
    /// # Errors
    ///
    /// A test, host or directory that is impossible: then nothing was changed.
    pub fn start(
        spec: ProveSpec,
        mut host: H,
        records: Option<RecordsSpec>,
    ) -> Result<Self, ProveError> {
        check(&spec, &mut host)?;
        let watch = WatchSpec { records, ..WatchSpec::live(spec.period.into()) };
        let session = Session::start(&watch)?;
        let trial = HostTrial::begin(&mut host)?;
        let at = session.moment();
        let experiment = format!("host-prove-{}", at.unix_ns / 1_000_000_000);
        let arms = Arm::BOTH.map(|arm| (spec.name(arm), spec.controller(arm).to_owned()));
        let schedule = spec.schedule();
        let routes = spec.routes.clone();
        Ok(Self {
            windows: Windows::new(&experiment, schedule.clone(), arms, routes, spec.large),
            schedule,
            host,
            trial,
            session,
            guard: SafetyMonitor::new(spec.limits),
            phase: ProvePhase::Start,
            until_ns: 0,
            outcome: RunContext {
                experiment,
                session_unix_ns: at.unix_ns - at.session_ns,
                start_unix_ns: at.unix_ns,
                ..RunContext::default()
            },
            stop: None,
            spec,
        })
    }

    /// What is missing, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.session.warning()
    }

    /// Does what is due.
    pub fn tick(&mut self) -> Tick {
        if self.stop.is_some() {
            return Tick::Ended;
        }
        self.step().unwrap_or_else(|stop| {
            self.stop = Some(stop);
            Tick::Ended
        })
    }

    fn step(&mut self) -> Result<Tick, AbortReason> {
        // A phase ends with a pass, which sees the connections that began in it.
        let left_ns = self.until_ns.saturating_sub(self.session.moment().session_ns);
        if left_ns == 0 {
            self.session.hasten();
        }
        let Self { session, windows, guard, phase, .. } = self;
        match session.tick_with(&mut |_, record| windows.take(record, false))? {
            uncork_watch::Tick::Wait(time) => {
                Ok(Tick::Wait(time.min(Duration::from_nanos(left_ns))))
            }
            uncork_watch::Tick::Ended => Ok(Tick::Ended),
            uncork_watch::Tick::Passed => {
                let breach = guard.see(session.tracker().connections());
                let at_ns = session.tracker().at().session_ns;
                if let (ProvePhase::BurnIn(index) | ProvePhase::Counting(index), Some(breach)) =
                    (*phase, breach)
                {
                    let arm = self.spec.name(self.schedule[index].arm);
                    return Err(AbortReason::Breach { window: index + 1, arm, breach });
                }
                if let Some(left) = self.trial.disturbed(&mut self.host)? {
                    return Err(AbortReason::Disturbed(Box::new(left)));
                }
                if at_ns < self.until_ns {
                    Ok(Tick::Wait(Duration::ZERO))
                } else {
                    self.advance(at_ns)
                }
            }
        }
    }

    /// Goes on to the next phase, after a pass at `at_ns`.
    fn advance(&mut self, at_ns: u64) -> Result<Tick, AbortReason> {
        let burn_in_ns = self.spec.burn_in.as_nanos();
        match self.phase {
            ProvePhase::Start => self.begin_window(0),
            ProvePhase::BurnIn(index) => {
                self.windows.open(at_ns);
                self.phase = ProvePhase::Counting(index);
                self.until_ns += self.spec.window.as_nanos() - burn_in_ns;
                Ok(Tick::Wait(Duration::ZERO))
            }
            ProvePhase::Counting(index) => {
                self.windows.close(at_ns);
                if index + 1 < self.schedule.len() {
                    return self.begin_window(index + 1);
                }
                self.restore()?;
                self.phase = ProvePhase::Draining;
                self.until_ns = at_ns + burn_in_ns;
                Ok(Tick::Wait(Duration::ZERO))
            }
            ProvePhase::Draining => Ok(Tick::Ended),
        }
    }

    fn begin_window(&mut self, index: usize) -> Result<Tick, AbortReason> {
        let arm = self.schedule[index].arm;
        self.trial.switch(&mut self.host, &self.spec.desired(arm))?;
        self.guard.clear();
        self.phase = ProvePhase::BurnIn(index);
        self.until_ns = self.session.moment().session_ns + self.spec.burn_in.as_nanos();
        let windows = self.schedule.len();
        let left = Duration::from(self.spec.window) * (windows - index) as u32;
        let left = span((left + Duration::from(self.spec.burn_in)).as_secs());
        let (number, name) = (index + 1, self.spec.name(arm));
        Ok(Tick::Window(format!("window {number} of {windows}: {name}; {left} left")))
    }

    fn restore(&mut self) -> Result<(), ChangeError> {
        let left = self.trial.end(&mut self.host)?;
        self.outcome.left.extend(left.iter().map(ToString::to_string));
        Ok(())
    }

    /// Restores the host, also after a failure, and returns the result. `interrupted` says that the user ends the test.
    pub fn end(mut self, interrupted: bool) -> TestResult {
        let restored = self.restore();
        let Self { mut session, mut windows, spec, schedule, mut outcome, mut stop, .. } = self;
        session.end_open(&mut |_, record| windows.take(record, true));
        outcome.close_events_lost = session.tracker().lost_close_events();
        let (records, written) = match session.end() {
            Ok(records) => (records, Ok(())),
            Err(error) => (None, Err(error)),
        };
        // A result of hours is returned also if restoring or writing fails.
        outcome.left.extend(restored.as_ref().err().map(ToString::to_string));
        let failure =
            restored.map_err(ProveError::from).and(written.map_err(ProveError::from)).err();
        if interrupted {
            stop.get_or_insert(AbortReason::Interrupted);
        }
        outcome.stopped = stop.as_ref().map(ToString::to_string);
        outcome.end = stop.as_ref().map_or(End::Planned, |stop| stop.end(&schedule));
        TestResult { document: ProveDocument::of(&spec, &windows, outcome), stop, records, failure }
    }
}

/// A test that is over.
#[derive(Debug)]
pub struct TestResult {
    /// The result.
    pub document: ProveDocument,
    /// Why it ended early.
    pub stop: Option<AbortReason>,
    /// What became of the records.
    pub records: Option<RecordsSummary>,
    /// Why the host could not be restored, or records not be written.
    pub failure: Option<ProveError>,
}
