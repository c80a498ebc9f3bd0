//! One request and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, TransportFigures, rtt_quantiles};
use uncork_quic::Observation;

use super::connection::Inner;
use crate::access_log::Line;
use crate::admission::{Claim, MemoryGuard};
use crate::choice::ActiveSettings;
use crate::telemetry::{About, Labels};

/// Minimum interval between samples of the round-trip time.
const SAMPLES: Duration = Duration::from_millis(10);

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeOutcome {
    /// The client has all of it.
    Whole,
    /// All of it was sent, and the client closed the connection before it acknowledged the end.
    Unknown,
    /// It was not sent to the end, or the client gave it up.
    BrokenOff,
}

/// The state of a response.
pub(super) struct Exchange {
    began: Instant,
    /// The length of the body.
    size: u64,
    /// Bytes of the body passed to the stack.
    taken: u64,
    /// When the head and the latest data were passed.
    first: Option<Instant>,
    last: Option<Instant>,
    _memory: Option<MemoryGuard>,
    /// Its line of the access log.
    line: Option<Box<Line>>,
    /// Measurements that only a record needs.
    measurements: Option<Box<Measurements>>,
}

/// More than one packet has.
const PACKET: u64 = 1500;

struct Measurements {
    active: Arc<ActiveSettings>,
    about: About,
    before: TransportFigures,
    /// Whether it is the connection's first, which has the start in its record.
    is_first: bool,
    rtts: Distribution,
    sampled: Instant,
}

impl Exchange {
    /// `about` is only called if telemetry is enabled.
    pub(super) fn new(
        began: Instant,
        size: u64,
        active: Arc<ActiveSettings>,
        about: impl FnOnce() -> About,
        talk: &Inner,
    ) -> Self {
        let measurements = talk.shared.has_telemetry().then(|| {
            let (about, rtts) = (about(), Distribution::new());
            let before = talk.figures();
            let is_first = talk.begin(&about, &active);
            Box::new(Measurements { active, about, before, is_first, rtts, sampled: began })
        });
        let held = talk.claim().map(Claim::response);
        Self {
            began,
            size,
            taken: 0,
            first: None,
            last: None,
            _memory: held,
            line: None,
            measurements,
        }
    }

    /// With its line of the access log, if there is one.
    pub(super) fn with_line(self, line: Option<Box<Line>>) -> Self {
        Self { line, ..self }
    }

