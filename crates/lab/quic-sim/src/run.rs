//! A run, from its specification to its records.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use uncork_flow::{RequestRecord, SeriesPoint};
use uncork_path::{Body, Cause, Direction, Ecn, Fate, Network, Offer, Packet};
use uncork_quic::Epoch;
use uncork_sim::{RunResult, RunSpec};
use uncork_units::{Time, TimeDelta};

use crate::error::QuicSimError;
use crate::flow::{FlowEnd, QuicFlow, on_wire};
use crate::identity::TestIdentity;
use crate::record;

/// The longest delay of acknowledgements that the stack asks for on a path of a shorter RTT.
const MAX_ACK_DELAY: TimeDelta = TimeDelta::from_millis(25);
/// An IPv4 and a UDP header, in bytes.
const HEADER_BYTES: u32 = 28;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct QuicRun {
    /// The same as for the segment simulator.
    pub result: RunResult,
    /// Lost connections and the reasons. Their records are incomplete.
    pub failures: Vec<String>,
}

/// Runs `spec` until its end, until no events are left, or until `stop`.
///
/// # Errors
///
/// If QUIC endpoints do not support `spec`, or a flow makes no progress.
pub fn run(spec: &RunSpec, stop: &AtomicBool) -> Result<QuicRun, QuicSimError> {
    check(spec)?;
    let mut run = Run {
        spec,
        identity: TestIdentity::new()?,
        epoch: epoch(),
        now: Time::ZERO,
        network: spec.network(),
        flows: spec.flows.iter().map(|_| None).collect(),
        wakes: BinaryHeap::new(),
        ended: Vec::new(),
        series: Vec::new(),
    };
    run.play(stop)?;
    Ok(run.finish())
}

fn check(spec: &RunSpec) -> Result<(), QuicSimError> {
    let refuse = |problem: String| Err(QuicSimError::Spec(problem));
    spec.check().map_err(|error| QuicSimError::Spec(error.to_string()))?;
    for (index, flow) in spec.flows.iter().enumerate() {
        let rtt = flow.rtt.unwrap_or(spec.paths[flow.path].rtt);
        if let Some(delay) = flow.acks.delay.filter(|delay| *delay > rtt.max(MAX_ACK_DELAY)) {
            return refuse(format!(
                "flow {index} has acknowledgements after {delay}, and the QUIC stack asks for no more than its RTT or \
                 {MAX_ACK_DELAY}; use a shorter `ack_delay`, or --on sim"
            ));
        }
        if let Some(command) = spec.command_of(flow) {
            return refuse(format!("'{}' is a command; QUIC endpoints run none", command.name));
        }
    }
    Ok(())
}

/// The standard library only makes instants from the clock. The value does not matter.
#[expect(clippy::disallowed_methods, reason = "all times are counted from it")]
fn epoch() -> Epoch {
    Epoch::new(Instant::now())
}

struct Run<'a> {
    spec: &'a RunSpec,
    identity: TestIdentity,
    epoch: Epoch,
    now: Time,
    network: Network<DatagramInFlight>,
    flows: Vec<Option<Box<QuicFlow<'a>>>>,
    /// Wake-ups of flows by time. Some may be stale.
    wakes: BinaryHeap<Reverse<(Time, u32)>>,
    /// Datagrams that have arrived or were dropped, to be processed.
    ended: Vec<(Direction, Packet<DatagramInFlight>, Fate)>,
    series: Vec<SeriesPoint>,
}

/// A datagram in flight.
pub(crate) struct DatagramInFlight {
    pub(crate) data: Vec<u8>,
    /// The client's address that it comes from or goes to.
    pub(crate) client: SocketAddr,
    /// Its queueing delay so far on the way to the client.
    queued_for: TimeDelta,
    /// Bytes the client had read when it was sent; its ACK frame covers all of them.
    pub(crate) read: u64,
}

impl Body for DatagramInFlight {
    fn crossed(&mut self, waited: TimeDelta) {
        self.queued_for += waited;
    }

    fn copied(&self) -> Option<Self> {
        Some(Self { data: self.data.clone(), ..*self })
    }
}

