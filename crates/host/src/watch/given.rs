//! What a policy of `uncork steer` gave a connection.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longer names are cut.
const CAPACITY: usize = 47;

/// What a policy gave a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// The rule that decided, or `default`.
    pub rule: ShortName,
    /// `EXPERIMENT/ARM`; `None` without an experiment, and of connections that were moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ShortName>,
}

/// A name of at most 47 bytes, stored inline: samples are copied at each pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortName {
    /// UTF-8 up to `length`, then zeros.
    bytes: [u8; CAPACITY],
    length: u8,
}

impl ShortName {
    /// The name `text`, cut at a character.
    pub fn new(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(CAPACITY)];
        let mut bytes = [0; CAPACITY];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { bytes, length: text.len() as u8 }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        // Always valid; an empty name is better than a panic.
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl fmt::Display for ShortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ShortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for ShortName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ShortName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self::new(&name))
    }
}
