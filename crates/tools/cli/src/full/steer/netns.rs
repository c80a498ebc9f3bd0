//! Connections are listed by network namespace: which one, and whether it is that of the service.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::failure::Failure;

const OWN: &str = "/proc/thread-self/ns/net";

/// Moves this thread into a network namespace. Mounts stay, unlike with `ip netns exec`, which hides the BPF file system.
pub(super) fn enter(namespace: Option<&Path>) -> Result<(), Failure> {
    const ARGUMENT: &str = "--netns <NAME|FILE>";
    let Some(namespace) = namespace else { return Ok(()) };
    let file = file_of(namespace);
    let opened = File::open(&file).map_err(|error| Failure::unreadable(ARGUMENT, &file, &error))?;
    move_into_link_name_space(opened.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
        let file = file.display();
        Failure::Environment(format!(
            "cannot enter the network namespace {file}: {error}; it needs CAP_SYS_ADMIN and a file of `ip netns` or /proc/PID/ns/net"
        ))
    })
}

/// The file of a namespace: a name is one of `ip netns`.
fn file_of(namespace: &Path) -> PathBuf {
    if namespace.components().count() > 1 {
        return namespace.to_owned();
    }
    Path::new("/run/netns").join(namespace)
}

/// Warns of a process of the cgroup that is in another network namespace than this thread. What cannot be seen is left out.
pub(super) fn warn_of_others(cgroup: &Path) {
    let own = inode(OWN.as_ref());
    let processes = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let files = processes.lines().map(|process| format!("/proc/{process}/ns/net"));
    let mut others = files.filter(|file| {
        let other = inode(file.as_ref());
        other.is_some() && own.is_some() && other != own
    });
    if let Some(file) = others.next() {
        eprintln!(
            "warning: {} has processes in another network namespace; their connections are not included; add --netns {file}",
            cgroup.display()
        );
    }
}

fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|about| about.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_ip_netns_and_a_path_is_itself() {
        for (namespace, file) in [("web", "/run/netns/web"), ("/proc/7/ns/net", "/proc/7/ns/net")] {
            assert_eq!(file_of(namespace.as_ref()), Path::new(file));
        }
    }
}
