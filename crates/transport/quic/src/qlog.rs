//! Events of a connection as qlog 0.3, which qvis reads: draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-01.
//!
//! The text is a JSON text sequence (RFC 7464). The caller writes it to a file.

use std::fmt::Write;

use uncork_cc::CcSpec;
use uncork_units::{Rate, Time, TimeDelta};

use crate::handle::Observation;
use crate::observed::Space;
use crate::watch::Event;

/// Writes the events of one connection.
#[derive(Debug)]
pub struct Qlog {
    /// Times are relative to this.
    start: Time,
    spec: Option<CcSpec>,
    state: &'static str,
    has_start_ended: bool,
    written: QlogMetrics,
}

/// The metrics written last: only changes are written (§5.1 of the events' draft).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct QlogMetrics([Option<f64>; METRICS.len()]);

/// In milliseconds, bytes, and bits per second. The metrics after the first seven are uncork's own.
const METRICS: [&str; 10] = [
    "min_rtt",
    "smoothed_rtt",
    "latest_rtt",
    "congestion_window",
    "bytes_in_flight",
    "ssthresh",
    "pacing_rate",
    "uncork_max_bw",
    "uncork_model_min_rtt",
    "uncork_delivery_rate",
];

impl Qlog {
    /// Begins the trace of a connection accepted at `now`, which is `unix_ms` milliseconds after 1970.
    /// Characters of `title` that need escaping in JSON are replaced by underscores.
    pub fn begin(text: &mut String, title: &str, now: Time, unix_ms: f64) -> Self {
        let is_plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
        let title: String = title.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        record(
            text,
            format_args!(
                "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"{title}\",\
                 \"trace\":{{\"title\":\"{title}\",\"common_fields\":{{\"group_id\":\"{title}\",\
                 \"protocol_type\":[\"QUIC\",\"HTTP3\"],\"time_format\":\"relative\",\
                 \"reference_time\":{unix_ms:.3}}},\
                 \"vantage_point\":{{\"name\":\"uncork\",\"type\":\"server\"}}}}}}"
            ),
        );
        Self {
            start: now,
            spec: None,
            state: "",
            has_start_ended: false,
            written: QlogMetrics::default(),
        }
    }

    /// Writes an event at `now`.
    pub fn event(&mut self, text: &mut String, now: Time, event: &Event<'_>) {
        let at = now.since(self.start);
        match *event {
            Event::Sent { space, packet, bytes } => {
                let header = PacketHeader(space, Some(packet));
                let data = format_args!("{header},\"raw\":{{\"length\":{bytes}}}");
                entry(text, at, "transport:packet_sent", data);
            }
            Event::Lost { space, packet, .. } => {
                let header = PacketHeader(space, Some(packet));
                entry(text, at, "recovery:packet_lost", format_args!("{header}"));
            }
            Event::Acknowledged { space, ranges, ce_total } => {
                let (header, ranges) = (PacketHeader(space, None), AckRanges(ranges));
                let ce = ce_total.map_or(String::new(), |ce| format!(",\"ce\":{ce}"));
                let frame = format_args!(
                    "{header},\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[{ranges}]{ce}}}]"
                );
                entry(text, at, "transport:packet_received", frame);
            }
            Event::Settled(observation) => self.settled(text, at, observation),
        }
    }

    fn settled(&mut self, text: &mut String, at: TimeDelta, observation: &Observation) {
        if self.spec.replace(observation.spec) != Some(observation.spec) {
            let data = format_args!("\"new\":\"{}\"", observation.spec);
            entry(text, at, "uncork:controller_chosen", data);
        }
        let state = state(observation);
        if state != self.state {
            let data = format_args!("\"old\":\"{}\",\"new\":\"{state}\"", self.state);
            entry(text, at, "recovery:congestion_state_updated", data);
            self.state = state;
        }
        self.start_ended(text, at, observation);
        let metrics = QlogMetrics::of(observation);
        let changed = Changed(&self.written, &metrics).to_string();
        if !changed.is_empty() {
            entry(text, at, "recovery:metrics_updated", format_args!("{changed}"));
        }
        self.written = metrics;
    }

