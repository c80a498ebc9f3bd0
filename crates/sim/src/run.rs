//! The event loop.

use uncork_flow::{FlowRecord, SeriesPoint};
use uncork_path::{Bottleneck, LossPosition, Packet, Policer};
use uncork_units::{Time, TimeDelta};

use crate::flow::{Downstream, Flow, Server, Upstream};
use crate::schedule::{Schedule, Source};
use crate::segments::{HEADER_BYTES, PACKET_BYTES, Reply, Segment};
use crate::spec::RunSpec;

/// What a run leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// One record per flow.
    pub flows: Vec<FlowRecord>,
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
    spec: &'a RunSpec,
    pub(crate) now: Time,
    schedule: Schedule,
    policer: Option<Policer>,
    pub(crate) bottleneck: Bottleneck<Downstream>,
    pub(crate) flows: Vec<Flow>,
    unfinished: usize,
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
            policer: spec.path.policer.map(Policer::new),
            bottleneck: spec.path.bottleneck(PACKET_BYTES),
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
            Source::Link => self.on_departure(),
            Source::Data(flow) => self.on_downstream(flow),
            Source::Ack(flow) => self.on_upstream(flow),
            Source::SenderTimer(flow) => self.on_sender_timer(flow),
            Source::ReceiverTimer(flow) => self.on_receiver_timer(flow),
            Source::Sample => self.on_sample(),
        }
        true
    }

    /// The records of all flows, as far as they got.
    pub fn into_result(self) -> RunResult {
        RunResult {
            flows: self.flows.iter().map(Flow::record).collect(),
            series: self.series,
            packets: self.packets,
        }
    }

    /// The client's SYN leaves; it crosses the return path, where nothing is in its way.
    fn on_start(&mut self, index: u32) {
        self.schedule.done();
        let flow = &mut self.flows[index as usize];
        flow.upstream.enter(self.now, Upstream::Syn);
        self.schedule.at(flow.upstream.next_arrival(), Source::Ack(index));
    }

    fn on_upstream(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let arrived = flow.upstream.arrive(self.now);
        self.schedule.again_or_done(flow.upstream.next_arrival());
        let Some(arrived) = arrived else { return };
        match (arrived, &mut flow.server) {
            (Upstream::Syn, _) => self.send_syn_ack(index, 0),
            (Upstream::Request(syn_ack), _) => {
                flow.establish(self.now, syn_ack);
                self.pump(index);
            }
            (Upstream::Ack(ack), Server::Established { sender, .. }) => {
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
        self.transmit(Packet {
            flow: index,
            bytes: HEADER_BYTES,
            body: Downstream::SynAck(self.now),
        });
        self.arm_sender(index);
    }

    /// Sends what the flow's server may send now.
    pub(crate) fn pump(&mut self, index: u32) {
        if self.flows[index as usize].is_over(self.now) {
            return;
        }
        while let Some(segment) = self.flows[index as usize].poll_segment(self.now) {
            self.packets += 1;
            self.transmit(Packet {
                flow: index,
                bytes: segment.bytes + HEADER_BYTES,
                body: Downstream::Data(segment),
            });
        }
        self.arm_sender(index);
    }

    /// A packet leaves a server for the bottleneck.
    fn transmit(&mut self, packet: Packet<Downstream>) {
        let flow = &mut self.flows[packet.flow as usize];
        if self.spec.path.loss_position == LossPosition::Before && flow.loss.strikes() {
            flow.dropped_at_random += 1;
            return;
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(self.now, packet.bytes)) {
            flow.dropped_by_policer += 1;
            return;
        }
        if !self.bottleneck.offer(self.now, packet) {
            flow.dropped_by_queue += 1;
        }
        self.schedule.link_at(self.bottleneck.next_departure());
    }

    fn on_departure(&mut self) {
        let Some(departure) = self.bottleneck.depart(self.now) else { return };
        self.schedule.link_at(self.bottleneck.next_departure());
        let Packet { flow: index, body, .. } = departure.packet;
        let flow = &mut self.flows[index as usize];
        if matches!(body, Downstream::Data(_)) {
            flow.queueing.record(departure.queued_for.as_nanos());
        }
        if self.spec.path.loss_position == LossPosition::After && flow.loss.strikes() {
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
            Downstream::SynAck(sent) => self.reply(index, Upstream::Request(sent)),
            Downstream::Data(segment) => self.on_data(index, segment),
        }
    }

    /// What arrives when the flow is over counts for nothing.
    fn on_data(&mut self, index: u32, segment: Segment) {
        let flow = &mut self.flows[index as usize];
        if flow.is_over(self.now) {
            return;
        }
        let reply = flow.client.on_segment(self.now, segment);
        if flow.client.complete().is_some() {
            self.unfinished -= 1;
        }
        match reply {
            Reply::Now(ack) => self.reply(index, Upstream::Ack(ack)),
            Reply::Later => self.arm_receiver(index),
        }
    }

    fn reply(&mut self, index: u32, message: Upstream) {
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
            Server::Established { sender, .. } => {
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
        let queue = self.bottleneck.queued_bytes();
        let points = self.flows.iter().filter_map(|flow| flow.sample(self.now, queue));
        self.series.extend(points);
        let every = self.spec.sample_every.unwrap_or(TimeDelta::MAX);
        self.schedule.again(self.now + every.max(TimeDelta::from_micros(1)));
    }
}
