//! Reads one network namespace.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use uncork_cc::is_kernel_controller;

use super::{copies, processes, rtnetlink, sockets};
use crate::facts::Namespace;
use crate::netlink::Netlink;

const OWN: &str = "/proc/thread-self/ns/net";
const IPV4: &str = "/proc/sys/net/ipv4";
const SYSCTLS: [&str; 15] = [
    "net.core.default_qdisc",
    "net.core.wmem_max",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// The caller's namespace.
pub(super) fn own() -> io::Result<Namespace> {
    let inode = processes::linked(Path::new(OWN));
    read(inode.unwrap_or(0), Vec::new())
}

/// Another namespace, entered on a separate thread. Needs `CAP_SYS_ADMIN`.
pub(super) fn enter(file: &Path, inode: u64, processes: Vec<String>) -> io::Result<Namespace> {
    inside(file, move || read(inode, processes))
}

/// Does `work` in a namespace, on a thread of its own.
fn inside<T: Send + 'static>(
    file: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let file = File::open(file)?;
    let work = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    thread::spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// The other network namespaces, and what was done in them.
#[derive(Debug)]
pub struct Others<T> {
    /// Some of the processes of each namespace, and the result there: an error, too, if it could not be entered.
    pub results: Vec<(Vec<String>, io::Result<T>)>,
    /// Processes in namespaces that the caller may not see.
    pub hidden_processes: u64,
}

/// Does `work` in each network namespace but the caller's, on threads of their own.
pub fn in_other_namespaces<T: Send + 'static>(
    work: impl Fn() -> io::Result<T> + Clone + Send + 'static,
) -> Others<T> {
    let (mut found, hidden_processes) = processes::namespaces();
    if let Some(own) = processes::linked(Path::new(OWN)) {
        found.remove(&own);
    }
    let results = found.into_values().map(|it| (it.processes, inside(&it.file, work.clone())));
    Others { results: results.collect(), hidden_processes }
}

/// Whether the calling thread is in the host's initial namespace. Only that one has the sysctls of all
/// devices (linux net/core/sysctl_net_core.c, `net_core_table`). Before Linux 5.13 other namespaces could
/// write the list of allowed algorithms, too.
pub(crate) fn is_initial() -> bool {
    Path::new("/proc/sys/net/core/netdev_max_backlog").exists()
}

/// The calling thread's namespace: `/proc/sys/net` and netlink belong to the thread.
fn read(inode: u64, processes: Vec<String>) -> io::Result<Namespace> {
    let mut netlink = Netlink::open()?;
    let available = algorithms("tcp_available_congestion_control")?;
    let default = words("tcp_congestion_control")?.join(" ");
    let is_loaded = is_kernel_controller(&default) && available.contains(&default);
    let (routes, limiting_routes) = rtnetlink::all_routes(&mut netlink)?;
    Ok(Namespace {
        inode,
        is_initial: is_initial(),
        processes,
        default_is_old: is_loaded.then(|| copies::default_is_old(&default)).flatten(),
        available,
        allowed: algorithms("tcp_allowed_congestion_control")?,
        default,
        sysctls: SYSCTLS.iter().filter_map(|key| sysctl(key)).collect::<BTreeMap<_, _>>(),
        interfaces: rtnetlink::interfaces(&mut netlink)?,
        routes,
        limiting_routes,
        sockets: sockets::sockets().map_err(io::Error::other)?,
    })
}

fn words(name: &str) -> io::Result<Vec<String>> {
    let path = Path::new(IPV4).join(name);
    let text = fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// A list of algorithms; empty where it is not known: before Linux 5.7 only the initial namespace has these files.
fn algorithms(name: &str) -> io::Result<Vec<String>> {
    match words(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_initial() => Ok(Vec::new()),
        read => read,
    }
}

/// Absent if this kernel or this namespace lacks the sysctl.
fn sysctl(key: &str) -> Option<(String, String)> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(key.replace('.', "/"))).ok()?;
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    Some((key.to_owned(), words.join(" ")))
}
