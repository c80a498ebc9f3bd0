//! The directory in which runs are stored as they finish.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use uncork_lab::{
    ARCHIVE_NAME, ArchiveIndex, DamagedRun, FinishedRun, Item, MANIFEST_NAME, Manifest,
    ManifestError, StateNames,
};

use crate::output;

/// The directory of runs within the results directory.
const RUNS: &str = "runs";

/// A directory of runs.
#[derive(Debug)]
pub(super) struct RunDirectory {
    /// The directory of the results.
    results: PathBuf,
    fingerprint: String,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    /// It already has runs, and `--resume` was not given.
    #[error("it has runs")]
    HasRuns,
    /// Its runs belong to another scenario.
    #[error("{0}")]
    Other(String),
    /// Its manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Another process is writing to it.
    #[error("it is in use")]
    InUse,
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The state of a run's entry.
pub(super) enum StoredRun {
    /// A usable entry.
    Run(Box<FinishedRun>),
    /// No entry.
    Missing,
    /// An unusable entry.
    Damaged(DamagedRun),
}

impl RunDirectory {
    /// The runs of `manifest` in `results`. Existing runs must match the manifest, and then
    /// `resume` must be given.
    pub(super) fn open(
        results: &Path,
        manifest: &Manifest,
        resume: bool,
    ) -> Result<Self, DirectoryError> {
        let fingerprint = manifest.fingerprint();
        let obstacle = manifest_in(results)?.map(|there| there.obstacle(manifest));
        match obstacle {
            Some(Some(obstacle)) => Err(DirectoryError::Other(obstacle)),
            Some(None) if !resume => Err(DirectoryError::HasRuns),
            _ => Ok(Self { results: results.to_path_buf(), fingerprint }),
        }
    }

    /// The runs in `results` and their manifest.
    pub(super) fn existing(results: &Path) -> Result<Option<(Self, Manifest)>, DirectoryError> {
        let Some(manifest) = manifest_in(results)? else { return Ok(None) };
        let fingerprint = manifest.fingerprint();
        Ok(Some((Self { results: results.to_path_buf(), fingerprint }, manifest)))
    }

    /// The results directory.
    pub(super) fn results(&self) -> &Path {
        &self.results
    }

    /// Creates the directory and its manifest. While the writer exists, no other process can create
    /// one.
    pub(super) fn writer(&self, manifest: &Manifest) -> Result<RunWriter, DirectoryError> {
        let directory = self.path("");
        fs::create_dir_all(&directory)?;
        let lock = lock(&directory)?;
        output::replace(&directory, MANIFEST_NAME, manifest.to_json().as_bytes())
            .map_err(|error| output::of_file(&format!("{RUNS}/{MANIFEST_NAME}"), &error))?;
        let path = self.path(ARCHIVE_NAME);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let end = ArchiveIndex::of(&mut BufReader::new(&mut file))?.end;
        let archive = Mutex::new(Archive { file, end });
        Ok(RunWriter { archive, fingerprint: self.fingerprint.clone(), _lock: lock })
    }

    /// Access to the stored runs.
    pub(super) fn reader(&self) -> io::Result<RunReader> {
        let path = self.path(ARCHIVE_NAME);
        let (file, index) = match File::open(&path) {
            Ok(file) => {
                let mut file = BufReader::new(file);
                let index = ArchiveIndex::of(&mut file)?;
                (Some(file), index)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (None, ArchiveIndex::default())
            }
            Err(error) => return Err(error),
        };
        Ok(RunReader {
            path,
            file,
            index,
            fingerprint: self.fingerprint.clone(),
            names: StateNames::default(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.results.join(RUNS).join(name)
    }
}

/// Reads the runs of a directory.
#[derive(Debug)]
pub(super) struct RunReader {
    /// The archive.
    pub(super) path: PathBuf,
    file: Option<BufReader<File>>,
    index: ArchiveIndex,
    fingerprint: String,
    names: StateNames,
}

impl RunReader {
    /// The stored state of the run `item`.
    pub(super) fn kept(&mut self, item: Item) -> io::Result<StoredRun> {
        let Some((place, file)) = self.index.entry(item).zip(self.file.as_mut()) else {
            return Ok(StoredRun::Missing);
        };
        let mut entry = vec![0; usize::try_from(place.end - place.start).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(place.start))?;
        file.read_exact(&mut entry)?;
        Ok(match FinishedRun::from_entry(&entry, item, &self.fingerprint, &mut self.names) {
            Ok(run) => StoredRun::Run(Box::new(run)),
            Err(damage) => StoredRun::Damaged(damage),
        })
    }

    /// Damage between entries, one sentence each.
    pub(super) fn damage(&self) -> impl Iterator<Item = String> {
        self.index.damage.iter().map(|place| {
            let (path, bytes) = (self.path.display(), place.end - place.start);
            format!("{path}: {bytes} bytes at {} are damaged or cut short", place.start)
        })
    }
}

/// Adds runs to a directory.
#[derive(Debug)]
pub(super) struct RunWriter {
    archive: Mutex<Archive>,
    fingerprint: String,
    _lock: Option<File>,
}

#[derive(Debug)]
struct Archive {
    file: File,
    /// Start of the next entry. Anything beyond is a truncated entry.
    end: u64,
}

impl RunWriter {
    /// Stores a run.
    pub(super) fn keep(&self, run: &FinishedRun) -> io::Result<()> {
        let entry = run.to_entry(&self.fingerprint);
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        archive.append(&entry).map_err(|error| of_archive(&error))
    }

    /// Syncs the stored runs to disk, so that they survive a power failure.
    pub(super) fn sync(&self) -> io::Result<()> {
        let archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        archive.file.sync_data().map_err(|error| of_archive(&error))
    }
}

impl Archive {
    fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(entry) {
            // A partial entry would be reported as damage later.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += entry.len() as u64;
        Ok(())
    }
}

fn of_archive(error: &io::Error) -> io::Error {
    output::of_file(&format!("{RUNS}/{ARCHIVE_NAME}"), error)
}

/// A lock on a directory, released when the process ends for any reason. No effect on systems
/// without directory locks.
fn lock(directory: &Path) -> Result<Option<File>, DirectoryError> {
    let Ok(file) = File::open(directory) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(DirectoryError::InUse),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn manifest_in(results: &Path) -> Result<Option<Manifest>, DirectoryError> {
    match fs::read_to_string(results.join(RUNS).join(MANIFEST_NAME)) {
        Ok(text) => Ok(Some(Manifest::from_json(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
