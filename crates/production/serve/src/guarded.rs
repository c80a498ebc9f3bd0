//! Bytes that own a guard.

use bytes::Bytes;

struct Guarded<G> {
    bytes: Bytes,
    _guard: G,
}

impl<G> AsRef<[u8]> for Guarded<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// `bytes` with a guard, which is dropped with their last clone.
pub(crate) fn guarded(bytes: Bytes, guard: impl Send + 'static) -> Bytes {
    Bytes::from_owner(Guarded { bytes, _guard: guard })
}
