//! The paths of an emulation and the flows on them.
//!
//! Given the same packets at the same times and the same seed, the decisions are those of the
//! simulator. A flow's number there is its order of appearance here.

use uncork_path::{
    self as path, Body, Direction, Ecn, Fate, FlowPath, HostJitter, NetworkSpec, Offer, Packet,
};
use uncork_units::Time;

use crate::flows::{FlowKey, KnownFlows};
use crate::{BackSpec, EmulationSpec, HostSpec};

/// A packet that arrives at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<B> {
    /// Its direction.
    pub direction: Direction,
    /// Its flow. The host must belong to the emulation.
    pub flow: FlowKey,
    /// Size in bytes including the IP header.
    pub bytes: u32,
    /// The ECN field of its header.
    pub ecn: Ecn,
    /// The caller's data.
    pub body: B,
}

/// The paths of an emulation.
#[derive(Debug)]
pub struct Network<B> {
    hosts: Vec<HostSpec>,
    back: BackSpec,
    flows: KnownFlows,
    /// The path without flow keys.
    pub paths: path::Network<B>,
}

impl<B: Body> Network<B> {
    /// The paths of `spec`, without packets.
    pub fn new(spec: &EmulationSpec) -> Self {
        let paths = path::Network::new(NetworkSpec {
            links: &spec.links,
            paths: &spec.paths,
            packet_bytes: spec.mtu,
            ack_bytes: EmulationSpec::ACK_BYTES,
            // Its hosts are real.
            host_jitter: HostJitter::NONE,
            card: None,
            seed: spec.seed,
        });
        Self { hosts: spec.hosts.clone(), back: spec.back, flows: KnownFlows::default(), paths }
    }

    /// Flows seen so far.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The flows in order of their numbers. Beyond the limit, one number represents several flows.
    pub(crate) fn flow_keys(&self) -> Vec<FlowKey> {
        self.flows.keys()
    }

    /// A packet arrives; see [`path::Network::offer`].
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
