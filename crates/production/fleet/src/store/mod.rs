//! Where bundles, the roll-out and reports are.

mod directory;

use std::fmt;

use thiserror::Error;

pub use directory::Directory;

/// A store of named objects, which are written whole.
pub trait Store {
    /// An object of at most `max` bytes, unless it still is the one of the tag.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the object is larger.
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<Got, StoreError>;

    /// Writes an object whole.
    ///
    /// # Errors
    ///
    /// The store cannot be written, or the condition does not hold.
    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError>;

    /// The names in a folder, without it, in order.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError>;
}

/// Which content of an object it is: the ETag of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(pub(crate) String);

/// The answer of a store.
#[derive(Clone, Debug)]
pub enum Got {
    /// The object does not exist.
    Absent,
    /// It is as it was.
    Unchanged,
    /// The object.
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

/// What must hold for an object to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Any,
    /// It does not exist.
    New,
    /// It still is the one of the tag.
    Same(Tag),
}

/// Why a store did not do it. The text never has a credential.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another writer was first.
    #[error("{0}: another program has written it meanwhile; run the command again")]
    Conflict(String),
    /// Too large.
    #[error("{0}: it has more than {1} bytes, which are the most that are read")]
    Large(String, u64),
    /// It cannot be read or written now.
    #[error("{0}: {1}")]
    Away(String, String),
    /// The address names no store.
    #[error("{0}")]
    Address(String),
}

/// The store at an address: a directory, or `file:///DIRECTORY`.
///
/// # Errors
///
/// The address names no store.
pub fn open(address: &str) -> Result<Box<dyn Store>, StoreError> {
    match address.split_once("://") {
        None => Ok(Box::new(Directory::new(address.as_ref()))),
        Some(("file", path)) if path.starts_with('/') => {
            Ok(Box::new(Directory::new(path.as_ref())))
        }
        Some(_) => {
            let expected = "expected a directory, or file:///DIRECTORY; object stores are read and written where they are mounted";
            Err(StoreError::Address(expected.to_owned()))
        }
    }
}

impl<S: Store + ?Sized> Store for Box<S> {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<Got, StoreError> {
        (**self).get(name, max, known)
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        (**self).put(name, bytes, condition)
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
