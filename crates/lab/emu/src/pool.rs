//! Reusable packet buffers.

/// Buffers of one size. Their number is the maximum ever in use at the same time.
#[derive(Debug)]
pub(crate) struct Pool {
    size: usize,
    buffers: Vec<PoolBuffer>,
    free: Vec<Slot>,
}

/// The index of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

#[derive(Debug)]
struct PoolBuffer {
    bytes: Box<[u8]>,
    /// Bytes used by the packet.
    used: usize,
}

impl Pool {
    /// Buffers of `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, buffers: Vec::new(), free: Vec::new() }
    }

    /// A free buffer with arbitrary content.
    pub(crate) fn take(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.buffers.push(PoolBuffer { bytes: vec![0; self.size].into(), used: 0 });
            // Reserves in advance, so that returning a buffer never allocates.
            self.free.reserve(self.buffers.len());
            Slot(self.buffers.len() as u32 - 1)
        })
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Fills the buffer with `fill`, which returns the packet's length.
    pub(crate) fn fill<E>(
        &mut self,
        slot: Slot,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let buffer = &mut self.buffers[slot.0 as usize];
        buffer.used = fill(&mut buffer.bytes)?.min(buffer.bytes.len());
        Ok(())
    }

    /// The packet in it.
    pub(crate) fn packet(&mut self, slot: Slot) -> &mut [u8] {
        let buffer = &mut self.buffers[slot.0 as usize];
        &mut buffer.bytes[..buffer.used]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused() {
        let mut pool = Pool::new(4);
        let (one, other) = (pool.take(), pool.take());
        assert_ne!(one, other);
        pool.fill(one, |bytes| {
            bytes.fill(7);
            Ok::<_, ()>(3)
        })
        .expect("filled");
        assert_eq!(pool.packet(one), [7, 7, 7]);
        assert_eq!(pool.packet(other), [0; 0]);
        pool.give_back(one);
        assert_eq!(pool.take(), one);
        assert_eq!(pool.buffers.len(), 2);
    }
}
