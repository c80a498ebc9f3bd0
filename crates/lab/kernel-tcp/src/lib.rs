//! A run over real connections: the kernel's TCP between network namespaces, over an emulated path.
//!
//! [`run`] takes the same [`uncork_sim::RunSpec`] as the simulator and returns the same records, in
//! real time. Each client is a separate host unless the flow names one; all servers share a host.
//! The kernel's statistics of its connections ([`uncork_diag`]) provide the time series and the
//! sender's figures; arrival times are measured by the readers. Flows may also be arbitrary
//! programs: their output is kept, and their controller is set on the route.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod client;
mod command;
mod error;
mod kernel;
mod output;
mod record;
mod records;
mod run;
mod scratch;
mod server;
mod traffic;
mod watch;

pub use command::{CommandRecord, CommandSide};
pub use error::KernelTcpError;
pub use kernel::Controllers;
pub use run::{KernelTcpRun, run};
