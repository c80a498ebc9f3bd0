//! A policy from its files: its own, its table's, and the list of what was signed.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Policy, PolicyError, SignatureError, Signed, TableError};

/// Why the files of a policy give none.
#[derive(Debug, Error)]
pub enum FileError {
    /// The policy's file cannot be read.
    #[error("cannot read '{file}': {1}", file = .0.display())]
    Unreadable(PathBuf, io::Error),
    /// The table's file cannot be read.
    #[error("cannot read the table '{file}': {1}", file = .0.display())]
    UnreadableTable(PathBuf, io::Error),
    /// It is not a policy.
    #[error("{}", .1.render(&.0.display().to_string(), false))]
    Policy(PathBuf, PolicyError),
    /// Its table is refused.
    #[error("table '{file}': {1}", file = .0.display())]
    Table(PathBuf, TableError),
    /// The list of what was signed is not there, or not by the owner of the key in this file.
    #[error("'{key}': {1}", key = .0.display())]
    Signature(PathBuf, SignatureError),
    /// A file is not as it was signed.
    #[error(transparent)]
    Unsigned(SignatureError),
}

impl Policy {
    /// The policy of a file, with its table. With a `key`, its owner must have signed both. Files are read with `read`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is refused. Then nothing of the policy is taken.
    pub fn from_files(
        file: &Path,
        key: Option<&Path>,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, FileError> {
        let signed = key.map(|key| {
            Signed::next_to(file, key, &read)
                .map_err(|error| FileError::Signature(key.into(), error))
        });
        let signed = signed.transpose()?;
        let check = |path: &Path, bytes: &[u8]| {
            signed.as_ref().map_or(Ok(()), |it| it.check(path, bytes).map_err(FileError::Unsigned))
        };
        let text = read(file).and_then(|bytes| {
            let text = String::from_utf8(bytes);
            text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text"))
        });
        let text = text.map_err(|error| FileError::Unreadable(file.into(), error))?;
        check(file, text.as_bytes())?;
        let policy = Self::parse(&file.display().to_string(), &text);
        let mut policy = policy.map_err(|error| FileError::Policy(file.into(), error))?;
        policy.release = signed.as_ref().map(|it| it.release().clone());
        if let Some(name) = policy.table_file() {
            let table = file.parent().unwrap_or(Path::new("")).join(name);
            let unreadable = |error| FileError::UnreadableTable(table.clone(), error);
            let bytes = read(&table).map_err(unreadable)?;
            check(&table, &bytes)?;
            policy.take_table(&bytes).map_err(|error| FileError::Table(table, error))?;
        }
        Ok(policy)
    }
}