    /// Records that data was passed to the stack: `bytes` bytes of the body, or 0 for the head.
    pub(super) fn took(&mut self, now: Instant, bytes: u64, talk: &Inner) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.taken += bytes;
        if let Some(measurements) = &mut self.measurements
            && now >= measurements.sampled + SAMPLES
            && let Some(latest) = talk.latest_rtt()
        {
            measurements.sampled = now;
            measurements.rtts.record(latest.as_nanos());
        }
    }

    /// When the head was passed to the stack.
    pub(super) fn first(&self) -> Option<Instant> {
        self.first
    }

    /// Whether the application has not yet supplied the whole body.
    pub(super) fn is_unfinished(&self) -> bool {
        self.taken < self.size
    }

    /// What became of the response if the client closes the connection without an error, which the
    /// server learns `now`.
    pub(super) fn outcome_at_close(&self, now: Instant, seen: &Observation) -> ExchangeOutcome {
        let nanos = Duration::from_nanos;
        let round_trip = seen.rtt.map_or(Duration::ZERO, |rtt| nanos(rtt.min.as_nanos()));
        let acknowledged_by = nanos(seen.probe_timeout.as_nanos());
        let Some(last) = self.last.filter(|_| self.is_sent(seen)) else {
            return ExchangeOutcome::BrokenOff;
        };
        let waited = now.saturating_duration_since(last);
        unacknowledged(seen.in_flight, waited, round_trip, acknowledged_by)
    }

    /// Whether the stack can have sent all of it: pacing holds data back for long.
    fn is_sent(&self, seen: &Observation) -> bool {
        let before = self
            .measurements
            .as_ref()
            .map_or((0, 0), |it| (it.before.bytes_sent, it.before.bytes_retransmitted));
        let (sent, lost) = (seen.sent_bytes - before.0, seen.lost_bytes - before.1);
        !self.is_unfinished() && sent >= self.size + lost
    }

    /// Ends the response.
    pub(super) fn end(mut self, now: Instant, outcome: ExchangeOutcome, talk: &Inner) {
        if let Some(line) = self.line.take() {
            line.end(self.taken);
        }
        let Some(mut measurements) = self.measurements.take() else { return };
        if let Some(latest) = talk.latest_rtt() {
            measurements.rtts.record(latest.as_nanos());
        }
        let figures = talk.figures();
        let record = self.record(now, outcome, &measurements, &figures, &talk.labels);
        talk.ended(now, &figures, (&record, self.first, &measurements.rtts));
        talk.shared.leave(record);
    }

    /// Creates the record from the differences of the connection's counters between start and end.
    /// Responses that share a connection share these, but each has its own busy time.
    fn record(
        &self,
        now: Instant,
        outcome: ExchangeOutcome,
        measurements: &Measurements,
        figures: &TransportFigures,
        labels: &Labels,
    ) -> FlowRecord {
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let is_broken_off = outcome == ExchangeOutcome::BrokenOff || self.is_unfinished();
        let is_whole = outcome == ExchangeOutcome::Whole && !is_broken_off;
        let figures = figures.since(&measurements.before);
        let acked = figures.bytes_acked;
        let first = self.first.map(nanos);
        let record = FlowRecord {
            completion_ns: is_whole.then(|| nanos(now)),
            first_byte_ns: first,
            rtt_ms: rtt_quantiles(&measurements.rtts, figures.min_rtt),
            size_bytes: Some(self.size),
            bytes_delivered: if is_whole { self.size } else { self.taken.min(acked) },
            service: Some(labels.response(&measurements.about, is_broken_off)),
            ..labels.record(&measurements.active, self.began)
        };
        let busy_ns = first.map_or(0, |first| nanos(now).saturating_sub(first));
        let record = figures.fill(record);
        let start = record.start.clone().filter(|_| measurements.is_first);
        FlowRecord { busy_ns, start, ..record }
    }
}

/// What became of data that was sent until `waited` ago, if the client closes the connection with
/// `in_flight` bytes unacknowledged.
///
/// The client has all of it if there was time for the last byte to arrive and for the close to come
/// back, and if it would not have acknowledged it yet: it may leave two packets unacknowledged
/// (RFC 9000 §13.2.2), for less than a probe timeout. Otherwise it has read several packets at once, or
/// given up.
fn unacknowledged(
    in_flight: u64,
    waited: Duration,
    round_trip: Duration,
    acknowledged_by: Duration,
) -> ExchangeOutcome {
    if waited < round_trip / 2 {
        ExchangeOutcome::BrokenOff
    } else if waited <= acknowledged_by && in_flight <= 2 * PACKET {
        ExchangeOutcome::Whole
    } else {
        ExchangeOutcome::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_need_not_be_acknowledged_yet_has_arrived() {
        let round_trip = Duration::from_millis(50);
        let outcome =
            |in_flight, waited| unacknowledged(in_flight, waited, round_trip, 2 * round_trip);
        assert_eq!(outcome(1100, round_trip), ExchangeOutcome::Whole);
        assert_eq!(outcome(1100, round_trip / 10), ExchangeOutcome::BrokenOff, "on its way");
        assert_eq!(
            outcome(11_000, round_trip),
            ExchangeOutcome::Unknown,
            "acknowledged by packets"
        );
        assert_eq!(outcome(1100, 3 * round_trip), ExchangeOutcome::Unknown, "acknowledged by time");
    }
}
