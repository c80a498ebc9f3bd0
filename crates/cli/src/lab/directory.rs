//! The directory that runs are kept in as they end.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uncork_lab::{
    DamagedRun, FinishedRun, Item, MANIFEST_NAME, Manifest, ManifestError, StateNames, run_name,
};

use crate::output;

/// The directory of runs within that of the results.
const RUNS: &str = "runs";

/// A directory of runs.
#[derive(Debug)]
pub(super) struct RunDirectory {
    /// Where the results go, too.
    results: PathBuf,
    fingerprint: String,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub(super) enum DirectoryError {
    /// There are runs already, which nobody asked to go on with.
    HasRuns,
    /// Its runs are of something else.
    Other(String),
    /// Another process writes to it.
    InUse,
    /// The system does not let us.
    Io(io::Error),
}

/// A lock on a directory, which ends with the process however that ends. Where the system has none
/// for directories, it is nothing.
#[derive(Debug)]
pub(super) struct Hold {
    _locked: Option<File>,
}

impl Hold {
    fn of(directory: &Path) -> Result<Self, DirectoryError> {
        let Ok(file) = File::open(directory) else { return Ok(Self { _locked: None }) };
        match file.try_lock() {
            Ok(()) => Ok(Self { _locked: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(DirectoryError::InUse),
            Err(TryLockError::Error(_)) => Ok(Self { _locked: None }),
        }
    }
}

/// What became of a run's file.
pub(super) enum Kept {
    /// It is there.
    Run(Box<FinishedRun>),
    /// There is none.
    Missing,
    /// There is one, and it is of no use.
    Damaged(DamagedRun),
}

impl From<io::Error> for DirectoryError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ManifestError> for DirectoryError {
    fn from(error: ManifestError) -> Self {
        Self::Other(error.to_string())
    }
}

impl RunDirectory {
    /// The runs of `manifest` in `results`. Runs that are there already must be such as it would make
    /// again, and `resume` must say that they are known of.
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

    /// Makes the directory, and says in it what its runs belong to. As long as what is given back is
    /// there, no other process can do so.
    pub(super) fn prepare(&self, manifest: &Manifest) -> Result<Hold, DirectoryError> {
        fs::create_dir_all(self.path(""))?;
        let hold = Hold::of(&self.path(""))?;
        self.put(MANIFEST_NAME, manifest.to_json().as_bytes())?;
        Ok(hold)
    }

    /// The runs that are in `results`, and what they belong to.
    pub(super) fn existing(results: &Path) -> Result<Option<(Self, Manifest)>, DirectoryError> {
        let Some(manifest) = manifest_in(results)? else { return Ok(None) };
        let fingerprint = manifest.fingerprint();
        Ok(Some((Self { results: results.to_path_buf(), fingerprint }, manifest)))
    }

    /// The directory of the results.
    pub(super) fn results(&self) -> &Path {
        &self.results
    }

    /// The file of a run.
    pub(super) fn path_of(&self, item: Item) -> PathBuf {
        self.path(&run_name(item))
    }

    /// Keeps a run.
    pub(super) fn keep(&self, run: &FinishedRun) -> io::Result<()> {
        self.put(&run_name(run.item()), &run.to_file(&self.fingerprint))
    }

    /// What is kept of the run `item`.
    pub(super) fn kept(&self, item: Item, names: &mut StateNames) -> io::Result<Kept> {
        let file = match fs::read(self.path_of(item)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::Missing),
            Err(error) => return Err(error),
        };
        Ok(match FinishedRun::from_file(&file, item, &self.fingerprint, names) {
            Ok(run) => Kept::Run(Box::new(run)),
            Err(damage) => Kept::Damaged(damage),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.results.join(RUNS).join(name)
    }

    /// Writes a file that is there as a whole or not at all, whenever the process ends.
    fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let unfinished = self.path(&format!(".{name}.{}", std::process::id()));
        let written = fs::write(&unfinished, content);
        written.and_then(|()| fs::rename(&unfinished, self.path(name))).map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            output::of_file(&format!("{RUNS}/{name}"), &error)
        })
    }
}

fn manifest_in(results: &Path) -> Result<Option<Manifest>, DirectoryError> {
    match fs::read_to_string(results.join(RUNS).join(MANIFEST_NAME)) {
        Ok(text) => Ok(Some(Manifest::from_json(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
