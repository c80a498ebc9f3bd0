//! `uncork records ship`, by its system calls.

use std::fs;
use std::process::Command;

use crate::common::killed::can_kill;
use crate::common::{Finished, Scratch, command, finish};

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

#[test]
fn store_that_is_only_read_is_refused_before_there_is_a_file_to_ship() {
    let scratch = Scratch::new("ship-https");
    fs::create_dir(scratch.path("records")).unwrap();
    let mut ship = command("records ship records https://cdn.example/uncork");
    ship.current_dir(scratch.path(""));
    let Finished { status, stderr, .. } = finish(ship);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("use s3://"), "{stderr}");
}

/// A server that was killed leaves its last record unfinished.
#[test]
fn lines_that_end_early_are_left_out_of_rollups_with_a_note() {
    let scratch = Scratch::new("rollup-cut");
    let records = include_str!("../../../../../docs/from-logs/records.jsonl");
    let whole: Vec<&str> = records.lines().take(2).collect();
    scratch.write("a.jsonl", format!("{}\n\n{{\"engine\":\"se", whole.join("\n")));
    let mut rollup = command("records rollup a.jsonl -o out --host edge1");
    rollup.current_dir(scratch.path(""));
    let Finished { status, stderr, .. } = finish(rollup);
    assert_eq!(status, 0, "{stderr}");
    let note = "note: a.jsonl: unfinished lines were left out: 1\n";
    assert_eq!(stderr, note);
}
