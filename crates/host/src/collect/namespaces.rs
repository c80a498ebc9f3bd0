//! Reads one network namespace.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{processes, rtnetlink, sockets};
use crate::facts::Namespace;
use crate::netlink::Netlink;

const IPV4: &str = "/proc/sys/net/ipv4";
const SYSCTLS: [&str; 11] = [
    "net.core.default_qdisc",
    "net.core.wmem_max",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// The caller's namespace.
pub(super) fn own() -> io::Result<Namespace> {
    let inode = processes::linked(Path::new("/proc/thread-self/ns/net"));
    read(inode.unwrap_or(0), Vec::new())
}

/// Another namespace, entered on a separate thread. Needs `CAP_SYS_ADMIN`.
pub(super) fn enter(file: &Path, inode: u64, processes: Vec<String>) -> io::Result<Namespace> {
    let file = File::open(file)?;
    let work = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        read(inode, processes)
    };
    thread::spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// Whether the calling thread is in the host's initial namespace. Only that one has the sysctls of all
/// devices (linux net/core/sysctl_net_core.c, `net_core_table`). Before Linux 5.13 other namespaces could
/// write the list of allowed algorithms, too.
pub(crate) fn is_initial() -> bool {
    Path::new("/proc/sys/net/core/netdev_max_backlog").exists()
}

/// The calling thread's namespace: `/proc/sys/net` and netlink belong to the thread.
fn read(inode: u64, processes: Vec<String>) -> io::Result<Namespace> {
    let words = |name: &str| -> io::Result<Vec<String>> {
        let text = fs::read_to_string(Path::new(IPV4).join(name))?;
        Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
    };
    let mut netlink = Netlink::open()?;
    Ok(Namespace {
        inode,
        is_initial: is_initial(),
        processes,
        available: words("tcp_available_congestion_control")?,
        allowed: words("tcp_allowed_congestion_control")?,
        default: words("tcp_congestion_control")?.join(" "),
        sysctls: SYSCTLS.iter().filter_map(|key| sysctl(key)).collect::<BTreeMap<_, _>>(),
        interfaces: rtnetlink::interfaces(&mut netlink)?,
        routes: rtnetlink::routes(&mut netlink)?,
        sockets: sockets::sockets().map_err(io::Error::other)?,
    })
}

/// Absent if this kernel or this namespace lacks the sysctl.
fn sysctl(key: &str) -> Option<(String, String)> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(key.replace('.', "/"))).ok()?;
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    Some((key.to_owned(), words.join(" ")))
}
