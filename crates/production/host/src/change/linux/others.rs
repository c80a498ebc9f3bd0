//! What the other journals of a state directory hold: of other network namespaces, and of earlier boots.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::host::Watchdog;
use super::super::journal::Journal;
use super::guard::find;
use super::namespace::is_this_boot;
use super::state::{StateDirectory, read};

/// A journal that is not the caller's.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct OtherJournal {
    /// Its file.
    pub journal: PathBuf,
    /// Whether its network namespace is of this boot; null if the journal cannot be read.
    pub this_boot: Option<bool>,
    /// The file of the desired state, if one is applied or waits.
    pub file: Option<String>,
    /// When that was applied, in seconds of Unix time.
    pub since_unix_s: Option<u64>,
    /// Whether the process lives that undoes open changes; null if none are open.
    pub guard: Option<Watchdog>,
    /// Why the journal cannot be read.
    pub unreadable: Option<String>,
}

impl StateDirectory {
    /// All other journals of the directory that hold a desired state or open changes, in the order of their names.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn others(&self) -> io::Result<Vec<OtherJournal>> {
        let files = match fs::read_dir(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files?,
        };
        let mut files = files.map(|file| Ok(file?.path())).collect::<io::Result<Vec<_>>>()?;
        files.sort();
        Ok(files.iter().filter_map(|file| self.other(file)).collect())
    }

    fn other(&self, file: &Path) -> Option<OtherJournal> {
        let name = file.file_name()?.to_str()?.strip_suffix(".json")?;
        if name == self.name() || !(name == "host" || name.starts_with("host-net-")) {
            return None;
        }
        match read(file) {
            Ok(journal) => self.named(name).described(file, journal),
            Err(error) => Some(OtherJournal {
                journal: file.to_owned(),
                this_boot: None,
                file: None,
                since_unix_s: None,
                guard: None,
                unreadable: Some(error.to_string()),
            }),
        }
    }

    fn described(&self, file: &Path, journal: Journal) -> Option<OtherJournal> {
        let Journal { boot, applied, open, .. } = journal;
        let this_boot = is_this_boot(&boot);
        // What an earlier boot had begun, nothing undoes: its namespace is gone.
        let guard = (open.is_some() && this_boot).then(|| find(self));
        let is_open = open.is_some();
        let desired = open.and_then(|open| open.next).or(applied);
        (desired.is_some() || is_open).then(|| OtherJournal {
            journal: file.to_owned(),
            this_boot: Some(this_boot),
            since_unix_s: desired.as_ref().map(|it| it.since_unix_s),
            file: desired.map(|it| it.file),
            guard,
            unreadable: None,
        })
    }
}