impl Run<'_> {
    fn play(&mut self, stop: &AtomicBool) -> Result<(), QuicSimError> {
        for (index, flow) in (0..).zip(&self.spec.flows) {
            self.wakes.push(Reverse((flow.start, index)));
        }
        let every = self.spec.sample_every.map(|every| every.max(TimeDelta::from_micros(1)));
        let mut sample = every.map_or(Time::NEVER, |_| Time::ZERO);
        let mut to_come = self.spec.flows.len();
        while to_come > 0 && !stop.load(Ordering::Relaxed) {
            let wake = self.wakes.peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
            self.now = wake.min(self.network.next_event()).min(sample).max(self.now);
            if self.now >= self.spec.end {
                self.now = self.spec.end;
                return Ok(());
            }
            if self.now == sample {
                self.sample();
                sample += every.unwrap_or(TimeDelta::MAX);
            }
            to_come -= self.step(stop)?;
        }
        Ok(())
    }

    /// Processes everything due now, until `stop`. Returns the number of flows that ended.
    fn step(&mut self, stop: &AtomicBool) -> Result<usize, QuicSimError> {
        let mut over = 0;
        let mut ended = std::mem::take(&mut self.ended);
        self.network.advance(self.now, &mut |to, packet, fate| ended.push((to, packet, fate)));
        for (direction, packet, fate) in ended {
            let to = if direction == Direction::Down { FlowEnd::Client } else { FlowEnd::Server };
            if self.arrive(to, &packet, fate) {
                over += usize::from(self.act(packet.flow, to));
            }
        }
        while let Some(Reverse((time, index))) = self.wakes.peek().copied() {
            if time > self.now || stop.load(Ordering::Relaxed) {
                break;
            }
            self.wakes.pop();
            over += usize::from(self.wake(time, index));
            self.check_progress(index)?;
        }
        Ok(over)
    }

    fn check_progress(&self, flow: u32) -> Result<(), QuicSimError> {
        match &self.flows[flow as usize] {
            Some(state) if state.is_stalled(self.now) => {
                Err(QuicSimError::Stalled { flow, time: self.now })
            }
            _ => Ok(()),
        }
    }

    /// Processes a datagram that arrives or is dropped. Returns whether it arrived.
    fn arrive(&mut self, to: FlowEnd, packet: &Packet<DatagramInFlight>, fate: Fate) -> bool {
        let Some(flow) = self.flows[packet.flow as usize].as_mut() else { return false };
        let datagram = &packet.body;
        let is_reachable = to == FlowEnd::Server || datagram.client.ip() == flow.client_host();
        let counts = &mut flow.counts;
        match (fate, to) {
            (Fate::Arrives(_), _) if !is_reachable => counts.dropped_random += 1,
            (Fate::Arrives(_), to) => {
                if to == FlowEnd::Client {
                    counts.marked += u64::from(packet.ecn == Ecn::Ce);
                    flow.queueing.record(datagram.queued_for.as_nanos());
                }
                let now = self.epoch.instant(self.now);
                flow.receive(now, to, datagram, packet.ecn);
                return true;
            }
            (_, FlowEnd::Server) => counts.acks_dropped += 1,
            (Fate::Dropped(Cause::Policer), _) => counts.dropped_policer += 1,
            (Fate::Dropped(Cause::Queue), _) => counts.dropped_queue += 1,
            (Fate::Dropped(Cause::Loss), _) => counts.dropped_random += 1,
        }
        false
    }

    /// Wakes a flow. Returns whether it is now over.
    fn wake(&mut self, time: Time, index: u32) -> bool {
        let place = &mut self.flows[index as usize];
        match place {
            None => {
                *place =
                    QuicFlow::begin(self.spec, index, &self.identity, self.epoch).map(Box::new);
            }
            // A stale wake-up.
            Some(flow) if flow.wake() > time => {
                flow.scheduled = Time::NEVER;
                self.schedule(index);
                return false;
            }
            Some(flow) => flow.scheduled = Time::NEVER,
        }
        let due = self.flows[index as usize].iter().flat_map(|flow| flow.due(self.now));
        due.collect::<Vec<FlowEnd>>().into_iter().any(|end| self.act(index, end))
    }

    /// Runs one end of a flow. Returns whether the flow is now over.
    fn act(&mut self, index: u32, end: FlowEnd) -> bool {
        let Some(flow) = self.flows[index as usize].as_mut() else { return false };
        if flow.wake() == Time::NEVER && flow.is_over(self.now) {
            return false;
        }
        let direction = if end == FlowEnd::Server { Direction::Down } else { Direction::Up };
        let (times, mut out) = ((self.epoch, self.now, self.spec.warmup), Vec::new());
        // A card sends what it has before it takes more, as a socket with a full buffer.
        let batches =
            if self.spec.card.is_some() && end == FlowEnd::Server { 1 } else { usize::MAX };
        flow.act(end, times, batches, |datagram| out.push(datagram));
        flow.counts.sent += if end == FlowEnd::Server { out.len() as u64 } else { 0 };
        let (read, ended) = (flow.client.seen.bytes, &mut self.ended);
        for datagram in out {
            let ecn = on_wire(datagram.ecn);
            let bytes = datagram.data.len() as u32 + HEADER_BYTES;
            let client = flow.client_address_of(end, &datagram);
            let body =
                DatagramInFlight { data: datagram.data, client, queued_for: TimeDelta::ZERO, read };
            let offer = Offer { flow: index, bytes, ecn, body };
            let mut fate = |to, packet, fate| ended.push((to, packet, fate));
            self.network.offer(self.now, direction, offer, &mut fate);
        }
        let idle_from = self.network.card_idle_from(index);
        if idle_from > self.now {
            flow.wait_for_card(idle_from);
        }
        if flow.is_over(self.now) {
            flow.rest();
            return true;
        }
        self.schedule(index);
        false
    }

    fn schedule(&mut self, index: u32) {
        let Some(flow) = self.flows[index as usize].as_mut() else { return };
        if flow.wake() < flow.scheduled {
            flow.scheduled = flow.wake();
            self.wakes.push(Reverse((flow.scheduled, index)));
        }
    }

    fn sample(&mut self) {
        for (index, flow) in (0..).zip(&self.flows) {
            let Some(flow) = flow else { continue };
            let queue = self.network.queued_bytes(flow.spec.path);
            self.series.extend(record::point(self.now, index, flow, queue));
        }
    }

    fn finish(self) -> QuicRun {
        let (mut flows, mut requests, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for (index, flow) in (0..).zip(&self.flows) {
            let flow = flow.as_deref();
            let client = flow.and_then(|flow| flow.client.client());
            let report = client.map(|client| client.report(self.now));
            flows.push(record::record(self.spec, index, flow, report.as_ref()));
            let records = report.into_iter().flat_map(|report| report.request_records(index));
            requests.extend(records.collect::<Vec<RequestRecord>>());
            if let Some(failure) = flow.and_then(|flow| flow.failure.as_ref()) {
                failures.push(format!("the QUIC stack gave up flow {index}: {failure}"));
            }
        }
        let packets = flows.iter().map(|flow| flow.packets_sent).sum();
        let result = RunResult { flows, requests, series: self.series, packets };
        QuicRun { result, failures }
    }
}
