//! `uncork lab from-records`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_flow::{FileError, FlowRecord, read_flows, read_json_lines};
use uncork_twin::{NoTwin, Twin, TwinSpec};

use super::args::FromRecordsArgs;
use super::file;
use crate::failure::Failure;
use crate::stdout;

const ARGUMENT: &str = "<RECORDS>";

pub(super) fn run(args: &FromRecordsArgs) -> Result<(), Failure> {
    let mut records = Vec::new();
    for file in files(&args.records)? {
        records.extend(read(&file)?);
    }
    let spec = TwinSpec {
        controllers: args.cc.clone(),
        clients: args.clients,
        by_network: args.by_network.map(|least| least as usize),
        only: args.only.clone(),
    };
    let shown = args.records.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let twin = Twin::of(&records, &spec).map_err(|error| match &error {
        NoTwin::UnknownGroup(only) => Failure::value("--only <AS|NETWORK>", only, &error),
        _ => Failure::value(ARGUMENT, shown.join(" "), &error),
    })?;
    for note in &twin.left_out {
        eprintln!("{note}; left out");
    }
    match &args.output {
        None => stdout::data(twin.text.as_bytes()),
        Some(file) => file::replace(file, twin.text.as_bytes()),
    }
}

/// The files that are given, and those of records in directories that are given, in order.
fn files(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |error: io::Error| Failure::unreadable(ARGUMENT, path, &error);
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if is_parquet(&entry) || entry.extension() == Some(OsStr::new("jsonl")) {
                inside.push(entry);
            }
        }
        inside.sort();
        if inside.is_empty() {
            let reason = "no *.parquet and no *.jsonl in it";
            return Err(Failure::value(ARGUMENT, path.display(), reason));
        }
        files.extend(inside);
    }
    Ok(files)
}

fn is_parquet(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("parquet"))
}

fn read(file: &Path) -> Result<Vec<FlowRecord>, Failure> {
    let bytes = fs::read(file).map_err(|error| Failure::unreadable(ARGUMENT, file, &error))?;
    let read = if is_parquet(file) { read_flows(bytes) } else { read_json_lines(bytes.as_slice()) };
    read.map_err(|error| match error {
        FileError::Codec { .. } | FileError::Io(_) => Failure::Environment(format!(
            "cannot read '{}' for '{ARGUMENT}': {error}",
            file.display()
        )),
        error => Failure::value(ARGUMENT, file.display(), error),
    })
}
