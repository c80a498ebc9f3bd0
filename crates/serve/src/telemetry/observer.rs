//! Observes a TCP connection until the client has acknowledged its responses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use uncork_diag::TcpState;
use uncork_flow::TransportFigures;

use super::about::{About, Labels};
use super::connection_stats::ConnectionStats;
use super::exchange::{Ending, Exchange};
use super::probe::{KernelState, SocketLookup};
use super::progress::{ConnectionProgress, ProgressState};
use super::shared::Telemetry;
use crate::choice::InForce;
use crate::clock;
use crate::shared::Stop;

/// The sampling interval while a response is written.
const WRITING: Duration = Duration::from_millis(100);
/// The shortest and the longest sampling interval while only acknowledgements are awaited.
const SETTLING: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// How long a sample counts as current. A request that acknowledged earlier responses was sampled a moment before.
const CURRENT: Duration = Duration::from_micros(100);
/// How long to await acknowledgements on a closed connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for acknowledgements after the server's deadline.
const LAST_ACKS: Duration = Duration::from_secs(1);

/// Records one connection and its responses.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) progress: Arc<ConnectionProgress>,
    pub(crate) telemetry: Arc<Telemetry>,
    ends: SocketLookup,
    pub(crate) labels: Labels,
    stats: Mutex<ConnectionStats>,
    /// The latest sample.
    latest: Mutex<(Instant, Option<TransportFigures>)>,
}

/// A sample of the kernel's state of the connection.
struct Sample {
    at: Instant,
    known: KernelState,
}

