//! Which network namespace and which boot the caller is in.

use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::sys::socket::GetSockOpt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::collect::is_initial;

const OWN: &str = "/proc/thread-self/ns/net";
/// Each namespace has such a file with an inode of its own, which all processes may see: the caller's, and that of
/// the process that boots this host or container.
const OWN_DEVICES: &str = "/proc/thread-self/net/dev";
const BOOT_DEVICES: &str = "/proc/1/net/dev";

sockopt_impl!(
    /// A number of the socket's network namespace that no other one gets until the next boot (socket(7), Linux 5.14).
    NamespaceCookie,
    GetOnly,
    libc::SOL_SOCKET,
    libc::SO_NETNS_COOKIE,
    u64
);

/// A name for the caller's network namespace. The inode of one that is gone comes again within seconds; only where
/// the kernel has no cookies it must do.
pub(super) fn name() -> String {
    match cookie() {
        Some(cookie) => cookie.to_string(),
        None => format!("inode-{}", inode(OWN).unwrap_or(0)),
    }
}

fn cookie() -> Option<u64> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    NamespaceCookie.get(&socket).ok()
}

/// Whether the caller is in the network namespace that the boot configures. Who may not see process 1 (`hidepid`)
/// asks whether the namespace is the initial one.
pub(super) fn boots() -> bool {
    if let (Some(own), Some(boots)) = (inode(OWN_DEVICES), inode(BOOT_DEVICES)) {
        return own == boots;
    }
    is_initial()
}

fn inode(file: &str) -> Option<u64> {
    fs::metadata(file).ok().map(|found| found.ino())
}

/// A name for this boot of the host or container, and this network namespace.
pub(super) fn boot() -> String {
    format!("{} net:{}", started(), name())
}

/// Whether a name that [`boot`] gave is of this boot.
pub(super) fn is_this_boot(boot: &str) -> bool {
    boot.strip_prefix(&started()).is_some_and(|namespace| namespace.starts_with(" net:"))
}

/// [`boot`] in the journals of uncork 0.1, which named namespaces by their inodes.
pub(super) fn boot_by_inode() -> String {
    format!("{} net:{}", started(), inode(OWN).unwrap_or(0))
}

fn started() -> String {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let boot = read("/proc/sys/kernel/random/boot_id");
    // Field 22: when process 1 started. A container that starts again has the host's boot ID.
    let stat = read("/proc/1/stat");
    let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let started = after_name.split_ascii_whitespace().nth(19).unwrap_or_default();
    format!("{} {started}", boot.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_that_of_the_namespace() {
        let own = cookie().expect("Linux 5.14");
        assert_eq!(cookie(), Some(own));
    }
}
