//! `uncork host watch`, over recorded sessions and the kernel.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use common::uncork;

#[test]
fn a_session_that_is_no_session_is_refused_by_line() {
    let run = uncork("host watch --replay Cargo.toml");
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.stderr.contains("'Cargo.toml': line 1: "), "{}", run.stderr);
}
