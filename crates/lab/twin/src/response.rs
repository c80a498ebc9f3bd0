//! The path of a client, as a record shows it.

use uncork_cc::{Algorithm, CcSpec};
use uncork_flow::{FlowRecord, LARGE_BYTES, Scope, Service};

/// Bytes on the wire for each byte of payload.
const WIRE: f64 = 1500.0 / 1448.0;
/// Bytes of payload in a packet, and of the packet.
const SEGMENT: f64 = 1448.0;
const PACKET: f64 = 1500.0;
/// Losses come in bursts and throughput has slow start in it: a random loss may be this many times what is admitted.
pub(super) const SLACK: f64 = 4.0;
/// A median RTT this much above the least is that of a standing queue.
const STANDING: f64 = 1.15;
/// A client's window, a send buffer or a server with too little to send hides the path if it was the limit for this part of the
/// time.
const MAX_LIMITED_SHARE: f64 = 0.1;
/// Bytes on the wire that a sender has in flight in its first round trip (RFC 6928).
const FIRST_WINDOW: f64 = 15_000.0;

/// A response that shows its path; of the kernel's records, a connection.
pub(super) struct TwinResponse<'r> {
    pub(super) record: &'r FlowRecord,
    pub(super) service: &'r Service,
    /// As the simulator has it.
    pub(super) controller: CcSpec,
    pub(super) is_bbr: bool,
    /// The minimum round-trip time, in milliseconds.
    pub(super) min_rtt: f64,
    /// `None`: no samples while data was in flight.
    queue: Option<TwinQueue>,
}

/// Round-trip times, in milliseconds.
#[derive(Clone, Copy)]
struct TwinQueue {
    p50: f64,
    p95: f64,
}

/// Why a response that is long enough cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unusable {
    /// The effect of this controller on a queue is unknown.
    UnknownController(String),
    /// Of a controller that fills queues, without samples of its round-trip times.
    NoRoundTrips,
    /// The path was not the limit.
    ReceiverLimited,
    /// Of a log, which counts no packets, or has no busy time.
    NoCounts,
}

impl<'r> TwinResponse<'r> {
    /// `None`: no response, or one that is mostly slow start.
    pub(super) fn of(record: &'r FlowRecord) -> Option<Result<Self, Unusable>> {
        let service = record.service.as_ref()?;
        let counts = service.scope == Scope::Response || is_by_kernel(record);
        (counts && record.bytes_acked >= LARGE_BYTES).then(|| Self::of_long(record, service))
    }

    fn of_long(record: &'r FlowRecord, service: &'r Service) -> Result<Self, Unusable> {
        let unknown = || Unusable::UnknownController(record.cc.to_string());
        let controller = controller(&record.cc, &service.protocol).ok_or_else(unknown)?;
        let is_bbr = is_bbr(controller).ok_or_else(unknown)?;
        if record.packets_sent == 0 || record.busy_ns == 0 {
            return Err(Unusable::NoCounts);
        }
        let limits = [service.rwnd_limited_ns, service.app_limited_ns, service.sndbuf_limited_ns];
        let limited: u64 = limits.into_iter().flatten().fold(0, u64::saturating_add);
        if limited as f64 >= MAX_LIMITED_SHARE * record.busy_ns as f64 {
            return Err(Unusable::ReceiverLimited);
        }
        let queue = record.rtt_ms.map(|rtt| TwinQueue { p50: rtt.p50, p95: rtt.p95 });
        let min_rtt = record.rtt_ms.map(|rtt| rtt.min);
        let of_transport = service.min_rtt_ns.map(|least| least as f64 / 1e6);
        let min_rtt = min_rtt.or(of_transport).filter(|least| *least > 0.0);
        let min_rtt =
            min_rtt.filter(|_| is_bbr || queue.is_some()).ok_or(Unusable::NoRoundTrips)?;
        Ok(Self { record, service, controller, is_bbr, min_rtt, queue })
    }

