//! Reads policies and databases of origins, for all commands that need them.

use std::fs;
use std::path::{Path, PathBuf};

use uncork_policy::{FileError, Origins, Policy};
use uncork_private_files::releases::Releases;

use crate::color;
use crate::failure::Failure;
use crate::values::Color;

/// Reads a policy, with its table. With a `key`, its owner must have signed both, and none that is later may have been accepted
/// by this user before.
pub(crate) fn read(file: &Path, key: Option<&Path>, color: Color) -> Result<Policy, Failure> {
    let policy = Policy::from_files(file, key, |path| fs::read(path));
    let policy = policy.map_err(|error| match error {
        FileError::Unreadable(file, error) => Failure::unreadable("<FILE>", &file, &error),
        FileError::UnreadableTable(file, error) => Failure::unreadable("table", &file, &error),
        FileError::Policy(file, error) => {
            let name = file.display().to_string();
            Failure::Shown(error.render(&name, color::on_stderr(color)))
        }
        FileError::Table(file, error) => Failure::value("table", file.display(), error),
        FileError::Signature(key, error) => {
            Failure::value("--policy-key <FILE>", key.display(), error)
        }
        FileError::Unsigned(error) => Failure::value("<FILE>", file.display(), error),
    })?;
    if let Some(release) = policy.release() {
        let checked = Releases::of_user().check(release);
        checked.map_err(|error| Failure::value("<FILE>", file.display(), error))?;
    }
    Ok(policy)
}

/// Reads databases of origins.
pub(crate) fn origins(files: &[PathBuf]) -> Result<Origins, Failure> {
    let mut origins = Origins::new();
    for file in files {
        let argument = "--geo <FILE.mmdb>";
        let bytes = fs::read(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
        let added = origins.add(bytes);
        added.map_err(|error| Failure::value(argument, file.display(), error))?;
    }
    Ok(origins)
}