impl Observer {
    /// Observes the connection that `ends` identifies. `in_force` has its initial settings. Its
    /// protocol is `tcp` or `tls` until the first request.
    pub(crate) fn new(
        progress: &Arc<ConnectionProgress>,
        telemetry: &Arc<Telemetry>,
        ends: SocketLookup,
        labels: Labels,
        (in_force, protocol): (Arc<InForce>, &'static str),
    ) -> Self {
        let stats = ConnectionStats::new(telemetry.metrics(), &labels, in_force, protocol);
        let stats = Mutex::new(stats);
        let (progress, telemetry) = (Arc::clone(progress), Arc::clone(telemetry));
        let latest = Mutex::new((clock::now(), None));
        Self { progress, telemetry, ends, labels, stats, latest }
    }

    /// A request has arrived, whose response has a body of `size` bytes. Returns the argument for
    /// the end of the response.
    pub(crate) fn begin(
        &self,
        began: Instant,
        size: u64,
        about: About,
        in_force: Arc<InForce>,
    ) -> u64 {
        // The request may also have acknowledged earlier responses.
        let (at, current) = *self.latest();
        let is_current = began.saturating_duration_since(at) < CURRENT;
        let before = current.filter(|_| is_current).or_else(|| self.look(false));
        self.stats().begin(&about, &in_force, &self.labels);
        let begin = |state: &mut ProgressState| {
            let sizes = (state.written, size);
            before.map(|before| Exchange::new(began, (about, in_force), &before, sizes))
        };
        self.progress.begin_with(began, begin)
    }

    /// Samples until the connection is closed and all records are written. When the deadline in
    /// `stop` passes, records contain what is known by then.
    pub(crate) async fn watch(&self, stop: Stop) {
        self.watch_responses(stop).await;
        let closed = self.progress.closed();
        let record = self.stats().record(closed, &self.labels);
        self.telemetry.leave(record);
    }

    async fn watch_responses(&self, stop: Stop) {
        let mut closed_at = None;
        loop {
            let (is_idle, settles, is_closed) = self.state();
            if is_idle && is_closed {
                return;
            }
            if is_idle {
                self.progress.changed.notified().await;
                continue;
            }
            // Responses that begin and end do not make samples more frequent.
            let wait = if settles { self.settling() } else { WRITING };
            let due = self.latest().0 + wait;
            let changed = timeout_at(due.into(), self.progress.changed.notified()).await;
            if changed.is_ok() && !self.state().2 && clock::now() < due {
                continue;
            }
            let now = clock::now();
            let closed_at = closed_at.get_or_insert(now);
            if !is_closed {
                *closed_at = now;
            }
            // The kernel continues to send the bytes that it has accepted.
            let patience = if settles { LAST_ACKS } else { Duration::ZERO };
            let stopped = stop.borrow().is_some_and(|it| now >= it.at + patience);
            let patience = stop.borrow().map_or(PATIENCE, |it| it.stall.min(PATIENCE));
            self.look(stopped || *closed_at + patience <= now);
        }
    }

    /// Whether no response is in progress, whether a response only awaits acknowledgements, and
    /// whether the connection is closed.
    fn state(&self) -> (bool, bool, bool) {
        let state = self.progress.state();
        let settles = state.exchanges.values().any(|exchange| exchange.taken.is_some());
        (state.exchanges.is_empty(), settles, state.is_closed)
    }

    /// Half of the round-trip time.
    fn settling(&self) -> Duration {
        let state = self.progress.state();
        let last = state.exchanges.values().next_back();
        let rtt = last.and_then(|exchange| exchange.last.rtt).unwrap_or_default().as_nanos();
        Duration::from_nanos(rtt / 2).clamp(SETTLING.0, SETTLING.1)
    }

    /// Samples the kernel, and writes the records of responses that have ended; of all responses if
    /// this is the `last` sample. Returns the kernel's counters.
    pub(crate) fn look(&self, last: bool) -> Option<TransportFigures> {
        let look = Sample { at: clock::now(), known: self.telemetry.probe.look(&self.ends) };
        let mut state = self.progress.state();
        let written = state.written;
        let mut figures = look.known.info.as_ref().map(TransportFigures::from);
        if let Some(figures) = &mut figures {
            // The kernel counts the FIN as a byte.
            figures.bytes_acked = figures.bytes_acked.min(written);
            self.stats().note(look.at, figures, !state.exchanges.is_empty());
        }
        *self.latest() = (look.at, figures);
        let over = state.exchanges.iter_mut().filter_map(|(id, exchange)| {
            if let Some(figures) = &figures {
                exchange.note(figures);
            }
            Some((*id, look.ending(exchange, written, last)?))
        });
        for (id, ending) in over.collect::<Vec<_>>() {
            let Some(exchange) = state.exchanges.remove(&id) else { continue };
            let record = exchange.record(ending, &self.labels);
            self.stats().add(&record, exchange.first, &exchange.rtts);
            self.telemetry.leave(record);
        }
        figures
    }

    fn latest(&self) -> MutexGuard<'_, (Instant, Option<TransportFigures>)> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats(&self) -> MutexGuard<'_, ConnectionStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    /// How a response has ended, if it has. The connection's socket has accepted `written` bytes.
    fn ending(&self, exchange: &Exchange, written: u64, is_last: bool) -> Option<Ending> {
        let acknowledged = exchange.end.and_then(|end| self.acknowledged(end, written));
        let is_over = exchange.is_broken_off() || self.known.state == TcpState::Close;
        match acknowledged.filter(|_| !exchange.is_broken_off()) {
            Some(at) => Some(Ending::Acknowledged(at)),
            None if is_over && exchange.taken.is_some() => Some(Ending::BrokenOff),
            None if is_last && exchange.end.is_some() => Some(Ending::Unknown),
            None => is_last.then_some(Ending::BrokenOff),
        }
    }

    /// When the client acknowledged the first `end` of `written` bytes. If it has acknowledged all
    /// of them, this is the time of the last ACK; otherwise the time of the sample, which is an
    /// upper bound.
    fn acknowledged(&self, end: u64, written: u64) -> Option<Instant> {
        // Our FIN follows all bytes and is acknowledged.
        if matches!(self.known.state, TcpState::TimeWait | TcpState::FinWait2) {
            return Some(self.at);
        }
        let info = self.known.info?;
        let acked = info.bytes_acked?;
        let age = Duration::from_nanos(info.last_ack_recv.as_nanos());
        let at = if acked >= written { self.at.checked_sub(age)? } else { self.at };
        (acked >= end).then_some(at)
    }
}
