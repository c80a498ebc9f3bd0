//! Signed files. The signature is over all bytes but its own, and is checked before anything behind it is parsed.
//!
//! ```text
//! uncork-bundle 1\n     16 bytes: the kind and the format
//! body
//! 64 bytes              Ed25519 over all bytes before
//! ```

use thiserror::Error;
use uncork_policy::PublicKey;

use crate::SigningKey;

const LINE: usize = 16;
const SIGNATURE: usize = 64;

/// What a signed file is. A signature of one kind does not count for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A version of a policy.
    Bundle,
    /// Which hosts run which version.
    Rollout,
}

/// A body by the owner of one of the keys.
#[derive(Clone, Copy, Debug)]
pub struct SignedBody<'a> {
    /// The bytes that were signed.
    pub body: &'a [u8],
    /// The signer.
    pub key: &'a PublicKey,
}

/// Why a file does not count as signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// Too many bytes.
    #[error("it has {0} bytes; at most {1} are read")]
    Size(u64, u64),
    /// Another first line, or too short.
    #[error("it does not begin with `{0}`; it is damaged, or of another version of uncork")]
    Format(&'static str),
    /// None of the keys has signed these bytes.
    #[error(
        "none of the public keys has signed these bytes; it is damaged, altered, or signed with another key"
    )]
    Signature,
}

impl Kind {
    /// The first line.
    fn line(self) -> &'static [u8; LINE] {
        match self {
            Self::Bundle => b"uncork-bundle 1\n",
            Self::Rollout => b"uncork-fleet  1\n",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bundle => "uncork-bundle 1",
            Self::Rollout => "uncork-fleet  1",
        }
    }

    /// The largest file that is read.
    pub fn max_size(self) -> u64 {
        match self {
            Self::Bundle => crate::MAX_BUNDLE,
            Self::Rollout => 64 * 1024,
        }
    }

    /// The signed file of a body.
    pub fn seal(self, body: &[u8], key: &SigningKey) -> Vec<u8> {
        let mut file = [self.line(), body].concat();
        let signature = key.sign(&file);
        file.extend_from_slice(&signature);
        file
    }

    /// The body of a signed file, once the signature was checked.
    ///
    /// # Errors
    ///
    /// If it is too large, not such a file, or signed by the owner of none of the keys.
    pub fn open<'a>(
        self,
        file: &'a [u8],
        keys: &'a [PublicKey],
    ) -> Result<SignedBody<'a>, SealError> {
        let size = file.len() as u64;
        if size > self.max_size() {
            return Err(SealError::Size(size, self.max_size()));
        }
        let format = SealError::Format(self.name());
        let (message, signature) = file.split_last_chunk::<SIGNATURE>().ok_or(format)?;
        let body = message.strip_prefix(&self.line()[..]).ok_or(format)?;
        let key = keys.iter().find(|key| key.has_signed(message, signature));
        Ok(SignedBody { body, key: key.ok_or(SealError::Signature)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn file_with_any_bit_changed_is_refused() {
        let key = key();
        let file = Kind::Rollout.seal(b"body", &key);
        let keys = [key.public()];
        assert_eq!(Kind::Rollout.open(&file, &keys).unwrap().body, b"body");
        for bit in 0..file.len() * 8 {
            let mut altered = file.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            Kind::Rollout.open(&altered, &keys).unwrap_err();
        }
        for length in 0..file.len() {
            Kind::Rollout.open(&file[..length], &keys).unwrap_err();
        }
    }

    #[test]
    fn file_of_one_kind_does_not_count_as_another() {
        let key = key();
        let mut file = Kind::Rollout.seal(b"body", &key);
        file[..LINE].copy_from_slice(Kind::Bundle.line());
        let error = Kind::Bundle.open(&file, &[key.public()]).unwrap_err();
        assert_eq!(error, SealError::Signature);
    }

    #[test]
    fn file_by_any_of_several_keys_names_its_signer() {
        let (old, new) = (key(), key());
        let keys = [old.public(), new.public()];
        for signer in [&old, &new] {
            let file = Kind::Bundle.seal(b"body", signer);
            assert_eq!(*Kind::Bundle.open(&file, &keys).unwrap().key, signer.public());
        }
        let file = Kind::Bundle.seal(b"body", &new);
        assert_eq!(Kind::Bundle.open(&file, &keys[..1]).unwrap_err(), SealError::Signature);
        assert_eq!(Kind::Bundle.open(&file, &[]).unwrap_err(), SealError::Signature);
    }

    #[test]
    fn file_too_large_is_refused_before_its_signature_is_checked() {
        let key = key();
        let file = Kind::Rollout.seal(&vec![0; 65_536], &key);
        let error = Kind::Rollout.open(&file, &[key.public()]).unwrap_err();
        assert_eq!(error, SealError::Size(65_616, 65_536));
    }
}
