//! Signatures of what `uncork learn` made (`docs/reference/learn.md`).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::public_key::sha256;
use crate::{PublicKey, Release};

/// A list of files by name with their SHA-256. Its signature has been checked.
#[derive(Clone, Debug)]
pub struct Signed {
    sha256: BTreeMap<String, String>,
    release: Release,
}

/// What the list says, as far as it counts here.
#[derive(Deserialize)]
struct List {
    sha256: BTreeMap<String, String>,
    serial: Option<Value>,
    version: Option<Value>,
}

/// Why a policy does not count as signed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// The list or its signature is not in the policy's directory.
    #[error("'{file}' is missing; plan with `--sign learn.key`, and apply that version", file = .0.display())]
    Unsigned(PathBuf),
    /// A file cannot be read.
    #[error("cannot read '{file}': {1}", file = .0.display())]
    Unreadable(PathBuf, String),
    /// The key is of another kind, or no key.
    #[error(
        "the key is not an Ed25519 public key in PEM; derive it with `openssl pkey -in learn.key -pubout`"
    )]
    Key,
    /// The list is not as it was signed, or by somebody else.
    #[error(
        "{} is not signed by the owner of the key; plan with `--sign learn.key`, and apply that version",
        Signed::LIST
    )]
    List,
    /// The list is signed, but has no files.
    #[error("{} has no SHA-256 of files; sign what `uncork learn` wrote", Signed::LIST)]
    NoFiles,
    /// The serial is not a number that others can be compared with.
    #[error("`serial` of {} is not a whole number (0 to 2^64 - 1); sign it again", Signed::LIST)]
    Serial,
    /// A file differs from the signed one.
    #[error("'{0}' is not as it was signed; apply the version again, or plan a new one")]
    File(String),
}

impl Signed {
    /// The list's file, in the policy's directory.
    pub const LIST: &str = "inputs.json";
    /// The signature's file: the 64 bytes of Ed25519.
    pub const SIGNATURE: &str = "inputs.sig";

