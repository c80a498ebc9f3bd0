//! Sets `UNCORK_BUILD_ID`: a hash of every source that decides what a run results in.

use std::io;
use std::path::PathBuf;

#[path = "build/digest.rs"]
mod digest;

/// This crate and the workspace's crates that it runs. `report` only presents results.
const CRATES: [&str; 13] = [
    "apps", "cc", "config", "diag", "emu", "flow", "lab", "path", "quic", "quic-sim", "real",
    "sim", "units",
];

/// The versions of all dependencies, and files that are compiled in.
const OTHERS: [&str; 4] =
    ["Cargo.lock", "crates/path/traces", "crates/lab/presets.toml", "crates/quic-sim/identity"];

fn main() -> io::Result<()> {
    let crates = CRATES.map(|name| (name.to_owned(), PathBuf::from(format!("../{name}/src"))));
    let others = OTHERS.map(|name| (name.to_owned(), PathBuf::from(format!("../../{name}"))));
    let sources: Vec<_> = crates.into_iter().chain(others).collect();
    for (_, path) in &sources {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=UNCORK_BUILD_ID={}", digest::digest(&sources)?);
    Ok(())
}
