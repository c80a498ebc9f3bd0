//! Applies a policy to all TCP connections of a cgroup, by BPF. The server needs no change.
//!
//! [`apply`] turns a policy (`uncork-policy`) into maps and a program of `bpf/steer.bpf.c`, which gives each
//! connection its controller, its initial window and its pacing cap when its handshake is done. A policy is replaced as a whole.
//! Everything is kept by pins in the BPF file system, and [`Steered::revert`] takes all of it away.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod apply;
mod archive;
mod attached;
mod description;
mod document;
mod error;
mod layout;
mod listeners;
mod lock;
mod lookup;
mod moves;
mod networks;
mod overview;
mod pending;
mod pins;
mod question;
mod recorder;
mod sockets;
mod start;
mod steered;
mod tables;
mod text;

pub use apply::{AppliedPolicy, Request, apply};
pub use description::{Decided, Description};
pub use document::{
    CgroupDocument, DecidedDocument, ExplanationDocument, MoveDocument, StatusDocument,
};
pub use error::Error;
pub use listeners::ListenerChanges;
pub use lookup::Lookup;
pub use moves::{MoveRequest, Moves};
pub use networks::{Networks, NetworksError};
pub use overview::{SteeredCgroup, active_policies, other_programs, steered_below};
pub use pending::{PendingStatus, guard};
pub use pins::SteerPins;
pub use question::{Answer, Question};
pub use recorder::{Clients, Event, Recorder, Summary};
pub use steered::{Count, Status, Steered};
pub use tables::Loaded;
pub use uncork_records::{RecordsSpec, RecordsSummary};
