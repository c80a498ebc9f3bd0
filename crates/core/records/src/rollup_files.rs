//! The files of roll-ups. Any program that ships files can carry each once: it is whole, and its name says what it has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use uncork_flow::publish;
use uncork_rollup::{Period, Rollup, RollupSpec, content_hash};

use crate::stamp::{stamp, unix_s_of};

/// What names of roll-ups begin with.
pub const ROLLUP_PREFIX: &str = "rollup-";

/// Whether a file has a name of a roll-up.
pub fn is_named_rollup(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(ROLLUP_PREFIX) && name.ends_with(".parquet"))
}

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

/// A roll-up of the same host and period that `directory` has, with other content. Next to this one, it would count twice.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn other_rollup(directory: &Path, rollup: &Rollup) -> io::Result<Option<PathBuf>> {
    let prefix = name_before_hash(rollup);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_same = |name: &str| name.starts_with(&prefix) && RollupName::of(&path).is_some();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_same) {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let own = directory.join(name(rollup, &rollup.to_parquet().map_err(io::Error::other)?));
    Ok(found.into_iter().filter(|path| *path != own).min())
}

fn name(rollup: &Rollup, file: &[u8]) -> String {
    format!("{}{:016x}.parquet", name_before_hash(rollup), content_hash(file))
}

fn name_before_hash(rollup: &Rollup) -> String {
    let host = valid(&rollup.spec().host);
    let start = stamp(UNIX_EPOCH + Duration::from_nanos(rollup.start_ns()));
    let period = rollup.spec().period;
    let sources = rollup.sources().len();
    let of = if sources > 0 { format!("{OF}{sources}") } else { String::new() };
    format!("{ROLLUP_PREFIX}{host}-{start}-{period}{of}-")
}

/// Before the number of files that a merged file counts.
const OF: &str = "-of-";

/// A host as part of a name.
fn valid(host: &str) -> String {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    host.chars().map(|it| if is_valid(it) { it } else { '_' }).collect()
}

/// What the name of a roll-up says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RollupName {
    host: String,
    /// The beginning of its period, since 1970.
    pub(crate) start_ns: u64,
    period: Period,
    /// How many files a merged file counts; 0 of a host's own roll-up.
    pub(crate) sources: u64,
    /// The hash of its content.
    hash: u64,
}

impl RollupName {
    /// `None` of another file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix(ROLLUP_PREFIX)?;
        let (rest, hash) = name.strip_suffix(".parquet")?.rsplit_once('-')?;
        let hash = (hash.len() == 16).then(|| u64::from_str_radix(hash, 16).ok())??;
        let merged = rest.rsplit_once(OF).and_then(|(rest, of)| Some((rest, of.parse().ok()?)));
        let (rest, sources) = merged.unwrap_or((rest, 0));
        let (rest, period) = rest.rsplit_once('-')?;
        let (host, start) = rest.rsplit_once('-')?;
        Some(Self {
            host: host.to_owned(),
            start_ns: unix_s_of(start)?.checked_mul(1_000_000_000)?,
            period: Period::of_merged(period).ok()?,
            sources,
            hash,
        })
    }

    /// Whether these are the bytes that were written under this name.
    pub(crate) fn is_of(&self, bytes: &[u8]) -> bool {
        content_hash(bytes) == self.hash
    }

    pub(crate) fn is_merged_for(&self, spec: &RollupSpec) -> bool {
        self.sources > 0 && self.host == valid(&spec.host) && self.period == spec.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_and_other_files_have_none() {
        let name = |text: &str| RollupName::of(Path::new(text));
        let own = name("a/rollup-edge-of-1-20261201T001500.000Z-5min-8d3f0a1b2c4e5f60.parquet");
        let own = own.expect("a roll-up's name");
        assert_eq!((&*own.host, own.start_ns), ("edge-of-1", 1_796_084_100_000_000_000));
        assert_eq!((own.period, own.sources), (Period::DEFAULT, 0));
        let of = name("rollup-fra-20261201T000000.000Z-1d-of-96-8d3f0a1b2c4e5f60.parquet");
        let of = of.expect("the name of a merged file");
        assert!(of.is_merged_for(&RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") }));
        assert!(!of.is_merged_for(&RollupSpec::new("fra")) && of.sources == 96);
        for other in [
            "rollup-edge1-20261201T000000.000Z-5min-8d3f0a1b.parquet",
            "rollup-edge1-20261301T000000.000Z-5min-8d3f0a1b2c4e5f60.parquet",
            "rollup-edge1-20261201T000000.000Z-7min-8d3f0a1b2c4e5f60.parquet",
            "responses-20261201T000000.000Z-8d3f0a1b2c4e5f60.parquet",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