    /// Its AS. Zero is none (RFC 7607).
    pub(super) fn system(&self) -> Option<u32> {
        self.service.asn.filter(|asn| *asn != 0)
    }

    /// Whether a queue stood most of the time, so that the link was the limit and not random loss; `None`:
    /// no samples.
    pub(super) fn has_queue(&self) -> Option<bool> {
        self.queue.map(|rtt| rtt.p50 > STANDING * self.min_rtt)
    }

    /// Bits per second of payload, slow start included.
    pub(super) fn throughput(&self) -> f64 {
        self.record.bytes_acked as f64 * 8e9 / self.record.busy_ns.max(1) as f64
    }

    /// The largest random loss with which CUBIC has this throughput: the inverse of its average window, in the Reno-friendly
    /// and the cubic region (RFC 9438, section 5.1 and figure 6).
    pub(super) fn admitted_loss(&self) -> f64 {
        let rtt = self.queue.map_or(self.min_rtt, |queue| queue.p50) / 1e3;
        let window = (self.throughput() * rtt / 8.0 / SEGMENT).max(1.0);
        let cubic = libm::pow(1.054 / window, 4.0 / 3.0) * rtt;
        cubic.max(1.5 / (window * window))
    }

    /// Whether its losses are those of a random loss that its throughput admits; `false`: of a queue that overran.
    pub(super) fn lost_at_random(&self) -> bool {
        let lost = self.record.packets_lost as f64 / self.record.packets_sent.max(1) as f64;
        lost <= SLACK * self.admitted_loss()
    }

    /// Whether slow start's overrun of path and queue explains its losses: two full windows.
    pub(super) fn lost_in_slow_start(&self) -> bool {
        let full = self.queue.map_or(self.min_rtt, |queue| queue.p95) / 1e3;
        let window = self.rate() * full / 8.0 / PACKET;
        self.record.packets_lost as f64 <= 2.0 * window + 10.0
    }

    /// Packets that BBR's Startup may lose: three round trips with up to 2.89 products of rate and round-trip time in flight.
    pub(super) fn startup_losses(&self) -> f64 {
        3.0 * 1.89 * self.rate() * self.min_rtt / 1e3 / 8.0 / PACKET
    }

    /// Bits per second on the wire, after slow start: it doubles what is in flight each round trip.
    pub(super) fn rate(&self) -> f64 {
        let bytes = self.record.bytes_acked as f64 * WIRE;
        let (busy, rtt) = (self.record.busy_ns as f64 / 1e9, self.min_rtt / 1e3);
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
        self.queue.map(|rtt| self.rate() / 8.0 * (rtt.p95 - self.min_rtt) / 1e3)
    }

    /// The same in products of rate and least round-trip time.
    pub(super) fn queue_bdps(&self) -> Option<f64> {
        self.queue.map(|rtt| (rtt.p95 - self.min_rtt) / self.min_rtt)
    }
}

/// Whether it is the kernel's record of a whole connection. `uncork serve` has records of connections, too,
/// and one of each of their responses.
pub(super) fn is_by_kernel(record: &FlowRecord) -> bool {
    let scope = record.service.as_ref().map(|service| service.scope);
    record.engine == "watch" && scope == Some(Scope::Connection)
}

/// `None`: no one knows what this controller does to a queue.
fn is_bbr(controller: CcSpec) -> Option<bool> {
    Some(match controller.algorithm() {
        Algorithm::Bbr1 | Algorithm::Bbr2 | Algorithm::Bbr3 => true,
        Algorithm::Reno | Algorithm::Cubic | Algorithm::Prague => false,
        _ => return None,
    })
}

/// The controller of a record. All protocols but HTTP/3 have the kernel's.
fn controller(cc: &str, protocol: &str) -> Option<CcSpec> {
    let in_kernel = (protocol != "h3").then(|| CcSpec::in_kernel(cc)).flatten();
    in_kernel.or_else(|| cc.parse().ok()).or_else(|| CcSpec::in_kernel(cc))
}
