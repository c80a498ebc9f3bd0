//! What the Linux kernel tells of its TCP connections.
//!
//! `NETLINK_SOCK_DIAG` (sock_diag(7)) answers one request with all TCP sockets of a network
//! namespace: who, in which state, `struct tcp_info`, the congestion control and what it believes.
//! It needs no capability. [`Diag::dump`] asks and hands over one [`Connection`] after another;
//! [`Query::request`] and [`Replies`] are the part without a socket, for any system: bytes to the
//! kernel and bytes from it.
//!
//! Kernels of different age answer at different lengths. What a kernel does not send is `None`, and
//! what it appends is left unread.
#![forbid(unsafe_code)]

mod attributes;
mod cc_info;
mod cc_name;
mod connection;
mod error;
mod fields;
mod figures;
mod mem_info;
mod netlink;
mod query;
mod replies;
#[cfg(target_os = "linux")]
mod socket;
mod state;
mod tcp_info;

pub use cc_info::{Bbr2Info, BbrInfo, CcInfo, DctcpInfo, VegasInfo};
pub use cc_name::CcName;
pub use connection::Connection;
pub use error::{DiagError, Malformed};
pub use mem_info::MemInfo;
pub use query::{Family, Query};
pub use replies::{Replies, Summary};
#[cfg(target_os = "linux")]
pub use socket::Diag;
pub use state::{CaState, States, TcpState};
pub use tcp_info::{AccEcn, TcpInfo, TcpOptions};
