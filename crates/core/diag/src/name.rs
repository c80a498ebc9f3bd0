//! Names that are stored inline, such as those of congestion controls.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kernel's name of a congestion control, such as `cubic`: `TCP_CA_NAME_MAX` (`include/net/tcp.h`), including the
/// NUL byte.
pub type CcName = Name<16>;

/// A name of at most `CAPACITY` bytes (255 at most). Stored inline, without allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<const CAPACITY: usize> {
    /// UTF-8 up to `length`, then zeros.
    bytes: [u8; CAPACITY],
    length: u8,
}

impl<const CAPACITY: usize> Name<CAPACITY> {
    /// The name up to the first NUL byte, truncated to valid UTF-8 and to `CAPACITY` bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let text = &bytes[..bytes.len().min(CAPACITY)];
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let mut bytes = [0; CAPACITY];
        bytes[..valid.len()].copy_from_slice(valid.as_bytes());
        Self { bytes, length: valid.len() as u8 }
    }

    /// The name `text`, up to the first NUL byte and cut at a character.
    pub fn new(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        // Always valid; an empty name is better than a panic.
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl<const CAPACITY: usize> fmt::Display for Name<CAPACITY> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const CAPACITY: usize> fmt::Debug for Name<CAPACITY> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const CAPACITY: usize> Serialize for Name<CAPACITY> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de, const CAPACITY: usize> Deserialize<'de> for Name<CAPACITY> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self::new(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_first_zero() {
        assert_eq!(CcName::from_bytes(b"cubic\0").as_str(), "cubic");
        assert_eq!(CcName::from_bytes(b"bbr\0junk").to_string(), "bbr");
        assert_eq!(CcName::from_bytes(b"reno").as_str(), "reno");
        assert_eq!(CcName::from_bytes(b"").as_str(), "");
        assert_eq!(CcName::from_bytes(b"cubic\0a"), CcName::from_bytes(b"cubic\0b"));
    }

    #[test]
    fn long_or_invalid_names_are_truncated() {
        assert_eq!(CcName::from_bytes(&[b'x'; 40]).as_str(), "x".repeat(16));
        assert_eq!(CcName::from_bytes(b"bb\xffr\0").as_str(), "bb");
        assert_eq!(CcName::from_bytes("xxxxxxxxxxxxxxxé".as_bytes()).as_str(), "x".repeat(15));
    }
}
