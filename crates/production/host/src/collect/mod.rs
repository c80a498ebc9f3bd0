//! Takes a snapshot of the live host.

mod boot;
mod connections;
mod container;
mod copies;
mod kernel;
mod modprobe;
mod namespaces;
mod processes;
mod rtnetlink;
mod sockets;
mod tuned;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

pub use connections::connections_by_controller;
pub(crate) use kernel::module;
pub(crate) use namespaces::is_initial;
pub use namespaces::{Others, in_other_namespaces};
#[cfg(fuzzing)]
pub(crate) use rtnetlink::read_messages;

use rustix::process::geteuid;

use crate::facts::{FACTS_SCHEMA, HIDDEN, HostFacts, Route};
use crate::netlink::Netlink;

/// The routes of the caller's network namespace that set an algorithm.
///
/// # Errors
///
/// If the namespace cannot be read: no netlink.
pub fn routes() -> io::Result<Vec<Route>> {
    rtnetlink::routes(&mut Netlink::open()?)
}

/// Takes a snapshot. Changes nothing; opens a connection over loopback to determine the kernel's version of BBR, and two in each
/// namespace with a default that `uncork kernel` loaded, to find old copies. The caller fills in [`HostFacts::other_programs`] and
/// [`HostFacts::policies`]. Namespaces that the caller may not enter are listed in [`HostFacts::unread_namespaces`].
///
/// # Errors
///
/// If the caller's own namespace cannot be read: no `/proc`, or no netlink.
pub fn collect() -> io::Result<HostFacts> {
    let own = namespaces::own()?;
    let (mut unread_namespaces, mut unread_reasons) = (BTreeMap::new(), BTreeMap::new());
    let mut all = vec![own];
    let (found, hidden_processes) = processes::namespaces();
    for (inode, namespace) in found {
        if inode == all[0].inode {
            all[0].processes = namespace.processes;
            continue;
        }
        match namespaces::enter(&namespace.file, inode, namespace.processes.clone()) {
            Ok(read) => all.push(read),
            Err(error) => {
                if error.kind() != io::ErrorKind::PermissionDenied {
                    unread_reasons.insert(inode, error.to_string());
                }
                unread_namespaces.insert(inode, namespace.processes);
            }
        }
    }
    if hidden_processes > 0 && geteuid().is_root() {
        let reason = "root lacks CAP_SYS_PTRACE here, as in most containers";
        unread_reasons.insert(HIDDEN, reason.to_owned());
    }
    let boot = boot::read(Path::new("/"));
    Ok(HostFacts {
        schema: FACTS_SCHEMA.to_owned(),
        kernel: kernel::kernel(&all[0])?,
        container: container::container(),
        boot_sysctls: boot.settings,
        unread_sysctls: boot.unread,
        has_systemd: Some(boot.has_systemd),
        has_kernel_unit: boot.has_kernel_unit,
        namespaces: all,
        unread_namespaces,
        unread_reasons,
        hidden_processes,
        other_programs: Vec::new(),
        policies: Vec::new(),
    })
}
