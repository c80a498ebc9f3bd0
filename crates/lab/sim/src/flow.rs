//! One flow: a client, a server, the packets between them and the measurements.

use uncork_apps::ClientReport;
use uncork_cc::{Controller, ControllerSpec};
use uncork_flow::{FlowRecord, LabRecord, SeriesPoint};
use uncork_path::{Body, Cause, Ecn, Offer};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::app::{self, App, Get, Requests};
use crate::durations::Durations;
use crate::offload::Offload;
use crate::segments::{Ack, Host, Receiver, Segment, Sender};
use crate::spec::{FlowSpec, RunSpec, Workload};
use crate::timer::FlowTimer;

/// RFC 6298 §2.1: retransmission timeout of a SYN or SYN/ACK.
const HANDSHAKE_RETRY: TimeDelta = TimeDelta::from_secs(1);
/// Seed streams, separate for each flow.
const CONTROLLER_STREAM: u64 = 2 << 32;

/// A packet from a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Downstream {
    /// The answer to a SYN, with its departure time (its timestamp option).
    SynAck(Time),
    /// A segment, and how long it has waited in queues so far.
    Data { segment: Segment, queued_for: TimeDelta },
}

impl Downstream {
    pub(crate) const fn data(segment: Segment) -> Self {
        Self::Data { segment, queued_for: TimeDelta::ZERO }
    }

    /// Segments of data.
    pub(crate) fn segments(&self) -> u64 {
        match self {
            Self::SynAck(_) => 0,
            Self::Data { segment, .. } => 1 + u64::from(segment.more),
        }
    }
}

impl Body for Downstream {
    fn crossed(&mut self, waited: TimeDelta) {
        if let Self::Data { queued_for, .. } = self {
            *queued_for += waited;
        }
    }

    fn copied(&self) -> Option<Self> {
        Some(*self)
    }
}

/// A packet from a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upstream {
    /// A connection request.
    Syn,
    /// The end of the handshake, with the first request. It echoes the SYN/ACK's timestamp, which
    /// identifies the SYN/ACK that arrived.
    Request(Time, Option<Get>),
    /// A request on an established connection.
    Get(Get),
    Ack(Ack),
}

impl Body for Upstream {}

/// The ECN field of a packet of a flow with `ecn`. RFC 3168 forbids ECT on a SYN/ACK (§6.1.1) and
/// on retransmissions (§6.1.5), and so does Linux (`tcp_ecn_send`). RFC 8311 §4.3 allows
/// experiments to set it on both; Linux does so for controllers that need ECN on all packets
/// (`tcp_ca_needs_ecn`), namely those for L4S and data centres.
//= rfc9768 3.1.5-2
const fn ecn_of(ecn: Ecn, body: &Downstream) -> Ecn {
    match (ecn, body) {
        (Ecn::Ect0, Downstream::SynAck(_)) => Ecn::NotEct,
        (Ecn::Ect0, Downstream::Data { segment, .. }) if segment.repeats => Ecn::NotEct,
        _ => ecn,
    }
}

/// In this order: each packet needs the first fields, and with thousands of flows each line of memory that it
/// needs is in no cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flow<'a, S: ControllerSpec> {
    pub(crate) server: Server<S::Controller>,
    /// The end of [`Workload::Until`], and [`Time::NEVER`] for others.
    until: Time,
    pub(crate) index: u32,
    /// Packets and messages in flight in both directions.
    pub(crate) travelling: u32,
    /// The ECN field of data. A controller may change it to ECT(0).
    pub(crate) ecn: Ecn,
    finished: bool,
    /// Whether the client has received the SYN/ACK.
    pub(crate) connected: bool,
    offload: Offload,
    syns: u32,
    pub(crate) sender_timer: FlowTimer,
    pub(crate) receiver_timer: FlowTimer,
    pub(crate) rtts: Durations,
    pub(crate) queueing: Durations,
    pub(crate) client: Receiver,
    pub(crate) app: App,
    pub(crate) delivered_early: u64,
    pub(crate) app_timer: FlowTimer,
    pub(crate) spec: &'a FlowSpec<S>,
    seed: u64,
    /// Requests answered or being answered by the server.
    answered: u64,
    dropped_by_queue: u64,
    dropped_by_policer: u64,
    dropped_at_random: u64,
    acks_dropped: u64,
}

/// The server's end of the connection.
#[derive(Debug)]
pub(crate) enum Server<C> {
    /// No SYN yet.
    Listening,
    /// A SYN/ACK was sent; it is retransmitted at `retry`.
    Handshake {
        retry: Time,
        retries: u32,
    },
    Established(Box<Sender<C>>),
}

