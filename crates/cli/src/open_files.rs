//! How many files and sockets this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Takes as many as the system allows: the limit that shells give, 1024 as a rule, is for programs that use
/// `select`. What cannot be had is not asked for.
pub(crate) fn allow_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _refused = setrlimit(Resource::Nofile, limit);
}

/// How many there may be; `None` if there is no limit.
pub(crate) fn allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
