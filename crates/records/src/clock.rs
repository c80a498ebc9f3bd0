//! The wall clocks.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a writer of files is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// For names of files.
#[expect(clippy::disallowed_methods, reason = "a writer of files is an outermost layer")]
pub(crate) fn today() -> SystemTime {
    SystemTime::now()
}
