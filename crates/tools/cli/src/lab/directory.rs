//! The runs of a sweep, stored in a directory or an object store.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Seek, SeekFrom};
use std::path::Path;

use uncork_lab::{
    ArchiveIndex, DamagedRun, FinishedRun, Item, MANIFEST_NAME, Manifest, ManifestError,
    StateNames, is_archive,
};

use super::place::Place;
use super::writer::RunWriter;

/// The directory of runs within the results directory.
pub(super) const RUNS: &str = "runs";

/// A directory of runs.
#[derive(Debug)]
pub(super) struct RunDirectory {
    /// The place of the results.
    results: Place,
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

impl RunDirectory {
    /// The runs of `manifest` in `results`. Existing runs must match the manifest, and then
    /// `resume` must be given.
    pub(super) fn open(
        results: &Place,
        manifest: &Manifest,
        resume: bool,
    ) -> Result<Self, DirectoryError> {
        let fingerprint = manifest.fingerprint();
        let obstacle = manifest_in(results)?.map(|there| there.obstacle(manifest));
        match obstacle {
            Some(Some(obstacle)) => Err(DirectoryError::Other(obstacle)),
            Some(None) if !resume => Err(DirectoryError::HasRuns),
            _ => Ok(Self { results: results.clone(), fingerprint }),
        }
    }

    /// The runs in `results` and their manifest.
    pub(super) fn existing(results: &Place) -> Result<Option<(Self, Manifest)>, DirectoryError> {
        let Some(manifest) = manifest_in(results)? else { return Ok(None) };
        let fingerprint = manifest.fingerprint();
        Ok(Some((Self { results: results.clone(), fingerprint }, manifest)))
    }

    /// The place of the results.
    pub(super) fn results(&self) -> &Place {
        &self.results
    }

    /// What stores runs of `manifest`.
    pub(super) fn writer(&self, manifest: &Manifest) -> Result<RunWriter, DirectoryError> {
        RunWriter::create(&self.results, manifest)
    }

    /// Access to the stored runs.
    pub(super) fn reader(&self) -> io::Result<RunReader> {
        let archives = archives(&self.results)?;
        let (fingerprint, names) = (self.fingerprint.clone(), StateNames::default());
        Ok(RunReader { archives, fingerprint, names })
    }
}

/// Reads the runs of a directory.
pub(super) struct RunReader {
    archives: Vec<StoredArchive>,
    fingerprint: String,
    names: StateNames,
}

/// A run in an archive, or what is wrong with it.
pub(super) struct StoredCopy {
    /// The archive.
    pub(super) path: String,
    pub(super) run: Result<Box<FinishedRun>, DamagedRun>,
}

impl RunReader {
    /// The entries of the run `item`, at most one of each archive. A directory has one archive, a store has parts of one.
    pub(super) fn copies(&mut self, item: Item) -> io::Result<Vec<StoredCopy>> {
        let mut copies = Vec::new();
        for archive in &mut self.archives {
            let Some(entry) = archive.entry(item)? else { continue };
            let run = FinishedRun::from_entry(&entry, item, &self.fingerprint, &mut self.names);
            copies.push(StoredCopy { path: archive.path.clone(), run: run.map(Box::new) });
        }
        Ok(copies)
    }

    /// Damage between entries, one sentence each.
    pub(super) fn damage(&self) -> impl Iterator<Item = String> {
        self.archives.iter().flat_map(|archive| {
            archive.index.damage.iter().map(|place| {
                let (path, bytes) = (&archive.path, place.end - place.start);
                format!("{path}: {bytes} bytes at {} are damaged or cut short", place.start)
            })
        })
    }
}

/// An archive: a file, or an object that was read.
struct StoredArchive {
    path: String,
    content: Box<dyn ReadSeek>,
    index: ArchiveIndex,
}

trait ReadSeek: BufRead + Seek {}

impl<T: BufRead + Seek> ReadSeek for T {}

impl StoredArchive {
    fn new(path: String, content: impl BufRead + Seek + 'static) -> io::Result<Self> {
        let mut content: Box<dyn ReadSeek> = Box::new(content);
        let index = ArchiveIndex::of(&mut content)?;
        Ok(Self { path, content, index })
    }

    /// The bytes of the entry of `item`.
    fn entry(&mut self, item: Item) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.index.entry(item) else { return Ok(None) };
        let mut entry = vec![0; usize::try_from(place.end - place.start).unwrap_or(usize::MAX)];
        self.content.seek(SeekFrom::Start(place.start))?;
        self.content.read_exact(&mut entry)?;
        Ok(Some(entry))
    }
}

/// All archives of `results`. A directory may be a copy of a store, and so have parts.
fn archives(results: &Place) -> io::Result<Vec<StoredArchive>> {
    match results {
        Place::Directory(directory) => archives_in(&directory.join(RUNS)),
        Place::Store(prefix) => {
            let runs = results.join(RUNS);
            let parts = prefix.contents(RUNS, is_archive)?.into_iter();
            let archive = |(name, part): (String, _)| {
                StoredArchive::new(runs.join(&name).to_string(), Cursor::new(part))
            };
            parts.map(archive).collect()
        }
    }
}

fn archives_in(runs: &Path) -> io::Result<Vec<StoredArchive>> {
    let entries = match fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_archive) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let archive = |path: &std::path::PathBuf| {
        StoredArchive::new(path.display().to_string(), BufReader::new(File::open(path)?))
    };
    paths.iter().map(archive).collect()
}

fn manifest_in(results: &Place) -> Result<Option<Manifest>, DirectoryError> {
    let Some(content) = results.read(&format!("{RUNS}/{MANIFEST_NAME}"))? else { return Ok(None) };
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let text = String::from_utf8(content).map_err(invalid)?;
    Ok(Some(Manifest::from_json(&text)?))
}
