//! A map: memory that programs and user space share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::error::Error;
use crate::sys::{self, MapSpec};

const MAP_ARRAY: u32 = 2;
/// Elements that are written with one call.
const BATCH: usize = 1 << 14;

/// A map.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_size: usize,
    value_size: usize,
}

impl Map {
    pub(crate) const fn new(fd: OwnedFd, key_size: usize, value_size: usize) -> Self {
        Self { fd, key_size, value_size }
    }

    /// Opens a pinned map; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Without the privilege.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let Some(fd) = sys::open_pin_if_there(path)? else { return Ok(None) };
        let (key_size, value_size) = sys::map_sizes(fd.as_fd())
            .map_err(|error| Error::step(format!("ask about {}", path.display()), error))?;
        Ok(Some(Self::new(fd, key_size as usize, value_size as usize)))
    }

    /// A map of one element that no one changes, for data that only user space reads.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn blob(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        Self::constant(name, bytes, 0)
            .map_err(|error| Error::step(format!("create the map {name}"), error))
    }

    /// A map of one element, that user space does not change any more.
    pub(crate) fn constant(name: &str, bytes: &[u8], flags: u32) -> io::Result<Self> {
        let spec = MapSpec {
            name,
            kind: MAP_ARRAY,
            key_size: 4,
            value_size: bytes.len() as u32,
            max_entries: 1,
            flags,
            ..MapSpec::default()
        };
        let fd = sys::create_map(&spec, None)?;
        sys::set_element(fd.as_fd(), bytes)?;
        sys::freeze(fd.as_fd())?;
        Ok(Self::new(fd, 4, bytes.len()))
    }

    /// The size of a value in bytes.
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// Keeps the map under a path of the BPF file system.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        sys::pin(self.as_fd(), path)
            .map_err(|error| Error::step(format!("pin {}", path.display()), error))
    }

    /// Writes elements. Keys and values are one behind the other, of the map's sizes.
    ///
    /// # Errors
    ///
    /// If the sizes are not those of as many elements, the map is full, or the kernel refuses it.
    pub fn fill(&self, keys: &[u8], values: &[u8]) -> io::Result<()> {
        let (elements, values_of) = (keys.len() / self.key_size, values.len() / self.value_size);
        let is_whole = elements * self.key_size == keys.len();
        if !is_whole || values_of != elements || values_of * self.value_size != values.len() {
            let text =
                format!("{} bytes of keys and {} of values do not fit", keys.len(), values.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let keys = keys.chunks(BATCH * self.key_size);
        let values = values.chunks(BATCH * self.value_size);
        for (keys, values) in keys.zip(values) {
            let count = (keys.len() / self.key_size) as u32;
            sys::set_elements(self.as_fd(), keys, values, count)?;
        }
        Ok(())
    }

    /// The value of a key; of a map with one for each processor, all of them.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn value(&self, key: u32, processors: usize) -> io::Result<Vec<u8>> {
        let mut value = vec![0; self.value_size.next_multiple_of(8) * processors];
        sys::element(self.as_fd(), &key.to_ne_bytes(), &mut value)?;
        Ok(value)
    }

    /// The number that a key has, in a map of numbers of eight bytes.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn count(&self, key: u32) -> io::Result<u64> {
        let value = self.value(key, 1)?;
        Ok(value.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Map> for OwnedFd {
    fn from(map: Map) -> Self {
        map.fd
    }
}
