//! Bytes that keep something until they are dropped.

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

/// `bytes`, whose last clone drops `guard`.
pub(crate) fn guarded(bytes: Bytes, guard: impl Send + 'static) -> Bytes {
    Bytes::from_owner(Guarded { bytes, _guard: guard })
}
