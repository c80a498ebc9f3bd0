//! A ring of records that programs write and user space reads, in the order of writing.

use std::io;
use std::os::fd::AsFd;

use crate::map::Map;
use crate::sys::Mapping;

/// The record is still being written.
const BUSY: u32 = 1 << 31;
/// The record was given up.
const DISCARDED: u32 = 1 << 30;
/// Length and flags, and where the record's page is.
const HEAD: usize = 8;

/// A ring of this process. Two readers would each miss what the other one has read.
#[derive(Debug)]
pub struct Ring {
    memory: Mapping,
    /// Bytes of the ring's data.
    size: u64,
}

impl Ring {
    /// Opens the ring of a map.
    ///
    /// # Errors
    ///
    /// If the map is not a ring, or memory is short.
    pub fn open(map: &Map) -> io::Result<Self> {
        let size = crate::sys::map_info(map.as_fd())?.max_entries;
        Ok(Self { memory: Mapping::of_ring(map, size as usize)?, size: size.into() })
    }

    /// Calls `each` with every record that has come since the last call. Never waits.
    pub fn read(&mut self, mut each: impl FnMut(&[u8])) {
        let mut at = self.memory.consumed();
        let end = self.memory.produced();
        while at < end {
            let place = (at & (self.size - 1)) as usize;
            let head = self.memory.head(place);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !(BUSY | DISCARDED)) as usize;
            if head & DISCARDED == 0 {
                each(self.memory.data(place + HEAD, length));
            }
            at += (HEAD + length).next_multiple_of(8) as u64;
            self.memory.consume(at);
        }
    }
}
