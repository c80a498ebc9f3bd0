//! Policies that are signed as `uncork learn plan --sign` signs them.

use std::fs;
use std::path::Path;

use rcgen::{KeyPair, PKCS_ED25519, SigningKey as _};

/// The owner of a private key.
pub struct Signer(KeyPair);

impl Signer {
    pub fn new() -> Self {
        Self(KeyPair::generate_for(&PKCS_ED25519).unwrap())
    }

    pub fn public_key(&self) -> String {
        self.0.public_key_pem()
    }

    /// Signs these files of a directory. `order` is what the list says of its place among others: `"serial": 7`.
    pub fn sign(&self, directory: &Path, files: &[&str], order: &str) {
        let digest = |name: &&str| {
            let bytes = fs::read(directory.join(name)).unwrap();
            format!("\"{name}\": \"{}\"", sha256(&bytes))
        };
        let digests: Vec<String> = files.iter().map(digest).collect();
        let list = format!("{{{order}, \"sha256\": {{{}}}}}", digests.join(", "));
        fs::write(directory.join("inputs.sig"), self.0.sign(list.as_bytes()).unwrap()).unwrap();
        fs::write(directory.join("inputs.json"), list).unwrap();
    }

    /// A directory with a policy alone.
    pub fn policy(&self, directory: &Path, policy: &str, order: &str) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("policy.toml"), policy).unwrap();
        self.sign(directory, &["policy.toml"], order);
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
