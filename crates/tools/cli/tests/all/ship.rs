//! `uncork records ship`, by its system calls.

use std::fs;
use std::process::Command;

use crate::common::Scratch;
use crate::common::killed::can_kill;

/// Otherwise a crash of the machine may take both: the new name is not on the disk yet, and the old one is gone.
#[test]
fn shipped_file_has_its_name_on_the_disk_before_the_source_is_removed() {
    if !can_kill() {
        return;
    }
    let scratch = Scratch::new("ship-flush");
    for directory in ["spool", "store"] {
        fs::create_dir(scratch.path(directory)).unwrap();
    }
    scratch.write("spool/rollup-a.parquet", "content");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-o", "calls", "-e", "trace=rename,fsync,unlink"]);
    strace.args([env!("CARGO_BIN_EXE_uncork"), "records", "ship", "spool", "store"]);
    assert!(strace.current_dir(scratch.path("")).status().unwrap().success());
    let calls = fs::read_to_string(scratch.path("calls")).unwrap();
    let at = |what: &str, path: &str| {
        let is_it = |line: &str| line.contains(&format!(" {what}(")) && line.contains(path);
        calls.lines().position(is_it).unwrap_or_else(|| panic!("{what} {path}:\n{calls}"))
    };
    let store = format!("{}>)", scratch.path("store").display());
    let [written, renamed, flushed, removed] = [
        at("fsync", ".rollup-a.parquet"),
        at("rename", "rollup-a.parquet"),
        at("fsync", &store),
        at("unlink", "spool/rollup-a.parquet"),
    ];
    assert!(written < renamed && renamed < flushed && flushed < removed, "{calls}");
}