    /// Writes once how the start ended, an event of uncork's own.
    fn start_ended(&mut self, text: &mut String, at: TimeDelta, observation: &Observation) {
        let Some(start) = observation.start else { return };
        let report = start.report;
        let Some(exit) = report.exit.filter(|_| !self.has_start_ended) else { return };
        self.has_start_ended = true;
        let bytes = |count: Option<u64>| count.unwrap_or_default();
        let data = format_args!(
            "\"trigger\":\"{}\",\"initial_window\":{},\"congestion_window\":{},\"bytes_in_flight\":{},\
             \"bytes_sent\":{},\"bytes_lost\":{}",
            exit.name(),
            start.initial_window,
            bytes(report.exit_window),
            bytes(report.exit_in_flight),
            report.sent,
            report.lost,
        );
        entry(text, at, "uncork:start_ended", data);
    }
}

impl QlogMetrics {
    fn of(observation: &Observation) -> Self {
        let ms = |time: Option<TimeDelta>| time.map(TimeDelta::as_millis_f64);
        let bits = |rate: Option<Rate>| rate.map(|rate| rate.bits_per_sec() as f64);
        let snapshot = &observation.snapshot;
        Self([
            ms(observation.rtt.map(|rtt| rtt.min)),
            ms(observation.rtt.map(|rtt| rtt.smoothed)),
            ms(observation.rtt.map(|rtt| rtt.latest)),
            Some(observation.control.cwnd as f64),
            Some(observation.in_flight as f64),
            snapshot.ssthresh.map(|bytes| bytes as f64),
            bits(observation.control.pacing_rate),
            bits(snapshot.max_bw),
            ms(snapshot.min_rtt),
            bits(observation.delivery_rate),
        ])
    }
}

/// The state's name in the draft if it has one, else the algorithm's name.
fn state(observation: &Observation) -> &'static str {
    match observation.snapshot.state {
        "Recovery" => "recovery",
        "SlowStart" => "slow_start",
        "CongestionAvoidance" => "congestion_avoidance",
        other => other,
    }
}

/// The `header` field of a packet event.
struct PacketHeader(Space, Option<u64>);

impl std::fmt::Display for PacketHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.0 {
            Space::Initial => "initial",
            Space::Handshake => "handshake",
            Space::Data => "1RTT",
        };
        write!(f, "\"header\":{{\"packet_type\":\"{kind}\"")?;
        match self.1 {
            Some(packet) => write!(f, ",\"packet_number\":{packet}}}"),
            None => f.write_str("}"),
        }
    }
}

/// Ranges of packet numbers, written in ascending order.
struct AckRanges<'a>(&'a [(u64, u64)]);

impl std::fmt::Display for AckRanges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (from, to)) in self.0.iter().rev().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}[{from},{to}]")?;
        }
        Ok(())
    }
}

/// The metrics in the second that differ from the first.
struct Changed<'a>(&'a QlogMetrics, &'a QlogMetrics);

impl std::fmt::Display for Changed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut comma = "";
        for ((name, old), new) in METRICS.iter().zip(self.0.0).zip(self.1.0) {
            if let Some(new) = new.filter(|new| old != Some(*new)) {
                write!(f, "{comma}\"{name}\":{new}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}

fn entry(text: &mut String, at: TimeDelta, name: &str, data: std::fmt::Arguments<'_>) {
    let at = at.as_millis_f64();
    record(text, format_args!("{{\"time\":{at},\"name\":\"{name}\",\"data\":{{{data}}}}}"));
}

/// A record of a JSON text sequence.
fn record(text: &mut String, json: std::fmt::Arguments<'_>) {
    let _endless = writeln!(text, "\u{1e}{json}");
}
