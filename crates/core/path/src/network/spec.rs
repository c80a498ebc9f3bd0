//! Specifications of networks, flows and packets.

use uncork_units::{Rate, Time, TimeDelta};

use crate::{Ecn, HostJitter, JitterSpec, LinkSpec, LossSpec, PathSpec};

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the clients.
    Down,
    /// To the servers.
    Up,
}

/// The caller's part of a packet.
pub trait Body {
    /// Called when the packet has waited this long in a queue towards the client.
    fn crossed(&mut self, _waited: TimeDelta) {}

    /// A copy for a packet that is delivered twice; `None` if the caller's packets cannot be.
    fn copied(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Whether a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(Time),
    /// It is dropped.
    Dropped(Cause),
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A full queue or its discipline.
    Queue,
    /// A policer without enough tokens.
    Policer,
    /// Random loss.
    Loss,
}

/// A packet offered to the path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Offer<B> {
    /// Its flow, as [`super::Network::add_flow`] numbered it.
    pub flow: u32,
    /// Size in bytes including all headers.
    pub bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The caller's data.
    pub body: B,
}

/// Specification of a network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSpec<'a> {
    /// Links shared by several paths, crossed before the paths' own.
    pub links: &'a [LinkSpec],
    /// The paths.
    pub paths: &'a [PathSpec],
    /// Size of a full packet, for buffers given in packets.
    pub packet_bytes: u32,
    /// Size of an ACK, for uplink buffers given in packets.
    pub ack_bytes: u32,
    /// The time that the hosts at both ends take for each packet.
    pub host_jitter: HostJitter,
    /// The rate of the network card of each flow's server, in front of all links; `None` for one that takes no
    /// time.
    pub card: Option<Rate>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// The path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowPath {
    /// Index of its path.
    pub path: usize,
    /// Its client's host, for queues that isolate hosts.
    pub host: u32,
    /// RTT without queueing; `None` uses the path's. Buffers always use the path's RTT.
    pub rtt: Option<TimeDelta>,
    /// Impairments on the way to the server.
    pub back: BackSpec,
}

/// Impairments towards the servers.
#[derive(Clone, Copy, Debug)]
pub struct BackSpec {
    /// Random loss, behind the uplink. If there is any, it takes the place of the path's own.
    pub loss: LossSpec,
    /// Added to the delay of each packet.
    pub jitter: Option<JitterSpec>,
}

impl Default for BackSpec {
    fn default() -> Self {
        Self { loss: LossSpec::NONE, jitter: None }
    }
}
