//! Packets of hosts that are not simulated, such as real ones: what becomes of them on a run's paths.
//!
//! It takes no other way than that of simulated packets. What else carries packets over `uncork-path` can
//! be held against it.

use uncork_path::{DroppedBy, Ecn};
use uncork_units::Time;

use crate::app::Get;
use crate::flow::{Downstream, Flow, Upstream};
use crate::flows::Flows;
use crate::run::Simulation;
use crate::segments::Segment;
use crate::spec::{FlowSpec, RunSpec, Workload};

/// A packet that comes to the path of a flow, whoever sent it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ForeignPacket {
    /// When.
    pub at: Time,
    /// Index of its flow.
    pub flow: u32,
    /// Whether it goes to the client, not to the server.
    pub to_client: bool,
    /// Size on the wire, in bytes.
    pub bytes: u32,
    /// What it says of congestion.
    pub ecn: Ecn,
}

/// What became of it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEnd {
    /// It arrived, and then said CE or did not.
    Arrived(Time, bool),
    /// A link did not take it.
    Dropped(DroppedBy),
    /// Random loss struck it.
    Lost,
}

/// What becomes of `packets`, in the order of their times, on the paths of `run`, whose own hosts are
/// silent.
#[doc(hidden)]
pub fn carry(run: &RunSpec, packets: &[ForeignPacket]) -> Vec<Option<ForeignEnd>> {
    let end = Time::from_nanos(Time::NEVER.as_nanos() - 1);
    // Flows that are over take nothing in, and never send.
    let silent = |flow: &FlowSpec| {
        let (start, workload) = (Time::NEVER, Workload::Until(Time::ZERO));
        FlowSpec { start, workload, ..*flow }
    };
    let flows: Vec<_> = run.flows.iter().map(silent).collect();
    let run = RunSpec { flows, end, sample_every: None, ..run.clone() };
    let mut simulation = Simulation::new(&run);
    for index in 0..run.flows.len() as u32 {
        simulation.flows.begin(index, Flow::new(&run, index, None));
    }
    simulation.flows.foreign_ends = vec![None; packets.len()];
    for (number, packet) in (0..).zip(packets) {
        while simulation.step_until(packet.at) {}
        simulation.leave(number, *packet);
    }
    while simulation.step() {}
    simulation.flows.foreign_ends
}

impl Simulation<'_> {
    /// It travels as what has a number: to the client a segment, to the server a request.
    fn leave(&mut self, number: u64, packet: ForeignPacket) {
        let ForeignPacket { at: sent, flow, to_client, bytes, ecn } = packet;
        if to_client {
            let segment = Segment { seq: number, tx: 0, sent, bytes, repeats: false, ce: false };
            self.transmit_as(flow, bytes, Downstream::data(segment), |_, _| ecn);
        } else {
            let get = Get { number, bytes: u64::from(bytes) };
            self.reply_as(flow, Upstream::Get(get), bytes, ecn);
        }
    }
}

impl Flows<'_> {
    /// What travels to a client comes to this end.
    pub(crate) fn end_downstream(&mut self, body: &Downstream, end: ForeignEnd) {
        if let Downstream::Data { segment, .. } = body {
            self.end_foreign(segment.seq, end);
        }
    }

    /// What travels to a server comes to this end.
    pub(crate) fn end_upstream(&mut self, body: &Upstream, end: ForeignEnd) {
        if let Upstream::Get(get) = body {
            self.end_foreign(get.number, end);
        }
    }

    /// A request arrives; it has been told before if it was marked.
    pub(crate) fn end_request(&mut self, now: Time, get: &Get) {
        let before = self.foreign_ends.get(get.number as usize).copied().flatten();
        self.end_foreign(get.number, ForeignEnd::Arrived(now, before == Some(MARKED)));
    }

    /// Of packets that are none of the simulation's own this is kept.
    #[cold]
    fn end_foreign(&mut self, number: u64, end: ForeignEnd) {
        if let Some(slot) = self.foreign_ends.get_mut(number as usize) {
            *slot = Some(end);
        }
    }
}

/// What has been marked, and still travels.
pub(crate) const MARKED: ForeignEnd = ForeignEnd::Arrived(Time::NEVER, true);
