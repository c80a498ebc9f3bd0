//! Sets `UNCORK_BUILD_ID`: a hash of all sources that affect the results of a run.

use std::io;
use std::path::PathBuf;

#[path = "build/digest.rs"]
mod digest;

/// This crate and the workspace crates it runs. `report` is excluded because it only presents
/// results.
const CRATES: [&str; 13] = [
    "core/cc",
    "core/config",
    "core/diag",
    "core/flow",
    "core/path",
    "core/units",
    "lab/apps",
    "lab/emu",
    "lab/kernel-tcp",
    "lab/lab",
    "lab/quic-sim",
    "lab/sim",
    "transport/quic",
];

/// The versions of all dependencies, and files compiled in.
const OTHERS: [&str; 3] = ["Cargo.lock", "crates/core/path/traces", "crates/lab/quic-sim/identity"];

fn main() -> io::Result<()> {
    let crates = CRATES.map(|name| (name.to_owned(), PathBuf::from(format!("../../{name}/src"))));
    let others = OTHERS.map(|name| (name.to_owned(), PathBuf::from(format!("../../../{name}"))));
    let sources: Vec<_> = crates.into_iter().chain(others).collect();
    for (_, path) in &sources {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=UNCORK_BUILD_ID={}", digest::digest(&sources)?);
    Ok(())
}
