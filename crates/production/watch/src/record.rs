//! The record of a connection that has ended.

use uncork_flow::{
    ClientNetwork, FlowRecord, Scope, Service, StartRecord, TransportFigures, rtt_quantiles,
};
use uncork_units::TimeDelta;

use crate::event::Moment;
use crate::sample::{ResumeSample, SocketSample};
use crate::service_port::service_port;
use crate::tracker::Tracked;

/// The controller of a connection that existed only between two passes: close events of destroyed
/// sockets do not name it.
pub const UNKNOWN_CC: &str = "unknown";

/// The record of the connection with this `number`. It began and ended at these moments, and `last` is the final
/// sample of its socket. `tracked` has the samples from passes. The client's port is personal data next to a time: it is for
/// the callbacks of a session, which writes its own records without it.
pub(crate) fn record(
    number: u32,
    (began, ended): (Moment, Moment),
    last: &SocketSample,
    tracked: Option<&Tracked>,
) -> FlowRecord {
    let cc = last.cc.or(tracked.and_then(|tracked| tracked.now.cc));
    let cc = cc.as_ref().map_or(UNKNOWN_CC, |cc| cc.as_str());
    let client = ClientNetwork::of(last.remote.ip()).to_string();
    let listener = last.local.to_string();
    let service = Service {
        client: Some(client.into()),
        client_port: Some(last.remote.port()),
        end_unix_ns: Some(ended.unix_ns),
        ..Service::blank(Scope::Connection, began.unix_ns, "tcp", &listener)
    };
    let figures = TransportFigures {
        app_limited: tracked.map(|tracked| tracked.life.application_busy),
        busy: busy_with_data(last),
        start: last.resume.map(start),
        ecn_evidence: tracked.and_then(Tracked::ecn_evidence),
        ..last.figures
    };
    let rtts = tracked.and_then(|tracked| rtt_quantiles(tracked.rtts.as_deref()?, figures.min_rtt));
    let group = service_port(last).to_string();
    let record = FlowRecord {
        start_ns: began.session_ns,
        bytes_delivered: figures.bytes_acked,
        rtt_ms: rtts,
        service: Some(service),
        ..FlowRecord::blank("watch", &group, cc, (0, number))
    };
    figures.fill(record)
}

/// The kernel has nothing else of a start that is over.
fn start(resume: ResumeSample) -> StartRecord {
    StartRecord {
        resume: Some(resume.outcome),
        resume_age_ns: Some(resume.age.as_nanos()),
        ..StartRecord::default()
    }
}

/// The busy time without the round trip of a FIN that was sent separately. The kernel counts the
/// time until the FIN is acknowledged as busy time. For a short transfer that would be a large
/// part.
///
/// A FIN sent separately is a delivered packet without data, like the SYN. It was sent after all
/// data had been acknowledged, and was acknowledged one minimum round trip later, because nothing
/// else was in flight.
fn busy_with_data(last: &SocketSample) -> TimeDelta {
    let SocketSample { figures, delivered_packets, last_data_sent, .. } = last;
    let (Some(delivered), Some(min)) = (delivered_packets, figures.min_rtt) else {
        return figures.busy;
    };
    let with_data = figures.packets_sent.saturating_sub(figures.packets_lost);
    let has_lone_fin = u64::from(*delivered) > with_data + 1;
    let is_late = *last_data_sent >= min + min.divided_by(2);
    if has_lone_fin && is_late { figures.busy - min } else { figures.busy }
}
