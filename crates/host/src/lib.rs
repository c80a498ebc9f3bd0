//! Congestion control on a Linux host.
//!
//! [`HostFacts`] is a snapshot of a host: kernel, network namespaces, sockets, routes, queue disciplines, boot
//! configuration. [`collect`] takes it without privileges and changes nothing. [`diagnose`] is pure: it
//! looks for what contradicts the algorithm that the host should run. A recorded snapshot is diagnosed as
//! well as the live host. [`change`] changes the host to the state in a file, and undoes it. [`watch`] follows the host's
//! TCP connections.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod change;
#[cfg(target_os = "linux")]
mod collect;
mod doctor;
mod facts;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
pub mod watch;

#[cfg(target_os = "linux")]
pub use collect::collect;
pub use doctor::{Confidence, Diagnosis, Finding, Severity, Summary, diagnose};
pub use facts::{
    Bbr, Container, FACTS_SCHEMA, HostFacts, Interface, Kernel, Module, Namespace, Route, Setting,
    Socket,
};