    /// The checked list in the directory of `policy`. The signer's public key is in the file `key`. Files are read with
    /// `read`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the owner of the key did not sign this list.
    pub fn next_to(
        policy: &Path,
        key: &Path,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, SignatureError> {
        let unreadable = |file: &Path, error: io::Error| {
            SignatureError::Unreadable(file.to_owned(), error.to_string())
        };
        let sibling = |name| {
            let file = policy.with_file_name(name);
            read(&file).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => SignatureError::Unsigned(file),
                _ => unreadable(&file, error),
            })
        };
        let key = read(key).map_err(|error| unreadable(key, error))?;
        Self::verify(&key, &sibling(Self::LIST)?, &sibling(Self::SIGNATURE)?)
    }

    /// Checks the signature of a `list`. `key` is the signer's public key in PEM.
    ///
    /// # Errors
    ///
    /// If the owner of the key did not sign exactly this list.
    pub fn verify(key: &[u8], list: &[u8], signature: &[u8]) -> Result<Self, SignatureError> {
        let key = PublicKey::from_pem(key).ok_or(SignatureError::Key)?;
        if !key.has_signed(list, signature) {
            return Err(SignatureError::List);
        }
        let List { sha256, serial, version } =
            serde_json::from_slice(list).map_err(|_| SignatureError::NoFiles)?;
        let version = version.and_then(|it| it.as_u64());
        let serial = serial.map(|it| it.as_u64().ok_or(SignatureError::Serial)).transpose()?;
        // Lists of before there were serials have a version, and those signed by hand may have neither.
        let serial = serial.or(version).unwrap_or(0);
        Ok(Self { sha256, release: Release { key: key.id(), serial, version } })
    }

    /// Which of the policies of this key it is.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Checks that a file has the bytes that were signed under its name.
    ///
    /// # Errors
    ///
    /// If it has others, or the list does not have it.
    pub fn check(&self, file: &Path, bytes: &[u8]) -> Result<(), SignatureError> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if self.sha256.get(&*name) == Some(&sha256(bytes)) {
            return Ok(());
        }
        Err(SignatureError::File(name.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    // Made with `openssl genpkey -algorithm ed25519` and `openssl pkeyutl -sign -rawin`.
    const KEY: &str = include_str!("../tests/signed/learn.pub");
    const OTHER_KEY: &str = include_str!("../tests/signed/other.pub");
    const RSA_KEY: &str = include_str!("../tests/signed/rsa.pub");
    const LIST: &[u8] = include_bytes!("../tests/signed/inputs.json");
    const SIGNATURE: &[u8] = include_bytes!("../tests/signed/inputs.sig");

    fn verify(key: &str, list: &[u8], signature: &[u8]) -> Result<Signed, SignatureError> {
        Signed::verify(key.as_bytes(), list, signature)
    }

    #[test]
    fn what_openssl_signed_counts() {
        let signed = verify(KEY, LIST, SIGNATURE).unwrap();
        assert_eq!(signed.check(Path::new("v3/policy.toml"), b"a policy\n"), Ok(()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let all = |file: &Path| match file.to_str() {
            Some("keys/learn.pub") => Ok(KEY.into()),
            Some("v3/inputs.json") => Ok(LIST.to_vec()),
            Some("v3/inputs.sig") => Ok(SIGNATURE.to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let (policy, key) = (Path::new("v3/policy.toml"), Path::new("keys/learn.pub"));
        assert!(Signed::next_to(policy, key, all).is_ok());
        for (missing, policy, key) in [
            ("v2/inputs.json", "v2/policy.toml", "keys/learn.pub"),
            ("learn.pub", "v3/policy.toml", "learn.pub"),
        ] {
            let error =
                Signed::next_to(policy.as_ref(), key.as_ref(), all).unwrap_err().to_string();
            assert!(error.contains(&format!("'{missing}'")), "{error}");
            assert_message!(missing, error);
        }
    }

    #[test]
    fn no_other_bytes_and_no_other_file_count() {
        let signed = verify(KEY, LIST, SIGNATURE).unwrap();
        for (name, bytes) in [("policy.toml", "a policy"), ("other.toml", "a policy\n")] {
            let error = signed.check(Path::new(name), bytes.as_bytes());
            assert_eq!(error, Err(SignatureError::File(name.to_owned())));
        }
    }

    #[test]
    fn any_bit_of_list_or_signature_matters() {
        for at in 0..LIST.len() {
            let mut list = LIST.to_vec();
            list[at] ^= 1;
            assert_eq!(verify(KEY, &list, SIGNATURE).unwrap_err(), SignatureError::List);
        }
        for at in 0..SIGNATURE.len() {
            let mut signature = SIGNATURE.to_vec();
            signature[at] ^= 1;
            assert_eq!(verify(KEY, LIST, &signature).unwrap_err(), SignatureError::List);
        }
        assert_eq!(verify(KEY, LIST, b"").unwrap_err(), SignatureError::List);
        assert_eq!(verify(OTHER_KEY, LIST, SIGNATURE).unwrap_err(), SignatureError::List);
    }

    #[test]
    fn a_release_is_of_its_key_and_older_than_one_with_a_higher_serial() {
        let first = verify(KEY, LIST, SIGNATURE).unwrap().release().clone();
        assert_eq!((&*first.key, first.serial, first.version), ("a430d58626fc1b5e", 1, Some(1)));
        let second = Release { serial: 2, ..first.clone() };
        assert!(first.is_older_than(&second) && !second.is_older_than(&first));
        assert!(!first.is_older_than(&first));
    }

    #[test]
    fn only_public_keys_of_ed25519_are_taken() {
        for key in ["", "no key", RSA_KEY, &KEY.replace("MCow", "MCox")] {
            assert_eq!(verify(key, LIST, SIGNATURE).unwrap_err(), SignatureError::Key, "{key}");
        }
    }

    #[test]
    fn a_signed_text_that_lists_no_files_is_none() {
        let list = include_bytes!("../tests/signed/none.json");
        let signature = include_bytes!("../tests/signed/none.sig");
        assert_eq!(verify(KEY, list, signature).unwrap_err(), SignatureError::NoFiles);
    }
}
