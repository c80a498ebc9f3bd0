//! The paths of a run for hosts of another kind: real endpoints in virtual time, or recorded traffic.
//!
//! Their packets take the way of simulated ones, through the same events, so that whoever carries packets
//! over `uncork-path` by other means can be held against it.

use uncork_path::{DroppedBy, Ecn};
use uncork_units::{Time, TimeDelta};

use crate::app::Get;
use crate::flow::{Downstream, Flow, Upstream};
use crate::run::Simulation;
use crate::segments::Segment;
use crate::spec::{FlowSpec, RunSpec, Workload};

/// A packet that comes to the path of a flow, whoever sent it.
#[derive(Clone, Copy, Debug)]
pub struct CarriedPacket {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Arrived {
        /// When.
        at: Time,
        /// Whether a queue marked it.
        marked: bool,
        /// How long it waited in queues on its way to the client.
        queued_for: TimeDelta,
    },
    /// A link did not take it.
    Dropped(DroppedBy),
    /// Random loss struck it.
    Lost,
}

/// Carries packets over the paths of a run whose own hosts are silent.
#[derive(Debug)]
pub struct Carrier<'a>(Simulation<'a>);

impl<'a> Carrier<'a> {
    /// `run` without what its hosts do, for [`Self::new`].
    #[must_use]
    pub fn silent(run: &RunSpec) -> RunSpec {
        let silent = |flow: &FlowSpec| {
            let (start, workload) = (Time::NEVER, Workload::Until(Time::NEVER));
            FlowSpec { start, workload, ..*flow }
        };
        let end = Time::from_nanos(Time::NEVER.as_nanos() - 1);
        let flows = run.flows.iter().map(silent).collect();
        RunSpec { flows, end, sample_every: None, ..run.clone() }
    }

    /// The paths of `silent`, at time zero.
    pub fn new(silent: &'a RunSpec) -> Self {
        let mut simulation = Simulation::new(silent);
        for index in 0..silent.flows.len() as u32 {
            simulation.flows.begin(index, Flow::new(silent, index, None));
        }
        simulation.flows.carried = Some(Carried::default());
        Self(simulation)
    }

    /// When something happens on the way next, if nothing is sent before.
    pub fn next_event(&self) -> Time {
        self.0.schedule.next().map_or(Time::NEVER, |(time, _)| time)
    }

    /// Lets time pass, and everything happen that happens up to and at `now`.
    pub fn advance(&mut self, now: Time) {
        while self.0.step_until(now) {}
    }

    /// A packet leaves: now, which is the time of the last [`Self::advance`]. Its number is its own until
    /// its fate has been taken.
    //
    // It travels as what has a number: to the client a segment, to the server a request.
    pub fn send(&mut self, packet: CarriedPacket) -> u32 {
        let CarriedPacket { flow, to_client, bytes, ecn } = packet;
        let number = self.0.flows.carried.as_mut().map_or(0, Carried::begin);
        let seq = u64::from(number);
        if to_client {
            let sent = self.0.now;
            let segment = Segment { seq, tx: 0, sent, bytes, repeats: false, ce: false };
            self.0.transmit_as(flow, bytes, Downstream::data(segment), |_, _| ecn);
        } else {
            let get = Get { number: seq, bytes: u64::from(bytes) };
            self.0.reply_as(flow, Upstream::Get(get), bytes, ecn);
        }
        number
    }

    /// What has come to an end since this was asked last, in the order of time.
    pub fn take_fates(&mut self) -> Vec<(u32, Fate)> {
        self.0.flows.carried.as_mut().map_or_else(Vec::new, Carried::take)
    }

    /// Bytes that wait in the queue of a path's own link to its clients.
    pub fn queued_bytes(&self, path: usize) -> u64 {
        self.0.links.queued_bytes(path)
    }
}

/// Packets of others, on their way and at their end.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// By number: whether the packet has been marked on its way to a server, which requests do not tell.
    is_marked: Vec<bool>,
    /// Numbers that are no packet's.
    free: Vec<u32>,
    ended: Vec<(u32, Fate)>,
}

impl Carried {
    fn begin(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.is_marked.push(false);
            self.is_marked.len() as u32 - 1
        });
        self.is_marked[number as usize] = false;
        number
    }

    fn end(&mut self, number: u64, fate: Fate) {
        self.ended.push((number as u32, fate));
    }

    fn take(&mut self) -> Vec<(u32, Fate)> {
        let ended = std::mem::take(&mut self.ended);
        self.free.extend(ended.iter().map(|(number, _)| *number));
        ended
    }

    /// What travels to a client does not get there.
    pub(crate) fn end_downstream(&mut self, body: &Downstream, fate: Fate) {
        if let Downstream::Data { segment, .. } = body {
            self.end(segment.seq, fate);
        }
    }

    /// What travels to a server does not get there.
    pub(crate) fn end_upstream(&mut self, body: &Upstream, fate: Fate) {
        if let Upstream::Get(get) = body {
            self.end(get.number, fate);
        }
    }

    /// What travels to a server was marked.
    pub(crate) fn mark_upstream(&mut self, body: &Upstream) {
        if let Upstream::Get(get) = body {
            self.is_marked[get.number as usize] = true;
        }
    }

    /// What was on its way to a client is there.
    pub(crate) fn arrive_downstream(&mut self, at: Time, segment: &Segment, queued_for: TimeDelta) {
        self.end(segment.seq, Fate::Arrived { at, marked: segment.ce, queued_for });
    }

    /// What was on its way to a server is there.
    pub(crate) fn arrive_upstream(&mut self, at: Time, get: &Get) {
        let marked = self.is_marked[get.number as usize];
        self.end(get.number, Fate::Arrived { at, marked, queued_for: TimeDelta::ZERO });
    }
}
