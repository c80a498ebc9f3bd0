//! The limit of open files and sockets of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit to the hard limit. Shells set a soft limit of 1024 for the sake of programs that use
/// `select`.
pub(crate) fn allow_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _refused = setrlimit(Resource::Nofile, limit);
}

/// The active limit; `None` without a limit.
pub(crate) fn allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
