//! The host's list of congestion controls.

use std::path::Path;

use crate::error::{Error, Missing};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const MOUNTS: &str = "/proc/self/mounts";

/// The names that sockets can choose.
pub fn available() -> Vec<String> {
    let names = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// What sockets of this network namespace get that choose nothing.
pub fn default() -> String {
    std::fs::read_to_string(DEFAULT).unwrap_or_default().trim().to_owned()
}

/// Makes a control the default of this network namespace.
pub fn set_default(name: &str) -> Result<(), Error> {
    std::fs::write(DEFAULT, name)
        .map_err(|error| Error::step(format!("make {name} the default"), error))
}

/// Makes one of the kernel's own controls the default of this network namespace again, and says which.
/// Another namespace than the host's accepts only controls that every user may choose: reno always is.
pub fn fall_back() -> Result<&'static str, Error> {
    let set = |name| set_default(name).map(|()| name);
    set("cubic").or_else(|_| set("reno"))
}

/// Whether `directory` is in the root of a BPF file system, so that it can have pins.
///
/// # Errors
///
/// If it is not: the mount point that is missing.
pub fn check_pin_directory(directory: &Path) -> Result<(), Error> {
    let root = directory.parent().unwrap_or(Path::new("/"));
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    let is_mounted = mounts.lines().any(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next().is_some_and(|place| Path::new(place) == root) && fields.next() == Some("bpf")
    });
    if is_mounted { Ok(()) } else { Err(Missing::FileSystem(root.display().to_string()).into()) }
}
