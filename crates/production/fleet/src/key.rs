//! Key files: Ed25519 in PEM, as `openssl genpkey -algorithm ed25519` writes them.

use std::fmt::Write as _;

use data_encoding::BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use thiserror::Error;
use uncork_policy::PublicKey;

/// How the DER of an Ed25519 private key begins (RFC 8410 §7). The seed's 32 bytes follow. OpenSSL reads no other version.
const PREFIX: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// A private key. Debugging does not show it.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

/// Why a file has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Not a private key without a password.
    #[error(
        "it is not an Ed25519 private key in PEM without a password; make one with `uncork fleet keygen`"
    )]
    Private,
    /// Not a public key.
    #[error(
        "it is not an Ed25519 public key in PEM; derive it with `openssl pkey -in fleet.key -pubout`"
    )]
    Public,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl SigningKey {
    /// A new key as PEM text, by the random numbers of the system.
    ///
    /// # Errors
    ///
    /// If the system gives none.
    pub fn generate() -> Result<String, KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::Random)?;
        Ok(pem("PRIVATE KEY", &[&PREFIX[..], &seed].concat()))
    }

    /// The key in a PEM text.
    ///
    /// # Errors
    ///
    /// If it is of another kind, or has a password.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| KeyError::Private)?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
        pair.map(Self).map_err(|_| KeyError::Private)
    }

    /// Its public key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey::new(bytes)
    }

    /// The 64 bytes of a signature.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.0.sign(message).as_ref());
        signature
    }
}

/// A public key as PEM text.
pub fn public_key_pem(key: &PublicKey) -> String {
    pem("PUBLIC KEY", &key.to_der())
}

/// The public key in a PEM text.
///
/// # Errors
///
/// If it is of another kind.
pub fn read_public_key(text: &[u8]) -> Result<PublicKey, KeyError> {
    PublicKey::from_pem(text).ok_or(KeyError::Public)
}

/// RFC 7468. Both kinds of Ed25519 keys fit on one line.
fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{}", BASE64.encode(der));
    let _ = writeln!(text, "-----END {label}-----");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_generated_is_read_back_and_signs_for_its_public_key() {
        let key = SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap();
        let public = read_public_key(public_key_pem(&key.public()).as_bytes()).unwrap();
        assert_eq!(public, key.public());
        assert!(public.has_signed(b"text", &key.sign(b"text")));
        assert!(!public.has_signed(b"test", &key.sign(b"text")));
        assert!(!format!("{key:?}").contains("seed"));
    }

    /// RFC 8032 §7.1, test 1.
    #[test]
    fn key_of_the_specification_has_its_public_key_and_signature() {
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let pem = pem("PRIVATE KEY", &[&PREFIX[..], &seed].concat());
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        let public = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(key.public(), PublicKey::new(public.try_into().unwrap()));
        assert_eq!(key.sign(b"")[..4], hex("e5564300"));
    }

    #[test]
    fn key_of_another_kind_is_refused() {
        for text in ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
        {
            assert_eq!(SigningKey::from_pem(text.as_bytes()).unwrap_err(), KeyError::Private);
            assert_eq!(read_public_key(text.as_bytes()).unwrap_err(), KeyError::Public);
        }
    }
}
