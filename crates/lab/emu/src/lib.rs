//! A path in real time: `uncork-path` between network namespaces, through TUN devices.
//!
//! [`Emulation::start`] creates a namespace for each client host and one for the servers, and
//! carries packets between them according to an [`EmulationSpec`], until [`Emulation::stop`]
//! returns a [`Report`]. The machine's own network is not changed. Nothing created has a name or
//! outlives the process, unless [`Names`] are requested.
//!
//! [`Network`] is the path without clock and sockets. It makes the same decisions as the simulator
//! for the same times and seed.
#![cfg(target_os = "linux")]

mod address;
mod clock;
mod command;
mod document;
mod emulation;
mod error;
mod flows;
mod forwarder;
mod leftovers;
mod listening;
mod names;
mod namespace;
mod netlink;
mod network;
mod packet;
mod pool;
mod process_group;
mod record;
mod report;
mod spec;
mod sys;
mod tally;
mod text;
mod tun;

pub use address::Addresses;
pub use clock::Clock;
pub use document::{EmulationDocument, HostDocument};
pub use emulation::Emulation;
pub use error::EmuError;
pub use flows::FlowKey;
pub use leftovers::{Leftovers, clean_up};
pub use names::Names;
pub use namespace::Namespace;
pub use network::{Arrival, Network};
pub use process_group::{ProcessGroup, ServerState, ends_within};
pub use record::PacketRecord;
pub use report::{DirectionReport, Drops, FlowQueueing, HostDrops, LinkReport, Report, Spread};
pub use spec::{EmulationSpec, HostSpec};
pub use uncork_path::{BackSpec, Body, Cause, Direction, Fate};
