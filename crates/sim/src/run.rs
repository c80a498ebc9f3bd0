//! The event loop.

use uncork_flow::{FlowRecord, RequestRecord, SeriesPoint};
use uncork_path::{Ecn, LossPosition, Packet};
use uncork_units::{Time, TimeDelta};

use crate::flow::{Downstream, Flow, Server, Upstream};
use crate::network::Links;
use crate::schedule::{Schedule, Source};
use crate::segments::{HEADER_BYTES, Reply, Segment};
use crate::spec::RunSpec;

/// What a run leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// One record per flow.
    pub flows: Vec<FlowRecord>,
    /// One record per request of clients that make some, by flow.
    pub requests: Vec<RequestRecord>,
    /// The series, when asked for, by time.
    pub series: Vec<SeriesPoint>,
    /// Data packets that were sent.
    pub packets: u64,
}

/// Simulates `spec` to its end.
pub fn run(spec: &RunSpec) -> RunResult {
    let mut simulation = Simulation::new(spec);
    while simulation.step() {}
    simulation.into_result()
}

/// A run under way, for those who want to look in between.
#[derive(Debug)]
pub struct Simulation<'a> {
    pub(crate) spec: &'a RunSpec,
    pub(crate) now: Time,
    pub(crate) schedule: Schedule,
    pub(crate) links: Links<Downstream>,
    uplinks: Links<Upstream>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) unfinished: usize,
    series: Vec<SeriesPoint>,
    packets: u64,
}