impl<'a, S: ControllerSpec> Flow<'a, S> {
    /// A new flow.
    pub(crate) fn new(run: &'a RunSpec<S>, index: u32) -> Self {
        let spec = &run.flows[index as usize];
        let (ecn, accecn) = spec.negotiated_ecn();
        let until = if let Workload::Until(end) = spec.workload { end } else { Time::NEVER };
        Self {
            spec,
            until,
            index,
            ecn,
            seed: run.seed,
            offload: run.offload,
            connected: false,
            syns: 0,
            server: Server::Listening,
            answered: 0,
            client: Receiver::new(app::unasked(spec.workload), spec.acks)
                .with_window(spec.receive_window, run.receive_window_steps(spec))
                .with_accecn(accecn),
            app: App::new(run, spec, index),
            app_timer: FlowTimer::default(),
            finished: false,
            travelling: 0,
            sender_timer: FlowTimer::default(),
            receiver_timer: FlowTimer::default(),
            delivered_early: 0,
            rtts: Durations::new(),
            queueing: Durations::new(),
            dropped_by_queue: 0,
            dropped_by_policer: 0,
            dropped_at_random: 0,
            acks_dropped: 0,
        }
    }

    /// Sends a SYN unless one has been answered. Returns the time of the next check.
    pub(crate) fn send_syn(&mut self, now: Time) -> Time {
        if self.connected {
            return Time::NEVER;
        }
        let retry = now + HANDSHAKE_RETRY.times(1 << self.syns.min(6));
        self.syns += 1;
        retry
    }

    /// The client has received the SYN/ACK. Returns the request that goes with its answer.
    pub(crate) fn connect(&mut self, now: Time) -> Option<Get> {
        let again = std::mem::replace(&mut self.connected, true);
        let App::Client(requests) = &mut self.app else { return None };
        if again { requests.repeat() } else { requests.advance(now, &mut self.client) }
    }

    /// A packet of `bytes` leaves the server.
    pub(crate) fn offer(&mut self, bytes: u32, body: Downstream) -> Offer<Downstream> {
        self.travelling += 1;
        Offer { flow: self.index, bytes, ecn: ecn_of(self.ecn, &body), body }
    }

    /// A packet was dropped on its way to the client. The record counts data packets only: a
    /// SYN/ACK is not counted as sent either.
    pub(crate) fn note_drop(&mut self, packet: &Downstream, cause: Cause) {
        self.travelling -= 1;
        let count = packet.segments();
        match cause {
            Cause::Queue => self.dropped_by_queue += count,
            Cause::Policer => self.dropped_by_policer += count,
            Cause::Loss => self.dropped_at_random += count,
        }
    }

    /// A message was dropped on its way to the server.
    pub(crate) fn note_ack_drop(&mut self) {
        self.travelling -= 1;
        self.acks_dropped += 1;
    }

    /// The SYN reached the server, or its answer was lost: sends a SYN/ACK (again).
    pub(crate) fn answer_syn(&mut self, now: Time, retries: u32) {
        let retry = now + HANDSHAKE_RETRY.times(1 << retries.min(6));
        self.server = Server::Handshake { retry, retries };
    }

    /// The client's request reached the server, which had sent its SYN/ACK at `syn_ack`: the
    /// connection is established.
    pub(crate) fn establish(&mut self, now: Time, syn_ack: Time) {
        if !matches!(self.server, Server::Handshake { .. }) {
            return;
        }
        let stream = app::unasked(self.spec.workload);
        let (ecn, accecn) = self.spec.negotiated_ecn();
        let seed = Rng::new(self.seed, CONTROLLER_STREAM + u64::from(self.index)).next_u64();
        let host = Host {
            handshake_rtt: now.since(syn_ack),
            initial_window: self.spec.initial_window,
            offload: self.offload,
            scalable_marks: ecn == Ecn::Ect1,
            accecn,
            seed,
        };
        let window = self.spec.receive_window;
        let mut sender = Box::new(Sender::new(now, self.spec.cc, stream, window, host));
        if let Some(hint) = self.spec.resume {
            sender.resume(now, hint);
        }
        self.server = Server::Established(sender);
    }

    /// A request reached the server, which answers each request once.
    pub(crate) fn take_request(&mut self, get: Get) {
        if get.number != self.answered + 1 {
            return;
        }
        if let Some(sender) = self.sender_mut() {
            sender.write_message(get.bytes);
            self.answered = get.number;
        }
    }

    pub(crate) fn sender(&self) -> Option<&Sender<S::Controller>> {
        match &self.server {
            Server::Established(sender) => Some(sender),
            _ => None,
        }
    }

    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender<S::Controller>> {
        match &mut self.server {
            Server::Established(sender) => Some(sender),
            _ => None,
        }
    }

