//! Bundles: a version of a policy with all its files, as one signed, numbered, expiring file.
//!
//! The body is a line of JSON, the [`Manifest`], and then the bytes of the files in its order.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uncork_policy::{FileError, Policy, PublicKey, sha256};

use crate::{Kind, SealError, SigningKey};

/// The largest bundle. A table of a million networks has about 20 MB.
pub const MAX_BUNDLE: u64 = 32 * 1024 * 1024;
/// The policy's file in a bundle.
pub const POLICY: &str = "policy.toml";
/// The name of the bundle itself on a host, so that no file may have it.
pub(crate) const RESERVED: &str = "bundle";
const MAX_MANIFEST: usize = 16 * 1024;
const MAX_FILES: usize = 16;
const MAX_NAME: usize = 64;

/// What a bundle is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Rises from one bundle of a fleet to the next.
    pub version: u64,
    /// When it was signed.
    pub made_unix_s: u64,
    /// From when on it does not count.
    pub expires_unix_s: u64,
    /// The files, in their order.
    pub files: Vec<Entry>,
}

/// A file's name and size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    name: String,
    size: u64,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFile {
    /// Without directories.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// A bundle with a good signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// What it is.
    pub manifest: Manifest,
    /// Its files. One is [`POLICY`].
    pub files: Vec<PackedFile>,
    /// The SHA-256 of the whole bundle.
    pub sha256: String,
}

/// Why a file is not a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// Its signature does not count.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It is signed, but its first line is not a manifest.
    #[error("its manifest is not as expected: {0}; pack it with `uncork fleet publish`")]
    Manifest(String),
    /// A file's name.
    #[error(
        "the file name {0:?} cannot be in a bundle; use letters, digits, '.', '_' and '-', at most 64, and not `bundle`"
    )]
    Name(String),
    /// Too many files.
    #[error("it has {0} files; at most {MAX_FILES} are taken")]
    Files(usize),
    /// The files do not have the sizes in the manifest.
    #[error("its files have {found} bytes, and its manifest says {expected}")]
    Sizes {
        /// By the manifest.
        expected: u64,
        /// Those in the bundle.
        found: u64,
    },
    /// No policy.
    #[error("it has no file `{POLICY}`")]
    NoPolicy,
}

impl Bundle {
    /// Signs a version. `files` are named without directories.
    ///
    /// # Errors
    ///
    /// If no reader would take it.
    pub fn seal(
        version: u64,
        (made_unix_s, expires_unix_s): (u64, u64),
        files: &[PackedFile],
        key: &SigningKey,
    ) -> Result<Vec<u8>, BundleError> {
        let entry =
            |file: &PackedFile| Entry { name: file.name.clone(), size: file.bytes.len() as u64 };
        let files_in_order = files.iter().map(entry).collect();
        let manifest = Manifest { version, made_unix_s, expires_unix_s, files: files_in_order };
        manifest.check()?;
        let mut body = serde_json::to_vec(&manifest)
            .map_err(|error| BundleError::Manifest(error.to_string()))?;
        body.push(b'\n');
        for file in files {
            body.extend_from_slice(&file.bytes);
        }
        let sealed = Kind::Bundle.seal(&body, key);
        // What is too large is found now, not by the hosts.
        Self::open(&sealed, &[key.public()])?;
        Ok(sealed)
    }

    /// Reads a bundle. Nothing is parsed before its signature was checked.
    ///
    /// # Errors
    ///
    /// If the owner of none of the keys has signed it, or it is not whole.
    pub fn open(file: &[u8], keys: &[PublicKey]) -> Result<Self, BundleError> {
        let body = Kind::Bundle.open(file, keys)?.body;
        let (manifest, files) = read(body)?;
        Ok(Self { manifest, files, sha256: sha256(file) })
    }

    /// Its policy, with the table.
    ///
    /// # Errors
    ///
    /// If the policy or its table is refused.
    pub fn policy(&self) -> Result<Policy, FileError> {
        policy(&self.files)
    }
}

