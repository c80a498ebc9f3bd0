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

fn main() -> io::Result<()> {
    let crates = CRATES.map(|name| (name.to_owned(), PathBuf::from(format!("../{name}/src"))));
    // The versions of all dependencies: a QUIC stack decides results, too.
    let lock = ("Cargo.lock".to_owned(), PathBuf::from("../../Cargo.lock"));
    let sources: Vec<_> = crates.into_iter().chain([lock]).collect();
    for (_, path) in &sources {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=UNCORK_BUILD_ID={}", digest::digest(&sources)?);
    Ok(())
}