    /// The segment that the server may send now, if any.
    pub(crate) fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        self.sender_mut()?.poll_segment(now)
    }

    /// The next deadline of the server.
    pub(crate) fn next_sender_timer(&self) -> Time {
        match &self.server {
            Server::Listening => Time::NEVER,
            Server::Handshake { retry, .. } => *retry,
            Server::Established(sender) => sender.next_timer(),
        }
    }

    /// Whether the client has everything it requested, or its time is up.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        if self.until < Time::NEVER {
            return now >= self.until;
        }
        match self.spec.workload {
            Workload::Until(_) => false,
            Workload::Transfer(_) => self.client.complete().is_some(),
            Workload::Media(_) => self.app.has_written_all(now) && self.client.complete().is_some(),
            Workload::Client(_) => self.app.requests().is_some_and(|app| app.done().is_some()),
            Workload::Command(_) => true,
        }
    }

    /// Whether the flow may end before its run.
    pub(crate) fn may_end(&self) -> bool {
        self.until == Time::NEVER
    }

    /// Whether the flow has just ended. True only once, and never for flows with a fixed end time.
    pub(crate) fn has_finished(&mut self, now: Time) -> bool {
        self.may_end() && self.is_over(now) && !std::mem::replace(&mut self.finished, true)
    }

    /// Everything sent has arrived. Frees buffers sized for a full window, because the connection
    /// may be idle for long.
    pub(crate) fn rest(&mut self) {
        self.client.rest();
        self.rtts.rest();
        self.queueing.rest();
    }

    /// Whether the flow's results are final: it is over, none of its packets is in flight, and no
    /// timer is pending. Asked for each packet: first what is most often false.
    #[inline]
    pub(crate) fn is_settled(&self, now: Time) -> bool {
        self.travelling == 0
            && (self.finished || !self.may_end())
            && self.is_over(now)
            && self.connected
            && self.client.next_timer() == Time::NEVER
            && (self.sender_timer.is_idle() || self.sender().is_some_and(Sender::is_done))
    }

    pub(crate) fn sample(&self, now: Time, queue_bytes: u64) -> Option<SeriesPoint> {
        let sender = self.sender()?;
        let control = sender.control();
        let inside = sender.controller().snapshot();
        Some(SeriesPoint {
            time_ns: now.as_nanos(),
            flow: self.index,
            state: inside.state,
            cwnd_bytes: control.cwnd,
            inflight_bytes: sender.in_flight(),
            pacing_bps: control.pacing_rate.map(Rate::bits_per_sec),
            max_bw_bps: inside.max_bw.map(Rate::bits_per_sec),
            min_rtt_ns: inside.min_rtt.map(TimeDelta::as_nanos),
            rtt_ns: Some(sender.latest_rtt().as_nanos()),
            queue_bytes,
            delivered_bytes: self.client.delivered_bytes(),
            lost_bytes: sender.counters().bytes_lost,
        })
    }

    /// The experience of a requesting client and its user until `now`.
    pub(crate) fn report(&self, now: Time) -> Option<ClientReport> {
        self.app.requests().map(|requests| requests.report(now))
    }

    /// The record of the flow at the time of `report`.
    pub(crate) fn record(&self, report: Option<&ClientReport>) -> FlowRecord {
        let start = self.spec.start;
        let since_start = |time: Option<Time>| time.map(|time| time.since(start).as_nanos());
        let counters = self.sender().map(|sender| *sender.counters()).unwrap_or_default();
        let complete = match self.spec.workload {
            Workload::Transfer(_) | Workload::Until(_) => self.client.complete(),
            Workload::Media(_) | Workload::Command(_) => None,
            Workload::Client(_) => self.app.requests().and_then(Requests::done),
        };
        let queueing = self.queueing.settled();
        FlowRecord {
            completion_ns: since_start(complete),
            first_byte_ns: since_start(self.client.first_byte()),
            busy_ns: counters.busy.as_nanos(),
            bytes_delivered: self.client.delivered_bytes(),
            bytes_acked: counters.bytes_acked,
            bytes_sent: counters.bytes_sent,
            bytes_retransmitted: counters.bytes_retransmitted,
            packets_sent: counters.packets_sent,
            packets_lost: counters.packets_lost,
            packets_marked: self.client.marked(),
            timeouts: counters.timeouts,
            rtt_ms: self.rtts.quantiles(),
            lab: Some(LabRecord {
                bytes_delivered_early: self.delivered_early,
                packets_dropped_queue: self.dropped_by_queue,
                packets_dropped_policer: self.dropped_by_policer,
                packets_dropped_random: self.dropped_at_random,
                acks_dropped: self.acks_dropped,
                queue_ms: queueing.quantiles(),
                queue_p99_ms: queueing.p99_ms(),
            }),
            playback: report.and_then(ClientReport::playback_record),
            start: self.sender().map(|sender| {
                let arrived = self.client.delivered_bytes();
                Box::new(sender.start_record(self.spec.initial_window, arrived))
            }),
            ..self.spec.unplayed((self.seed, self.index), "sim")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= rfc9768 3.1.5-2 test
    fn only_new_data_is_ecn_capable_except_with_l4s() {
        let data = |repeats| {
            let segment = Segment { repeats, ..Segment::alone(0, 0, Time::ZERO, 1448) };
            Downstream::Data { segment, queued_for: TimeDelta::ZERO }
        };
        let kinds = [Downstream::SynAck(Time::ZERO), data(true), data(false)];
        for (ecn, says) in [
            (Ecn::NotEct, [Ecn::NotEct; 3]),
            (Ecn::Ect0, [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0]),
            (Ecn::Ect1, [Ecn::Ect1; 3]),
        ] {
            assert_eq!(kinds.each_ref().map(|body| ecn_of(ecn, body)), says, "{ecn:?}");
        }
    }
}