impl<'a> Simulation<'a> {
    /// A run of `spec` at its very beginning.
    pub fn new(spec: &'a RunSpec) -> Self {
        let mut schedule = Schedule::new();
        for (index, flow) in (0..).zip(&spec.flows) {
            schedule.at(flow.start, Source::Start(index));
        }
        if spec.sample_every.is_some() {
            schedule.at(Time::ZERO, Source::Sample);
        }
        Self {
            spec,
            now: Time::ZERO,
            schedule,
            links: Links::to_clients(spec),
            uplinks: Links::to_servers(spec),
            flows: (0..spec.flows.len() as u32).map(|index| Flow::new(spec, index)).collect(),
            unfinished: spec.flows.len(),
            series: Vec::new(),
            packets: 0,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Data packets sent so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Handles one event. False when the run is over.
    pub fn step(&mut self) -> bool {
        self.step_until(self.spec.end)
    }

    /// Handles the next event, if it comes by `until` and the run is not over. Otherwise it is
    /// `until` now, and the answer is false.
    pub fn step_until(&mut self, until: Time) -> bool {
        let until = until.min(self.spec.end);
        let next = self.schedule.next().filter(|(time, _)| *time <= until);
        let Some((time, source)) = next.filter(|_| self.unfinished > 0) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = time;
        match source {
            Source::Start(flow) => self.on_start(flow),
            Source::Link(link) => self.on_departure(link),
            Source::Uplink(link) => self.on_uplink_departure(link),
            Source::Data(flow) => self.on_downstream(flow),
            Source::Ack(flow) => self.on_upstream(flow),
            Source::SenderTimer(flow) => self.on_sender_timer(flow),
            Source::ReceiverTimer(flow) => self.on_receiver_timer(flow),
            Source::AppTimer(flow) => self.on_app_timer(flow),
            Source::Sample => self.on_sample(),
        }
        true
    }

    /// The records of all flows, as far as they got.
    pub fn into_result(self) -> RunResult {
        RunResult {
            flows: self.flows.iter().map(|flow| flow.record(self.now)).collect(),
            requests: self.flows.iter().flat_map(|flow| flow.requests(self.now)).collect(),
            series: self.series,
            packets: self.packets,
        }
    }

    /// The client's SYN leaves, and leaves again until it is answered.
    fn on_start(&mut self, index: u32) {
        let retry = self.flows[index as usize].send_syn(self.now);
        self.schedule.again_or_done(retry);
        if retry < Time::NEVER {
            self.reply(index, Upstream::Syn);
        }
    }

    fn on_upstream(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let arrived = flow.upstream.arrive(self.now);
        self.schedule.again_or_done(flow.upstream.next_arrival());
        let Some(arrived) = arrived else { return };
        match (arrived, &mut flow.server) {
            (Upstream::Syn, Server::Established(_)) => {}
            (Upstream::Syn, _) => self.send_syn_ack(index, 0),
            (Upstream::Request(syn_ack, get), _) => self.on_request(index, syn_ack, get),
            (Upstream::Get(get), _) => {
                flow.take_request(get);
                self.pump(index);
            }
            (Upstream::Ack(ack), Server::Established(sender)) => {
                if let Some(rtt) = sender.on_ack(self.now, &ack) {
                    flow.rtts.record(rtt.as_nanos());
                }
                self.pump(index);
            }
            (Upstream::Ack(_), _) => {}
        }
    }

    fn send_syn_ack(&mut self, index: u32, retries: u32) {
        self.flows[index as usize].answer_syn(self.now, retries);
        self.transmit(index, HEADER_BYTES, Downstream::SynAck(self.now));
        self.arm_sender(index);
    }

    /// Sends what the flow's server may send now.
    pub(crate) fn pump(&mut self, index: u32) {
        if self.flows[index as usize].is_over(self.now) {
            return;
        }
        while let Some(segment) = self.flows[index as usize].poll_segment(self.now) {
            self.packets += 1;
            self.transmit(index, segment.bytes + HEADER_BYTES, Downstream::data(segment));
        }
        self.arm_sender(index);
    }

    /// A packet leaves a server.
    fn transmit(&mut self, index: u32, bytes: u32, body: Downstream) {
        let flow = &mut self.flows[index as usize];
        let path = flow.spec.path;
        if self.spec.paths[path].loss_position == LossPosition::Before && flow.loss.strikes() {
            flow.dropped_at_random += 1;
            return;
        }
        let packet = Packet { flow: index, host: flow.host, bytes, ecn: flow.spec.ecn, body };
        if let Some(link) = self.links.first(path) {
            self.offer(link, packet);
        }
    }

    /// A packet arrives at a link on its way to a client.
    fn offer(&mut self, link: u32, packet: Packet<Downstream>) {
        let was_idle = self.links.next_departure(link) == Time::NEVER;
        let flows = &mut self.flows;
        let mut dropped = |flow: u32, by| flows[flow as usize].note_drop(by);
        self.links.offer(self.now, link, packet, &mut dropped);
        let next = self.links.next_departure(link);
        if link == 0 {
            self.schedule.link_at(next);
        } else if was_idle && next < Time::NEVER {
            self.schedule.at(next, Source::Link(link));
        }
    }

    fn on_departure(&mut self, link: u32) {
        let flows = &mut self.flows;
        let mut dropped = |flow: u32, by| flows[flow as usize].note_drop(by);
        let departure = self.links.depart(self.now, link, &mut dropped);
        let next = self.links.next_departure(link);
        if link == 0 {
            self.schedule.link_at(next);
        } else {
            self.schedule.again_or_done(next);
        }
        let Some(departure) = departure else { return };
        let mut packet = departure.packet;
        packet.body.crossed(departure.queued_for);
        let path = self.flows[packet.flow as usize].spec.path;
        match self.links.after(path, link) {
            Some(next) => self.offer(next, packet),
            None => self.propagate(&packet),
        }
    }

    /// A packet has crossed all links on its way to the client.
    fn propagate(&mut self, packet: &Packet<Downstream>) {
        let index = packet.flow;
        let flow = &mut self.flows[index as usize];
        let mut body = packet.body;
        if let Downstream::Data { segment, queued_for } = &mut body {
            flow.queueing.record(queued_for.as_nanos());
            segment.ce = packet.ecn == Ecn::Ce;
        }
        let path = &self.spec.paths[flow.spec.path];
        if path.loss_position == LossPosition::After && flow.loss.strikes() {
            flow.dropped_at_random += 1;
            return;
        }
        let idle = flow.downstream.is_empty();
        flow.downstream.enter(self.now, body);
        if idle {
            self.schedule.at(flow.downstream.next_arrival(), Source::Data(index));
        }
    }

    fn on_downstream(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let arrived = flow.downstream.arrive(self.now);
        self.schedule.again_or_done(flow.downstream.next_arrival());
        let Some(arrived) = arrived else { return };
        match arrived {
            Downstream::SynAck(sent) => {
                let get = self.flows[index as usize].connect(self.now);
                self.reply(index, Upstream::Request(sent, get));
                self.arm_app(index);
            }
            Downstream::Data { segment, .. } => self.on_data(index, segment),
        }
    }

    /// What arrives when the flow is over counts for nothing.
    fn on_data(&mut self, index: u32, segment: Segment) {
        let flow = &mut self.flows[index as usize];
        if flow.is_over(self.now) {
            return;
        }
        let reply = flow.client.on_segment(self.now, segment);
        if self.now < self.spec.warmup {
            flow.delivered_early = flow.client.delivered_bytes();
        }
        match reply {
            Reply::Now(ack) => self.reply(index, Upstream::Ack(ack)),
            Reply::Later => self.arm_receiver(index),
        }
        self.advance_client(index);
        self.unfinished -= usize::from(self.flows[index as usize].has_finished(self.now));
    }

    /// A message leaves a client.
    pub(crate) fn reply(&mut self, index: u32, message: Upstream) {
        let flow = &self.flows[index as usize];
        let Some(link) = self.uplinks.first(flow.spec.path) else {
            self.propagate_back(index, message);
            return;
        };
        let was_idle = self.uplinks.next_departure(link) == Time::NEVER;
        let (host, ecn) = (flow.host, Ecn::NotEct);
        let packet = Packet { flow: index, host, bytes: HEADER_BYTES, ecn, body: message };
        let flows = &mut self.flows;
        let mut dropped = |flow: u32, _| flows[flow as usize].acks_dropped += 1;
        self.uplinks.offer(self.now, link, packet, &mut dropped);
        let next = self.uplinks.next_departure(link);
        if was_idle && next < Time::NEVER {
            self.schedule.at(next, Source::Uplink(link));
        }
    }

    fn on_uplink_departure(&mut self, link: u32) {
        let flows = &mut self.flows;
        let mut dropped = |flow: u32, _| flows[flow as usize].acks_dropped += 1;
        let departure = self.uplinks.depart(self.now, link, &mut dropped);
        self.schedule.again_or_done(self.uplinks.next_departure(link));
        if let Some(Packet { flow, body, .. }) = departure.map(|departure| departure.packet) {
            self.propagate_back(flow, body);
        }
    }

    /// A message has crossed the uplink.
    fn propagate_back(&mut self, index: u32, message: Upstream) {
        let flow = &mut self.flows[index as usize];
        let idle = flow.upstream.is_empty();
        flow.upstream.enter(self.now, message);
        if idle {
            self.schedule.at(flow.upstream.next_arrival(), Source::Ack(index));
        }
    }

    fn on_sender_timer(&mut self, index: u32) {
        self.schedule.done();
        let flow = &mut self.flows[index as usize];
        flow.sender_timer.on_entry();
        match &mut flow.server {
            Server::Listening => {}
            Server::Handshake { retry, retries, .. } if *retry <= self.now => {
                let retries = *retries + 1;
                self.send_syn_ack(index, retries);
            }
            Server::Handshake { .. } => self.arm_sender(index),
            Server::Established(sender) => {
                sender.on_timer(self.now);
                self.pump(index);
            }
        }
    }

    fn on_receiver_timer(&mut self, index: u32) {
        self.schedule.done();
        let flow = &mut self.flows[index as usize];
        flow.receiver_timer.on_entry();
        match flow.client.on_timer(self.now) {
            Some(ack) => self.reply(index, Upstream::Ack(ack)),
            None => self.arm_receiver(index),
        }
    }

    fn arm_sender(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let deadline = flow.next_sender_timer().max(self.now);
        if !flow.is_over(self.now) && flow.sender_timer.needs_entry(deadline) {
            self.schedule.at(deadline, Source::SenderTimer(index));
        }
    }

    fn arm_receiver(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let deadline = flow.client.next_timer().max(self.now);
        if flow.receiver_timer.needs_entry(deadline) {
            self.schedule.at(deadline, Source::ReceiverTimer(index));
        }
    }

    fn on_sample(&mut self) {
        let links = &self.links;
        let points = self
            .flows
            .iter()
            .filter_map(|flow| flow.sample(self.now, links.queued_bytes(flow.spec.path)));
        self.series.extend(points);
        let every = self.spec.sample_every.unwrap_or(TimeDelta::MAX);
        self.schedule.again(self.now + every.max(TimeDelta::from_micros(1)));
    }
}
