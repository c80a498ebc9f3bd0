//! Fields of a C structure, by offset.

/// A structure from the kernel, in native byte order. Fields not completely within the bytes are `None`:
/// older kernels send shorter structures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn bytes<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    pub(crate) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(crate) fn u16(self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_ne_bytes)
    }

    /// A 64-bit number stored as two 32-bit halves, the lower one first.
    pub(crate) fn halves(self, at: usize) -> Option<u64> {
        Some(u64::from(self.u32(at)?) | u64::from(self.u32(at + 4)?) << 32)
    }

    /// A number in network byte order.
    pub(crate) fn be16(self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_whole_or_absent() {
        let bytes: Vec<u8> = (1..=8).collect();
        let fields = Fields(&bytes);
        assert_eq!(fields.u8(7), Some(8));
        assert_eq!(fields.u8(8), None);
        assert_eq!(fields.u16(6), Some(u16::from_ne_bytes([7, 8])));
        assert_eq!(fields.u16(7), None);
        assert_eq!(fields.be16(0), Some(0x0102));
        assert_eq!(fields.u32(4), Some(u32::from_ne_bytes([5, 6, 7, 8])));
        assert_eq!(fields.u32(5), None);
        assert_eq!(fields.u64(0), Some(u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(fields.u64(1), None);
        assert_eq!(fields.u32(usize::MAX), None);
        let halves: Vec<u8> = [7_u32, 1].iter().flat_map(|half| half.to_ne_bytes()).collect();
        assert_eq!(Fields(&halves).halves(0), Some((1 << 32) + 7));
        assert_eq!(Fields(&halves[..7]).halves(0), None);
    }
}
