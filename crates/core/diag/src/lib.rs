//! TCP statistics of the Linux kernel, by sock_diag.
//!
//! `NETLINK_SOCK_DIAG` (sock_diag(7)) reports all TCP sockets of a network namespace for one request:
//! addresses, state, `struct tcp_info`, the congestion control and its model. It requires no capability.
//! [`Diag::dump`] sends the request and passes on one [`Connection`] after another; [`Query::request`]
//! and [`Replies`] work without a socket, on any system.
//!
//! Kernels of different age send structures of different length. Missing fields are `None`, unknown ones
//! are ignored.
#![forbid(unsafe_code)]

mod attributes;
mod cc_info;
#[cfg(target_os = "linux")]
mod close_events;
mod connection;
mod error;
mod fields;
mod figures;
mod mem_info;
mod name;
mod netlink;
mod query;
mod replies;
#[cfg(target_os = "linux")]
mod socket;
mod state;
mod storage;
mod tcp_info;

pub use cc_info::{Bbr2Info, BbrInfo, BbrState, CcInfo, DctcpInfo, VegasInfo};
#[cfg(target_os = "linux")]
pub use close_events::CloseEvents;
pub use connection::Connection;
pub use error::{DiagError, Malformed};
pub use mem_info::MemInfo;
pub use name::{CcName, Name};
pub use query::{Family, Query, Request};
pub use replies::{Replies, Summary};
#[cfg(target_os = "linux")]
pub use socket::Diag;
pub use state::{CaState, StateSet, TcpState};
pub use tcp_info::{AccEcnInfo, ResumeMark, TcpInfo, TcpOptions};
