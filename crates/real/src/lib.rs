//! A run over real connections: the kernel's TCP between network namespaces, over an emulated path.
//!
//! [`run`] takes the same [`uncork_sim::RunSpec`] as the simulator and gives the same records, in real
//! time. Each client is a host of its own unless the flow names one; all servers are one host. What
//! the kernel tells of its connections ([`uncork_diag`]) becomes the series and the figures of the
//! sender; when bytes arrive is seen by who reads them. Flows may be programs instead, of which nothing is
//! known beforehand: what they print is kept, and their controller is that of the route.
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
pub use error::RealError;
pub use kernel::kernel_name;
pub use run::{RealRun, run};
