//! Divides the file descriptors of the process among their uses.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// One in this many descriptors is for files of responses.
const FILES: u64 = 4;
/// The smallest and the largest number of open files of responses.
const MIN_FILES: u64 = 8;
const MAX_FILES: u64 = 65_536;
/// Descriptors for the admin endpoint's connections, for databases that are read again and for
/// files of records; at most one in this many.
const RESERVE: u64 = 64;
const RESERVE_SHARE: u64 = 8;

/// Maximum number of open files of responses.
pub(crate) fn for_files() -> usize {
    (allowed() / FILES).clamp(MIN_FILES, MAX_FILES) as usize
}

/// Maximum number of connections over TCP, given the descriptors that are open now. The rest is reserved, so
/// that operators can always connect.
pub(crate) fn for_connections() -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let reserve = RESERVE.min(allowed() / RESERVE_SHARE);
    let room = allowed().saturating_sub(open + for_files() as u64 + reserve);
    usize::try_from(room.max(1)).unwrap_or(usize::MAX)
}

fn allowed() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
