//! Files of roll-ups of many hosts as one file for each hour, day or other period.
//!
//! A file counts once: a merged file has the hashes of all files that it counts, so a merge that runs again takes only new
//! ones, and one that was ended in between loses nothing. The new file is there before the old one is removed; until then its
//! readers find two, and one of them counts all that the other does.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use uncork_rollup::{Merger, Metric, Rollup, RollupSpec};

use crate::rollup_files::{RollupName, write_rollup};

/// Why roll-ups were not merged. Periods that are done stay.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A file that cannot be read.
    #[error("cannot read '{path}': {1}", path = .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// A file that is not named as roll-ups are, or not a roll-up.
    #[error("{path}: {1}", path = .0.display())]
    Invalid(PathBuf, String),
    /// The directory of merged files.
    #[error("cannot write '{path}': {1}", path = .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
    /// Files that are damaged or cannot be read. Everything else was merged.
    #[error("left out, and everything else was merged:\n{}", .0.join("\n"))]
    LeftOut(Vec<String>),
}

/// The merged file of a period.
#[derive(Debug)]
pub struct MergedPeriod {
    /// Its file.
    pub file: PathBuf,
    /// What it counts.
    pub rollup: Rollup,
    /// How many files are new in it.
    pub new: usize,
}

/// Merges files of roll-ups of any hosts into `directory`: one file for each period of `spec`, under the name `spec.host`. Files that
/// `directory` has of this name count, too, and are replaced. Bins of other metrics than these are left out. `each` gets what is done, in the order of time.
///
/// A damaged file of one host does not stop the others: it is left out, and named at the end. A period with a damaged merged file
/// stays as it is: what that one counts may have no other file.
///
/// # Errors
///
/// See [`MergeError`].
pub fn merge_rollups(
    files: &[PathBuf],
    directory: &Path,
    spec: &RollupSpec,
    metrics: &[Metric],
    mut each: impl FnMut(MergedPeriod),
) -> Result<(), MergeError> {
    let unwritable = |error| MergeError::Unwritable(directory.to_owned(), error);
    let _lock = lock(directory).map_err(unwritable)?;
    let before = merged_files(directory, spec)?;
    let new = files.iter().filter(|file| !before.contains(file));
    let sources = before.iter().map(|file| (file, true)).chain(new.map(|file| (file, false)));
    let mut periods: BTreeMap<u64, Vec<Source<'_>>> = BTreeMap::new();
    for (path, is_before) in sources {
        let name = RollupName::of(path).ok_or_else(|| unnamed(path))?;
        let period = periods.entry(spec.period.start(name.start_ns)).or_default();
        period.push(Source { path, name, is_before });
    }
    let mut left_out = Vec::new();
    for (start, sources) in periods {
        if sources.len() == 1 && sources[0].is_before {
            continue;
        }
        let merger = Merger::new(spec.clone(), start).only(metrics);
        let Some((rollup, new)) = merged(sources.clone(), merger, &mut left_out)? else { continue };
        let file = write_rollup(directory, &rollup).map_err(unwritable)?;
        for old in sources.iter().filter(|it| it.is_before && *it.path != file) {
            fs::remove_file(old.path).map_err(unwritable)?;
        }
        each(MergedPeriod { file, rollup, new });
    }
    if left_out.is_empty() { Ok(()) } else { Err(MergeError::LeftOut(left_out)) }
}

/// Waits for another merge into the directory: two at once would leave two merged files with some files in common.
fn lock(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let lock =
        options.write(true).create(true).truncate(false).open(directory.join(".merge.lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// A file of a period.
#[derive(Clone)]
struct Source<'a> {
    path: &'a PathBuf,
    name: RollupName,
    /// Whether it is a merged file of this name, from an earlier run.
    is_before: bool,
}

/// The files as one roll-up, and how many are new in it; none if all files, or one of an earlier run, are damaged.
fn merged(
    mut files: Vec<Source<'_>>,
    mut merger: Merger,
    left_out: &mut Vec<String>,
) -> Result<Option<(Rollup, usize)>, MergeError> {
    // A merged file goes before the files that it counts.
    files.sort_by(|a, b| (b.name.sources, a.path).cmp(&(a.name.sources, b.path)));
    let mut new = 0;
    for source in files {
        let bytes = match whole(source.path, &source.name) {
            Ok(bytes) => bytes,
            Err(reason) => {
                left_out.push(reason);
                if source.is_before {
                    return Ok(None);
                }
                continue;
            }
        };
        let added = merger
            .add(bytes)
            .map_err(|error| MergeError::Invalid(source.path.clone(), error.to_string()))?;
        new += usize::from(added && !source.is_before);
    }
    let rollup = merger.into_rollup();
    Ok((!rollup.sources().is_empty()).then_some((rollup, new)))
}

/// Why this file is not what was written under its name, if it has the name of a roll-up.
pub fn rollup_damage(path: &Path) -> Option<String> {
    whole(path, &RollupName::of(path)?).err()
}

/// The bytes that were written under the name: others would count wrong, and next to a good copy twice.
fn whole(path: &Path, name: &RollupName) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("cannot read '{shown}': {error}"))?;
    if name.is_of(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{shown}: it is damaged, by the hash in its name; copy it again, or remove it"))
}

/// The merged files that the directory has of this name and length of periods.
fn merged_files(directory: &Path, spec: &RollupSpec) -> Result<Vec<PathBuf>, MergeError> {
    let unreadable = |error| MergeError::Unreadable(directory.to_owned(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if RollupName::of(&path).is_some_and(|name| name.is_merged_for(spec)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn unnamed(file: &Path) -> MergeError {
    if let Err(error) = fs::metadata(file) {
        return MergeError::Unreadable(file.to_owned(), error);
    }
    let reason = "not named as roll-ups are (rollup-HOST-TIME-PERIOD-HASH.parquet); keep the names of the files";
    MergeError::Invalid(file.to_owned(), reason.to_owned())
}