/// The policy of files by their names.
pub(crate) fn policy(files: &[PackedFile]) -> Result<Policy, FileError> {
    Policy::from_files(Path::new(POLICY), None, |path| {
        let found = files.iter().find(|file| Path::new(&file.name) == path);
        found.map(|file| file.bytes.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    })
}

/// The manifest and the files of a body.
fn read(body: &[u8]) -> Result<(Manifest, Vec<PackedFile>), BundleError> {
    let line = body.iter().take(MAX_MANIFEST).position(|byte| *byte == b'\n');
    let line = line.ok_or_else(|| BundleError::Manifest("it has no end".to_owned()))?;
    let (line, mut rest) = (&body[..line], &body[line + 1..]);
    let manifest: Manifest =
        serde_json::from_slice(line).map_err(|error| BundleError::Manifest(error.to_string()))?;
    manifest.check()?;
    let found = rest.len() as u64;
    let expected = manifest.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if expected != found {
        return Err(BundleError::Sizes { expected, found });
    }
    let mut files = Vec::new();
    for entry in &manifest.files {
        let (bytes, behind) = rest.split_at(entry.size as usize);
        rest = behind;
        files.push(PackedFile { name: entry.name.clone(), bytes: bytes.to_vec() });
    }
    Ok((manifest, files))
}

impl Manifest {
    fn check(&self) -> Result<(), BundleError> {
        if self.files.len() > MAX_FILES {
            return Err(BundleError::Files(self.files.len()));
        }
        for (place, file) in self.files.iter().enumerate() {
            let is_twice = self.files[..place].iter().any(|other| other.name == file.name);
            if is_twice || !is_name(&file.name) {
                return Err(BundleError::Name(file.name.clone()));
            }
        }
        let has_policy = self.files.iter().any(|file| file.name == POLICY);
        if has_policy { Ok(()) } else { Err(BundleError::NoPolicy) }
    }
}

/// Whether a file of a bundle may have this name: it never leads out of its directory.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.')
        && name != RESERVED
}

/// The readers behind the signature, for the fuzz target: it cannot sign.
#[cfg(fuzzing)]
pub fn read_body(body: &[u8]) -> Option<usize> {
    read(body).ok().map(|(_, files)| files.iter().map(|file| file.bytes.len()).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uncork_testkit::assert_message;

    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap()
    }

    fn file(name: &str, bytes: &[u8]) -> PackedFile {
        PackedFile { name: name.to_owned(), bytes: bytes.to_vec() }
    }

    fn signed(body: &[u8]) -> Result<Bundle, BundleError> {
        let key = key();
        Bundle::open(&Kind::Bundle.seal(body, &key), &[key.public()])
    }

    #[test]
    fn bundle_sealed_has_its_files_and_numbers() {
        let key = key();
        let files = [file(POLICY, b"# policy\n"), file("t.table", &[0, 255, 10])];
        let sealed = Bundle::seal(7, (100, 200), &files, &key).unwrap();
        let bundle = Bundle::open(&sealed, &[key.public()]).unwrap();
        assert_eq!(bundle.files, files);
        let Manifest { version, made_unix_s, expires_unix_s, .. } = bundle.manifest;
        assert_eq!((version, made_unix_s, expires_unix_s), (7, 100, 200));
        assert_eq!(bundle.sha256, sha256(&sealed));
    }

    #[test]
    fn bundle_signed_but_not_whole_is_refused_with_a_reason() {
        let manifest = |files: &str| {
            format!(
                "{{\"version\":1,\"made_unix_s\":1,\"expires_unix_s\":2,\"files\":[{files}]}}\n"
            )
        };
        let policy = "{\"name\":\"policy.toml\",\"size\":3}";
        for (case, body) in [
            ("empty", String::new()),
            ("no end", "{".to_owned()),
            ("no manifest", "{}\nabc".to_owned()),
            ("no policy", manifest("")),
            ("short", manifest(policy) + "ab"),
            ("long", manifest(policy) + "abcd"),
            ("twice", manifest(&format!("{policy},{policy}")) + "abcabc"),
            ("outside", manifest("{\"name\":\"../passwd\",\"size\":0}")),
            ("hidden", manifest("{\"name\":\".x\",\"size\":0}")),
            ("reserved", manifest("{\"name\":\"bundle\",\"size\":0}")),
            ("many", manifest(&vec![policy; 17].join(","))),
            ("overflow", {
                let large = format!("{{\"name\":\"a\",\"size\":{}}}", u64::MAX);
                manifest(&format!("{large},{policy}")) + "abc"
            }),
        ] {
            let error = signed(body.as_bytes()).unwrap_err();
            assert_message!(case, error);
        }
        assert!(signed((manifest(policy) + "abc").as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn bundle_of_any_files_is_read_back(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..5),
            version in any::<u64>(),
        ) {
            let key = key();
            let files: Vec<_> = contents.iter().enumerate().map(|(place, bytes)| {
                file(&if place == 0 { POLICY.to_owned() } else { format!("f{place}") }, bytes)
            }).collect();
            let sealed = Bundle::seal(version, (0, u64::MAX), &files, &key).unwrap();
            let bundle = Bundle::open(&sealed, &[key.public()]).unwrap();
            prop_assert_eq!(bundle.files, files);
            prop_assert_eq!(bundle.manifest.version, version);
        }

        #[test]
        fn reader_of_any_signed_bytes_ends_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = signed(&body);
        }

        #[test]
        fn reader_of_any_bytes_refuses_them(file in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Bundle::open(&file, &[key().public()]).is_err());
        }
    }
}
