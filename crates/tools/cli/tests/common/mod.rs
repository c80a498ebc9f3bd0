//! Runs the built binary.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

pub mod dashboard;
pub mod exporter;
pub mod killed;
pub mod sandbox;
pub mod schema;
pub mod signed;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub use uncork_testkit::Scratch;
use uncork_testkit::{Capability, not_run};

/// Results of a finished command.
pub struct Finished {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `uncork` with the space-separated arguments of `line`.
pub fn uncork(line: &str) -> Finished {
    finish(command(line))
}

pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uncork"));
    command.args(line.split_whitespace()).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Whether this machine can emulate paths; otherwise reports a skipped test or fails.
pub fn can_emulate() -> bool {
    let probe = uncork("emu -q -- true");
    if probe.status == 3 {
        not_run(Capability::Netns, &probe.stderr);
    }
    probe.status != 3
}

/// `uncork lab` with `arguments` in the directory of `scratch`.
pub fn lab(scratch: &Scratch, arguments: &str) -> Command {
    let mut lab = command(&format!("lab {arguments}"));
    lab.current_dir(scratch.path(""));
    lab
}

pub fn finish(mut command: Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Finished {
        status: status.code().expect("no signal"),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Asserts that both directories have the same results, byte for byte.
pub fn assert_same(one: &Path, other: &Path) {
    let tables = ["cells.csv", "flows.parquet", "objects.parquet", "series.parquet"];
    for name in tables.into_iter().chain(["scenario.toml", "summary.json", "report.html"]) {
        let [one, other] = [one, other].map(|path| fs::read(path.join(name)).unwrap());
        assert!(one == other, "{name}");
    }
}

/// The stdout of a command that succeeds without any message on stderr.
pub fn stdout(line: &str) -> String {
    let Finished { status, stdout, stderr } = uncork(line);
    assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
    stdout
}
