//! Observes a TCP connection until the client has acknowledged its responses.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};
use uncork_diag::TcpState;
use uncork_flow::TransportFigures;
use uncork_units::Rate;

use super::about::{About, Labels};
use super::connection_stats::ConnectionStats;
use super::exchange::{Ending, Exchange, UncertainShare};
use super::probe::{KernelState, SocketLookup};
use super::progress::{ConnectionProgress, ProgressState};
use super::shared::Telemetry;
use crate::choice::ActiveSettings;
use crate::clock;
use crate::shared::{Stop, Stopping};
use crate::timing::Transport;

/// The sampling interval while a response is written.
const WRITING: Duration = Duration::from_millis(100);
/// The shortest and the longest sampling interval while acknowledgements are awaited.
const SETTLING: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// The longest time until the first of these samples if the client acknowledges with its next request. A client
/// that delays its acknowledgements by less would be sampled late.
const PIGGYBACK: Duration = Duration::from_millis(32);
/// How long a sample counts as current: less than the clock tick to which times are exact. A request that acknowledged earlier
/// responses was sampled a moment before, and the requests of one turn of HTTP/2 were sampled when they were read.
const CURRENT: Duration = Duration::from_millis(1);
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
    latest: Mutex<Latest>,
}

/// The latest sample, and what the samples have taught.
#[derive(Clone, Copy, Debug)]
struct Latest {
    at: Instant,
    figures: Option<TransportFigures>,
    pacing_rate: Option<Rate>,
    habit: AckHabit,
}

/// How the client acknowledges the ends of its responses: at once, or with its next request (delayed
/// acknowledgements, RFC 9293 §3.8.6.3).
#[derive(Clone, Copy, Debug)]
struct AckHabit {
    /// How long to await the acknowledgement before the first sample.
    patience: Duration,
    /// The longest response that was acknowledged with the next request.
    bytes: u64,
}

/// Why a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// It is time.
    Due,
    /// Something has come from the client, or is about to happen to the connection.
    Event,
    /// The records are due now.
    Last,
}

/// A connection with responses in progress.
struct Situation {
    /// Whether a response only awaits acknowledgements.
    settles: bool,
    is_closed: bool,
    /// When to sample next.
    due: Instant,
}

/// A sample of the kernel's state of the connection.
struct ObservedSample {
    at: Instant,
    known: KernelState,
}

