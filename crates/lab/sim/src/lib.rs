//! Virtual time: senders, receivers and a path in one deterministic event loop.
//!
//! [`run`] takes a [`RunSpec`] that passes [`RunSpec::check`] and returns a [`RunResult`]. Equal
//! specifications give equal results, byte for byte. Hosts use `segments`: a simplified TCP with
//! SACK, RACK-TLP, delayed ACKs and pacing. Its window and rate come from an `uncork-cc` controller
//! or from your own ([`uncork_cc::ControllerSpec`]).
#![forbid(unsafe_code)]

mod app;
mod app_events;
mod check;
mod durations;
mod flow;
mod flows;
mod intervene;
mod offload;
mod opening;
pub mod parallel;
mod parts;
mod record;
mod run;
mod segments;
mod spec;
mod timer;
mod to_clients;
mod to_servers;
mod view;
mod wakeups;

pub use check::RunSpecError;
pub use offload::Offload;
pub use opening::{Launch, Program, program_starts};
pub use run::{RunResult, Simulation, run};
pub use segments::{HEADER_BYTES, MSS_BYTES, PACKET_BYTES};
pub use spec::{
    AccEcn, AckPolicy, CommandRecords, CommandSpec, FlowSpec, Migration, RunSpec, Workload,
};
pub use view::FlowView;
