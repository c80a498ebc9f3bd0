//! The descriptors that the process may have, and what they are for.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// For files of responses: one of so many.
const FILES: u64 = 4;
/// At least, and at most, so many files of responses are open.
const FEWEST_FILES: u64 = 8;
const MOST_FILES: u64 = 65_536;
/// For the admin endpoint's connections, databases that are read again and files of records; no more than one of so
/// many.
const RESERVE: u64 = 64;
const RESERVE_SHARE: u64 = 8;

/// How many files of responses may be open.
pub(crate) fn for_files() -> usize {
    (allowed() / FILES).clamp(FEWEST_FILES, MOST_FILES) as usize
}

/// How many connections over TCP there is room for beside what is open now, so that operators can always connect.
pub(crate) fn for_connections() -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let reserve = RESERVE.min(allowed() / RESERVE_SHARE);
    let room = allowed().saturating_sub(open + for_files() as u64 + reserve);
    usize::try_from(room.max(1)).unwrap_or(usize::MAX)
}

fn allowed() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
