//! The conformance kit: traces of events and decisions with which an implementation in any language
//! can check itself. `conformance/README.md` documents the format.
//!
//! ```console
//! $ cargo run -p uncork-cc --example conformance -- write crates/core/cc/conformance/traces
//! $ cargo run -p uncork-cc --example conformance -- check crates/core/cc/conformance/traces
//! ```

#[path = "../../src/link.rs"]
#[expect(dead_code, reason = "the unit tests use the rest")]
mod link;
mod record;
mod replay;
mod scenarios;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};

// For link.rs, which is also a module of uncork-cc's unit tests.
use uncork_cc::{
    Acked, AppState, Controller, Feedback, Lost, RttSample, SentPacket, Snapshot, Timeout, Token,
    pacer,
};

use scenarios::SCENARIOS;

type Error = Box<dyn std::error::Error>;

/// The file name of each trace, and its contents.
fn traces() -> impl Iterator<Item = (String, String)> {
    SCENARIOS.iter().flat_map(|scenario| {
        scenario.algorithms.iter().map(|algorithm| {
            let name = format!("{}-{}.jsonl", algorithm.name(), scenario.name);
            (name, scenario.record(*algorithm))
        })
    })
}

fn write(dir: &Path) -> Result<String, Error> {
    fs::create_dir_all(dir)?;
    let mut bytes = 0;
    let mut count = 0;
    for (name, trace) in traces() {
        fs::write(dir.join(name), &trace)?;
        (bytes, count) = (bytes + trace.len(), count + 1);
    }
    Ok(format!("{count} traces, {bytes} bytes"))
}

fn trace_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no *.jsonl files", dir.display()).into());
    }
    Ok(paths)
}

fn check(dir: &Path) -> Result<String, Error> {
    let paths = trace_files(dir)?;
    for path in &paths {
        let trace = fs::read_to_string(path)?;
        replay::check(&trace).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(format!("{} traces agree", paths.len()))
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let report = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", dir] => write(Path::new(dir))?,
        ["check", dir] => check(Path::new(dir))?,
        _ => return Err("usage: conformance write|check DIR".into()),
    };
    println!("{report}");
    Ok(())
}

#[cfg(test)]
mod tests;
