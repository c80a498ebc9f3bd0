//! The wall clock.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a writer of files is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall-clock time, for file names.
#[expect(clippy::disallowed_methods, reason = "a writer of files is an outermost layer")]
pub(crate) fn today() -> SystemTime {
    SystemTime::now()
}
