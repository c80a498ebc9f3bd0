//! Converts the observations of uncork's QUIC to transport counters.

use std::time::Duration;

use uncork_cc::EcnMode;
use uncork_quic::{ConnectionStart, Observation};
use uncork_units::TimeDelta;

use super::busy::BusyTimes;
use super::resume::BorrowedObservation;
use crate::timing::Transport;
use uncork_flow::{EcnEvidence, EcnUse, StartRecord, TransportFigures};

/// All counters of a connection that has sent `packets_sent` packets, for records and metrics. `lent`: what it began with.
pub(super) fn figures(
    seen: &Observation,
    packets_sent: u64,
    busy: BusyTimes,
    lent: Option<BorrowedObservation>,
) -> TransportFigures {
    let nanos = |time: Duration| TimeDelta::from_nanos(time.as_nanos() as u64);
    TransportFigures {
        bytes_acked: seen.acked_bytes,
        bytes_sent: seen.sent_bytes,
        bytes_retransmitted: seen.lost_bytes,
        packets_sent,
        packets_lost: seen.lost_packets,
        packets_marked: seen.ce_packets,
        // The stack does not report them.
        timeouts: 0,
        busy: nanos(busy.total),
        rwnd_limited: Some(nanos(busy.by_client)),
        sndbuf_limited: None,
        app_limited: Some(nanos(busy.by_application)),
        rtt: seen.rtt.map(|rtt| rtt.smoothed),
        min_rtt: seen.rtt.map(|rtt| rtt.min),
        delivery_rate: seen.delivery_rate,
        ecn: Some(ecn_use(seen)),
        ecn_evidence: seen.ecn_evidence.as_ref().map(EcnEvidence::from),
        start: seen.start.as_ref().map(|it| start(it, lent)),
    }
}

fn start(start: &ConnectionStart, lent: Option<BorrowedObservation>) -> StartRecord {
    StartRecord {
        window_bytes: Some(start.initial_window),
        // As all that the stack sends (RFC 9002 §7.7).
        paced: Some(true),
        resume_age_ns: lent.map(|lent| lent.age.as_nanos() as u64),
        ..StartRecord::of(&start.report)
    }
}

fn ecn_use(seen: &Observation) -> EcnUse {
    match seen.ecn {
        _ if seen.has_ecn_failed => EcnUse::Failed,
        EcnMode::None => EcnUse::None,
        EcnMode::Classic => EcnUse::Classic,
        EcnMode::L4s => EcnUse::L4s,
    }
}

/// The transport metrics of `Server-Timing`.
pub(super) fn transport(seen: &Observation) -> Option<Transport> {
    let rtt = seen.rtt?;
    let pacing_rate = seen.control.pacing_rate;
    Some(Transport { rtt: rtt.smoothed, min_rtt: rtt.min, pacing_rate })
}
