//! The wall clock, for documents and deadlines that outlive this process.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in whole seconds.
#[expect(clippy::disallowed_methods, reason = "the command line is the outermost layer")]
pub(crate) fn unix_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as i64
}
