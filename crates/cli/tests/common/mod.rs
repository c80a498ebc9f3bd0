//! Running the built binary.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What a finished command left.
pub struct Finished {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// `uncork` with the arguments of `line`, which are separated by spaces.
pub fn uncork(line: &str) -> Finished {
    finish(command(line))
}

pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uncork"));
    command.args(line.split_whitespace()).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// To standard error itself, which the test harness does not capture: nobody should believe that
/// something was tested that was not.
pub fn not_run(why: &str) {
    let _unwritable = writeln!(std::io::stderr(), "\n*** NOT RUN: {why} ***\n");
}

/// `uncork lab` with `arguments`, in the directory of `scratch`.
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

/// Both directories have the same results, byte for byte.
pub fn assert_same(one: &Path, other: &Path) {
    let tables = ["cells.csv", "flows.parquet", "objects.parquet", "series.parquet"];
    for name in tables.into_iter().chain(["scenario.toml", "summary.json", "report.html"]) {
        let [one, other] = [one, other].map(|path| fs::read(path.join(name)).unwrap());
        assert!(one == other, "{name}");
    }
}

/// The data of a command that does what it should and says nothing else.
pub fn stdout(line: &str) -> String {
    let Finished { status, stdout, stderr } = uncork(line);
    assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
    stdout
}

/// A directory of the test's own, gone at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of all entries, hidden ones too.
    pub fn entries(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(below)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
