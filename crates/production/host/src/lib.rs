//! Congestion control on a Linux host.
//!
//! [`HostFacts`] is a snapshot of a host: kernel, network namespaces, sockets, routes, queue
//! disciplines, boot configuration. [`collect`] takes it without privileges and changes nothing.
//! [`diagnose`] is pure: it finds everything that prevents the host from running the wanted
//! algorithm, on the live host or in a recorded snapshot. [`change`] changes the host to the state
//! described in a file, and undoes the changes. [`prove`] measures what another controller is worth on the host.
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
pub mod prove;
#[cfg(all(test, target_os = "linux"))]
mod schemas;

#[cfg(target_os = "linux")]
pub use collect::{Others, collect, connections_by_controller, in_other_namespaces, routes};
pub use doctor::{Confidence, Diagnosis, Finding, FindingId, Severity, Summary, diagnose};
pub use facts::{
    Bbr, Container, FACTS_SCHEMA, HostFacts, Interface, Kernel, LimitingRoute, Module, Namespace,
    Route, Setting, Socket,
};
#[cfg(all(fuzzing, target_os = "linux"))]
pub use netlink::read_datagram;
