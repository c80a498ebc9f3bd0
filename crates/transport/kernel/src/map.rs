//! A map: memory that programs and user space share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::Error;
use crate::sys::{self, MapInfo, MapSpec};

const MAP_ARRAY: u32 = 2;
/// Kinds of maps with a value for each processor: hash, array, hash that forgets (`enum bpf_map_type`).
const PER_PROCESSOR: [u32; 3] = [5, 6, 10];
/// Elements that are written with one call.
const BATCH: usize = 1 << 14;

/// A map. Its keys and values are structures of C: a read or write with a type of another size is refused.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_size: usize,
    value_size: usize,
    is_per_processor: bool,
}

impl Map {
    pub(crate) fn new(fd: OwnedFd, kind: u32, key_size: u32, value_size: u32) -> Self {
        Self {
            fd,
            key_size: key_size as usize,
            value_size: value_size as usize,
            is_per_processor: PER_PROCESSOR.contains(&kind),
        }
    }

    /// Opens a pinned map; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Without the privilege.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let Some(fd) = sys::open_pin_if_there(path)? else { return Ok(None) };
        Self::known(fd).map(|(map, _)| Some(map))
    }

    /// A map that is open.
    pub(crate) fn known(fd: OwnedFd) -> Result<(Self, MapInfo), Error> {
        let info =
            sys::map_info(fd.as_fd()).map_err(|error| Error::step("ask about a map", error))?;
        Ok((Self::new(fd, info.kind, info.key_size, info.value_size), info))
    }

    /// Another handle of the same map.
    ///
    /// # Errors
    ///
    /// If the process has no more file descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        let &Self { key_size, value_size, is_per_processor, .. } = self;
        Ok(Self { fd: self.fd.try_clone()?, key_size, value_size, is_per_processor })
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
        Ok(Self::new(fd, spec.kind, spec.key_size, spec.value_size))
    }

    /// The size of a value in bytes.
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// How many elements it has at most.
    pub(crate) fn max_entries(&self) -> Result<u32, Error> {
        let info = sys::map_info(self.as_fd());
        info.map(|info| info.max_entries).map_err(|error| Error::step("ask about a map", error))
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

    /// Writes elements: as many keys as values.
    ///
    /// # Errors
    ///
    /// If keys or values are not of the map's sizes, the map is full, or the kernel refuses it.
    pub fn fill<K, V>(&self, keys: &[K], values: &[V]) -> io::Result<()>
    where
        K: IntoBytes + Immutable,
        V: IntoBytes + Immutable,
    {
        self.check_sizes(size_of::<K>(), size_of::<V>(), false)?;
        if keys.len() != values.len() {
            let text = format!("{} keys and {} values", keys.len(), values.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            let count = keys.len() as u32;
            sys::set_elements(self.as_fd(), keys.as_bytes(), values.as_bytes(), count)?;
        }
        Ok(())
    }

    /// The kernel reads and writes as many bytes as the map's values have, of all processors where each has its own.
    fn check_sizes(&self, key: usize, value: usize, is_per_processor: bool) -> io::Result<()> {
        let text = if (key, value) != (self.key_size, self.value_size) {
            format!(
                "the map has keys of {} bytes and values of {}, not of {key} and {value}",
                self.key_size, self.value_size
            )
        } else if is_per_processor != self.is_per_processor {
            let values =
                if self.is_per_processor { "a value for each processor" } else { "one value" };
            format!("the map has {values} of a key")
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// If there is none, it is of another size, or each processor has its own.
    pub fn value<V: FromBytes + IntoBytes>(&self, key: u32) -> io::Result<V> {
        self.check_sizes(size_of_val(&key), size_of::<V>(), false)?;
        let mut value = V::new_zeroed();
        sys::element(self.as_fd(), key.as_bytes(), value.as_mut_bytes())?;
        Ok(value)
    }

    /// The values of a key, in a map with one for each of the processors.
    ///
    /// # Errors
    ///
    /// If there is none, they are of another size, or the map has one for all processors.
    pub fn values<V: FromBytes>(&self, key: u32, processors: usize) -> io::Result<Vec<V>> {
        self.check_sizes(size_of_val(&key), size_of::<V>(), true)?;
        // The kernel aligns each.
        let size = self.value_size.next_multiple_of(8);
        let mut bytes = vec![0; size * processors];
        sys::element(self.as_fd(), key.as_bytes(), &mut bytes)?;
        let values = bytes.chunks(size).filter_map(|bytes| V::read_from_prefix(bytes).ok());
        Ok(values.map(|(value, _)| value).collect())
    }

    /// The bytes of a [`blob`](Self::blob).
    ///
    /// # Errors
    ///
    /// If it has none.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        self.check_sizes(size_of::<u32>(), self.value_size, false)?;
        let mut bytes = vec![0; self.value_size];
        sys::element(self.as_fd(), 0_u32.as_bytes(), &mut bytes)?;
        Ok(bytes)
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
