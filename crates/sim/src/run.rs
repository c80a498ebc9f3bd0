//! The event loop.

use uncork_flow::{FlowRecord, RequestRecord, SeriesPoint};
use uncork_path::{Links, LossSpec};
use uncork_units::{Time, TimeDelta};

use crate::flow::{Downstream, Flow, Upstream};
use crate::flows::Flows;
use crate::lines::Lines;
use crate::schedule::{Schedule, Source};
use crate::segments::{HEADER_BYTES, PACKET_BYTES, Scratch};
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

/// Simulates `spec` to its end. A specification that [`RunSpec::check`] refuses may make it panic, or wait
/// for what never comes.
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
    pub(crate) uplinks: Links<Upstream>,
    pub(crate) to_clients: Lines<Downstream>,
    pub(crate) to_servers: Lines<Upstream>,
    pub(crate) flows: Flows<'a>,
    pub(crate) changed_loss: Option<LossSpec>,
    pub(crate) scratch: Scratch,
    pub(crate) unfinished: usize,
    pub(crate) packets: u64,
    series: Vec<SeriesPoint>,
    #[cfg(test)]
    pub(crate) log: crate::walk::Log,
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
            links: Links::to_clients(&spec.links, &spec.paths, PACKET_BYTES, spec.seed),
            uplinks: Links::to_servers(&spec.paths, HEADER_BYTES, spec.seed),
            to_clients: Lines::to_clients(spec),
            to_servers: Lines::to_servers(spec),
            flows: Flows::new(spec.flows.len()),
            changed_loss: None,
            scratch: Scratch::default(),
            unfinished: spec.flows.len(),
            packets: 0,
            series: Vec::new(),
            #[cfg(test)]
            log: crate::walk::Log::default(),
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
            Source::Downstream(line) => self.on_downstream(line),
            Source::Upstream(line) => self.on_upstream(line),
            Source::SenderTimer(flow) => self.on_sender_timer(flow),
            Source::ReceiverTimer(flow) => self.on_receiver_timer(flow),
            Source::AppTimer(flow) => self.on_app_timer(flow),
            Source::Sample => self.on_sample(),
        }
        true
    }

    /// The records of all flows, as far as they got.
    pub fn into_result(self) -> RunResult {
        let (spec, loss) = (self.spec, self.changed_loss);
        let begin = |index| Flow::new(spec, index, loss);
        let (mut flows, mut requests) = (Vec::with_capacity(spec.flows.len()), Vec::new());
        for outcome in self.flows.into_outcomes(self.now, begin) {
            flows.push(outcome.record);
            requests.extend(outcome.requests);
        }
        RunResult { flows, requests, series: self.series, packets: self.packets }
    }

    /// The flow begins. The client's SYN leaves, and leaves again until it is answered.
    fn on_start(&mut self, index: u32) {
        if self.flows.is_to_come(index) {
            self.flows.begin(index, Flow::new(self.spec, index, self.changed_loss));
        }
        let retry = self.flows.get_mut(index).map_or(Time::NEVER, |flow| flow.send_syn(self.now));
        self.schedule.again_or_done(retry);
        if retry < Time::NEVER {
            self.reply(index, Upstream::Syn);
        }
    }

    fn on_sample(&mut self) {
        let (links, flows) = (&self.links, &self.spec.flows);
        let queued = |index: u32| links.queued_bytes(flows[index as usize].path);
        self.series.extend(self.flows.sample(self.now, queued));
        let every = self.spec.sample_every.unwrap_or(TimeDelta::MAX);
        self.schedule.again(self.now + every.max(TimeDelta::from_micros(1)));
    }
}
