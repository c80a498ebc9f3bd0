//! Commands that are killed at each of their steps, by strace.

use std::process::Command;

use uncork_testkit::{Capability, not_run};

/// Functions of a shell: `steps` and `killed`.
pub const SHELL: &str = include_str!("killed.sh");

/// Whether strace is there; a message if it is not.
pub fn can_kill() -> bool {
    let found = Command::new("strace").arg("-V").output().is_ok();
    if !found {
        not_run(Capability::Programs, "strace, to kill a command at each of its steps");
    }
    found
}
