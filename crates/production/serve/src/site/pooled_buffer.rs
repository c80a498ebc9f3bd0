//! Buffers for reading files, used again and again. New memory must be cleared first,
//! which costs up to a tenth of the cost of sending a file.

use std::cell::RefCell;

use bytes::Bytes;

/// How much is read at a time.
pub(super) const CHUNK: usize = 128 * 1024;
/// What is smaller has memory of its own.
const SMALL: usize = CHUNK / 4;
/// How many a thread keeps.
const SPARES: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that returns to the pool of the thread that drops it.
pub(super) struct PooledBuffer {
    memory: Box<[u8]>,
    length: usize,
}

impl PooledBuffer {
    /// Room for `length` bytes, [`CHUNK`] at most. What is in there is of no meaning.
    pub(super) fn new(length: usize) -> Self {
        let length = length.min(CHUNK);
        let spare = if length > SMALL { SPARE.with_borrow_mut(Vec::pop) } else { None };
        let new = || vec![0; if length > SMALL { CHUNK } else { length }].into();
        Self { memory: spare.unwrap_or_else(new), length }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[..self.length]
    }

    /// The first `length` bytes of it.
    pub(super) fn filled(mut self, length: usize) -> Bytes {
        self.length = length.min(self.length);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if self.memory.len() < CHUNK {
            return;
        }
        // A thread that ends keeps nothing.
        let _ended = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARES {
                spare.push(std::mem::take(&mut self.memory));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        SPARE.with_borrow(Vec::len)
    }

    #[test]
    fn large_ones_are_used_again_and_small_ones_are_not_kept() {
        drop(PooledBuffer::new(SMALL));
        assert_eq!(kept(), 0);
        let mut room = PooledBuffer::new(CHUNK - 1);
        room.bytes().fill(7);
        let bytes = room.filled(100);
        assert_eq!(bytes, [7; 100][..]);
        let part = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(kept(), 0, "a part is still needed");
        drop(part);
        assert_eq!(kept(), 1);
        let again = PooledBuffer::new(SMALL + 1);
        assert_eq!((kept(), again.as_ref().len()), (0, SMALL + 1));
    }

    #[test]
    fn a_thread_keeps_no_more_than_it_should() {
        let rooms: Vec<_> = (0..2 * SPARES).map(|_| PooledBuffer::new(CHUNK)).collect();
        drop(rooms);
        assert_eq!(kept(), SPARES);
    }
}
