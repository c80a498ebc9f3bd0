//! Public keys of signers.

use ring::digest;
use ring::signature::{ED25519, UnparsedPublicKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

/// How the DER of an Ed25519 public key begins (RFC 8410 §4). The key's 32 bytes follow.
const PREFIX: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

/// An Ed25519 public key (RFC 8032).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key of these 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key in a PEM text; `None` if it has none, or one of another kind.
    pub fn from_pem(text: &[u8]) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).ok()?;
        der.strip_prefix(&PREFIX)?.try_into().ok().map(Self)
    }

    /// The DER of the key, for a PEM text.
    pub fn to_der(&self) -> Vec<u8> {
        [&PREFIX[..], &self.0].concat()
    }

    /// Whether the owner of the key signed exactly these bytes.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// The first 16 hexadecimal digits of the SHA-256 of the key.
    pub fn id(&self) -> String {
        sha256(&self.0).chars().take(16).collect()
    }
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
