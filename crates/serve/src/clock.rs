//! The wall clocks.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// For dates in headers.
#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn today() -> SystemTime {
    SystemTime::now()
}
