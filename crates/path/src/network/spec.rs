//! Networks, their flows and their packets, as callers describe them.

use uncork_units::{Time, TimeDelta};

use crate::{Ecn, JitterSpec, LinkSpec, LossSpec, PathSpec};

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the clients.
    Down,
    /// To the servers.
    Up,
}

/// The caller's part of a packet.
pub trait Body {
    /// The packet has waited this long in a queue on its way to the client.
    fn crossed(&mut self, _waited: TimeDelta) {}
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
    /// A queue is full, or its discipline says so.
    Queue,
    /// A policer has too few tokens.
    Policer,
    /// Random loss.
    Loss,
}

/// A packet that comes to the path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Offer<B> {
    /// Its flow, as [`super::Network::add_flow`] numbered it.
    pub flow: u32,
    /// Bytes with all headers.
    pub bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The caller's part.
    pub body: B,
}

/// The parts of a network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSpec<'a> {
    /// Links that several paths cross on the way to their own.
    pub links: &'a [LinkSpec],
    /// The paths.
    pub paths: &'a [PathSpec],
    /// Size of a full packet, in which buffers in packets are measured.
    pub packet_bytes: u32,
    /// Size of an acknowledgement, in which buffers of uplinks in packets are measured.
    pub ack_bytes: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// The path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowPath {
    /// Index of its path.
    pub path: usize,
    /// Its client's host, for queues that isolate hosts.
    pub host: u32,
    /// Round-trip propagation time; `None` takes the path's, in which buffers are measured either way.
    pub rtt: Option<TimeDelta>,
    /// Impairments on the way to the server.
    pub back: BackSpec,
}

/// Impairments on the way to servers, in addition to those of the paths.
#[derive(Clone, Copy, Debug)]
pub struct BackSpec {
    /// Random loss, behind the uplink.
    pub loss: LossSpec,
    /// Added to the delay of each packet.
    pub jitter: Option<JitterSpec>,
}

impl Default for BackSpec {
    fn default() -> Self {
        Self { loss: LossSpec::NONE, jitter: None }
    }
}
