//! The files of roll-ups. Any program that ships files can carry each once: it is whole, and its name says what it has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use uncork_flow::publish;
use uncork_rollup::{Rollup, content_hash};

use crate::stamp::stamp;

/// What names of roll-ups begin with.
pub const ROLLUP_PREFIX: &str = "rollup-";

/// Writes a roll-up to `directory`, under a name of its host, period and content. A file of this name has this content, so it
/// does not matter whether it exists.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_rollup(directory: &Path, rollup: &Rollup) -> io::Result<PathBuf> {
    let file = rollup.to_parquet().map_err(io::Error::other)?;
    let name = name(rollup, &file);
    let (part, whole) = (directory.join(format!(".{name}.part")), directory.join(name));
    let written = fs::write(&part, &file).and_then(|()| publish(&part, &whole));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.map(|()| whole)
}

fn name(rollup: &Rollup, file: &[u8]) -> String {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let host: String =
        rollup.spec().host.chars().map(|it| if valid(it) { it } else { '_' }).collect();
    let start = stamp(UNIX_EPOCH + Duration::from_nanos(rollup.start_ns()));
    let (period, hash) = (rollup.spec().period, content_hash(file));
    format!("{ROLLUP_PREFIX}{host}-{start}-{period}-{hash:016x}.parquet")
}
