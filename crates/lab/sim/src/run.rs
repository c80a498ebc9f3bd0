//! The event loop.

use uncork_cc::{CcSpec, ControllerSpec};
use uncork_flow::{FlowRecord, RequestRecord, SeriesPoint};
use uncork_path::{Event, Network};
use uncork_units::{Time, TimeDelta};

use crate::flow::{Downstream, Flow, Upstream};
use crate::flows::Flows;
use crate::segments::AckScratch;
use crate::spec::RunSpec;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// One record per flow.
    pub flows: Vec<FlowRecord>,
    /// One record per request of requesting clients, by flow.
    pub requests: Vec<RequestRecord>,
    /// The series ordered by time, if requested.
    pub series: Vec<SeriesPoint>,
    /// Data packets sent.
    pub packets: u64,
}

/// Simulates `spec` to its end. If `spec` does not pass [`RunSpec::check`], this may panic or never
/// return.
pub fn run(spec: &RunSpec) -> RunResult {
    // The points of a series are in the order of time, from all parts.
    if BY_PARTS && spec.sample_every.is_none() {
        let parts = spec.parts();
        if parts.len() > 1 {
            return Simulation::idle(spec).run_parts(&parts);
        }
    }
    Simulation::new(spec).run()
}

/// Whether parts of a run are simulated one after the other. Runs in a web page have one path, and a page loads each byte of code.
const BY_PARTS: bool = cfg!(not(target_family = "wasm"));

/// A run that can be stepped.
#[derive(Debug)]
pub struct Simulation<'a, S: ControllerSpec = CcSpec> {
    pub(crate) spec: &'a RunSpec<S>,
    pub(crate) now: Time,
    pub(crate) network: Network<Downstream, Upstream, Wake>,
    pub(crate) flows: Flows<'a, S>,
    pub(crate) scratch: AckScratch,
    pub(crate) unfinished: usize,
    /// When the last flow has ended; [`Time::NEVER`] before. Later events change nothing.
    pub(crate) last: Time,
    pub(crate) packets: u64,
    series: Vec<SeriesPoint>,
}

/// An event of the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// A flow starts, or retransmits its SYN.
    Start(u32),
    /// The sender's pacing or loss timer of a flow.
    Sender(u32),
    /// The receiver's delayed-ACK timer of a flow.
    Receiver(u32),
    /// The application's timer of a flow.
    App(u32),
    /// The next points of the series.
    Sample,
}

impl<'a, S: ControllerSpec> Simulation<'a, S> {
    /// A run of `spec` at time zero.
    pub fn new(spec: &'a RunSpec<S>) -> Self {
        let mut run = Self::idle(spec);
        run.begin(0..spec.flows.len() as u32);
        if spec.sample_every.is_some() {
            run.network.schedule(Time::ZERO, Wake::Sample);
        }
        run
    }

    /// A run of `spec` without events.
    fn idle(spec: &'a RunSpec<S>) -> Self {
        Self {
            spec,
            now: Time::ZERO,
            network: spec.network(),
            flows: Flows::new(spec.flows.len()),
            scratch: AckScratch::default(),
            unfinished: 0,
            last: Time::ZERO,
            packets: 0,
            series: Vec::new(),
        }
    }

    /// Time zero of a run of `flows`.
    pub(crate) fn begin(&mut self, flows: impl ExactSizeIterator<Item = u32>) {
        self.now = Time::ZERO;
        self.unfinished = flows.len();
        self.last = if self.unfinished > 0 { Time::NEVER } else { Time::ZERO };
        for index in flows {
            self.network.schedule(self.spec.flows[index as usize].start, Wake::Start(index));
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

    /// Handles one event. Returns false when the run is over.
    pub fn step(&mut self) -> bool {
        self.step_until(self.spec.end)
    }

    /// Handles the next event if it is due by `until` and the run is not over. Otherwise advances
    /// the time to `until` and returns false.
    pub fn step_until(&mut self, until: Time) -> bool {
        let until = until.min(self.spec.end);
        let next = self.network.step(until.min(self.last), &mut self.flows);
        let Some((time, event)) = next else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = time;
        match event {
            Event::Internal => {}
            Event::Down(line) => self.on_downstream(line),
            Event::Up(line) => self.on_upstream(line),
            Event::Host(Wake::Start(flow)) => self.on_start(flow),
            Event::Host(Wake::Sender(flow)) => self.on_sender_timer(flow),
            Event::Host(Wake::Receiver(flow)) => self.on_receiver_timer(flow),
            Event::Host(Wake::App(flow)) => self.on_app_timer(flow),
            Event::Host(Wake::Sample) => self.on_sample(),
        }
        true
    }

    /// Simulates to the end.
    pub fn run(mut self) -> RunResult {
        self.handle_all();
        self.into_result()
    }

    /// Handles all events. Not inlined: the loop has a copy of most of the simulator.
    #[inline(never)]
    pub(crate) fn handle_all(&mut self) {
        while self.step() {}
    }

    /// The records of all flows so far.
    pub fn into_result(self) -> RunResult {
        let spec = self.spec;
        let begin = |index| Flow::new(spec, index);
        let (mut flows, mut requests) = (Vec::with_capacity(spec.flows.len()), Vec::new());
        for outcome in self.flows.into_outcomes(self.now, begin) {
            flows.push(outcome.record);
            requests.extend(outcome.requests);
        }
        RunResult { flows, requests, series: self.series, packets: self.packets }
    }

    /// Frees the memory of a flow with final results.
    #[inline]
    pub(crate) fn reduce(&mut self, index: u32) {
        if self.flows.get(index).is_some_and(|flow| flow.is_settled(self.now)) {
            self.end(index);
        }
    }

    #[cold]
    fn end(&mut self, index: u32) {
        self.flows.end(self.now, index);
        self.network.end_flow(index);
    }

    /// Starts the flow. The client sends a SYN and retransmits it until it is answered.
    fn on_start(&mut self, index: u32) {
        if self.flows.is_to_come(index) {
            self.flows.begin(index, Flow::new(self.spec, index));
        }
        let retry = self.flows.get_mut(index).map_or(Time::NEVER, |flow| flow.send_syn(self.now));
        self.network.again(retry);
        if retry < Time::NEVER {
            self.reply(index, Upstream::Syn);
        }
    }

    fn on_sample(&mut self) {
        let (network, flows) = (&self.network, &self.spec.flows);
        let queued = |index: u32| network.queued_bytes(flows[index as usize].path);
        self.series.extend(self.flows.sample(self.now, queued));
        let every = self.spec.sample_every.unwrap_or(TimeDelta::MAX);
        self.network.again(self.now + every.max(TimeDelta::from_micros(1)));
    }
}
