//! Connection IDs that encode their process and worker, and the keys for them.

use std::fmt;
use std::sync::Arc;

use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, InvalidCid};
use ring::aead::quic::{AES_128, HeaderProtectionKey};
use ring::error::Unspecified;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

/// Length of the random part of a connection ID.
const NONCE: usize = 8;
/// Length of the masked part after it: generation, worker, and zeros that identify the ID as ours.
const SEALED: usize = 5;
const LENGTH: usize = NONCE + SEALED;

/// The keys for connection IDs and stateless resets, shared by all workers of a server. They must
/// survive a restart for clients to learn of it immediately, by a stateless reset (RFC 9000 §10.3).
#[derive(Clone)]
pub struct Identity {
    reset: Arc<hmac::Key>,
    mask: Arc<HeaderProtectionKey>,
    generation: u8,
}

/// The owner of a connection, encoded in its connection IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Distinguishes processes that serve the same port at the same time.
    pub(crate) generation: u8,
    pub(crate) worker: u8,
}

/// The system's random number generator failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system returned no random numbers")]
pub struct Random;

impl From<Unspecified> for Random {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl Identity {
    /// A new random identity.
    ///
    /// # Errors
    ///
    /// If the system returned no random numbers.
    pub fn random() -> Result<Self, Random> {
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret)?;
        Self::from_secret(&secret)
    }

    /// The identity derived from `secret`, the same in every process.
    ///
    /// # Errors
    ///
    /// None in practice; the cipher's interface is fallible.
    pub fn from_secret(secret: &[u8; 32]) -> Result<Self, Random> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |label: &[u8]| hmac::sign(&key, label);
        let reset = hmac::Key::new(hmac::HMAC_SHA256, derive(b"stateless reset").as_ref());
        let mask = derive(b"connection id");
        let mask = HeaderProtectionKey::new(&AES_128, &mask.as_ref()[..16])?;
        Ok(Self { reset: Arc::new(reset), mask: Arc::new(mask), generation: 0 })
    }

    /// The same keys, for a process of this generation. A process that takes over the sockets of another
    /// needs a different generation, see [`crate::Predecessor`].
    #[must_use]
    pub fn of_generation(self, generation: u8) -> Self {
        Self { generation, ..self }
    }

    /// The generation of this process.
    pub fn generation(&self) -> u8 {
        self.generation
    }

    /// The endpoint configuration of the worker with this index, for [`crate::Driver::new`].
    pub fn endpoint_config(&self, worker: u8) -> EndpointConfig {
        let mut config = EndpointConfig::new(Arc::clone(&self.reset) as _);
        let identity = self.clone();
        config.cid_generator(Arc::new(move || {
            Box::new(Generator { identity: identity.clone(), worker, random: SystemRandom::new() })
        }));
        config
    }

    /// The owner encoded in a destination connection ID, if the ID is ours. An ID of another
    /// origin, such as one that a client chooses for its first packet, looks like ours with a
    /// probability of 1 in 2²⁴.
    pub(crate) fn owner_of(&self, id: &[u8]) -> Option<Owner> {
        let id: &[u8; LENGTH] = id.try_into().ok()?;
        let (nonce, sealed) = id.split_first_chunk::<NONCE>()?;
        let mask = self.mask(*nonce)?;
        let [generation, worker, zeros @ ..] =
            std::array::from_fn::<_, SEALED, _>(|index| sealed[index] ^ mask[index]);
        (zeros == [0; SEALED - 2]).then_some(Owner { generation, worker })
    }

    fn mask(&self, nonce: [u8; NONCE]) -> Option<[u8; SEALED]> {
        let mut block = [0; 16];
        block[..NONCE].copy_from_slice(&nonce);
        self.mask.new_mask(&block).ok()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// The destination connection ID of a datagram's first packet, by the layout common to all versions
/// (RFC 8999 §5).
pub(crate) fn destination(datagram: &[u8]) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return rest.get(..LENGTH);
    }
    let (length, rest) = rest.get(4..)?.split_first()?;
    rest.get(..usize::from(*length))
}

/// Generates connection IDs that encode generation and `worker`. They are masked: without the [`Identity`], an
/// observer cannot link two IDs of a connection (RFC 9000 §5.1).
struct Generator {
    identity: Identity,
    worker: u8,
    random: SystemRandom,
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut nonce = [0; NONCE];
        // `Identity` could not exist without random numbers. Two equal IDs would cost at most one
        // connection.
        let _ = self.random.fill(&mut nonce);
        let mut id = [0; LENGTH];
        id[..NONCE].copy_from_slice(&nonce);
        if let Some(mask) = self.identity.mask(nonce) {
            id[NONCE..].copy_from_slice(&mask);
        }
        id[NONCE] ^= self.identity.generation;
        id[NONCE + 1] ^= self.worker;
        ConnectionId::new(&id)
    }

    fn validate(&self, id: ConnectionId) -> Result<(), InvalidCid> {
        self.identity.owner_of(&id).map(|_| ()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(identity: &Identity, worker: u8) -> Generator {
        Generator { identity: identity.clone(), worker, random: SystemRandom::new() }
    }

    fn owner_of(identity: &Identity, datagram: &[u8]) -> Option<Owner> {
        identity.owner_of(destination(datagram)?)
    }

    #[test]
    fn a_connection_id_names_its_process_and_worker() {
        let identity = Identity::from_secret(&[7; 32]).expect("a key");
        for (generation, worker) in [(0, 0), (0, 1), (9, 77), (255, 255)] {
            let identity = identity.clone().of_generation(generation);
            let owner = Some(Owner { generation, worker });
            let id = generator(&identity, worker).generate_cid();
            let short = [&[0x40], &id[..], &[9; 30]].concat();
            assert_eq!(owner_of(&identity, &short), owner);
            let long = [&[0xc0, 0, 0, 0, 1, id.len() as u8], &id[..], &[0; 30]].concat();
            assert_eq!(owner_of(&identity, &long), owner);
            let again = Identity::from_secret(&[7; 32]).expect("a key");
            assert_eq!(owner_of(&again, &short), owner, "known to other processes");
        }
    }

    #[test]
    fn other_connection_ids_name_no_owner() {
        let identity = Identity::random().expect("random numbers");
        let other = Identity::random().expect("random numbers");
        let foreign = generator(&other, 0).generate_cid();
        assert!(generator(&identity, 0).validate(foreign).is_err());
        assert!(generator(&other, 3).validate(foreign).is_ok());
        for datagram in [&[][..], &[0x40], &[0x40, 1, 2, 3], &[0xc0, 0, 0, 0, 1, 20, 1], &[0xc0; 4]]
        {
            assert_eq!(owner_of(&identity, datagram), None, "{datagram:?}");
        }
    }

    #[test]
    fn connection_ids_of_a_worker_share_no_byte() {
        let mut generator = generator(&Identity::from_secret(&[1; 32]).expect("a key"), 5);
        let ids: Vec<ConnectionId> = (0..256).map(|_| generator.generate_cid()).collect();
        for index in 0..LENGTH {
            let mut seen: Vec<u8> = ids.iter().map(|id| id[index]).collect();
            seen.sort_unstable();
            seen.dedup();
            // 256 random bytes have 162 distinct values on average; 100 or fewer is beyond 10 sigma.
            assert!(seen.len() > 100, "byte {index}: {} values", seen.len());
        }
    }
}
