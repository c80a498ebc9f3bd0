//! The wall clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use uncork_policy::UnixTime;

#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// For dates in headers.
#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn today() -> SystemTime {
    SystemTime::now()
}

/// For policies.
pub(crate) fn unix() -> UnixTime {
    let since = today().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(since.as_secs() as i64)
}