impl Observer {
    /// Observes the connection that `ends` identifies. `active` has its initial settings. Its
    /// protocol is `tcp` or `tls` until the first request.
    pub(crate) fn new(
        progress: &Arc<ConnectionProgress>,
        telemetry: &Arc<Telemetry>,
        ends: SocketLookup,
        labels: Labels,
        (active, protocol): (Arc<ActiveSettings>, &'static str),
    ) -> Self {
        let stats = ConnectionStats::new(telemetry.metrics(), &labels, active, protocol);
        let stats = Mutex::new(stats);
        let (progress, telemetry) = (Arc::clone(progress), Arc::clone(telemetry));
        let (at, habit) = (clock::now(), AckHabit::default());
        let latest = Mutex::new(Latest { at, figures: None, pacing_rate: None, habit });
        Self { progress, telemetry, ends, labels, stats, latest }
    }

    /// A request has arrived. Its response has a body of `size` bytes. Returns the argument for
    /// the end of the response.
    pub(crate) fn begin(
        &self,
        began: Instant,
        size: u64,
        about: About,
        active: Arc<ActiveSettings>,
    ) -> u64 {
        // The request may also have acknowledged earlier responses.
        let before = self.current(began).or_else(|| self.look(Occasion::Event));
        self.stats().begin(&about, &active, &self.labels);
        let begin = |state: &mut ProgressState| {
            let position = state.position();
            let from = (position.unwrap_or(state.written), state.is_in_order());
            before.map(|before| Exchange::new(began, (about, active), &before, from, size))
        };
        self.progress.begin_with(began, begin)
    }

    /// The figures for `Server-Timing`, if the latest sample is current.
    pub(crate) fn transport(&self, now: Instant) -> Option<Transport> {
        let figures = self.current(now)?;
        let pacing_rate = self.latest().pacing_rate;
        Some(Transport { rtt: figures.rtt?, min_rtt: figures.min_rtt?, pacing_rate })
    }

    fn current(&self, now: Instant) -> Option<TransportFigures> {
        let latest = self.latest();
        latest.figures.filter(|_| now.saturating_duration_since(latest.at) < CURRENT)
    }

    /// Samples until the connection is closed and all records are written. When the deadline in
    /// `stop` passes, records contain the figures until then.
    ///
    /// This must be polled after each turn of the connection, in the same task: nothing else reports
    /// that a response has begun or ended.
    pub(crate) async fn watch(&self, stop: Stop) {
        self.watch_responses(stop).await;
        let closed = self.progress.closed();
        let record = self.stats().record(closed, &self.labels);
        self.telemetry.leave(record);
    }

    async fn watch_responses(&self, stop: Stop) {
        let mut alarm = pin!(sleep(WRITING));
        let mut closed_at = None;
        poll_fn(|cx| {
            while let Some(situation) = self.situation() {
                let now = clock::now();
                let has_closed = situation.is_closed && closed_at.is_none();
                if now < situation.due && !has_closed {
                    ready!(poll_until(alarm.as_mut(), situation.due, cx));
                    continue;
                }
                if has_closed {
                    closed_at = Some(now);
                }
                let is_last = situation.is_last(closed_at, *stop.borrow(), now);
                self.look(if is_last { Occasion::Last } else { Occasion::Due });
            }
            if self.progress.state().is_closed { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// The situation, if responses are in progress.
    fn situation(&self) -> Option<Situation> {
        let state = self.progress.state();
        let last = state.exchanges.values().next_back()?;
        let settles = state.exchanges.values().any(|exchange| exchange.taken.is_some());
        let written = state.exchanges.values().filter_map(|it| Some((it.end?.1, it.bytes()))).min();
        let rtt = Duration::from_nanos(last.last.rtt.unwrap_or_default().as_nanos());
        let is_closed = state.is_closed;
        drop(state);
        let Latest { at, habit, .. } = *self.latest();
        let due = written.map_or(at + WRITING, |(written, bytes)| {
            settling_due(written, at, rtt.max(habit.patience_for(bytes)))
        });
        Some(Situation { settles, is_closed, due })
    }

    /// Samples the kernel, and writes the records of responses that have ended; of all responses on
    /// the last occasion. Returns the kernel's counters.
    pub(crate) fn look(&self, occasion: Occasion) -> Option<TransportFigures> {
        let last = occasion == Occasion::Last;
        let look =
            ObservedSample { at: clock::now(), known: self.telemetry.probe.look(&self.ends) };
        let mut state = self.progress.state();
        let state = &mut *state;
        let written = state.written;
        let mut figures = look.known.info.as_ref().map(TransportFigures::from);
        if let Some(figures) = &mut figures {
            // The kernel counts the FIN as a byte.
            figures.bytes_acked = figures.bytes_acked.min(written);
            self.stats().note(look.at, figures, !state.exchanges.is_empty());
        }
        let pacing_rate = look.known.info.and_then(|info| info.pacing_rate);
        let before = {
            let mut latest = self.latest();
            let habit = latest.habit;
            std::mem::replace(&mut *latest, Latest { at: look.at, figures, pacing_rate, habit })
        };
        if let Some(figures) = &figures {
            state.exchanges.values_mut().for_each(|exchange| exchange.note(figures));
        }
        let ending = |exchange: &Exchange| look.ending(exchange, written, last);
        let is_whole = |exchange: &Exchange| ending(exchange).is_some_and(Ending::is_whole);
        for (_, exchange) in state.exchanges.extract_if(.., |_, it| is_whole(it)) {
            if let Some((_, written)) = exchange.end {
                self.latest().habit.learn(occasion, before.at > written, exchange.bytes());
            }
            let end = ending(&exchange);
            state.delivered += self.leave(&exchange, end, &UncertainShare::default());
        }
        // After the whole ones, which have all of their bytes.
        if state.exchanges.values().any(|it| ending(it).is_some()) {
            let open = state.exchanges.values().map(|it| (&**it, ending(it).is_some()));
            let share = UncertainShare::new(open, state.delivered, look.is_over());
            for (_, exchange) in state.exchanges.extract_if(.., |_, it| ending(it).is_some()) {
                state.delivered += self.leave(&exchange, ending(&exchange), &share);
            }
        }
        figures
    }

    /// Writes the record of a response. Returns the bytes of its body that have arrived.
    fn leave(&self, exchange: &Exchange, ending: Option<Ending>, share: &UncertainShare) -> u64 {
        let Some(ending) = ending else { return 0 };
        let record = exchange.record(ending, share, &self.labels);
        let delivered = record.bytes_delivered;
        self.stats().add(&record, exchange.first, &exchange.rtts);
        self.telemetry.leave(record);
        delivered
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats(&self) -> MutexGuard<'_, ConnectionStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AckHabit {
    /// How long to await the acknowledgement of a response of `bytes`. A longer one than the responses that taught the habit
    /// may be acknowledged otherwise: every second segment is at once (RFC 5681 §4.2).
    fn patience_for(&self, bytes: u64) -> Duration {
        if bytes <= self.bytes { self.patience } else { SETTLING.0 }
    }

    /// A sample on this occasion found that a response of `bytes` was acknowledged; `was_sampled`: one since its end
    /// had not.
    fn learn(&mut self, occasion: Occasion, was_sampled: bool, bytes: u64) {
        match occasion {
            Occasion::Event if was_sampled => {
                self.patience = (self.patience_for(bytes) * 2).min(PIGGYBACK);
                self.bytes = bytes;
            }
            // It was before the next request.
            Occasion::Due => *self = Self::default(),
            Occasion::Event | Occasion::Last => {}
        }
    }
}

impl Default for AckHabit {
    fn default() -> Self {
        Self { patience: SETTLING.0, bytes: 0 }
    }
}

impl Situation {
    /// Whether to wait for acknowledgements no longer. The connection was closed at the time `closed_at`.
    fn is_last(&self, closed_at: Option<Instant>, stop: Option<Stopping>, now: Instant) -> bool {
        // The kernel continues to send the bytes that it has accepted.
        let patience = if self.settles { LAST_ACKS } else { Duration::ZERO };
        let is_stopped = stop.is_some_and(|it| now >= it.at + patience);
        let patience = stop.map_or(PATIENCE, |it| it.stall.min(PATIENCE));
        is_stopped || closed_at.is_some_and(|at| at + patience <= now)
    }
}

/// When to sample a response that was `written` completely, if the latest sample was at `latest`: first after
/// `first`, a round trip or more, because an acknowledgement hardly comes sooner, then each time after half of the
/// time so far.
/// The kernel reports when the last ACK came, so that a late sample costs accuracy only if more was written
/// meanwhile.
fn settling_due(written: Instant, latest: Instant, first: Duration) -> Instant {
    let clamped = |wait: Duration| wait.clamp(SETTLING.0, SETTLING.1);
    match latest.checked_duration_since(written) {
        Some(waited) => latest + clamped(waited.max(first) / 2),
        None => written + clamped(first),
    }
}

/// Waits until `due`, or less: an alarm that rings early is cheaper than one that is set for each response.
fn poll_until(mut alarm: Pin<&mut Sleep>, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if alarm.is_elapsed() || alarm.deadline() > due.into() {
        alarm.as_mut().reset(due.into());
    }
    alarm.poll(cx)
}

impl ObservedSample {
    /// How a response has ended, if it has. The connection's socket has accepted `written` bytes.
    fn ending(&self, exchange: &Exchange, written: u64, is_last: bool) -> Option<Ending> {
        let acknowledged = exchange.end.and_then(|(end, at)| {
            // The kernel's time of the last ACK is that of a clock tick, up to 10 ms early, and may be that of an earlier ACK.
            let min_rtt = exchange.last.min_rtt.unwrap_or_default().as_nanos();
            Some(self.acknowledged(end, written)?.max(at + Duration::from_nanos(min_rtt)))
        });
        let is_over = exchange.is_broken_off() || self.is_over();
        match acknowledged.filter(|_| !exchange.is_broken_off()) {
            Some(at) => Some(Ending::Acknowledged(at)),
            None if is_over && exchange.taken.is_some() => Some(Ending::BrokenOff),
            None if is_last && exchange.end.is_some() => Some(Ending::Unknown),
            None => is_last.then_some(Ending::BrokenOff),
        }
    }

    /// Whether the connection has ended.
    fn is_over(&self) -> bool {
        self.known.state == TcpState::Close
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_sampled_after_a_round_trip_and_then_less_and_less_often() {
        let (before, rtt) = (clock::now(), Duration::from_millis(20));
        let written = before + Duration::from_millis(1);
        let mut latest = before;
        let samples = [20, 30, 45, 67, 101, 151, 201].map(|_| {
            latest = settling_due(written, latest, rtt);
            latest.duration_since(written).as_millis()
        });
        assert_eq!(samples, [20, 30, 45, 67, 101, 151, 201]);
        let soonest = settling_due(written, before, Duration::from_micros(50));
        assert_eq!(soonest - written, SETTLING.0);
    }

    #[test]
    fn a_client_that_acknowledges_with_its_next_request_is_asked_for_later() {
        let mut habit = AckHabit::default();
        for patience in [4, 8, 16, 32, 32] {
            habit.learn(Occasion::Event, true, 1400);
            assert_eq!(habit.patience_for(1400), Duration::from_millis(patience));
        }
        assert_eq!(habit.patience_for(1401), SETTLING.0, "a longer one");
        habit.learn(Occasion::Event, false, 1400);
        assert_eq!(habit.patience_for(1400), PIGGYBACK, "it may have been acknowledged before");
        habit.learn(Occasion::Due, true, 1400);
        assert_eq!(habit.patience_for(1400), SETTLING.0, "this one was");
    }
}
