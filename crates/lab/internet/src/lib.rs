//! A simulated Internet: networks in autonomous systems, their users and their day, and the records
//! that a server in it would write under a policy. `docs/evidence/internet.md` says what is modelled.
//!
//! Everything follows from the world's seed and the day. Each recorded connection is a simulated
//! one; what is sampled is which connections there are.
#![forbid(unsafe_code)]

mod day;
mod draw;
pub mod l4s;
mod lines;
mod oracle;
mod profile;
mod scene;
mod traffic;
mod world;

pub use day::{Day, DayOutcome};
pub use lines::lines;
pub use oracle::{Group, GroupError, Oracle, OracleSpec, oracle};
pub use profile::Kind;
pub use world::{World, WorldError, WorldSpec};

/// The policy before anything is learned: a tenth of the users take part in an experiment.
pub const POLICY: &str = include_str!("policy.toml");
