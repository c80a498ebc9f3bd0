//! Flow records that a command reads: Parquet files, JSON Lines, and directories of both.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_flow::{FileError, FlowRecord, read_flows, read_json_lines};

use crate::failure::Failure;

/// The records in the files and directories of `argument`, in order.
pub(crate) fn read(argument: &str, given: &[PathBuf]) -> Result<Vec<FlowRecord>, Failure> {
    let mut records = Vec::new();
    for file in files(argument, given)? {
        records.extend(read_file(argument, &file)?);
    }
    Ok(records)
}

/// The files that are given, and those of records in directories that are given, in order.
pub(crate) fn files(argument: &str, given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |error: io::Error| Failure::unreadable(argument, path, &error);
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if is_rollup(&entry) {
                continue;
            }
            if is_parquet(&entry) || entry.extension() == Some(OsStr::new("jsonl")) {
                inside.push(entry);
            }
        }
        inside.sort();
        if inside.is_empty() {
            let reason = "no *.parquet and no *.jsonl in it";
            return Err(Failure::value(argument, path.display(), reason));
        }
        files.extend(inside);
    }
    Ok(files)
}

/// Roll-ups are next to records, and count the same traffic.
fn is_rollup(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(uncork_records::ROLLUP_PREFIX))
}

/// A server that was killed leaves its last record unfinished.
fn note_cut(file: &Path, lines: usize) {
    if lines > 0 {
        eprintln!("note: {}: unfinished lines were left out: {lines}", file.display());
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("parquet"))
}

pub(crate) fn read_file(argument: &str, file: &Path) -> Result<Vec<FlowRecord>, Failure> {
    let bytes = fs::read(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
    let read = if is_parquet(file) {
        read_flows(bytes)
    } else {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let lines = lines.count();
        read_json_lines(bytes.as_slice()).inspect(|records| note_cut(file, lines - records.len()))
    };
    read.map_err(|error| match error {
        FileError::Codec { .. } | FileError::Io(_) => Failure::Environment(format!(
            "cannot read '{}' for '{argument}': {error}",
            file.display()
        )),
        error => Failure::value(argument, file.display(), error),
    })
}
