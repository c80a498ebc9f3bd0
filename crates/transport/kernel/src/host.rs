//! The host's list of congestion controls.

use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Missing};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Where the BPF file system is.
pub(crate) const FILE_SYSTEM: &str = "/sys/fs/bpf";

/// The names that sockets can choose.
pub fn available() -> Vec<String> {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// What sockets of this network namespace get that choose nothing.
pub fn default() -> String {
    fs::read_to_string(DEFAULT).unwrap_or_default().trim().to_owned()
}

/// Makes a control the default of this network namespace.
pub fn set_default(name: &str) -> Result<(), Error> {
    fs::write(DEFAULT, name).map_err(|error| Error::step(format!("make {name} the default"), error))
}

/// Makes one of the kernel's own controls the default of this network namespace again, and says which.
/// Another namespace than the host's accepts only controls that every user may choose: reno always is.
pub(crate) fn fall_back() -> Result<&'static str, Error> {
    let set = |name| set_default(name).map(|()| name);
    set("cubic").or_else(|_| set("reno"))
}

/// Whether `directory` is in a BPF file system at [`FILE_SYSTEM`], so that it can have pins.
///
/// # Errors
///
/// If it is not: the mount point that is missing, or hidden in this mount namespace.
pub(crate) fn check_file_system(directory: &Path) -> Result<(), Error> {
    let root = Path::new(FILE_SYSTEM);
    let mounts = |process| fs::read_to_string(format!("/proc/{process}/mounts"));
    let is_mounted = |mounts: io::Result<String>| has_bpf(&mounts.unwrap_or_default(), root);
    if directory.starts_with(root) && is_mounted(mounts("self")) {
        return Ok(());
    }
    let place = root.display().to_string();
    Err(if is_mounted(mounts("1")) {
        Missing::Hidden { place, namespace: own_namespace() }.into()
    } else {
        Missing::FileSystem(place).into()
    })
}

/// Whether a BPF file system is mounted at `root` (proc_pid_mounts(5)); what was mounted over another one comes later.
fn has_bpf(mounts: &str, root: &Path) -> bool {
    let mut kinds = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        // What is mounted above hides what was below.
        root.starts_with(place).then(|| (Path::new(place) == root, fields.next()))
    });
    kinds.next_back() == Some((true, Some("bpf")))
}

/// The file by which `ip netns` names this network namespace, if it does.
fn own_namespace() -> String {
    let same = |entry: &DirEntry| {
        let own = fs::metadata("/proc/thread-self/ns/net").ok()?;
        let other = fs::metadata(entry.path()).ok()?;
        Some((own.dev(), own.ino()) == (other.dev(), other.ino()))
    };
    let mut names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let own = names.find(|entry| same(entry) == Some(true));
    own.map_or_else(|| "/run/netns/NAME".to_owned(), |entry| entry.path().display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line is that of `ip netns exec`, which mounts a sysfs of the namespace over all of /sys.
    #[test]
    fn a_bpf_file_system_counts_unless_another_mount_hides_it() {
        let root = Path::new("/sys/fs/bpf");
        let mounts =
            "sysfs /sys sysfs rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\nproc /proc proc rw 0 0\n";
        assert!(has_bpf(mounts, root));
        assert!(!has_bpf("sysfs /sys sysfs rw 0 0\ntmpfs /sys/fs/bpf tmpfs rw 0 0\n", root));
        assert!(!has_bpf(&format!("{mounts}atlanta /sys sysfs rw 0 0\n"), root));
    }
}
