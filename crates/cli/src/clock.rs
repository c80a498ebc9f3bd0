//! The wall clock, for progress and for the cost of a run. No result depends on it.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the command line is the outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
