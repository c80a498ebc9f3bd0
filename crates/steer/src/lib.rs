//! Puts a policy in force for all TCP connections of a cgroup, by BPF: for a server that knows nothing of it.
//!
//! [`apply`] turns a policy (`uncork-policy`) into maps and a program of `bpf/steer.bpf.c`, which gives each
//! connection its controller and its pacing cap when its handshake is done. A policy is exchanged as a whole.
//! Everything is kept by pins in the BPF file system, and [`Steered::revert`] takes all of it away.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod apply;
mod attached;
mod description;
mod error;
mod layout;
mod lock;
mod lookup;
mod moves;
mod names;
mod networks;
mod pending;
mod pins;
mod question;
mod recorder;
mod sockets;
mod steered;
mod tables;

pub use apply::{Applied, Request, apply};
pub use description::{Decided, Description};
pub use error::Error;
pub use lookup::Lookup;
pub use moves::{MoveRequest, Moves};
pub use networks::{Networks, NetworksError};
pub use pending::{PendingStatus, guard};
pub use pins::Pins;
pub use question::{Answer, Question};
pub use recorder::{Clients, Event, Recorder, Summary};
pub use steered::{Count, Other, Status, Steered};
pub use tables::Loaded;
pub use uncork_records::{RecordsSpec, RecordsSummary};
