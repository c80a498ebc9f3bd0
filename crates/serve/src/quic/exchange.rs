//! One request and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, TransportFigures, rtt_quantiles};
use uncork_quic::Observation;

use super::connection::Inner;
use crate::access_log::Line;
use crate::admission::{Claim, Held};
use crate::choice::InForce;
use crate::telemetry::{About, Labels};

/// Minimum interval between samples of the round-trip time.
const SAMPLES: Duration = Duration::from_millis(10);

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
    _held: Option<Held>,
    /// Its line of the access log.
    line: Option<Box<Line>>,
    /// Measurements that only a record needs.
    measurements: Option<Box<Measurements>>,
}

/// More than one packet occupies in the window.
const PACKET: u64 = 1500;

struct Measurements {
    in_force: Arc<InForce>,
    about: About,
    before: TransportFigures,
    rtts: Distribution,
    sampled: Instant,
}

impl Exchange {
    /// `about` is only called if telemetry is enabled.
    pub(super) fn new(
        began: Instant,
        size: u64,
        in_force: Arc<InForce>,
        about: impl FnOnce() -> About,
        talk: &Inner,
    ) -> Self {
        let measurements = talk.shared.has_telemetry().then(|| {
            let (about, rtts) = (about(), Distribution::new());
            let before = talk.figures();
            talk.begin(&about, &in_force);
            Box::new(Measurements { in_force, about, before, rtts, sampled: began })
        });
        let held = talk.claim().map(Claim::response);
        Self {
            began,
            size,
            taken: 0,
            first: None,
            last: None,
            _held: held,
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

    /// Whether the client had received the whole response when it closed the connection without an
    /// error, which the server learns `now`.
    pub(super) fn has_arrived(&self, now: Instant, seen: &Observation) -> bool {
        let round_trip = seen.rtt.map_or(0, |rtt| rtt.min.as_nanos());
        let Some(last) = self.last.filter(|_| !self.is_unfinished()) else { return false };
        let waited = now.saturating_duration_since(last);
        may_have_arrived(
            (seen.in_flight, seen.control.cwnd),
            waited,
            Duration::from_nanos(round_trip),
        )
    }

    /// Ends the response: the client has received all of it if `is_whole`, else it was aborted.
    pub(super) fn end(mut self, now: Instant, is_whole: bool, talk: &Inner) {
        if let Some(line) = self.line.take() {
            line.end(self.taken);
        }
        let Some(mut measurements) = self.measurements.take() else { return };
        if let Some(latest) = talk.latest_rtt() {
            measurements.rtts.record(latest.as_nanos());
        }
        let figures = talk.figures();
        let record = self.record(now, is_whole, &measurements, &figures, &talk.labels);
        talk.ended(now, &figures, (&record, self.first, &measurements.rtts));
        talk.shared.leave(record);
    }

    /// Creates the record from the differences of the connection's counters between start and end.
    /// Responses that share a connection share these, but each has its own busy time.
    fn record(
        &self,
        now: Instant,
        is_acknowledged: bool,
        measurements: &Measurements,
        figures: &TransportFigures,
        labels: &Labels,
    ) -> FlowRecord {
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let is_whole = is_acknowledged && self.taken == self.size;
        let figures = figures.since(&measurements.before);
        let acked = figures.bytes_acked;
        let first = self.first.map(nanos);
        let record = FlowRecord {
            completion_ns: is_whole.then(|| nanos(now)),
            first_byte_ns: first,
            rtt_ms: rtt_quantiles(&measurements.rtts, figures.min_rtt),
            size_bytes: Some(self.size),
            bytes_delivered: if is_whole { self.size } else { self.taken.min(acked) },
            service: Some(labels.response(&measurements.about, !is_whole)),
            ..labels.record(&measurements.in_force, self.began)
        };
        let busy_ns = first.map_or(0, |first| nanos(now).saturating_sub(first));
        FlowRecord { busy_ns, ..figures.fill(record) }
    }
}

/// Whether the data passed to the stack `waited` ago was sent and may have arrived: the window had
/// room, and there was enough time for the last byte to reach the client and for the client's close
/// to come back. A client that aborts within the last half of a round trip looks the same.
fn may_have_arrived(
    (in_flight, window): (u64, u64),
    waited: Duration,
    round_trip: Duration,
) -> bool {
    in_flight + PACKET <= window && waited >= round_trip / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sent_a_round_trip_ago_may_have_arrived() {
        let (window, round_trip) = (12_000, Duration::from_millis(50));
        assert!(may_have_arrived((1100, window), round_trip, round_trip));
        assert!(!may_have_arrived((1100, window), round_trip / 10, round_trip), "on its way");
        assert!(!may_have_arrived((11_000, window), round_trip, round_trip), "the window is full");
    }
}
