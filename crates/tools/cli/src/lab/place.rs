//! Where the output of a sweep is: a directory, or a prefix of an object store.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::remote::Remote;
use crate::failure::Failure;
use crate::output;

/// A directory of files, here or in an object store.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A directory.
    Directory(PathBuf),
    /// A prefix of an object store.
    Store(StorePrefix),
}

/// The objects with a prefix.
#[derive(Clone, Debug)]
pub(super) struct StorePrefix {
    remote: Arc<Remote>,
    /// The address that was opened. It has no credential: stores refuse addresses that have one.
    address: String,
    /// The folder below it, with a slash at its end, or nothing.
    folder: String,
}

impl StorePrefix {
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.folder)
    }

    /// Writes an object whole. One with the same content may exist.
    pub(super) fn add(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remote.add(&self.name(name), bytes)
    }

    /// Writes an object whole, over an earlier one.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remote.replace(&self.name(name), bytes)
    }

    /// The names in `folder` that are `wanted`, with the contents of their objects.
    pub(super) fn contents(
        &self,
        folder: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut names = self.remote.list(&self.name(folder))?;
        names.retain(|name| wanted(name));
        let objects: Vec<String> =
            names.iter().map(|name| self.name(&format!("{folder}/{name}"))).collect();
        let contents = self.remote.get_all(&objects)?;
        let pairs = names.into_iter().zip(contents);
        Ok(pairs.filter_map(|(name, content)| Some((name, content?))).collect())
    }
}

impl Place {
    /// The place at `given`, the value of `argument`: a directory, `file:///DIRECTORY`, or the address of an object store.
    pub(super) fn open(argument: &str, given: &Path) -> Result<Self, Failure> {
        match given.to_str().and_then(|text| text.split_once("://")) {
            None => Ok(Self::Directory(given.to_path_buf())),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::Directory(path.into())),
            Some(_) => {
                let address = given.to_string_lossy().trim_end_matches('/').to_owned();
                let remote = Arc::new(Remote::open(argument, &address)?);
                Ok(Self::Store(StorePrefix { remote, address, folder: String::new() }))
            }
        }
    }

    /// The place `name` within it.
    pub(super) fn join(&self, name: &str) -> Self {
        match self {
            Self::Directory(directory) => Self::Directory(directory.join(name)),
            Self::Store(prefix) => {
                let folder = format!("{}{name}/", prefix.folder);
                Self::Store(StorePrefix { folder, ..prefix.clone() })
            }
        }
    }

    /// The content of the file `name`, if it exists.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Directory(directory) => match fs::read(directory.join(name)) {
                Ok(content) => Ok(Some(content)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            Self::Store(prefix) => Ok(prefix.remote.get_all(&[prefix.name(name)])?.pop().flatten()),
        }
    }

    /// The sorted places in it. `None` if it does not exist.
    pub(super) fn places(&self) -> io::Result<Option<Vec<Self>>> {
        let Self::Directory(directory) = self else { return Ok(Some(self.folders()?)) };
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut below = Vec::new();
        for entry in entries {
            below.push(entry?.path());
        }
        below.sort();
        below.retain(|path| path.is_dir());
        Ok(Some(below.into_iter().map(Self::Directory).collect()))
    }

    fn folders(&self) -> io::Result<Vec<Self>> {
        let Self::Store(prefix) = self else { return Ok(Vec::new()) };
        let names = prefix.remote.list(prefix.folder.trim_end_matches('/'))?;
        Ok(names.iter().map(|name| self.join(name)).collect())
    }

    /// Checks that the files `names` can be written, without changing anything. A store is asked when its first object is written.
    pub(super) fn probe(&self, names: &[&str]) -> Result<(), Failure> {
        match self {
            Self::Directory(directory) => {
                output::probe(directory, names).map_err(|error| self.failure(&error))
            }
            Self::Store(_) => Ok(()),
        }
    }

    /// Writes `files`: all or none in a directory, one after the other in a store.
    pub(super) fn write(&self, files: &[output::File<'_>]) -> io::Result<()> {
        match self {
            Self::Directory(directory) => output::write(directory, files),
            Self::Store(prefix) => {
                files.iter().try_for_each(|(name, content)| prefix.replace(name, content))
            }
        }
    }

    /// It is the place of `--output`, and cannot be read or written.
    pub(super) fn failure(&self, error: &io::Error) -> Failure {
        match self {
            Self::Directory(directory) => Failure::output(directory, error),
            Self::Store(_) => Failure::Environment(format!(
                "cannot use '{self}' of '--output <DIR>': {error}; run the command again once the store \
                 can be read and written"
            )),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(f),
            Self::Store(StorePrefix { address, folder, .. }) => {
                f.write_str(format!("{address}/{folder}").trim_end_matches('/'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_without_a_scheme_or_with_that_of_files_is_a_directory() {
        for (given, expected) in
            [("out", "out"), ("file:///srv/out", "/srv/out"), ("s3:/x", "s3:/x")]
        {
            let place = Place::open("--output <DIR>", Path::new(given)).unwrap();
            assert!(matches!(place, Place::Directory(_)), "{given}");
            assert_eq!(place.to_string(), expected);
            assert_eq!(place.join("3").to_string(), format!("{expected}/3"));
        }
    }

    #[test]
    fn place_with_another_scheme_or_a_user_is_refused_without_showing_the_user() {
        for given in ["file://host/out", "ftp://hunter2@host/out", "s3://hunter2@bucket/out"] {
            let Err(Failure::Value(message)) = Place::open("--output <DIR>", Path::new(given))
            else {
                panic!("{given}")
            };
            assert!(
                message.contains("--output <DIR>") && !message.contains("hunter2"),
                "{message}"
            );
        }
    }

    #[test]
    fn place_in_a_store_is_shown_with_its_folders() {
        let place = Place::open("--output <DIR>", Path::new("s3://bucket/sweep/")).unwrap();
        assert_eq!(place.to_string(), "s3://bucket/sweep");
        assert_eq!(place.join("3").join("runs").to_string(), "s3://bucket/sweep/3/runs");
    }
}
