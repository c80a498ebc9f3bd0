//! What a record tells of its client's path.

use uncork_cc::{Algorithm, CcSpec};
use uncork_flow::{FlowRecord, Scope, Service};

/// Bytes on the wire for each byte of payload.
const WIRE: f64 = 1500.0 / 1448.0;
/// Responses of at most this many bytes are mostly slow start.
const SHORT_BYTES: u64 = 3_000_000;
/// A median RTT this much above the least is that of a standing queue.
const STANDING: f64 = 1.15;
/// A client's window that held the server back for this part of the time hides the path. Of a whole
/// connection, so does a server with too little to send.
const HELD_BACK: f64 = 0.1;
/// Bytes on the wire that a sender has in flight in its first round trip (RFC 6928).
const FIRST_WINDOW: f64 = 15_000.0;

/// A response that tells something about its path; of the kernel's records, a connection.
pub(super) struct Response<'r> {
    pub(super) record: &'r FlowRecord,
    pub(super) service: &'r Service,
    pub(super) is_bbr: bool,
    /// The least round-trip time, in milliseconds.
    pub(super) least_rtt: f64,
    /// `None`: nobody looked while data was in flight.
    queue: Option<Queue>,
}

/// Round-trip times, in milliseconds.
#[derive(Clone, Copy)]
struct Queue {
    p50: f64,
    p95: f64,
}

/// Why a response that is long enough tells nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mute {
    /// Nobody knows what a controller of this name does to a queue.
    Controller(String),
    /// Of a controller that fills queues, and nobody looked at its round-trip times.
    Unseen,
    /// The path was not the limit.
    HeldBack,
}

impl<'r> Response<'r> {
    /// `None`: no response, or one that is mostly slow start.
    pub(super) fn of(record: &'r FlowRecord) -> Option<Result<Self, Mute>> {
        let service = record.service.as_ref()?;
        let counts = service.scope == Scope::Response || is_by_kernel(record);
        (counts && record.bytes_acked > SHORT_BYTES).then(|| Self::of_long(record, service))
    }

    fn of_long(record: &'r FlowRecord, service: &'r Service) -> Result<Self, Mute> {
        let is_bbr = is_bbr(&record.cc).ok_or_else(|| Mute::Controller(record.cc.to_string()))?;
        let mut held_back = service.rwnd_limited_ns.unwrap_or(0);
        if is_by_kernel(record) {
            held_back += service.app_limited_ns.unwrap_or(0);
        }
        if held_back as f64 >= HELD_BACK * record.busy_ns as f64 {
            return Err(Mute::HeldBack);
        }
        let queue = record.rtt_ms.map(|rtt| Queue { p50: rtt.p50, p95: rtt.p95 });
        let least_rtt = record.rtt_ms.map(|rtt| rtt.min);
        let of_transport = service.min_rtt_ns.map(|least| least as f64 / 1e6);
        let least_rtt = least_rtt.or(of_transport).filter(|least| *least > 0.0);
        let least_rtt = least_rtt.filter(|_| is_bbr || queue.is_some()).ok_or(Mute::Unseen)?;
        Ok(Self { record, service, is_bbr, least_rtt, queue })
    }

    /// Whether a queue stood most of the time, so that the link was the limit and not random loss; `None`:
    /// nobody looked.
    pub(super) fn has_queue(&self) -> Option<bool> {
        self.queue.map(|rtt| rtt.p50 > STANDING * self.least_rtt)
    }

    /// Bits per second on the wire, after slow start: it doubles what is in flight each round trip.
    pub(super) fn rate(&self) -> f64 {
        let bytes = self.record.bytes_acked as f64 * WIRE;
        let (busy, rtt) = (self.record.busy_ns as f64 / 1e9, self.least_rtt / 1e3);
        let mut rate = bytes / busy;
        for _ in 0..20 {
            let in_flight = (rate * rtt).min(bytes / 2.0).max(FIRST_WINDOW);
            let start = libm::log2(in_flight / FIRST_WINDOW) * rtt;
            rate = (bytes - (in_flight - FIRST_WINDOW)) / (busy - start).max(busy / 4.0);
        }
        rate * 8.0
    }

    /// Bytes in the queue at the 95th percentile of the round-trip time.
    pub(super) fn queue(&self) -> Option<f64> {
        self.queue.map(|rtt| self.rate() / 8.0 * (rtt.p95 - self.least_rtt) / 1e3)
    }

    /// The same in products of rate and least round-trip time.
    pub(super) fn queue_bdps(&self) -> Option<f64> {
        self.queue.map(|rtt| (rtt.p95 - self.least_rtt) / self.least_rtt)
    }
}

/// Whether it is of a whole connection, as the kernel tells of it. `uncork serve` has records of connections,
/// too, and one of each of their responses.
pub(super) fn is_by_kernel(record: &FlowRecord) -> bool {
    let scope = record.service.as_ref().map(|service| service.scope);
    record.engine == "watch" && scope == Some(Scope::Connection)
}

/// `None`: nobody knows what this controller does to a queue.
fn is_bbr(cc: &str) -> Option<bool> {
    let known = cc.parse().ok().or_else(|| CcSpec::in_kernel(cc))?;
    Some(match known.algorithm() {
        Algorithm::Bbr1 | Algorithm::Bbr2 | Algorithm::Bbr3 => true,
        Algorithm::Reno | Algorithm::Cubic => false,
        _ => return None,
    })
}
