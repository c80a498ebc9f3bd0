//! Named objects, each written whole: a directory, or an object store.
//!
//! Object stores need the feature `objects`. Programs see only the address: `/srv/fleet`, `s3://bucket/prefix`, `gs://…`, `az://…`,
//! or `https://…`, which is only read.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod directory;
#[cfg(feature = "objects")]
mod objects;
mod spool;

use std::fmt;
use std::path::Path;

use thiserror::Error;

pub use directory::Directory;
#[cfg(feature = "objects")]
pub use objects::Objects;
pub use spool::{Amount, Pass, Spool};

/// A store of named objects, which are written whole.
pub trait Store {
    /// Returns the object of at most `max` bytes, or `Unchanged` if its tag equals `known`.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the object is larger.
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError>;

    /// Returns the objects in the order of `names`. Object stores are asked for several at a time.
    fn get_all(&self, names: &[String], max: u64) -> Vec<Result<GetResult, StoreError>> {
        names.iter().map(|name| self.get(name, max, None)).collect()
    }

    /// Writes an object whole.
    ///
    /// # Errors
    ///
    /// The store cannot be written, or the condition does not hold.
    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError>;

    /// Writes an object with the content of a file, which may be large. An object that already has this content stays.
    ///
    /// # Errors
    ///
    /// The file cannot be read, the store cannot be written, or it has an object of this name with other content.
    fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError>;

    /// Returns the sorted names of the objects in a folder, without the folder's name.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError>;
}

/// Identifies the content of an object: its `ETag`, or its generation on Google Cloud Storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    etag: String,
    generation: Option<String>,
}

/// What a store returns for the name of an object.
#[derive(Clone, Debug)]
pub enum GetResult {
    /// The object does not exist.
    Absent,
    /// The object has the content of the tag that the caller knows.
    Unchanged,
    /// The object with other content.
    Object(Object),
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its tag.
    pub tag: Tag,
    /// When it was written, by the clock of the store.
    pub modified_unix_s: u64,
}

/// The condition under which an object is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None: it is always written.
    Any,
    /// No object has the name.
    New,
    /// The object in the store has this tag.
    Same(Tag),
}

/// Why a store refused a request. The text never has a credential.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another writer has changed the object, so that the condition does not hold.
    #[error("{0}: another program has written it meanwhile; run the command again")]
    Conflict(String),
    /// The object is larger than the caller reads.
    #[error("{0}: it has more than {1} bytes, which are the most that are read")]
    Large(String, u64),
    /// It cannot be read or written now.
    #[error("{0}: {1}")]
    Away(String, String),
    /// The directory of the store does not exist. The remedy: make or mount it.
    #[error("{0}: no such directory")]
    NoDirectory(String),
    /// The store takes no writes, for the reason.
    #[error("{0}: {1}")]
    ReadOnly(String, String),
    /// The address names no store.
    #[error("{0}")]
    Address(String),
    /// A file of this host cannot be read.
    #[error("{0}: {1}")]
    File(String, String),
}

impl StoreError {
    /// Whether the store as a whole cannot be reached now, so that the next request would fail as well.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(..) | Self::NoDirectory(_))
    }
}

/// The store at an address.
///
/// # Errors
///
/// The address names no store, or its credentials cannot be found.
pub fn open(address: &str) -> Result<Box<dyn Store + Send + Sync>, StoreError> {
    match address.split_once("://") {
        None => Ok(Box::new(Directory::new(address.as_ref()))),
        Some(("file", path)) if path.starts_with('/') => {
            Ok(Box::new(Directory::new(path.as_ref())))
        }
        #[cfg(feature = "objects")]
        Some(("s3" | "gs" | "az" | "https" | "http", _)) => Ok(Box::new(Objects::open(address)?)),
        Some(_) => Err(StoreError::Address(EXPECTED.to_owned())),
    }
}

/// An address for messages: without a user, a password and a query, which may be credentials.
pub fn shown(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let host = rest.split('/').next().unwrap_or_default();
    let name = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{name}{}", &rest[host.len()..])
}

#[cfg(feature = "objects")]
const EXPECTED: &str = "expected a directory, file:///DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or https://HOST/PREFIX";
#[cfg(not(feature = "objects"))]
const EXPECTED: &str = "expected a directory, or file:///DIRECTORY";

impl<S: Store + ?Sized> Store for Box<S> {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
        (**self).get(name, max, known)
    }

    fn get_all(&self, names: &[String], max: u64) -> Vec<Result<GetResult, StoreError>> {
        (**self).get_all(names, max)
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        (**self).put(name, bytes, condition)
    }

    fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError> {
        (**self).put_file(name, file)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        (**self).list(folder)
    }
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl fmt::Debug for dyn Store + Send + Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_credentials() {
        assert_eq!(shown("https://a:b@host/x?sig=1"), "https://host/x");
        assert_eq!(shown("s3://a@bucket"), "s3://bucket");
        assert_eq!(shown("/srv/fleet"), "/srv/fleet");
    }

    #[test]
    fn address_of_no_store_is_an_error() {
        for address in ["ftp://host/x", "file://host/x"] {
            assert!(matches!(open(address), Err(StoreError::Address(_))), "{address}");
        }
    }
}
