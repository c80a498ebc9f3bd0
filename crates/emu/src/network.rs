//! The paths of an emulation, and which flows are on them.
//!
//! Given the same packets at the same times, and the same seed, the decisions are those of the simulator; a flow's
//! number there is its place in order of appearance here.

use uncork_path::{self as path, Body, Direction, Ecn, Fate, FlowPath, NetworkSpec, Offer, Packet};
use uncork_units::Time;

use crate::flows::{FlowKey, Flows};
use crate::{BackSpec, EmulationSpec, HostSpec};

/// A packet that comes to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<B> {
    /// Where it is going.
    pub direction: Direction,
    /// Whose it is. The host must be one of the emulation's.
    pub flow: FlowKey,
    /// Bytes with the IP header.
    pub bytes: u32,
    /// What its header says of congestion.
    pub ecn: Ecn,
    /// What the caller knows it by.
    pub body: B,
}

/// The paths of an emulation.
#[derive(Debug)]
pub struct Network<B> {
    hosts: Vec<HostSpec>,
    back: BackSpec,
    flows: Flows,
    /// The path without flow keys.
    pub paths: path::Network<B>,
}

impl<B: Body> Network<B> {
    /// The paths of `spec`, with nothing on them.
    pub fn new(spec: &EmulationSpec) -> Self {
        let paths = path::Network::new(NetworkSpec {
            links: &spec.links,
            paths: &spec.paths,
            packet_bytes: spec.mtu,
            ack_bytes: EmulationSpec::ACK_BYTES,
            seed: spec.seed,
        });
        Self { hosts: spec.hosts.clone(), back: spec.back, flows: Flows::default(), paths }
    }

    /// Flows seen so far.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The flows, in order of their numbers. Where there are too many, one stands for several.
    pub(crate) fn flow_keys(&self) -> Vec<FlowKey> {
        self.flows.keys()
    }

    /// A packet comes; see [`path::Network::offer`].
    pub fn offer(
        &mut self,
        now: Time,
        arrival: Arrival<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let Arrival { direction, flow: key, bytes, ecn, body } = arrival;
        let HostSpec { path, rtt, number } = self.hosts[key.host as usize];
        let host = number.unwrap_or(key.host);
        let of_flow = FlowPath { path, host, rtt, back: self.back };
        let flow = self.flows.number(key, || self.paths.add_flow(of_flow));
        self.paths.offer(now, direction, Offer { flow, bytes, ecn, body }, fate);
    }
}

#[cfg(test)]
mod tests;
