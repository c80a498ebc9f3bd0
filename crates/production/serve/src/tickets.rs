//! Tickets that resume TLS sessions, encrypted with keys from files, so that other processes can
//! decrypt them.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use crate::error::ServeError;
use crate::keys::{self, Secret};

/// Bytes that identify the key of a ticket.
const NAME: usize = 8;
/// The lifetime of a ticket in seconds, as in rustls.
const LIFETIME: u32 = 12 * 60 * 60;

/// The current keys; the first encrypts, all decrypt. A ticket consists of the key's name, a nonce,
/// and the session, encrypted and authenticated with both (as RFC 5077 §4 recommends).
pub(crate) struct Tickets {
    /// The transport of the tickets: a session cannot be resumed on another transport.
    purpose: &'static [u8],
    keys: ArcSwap<Vec<TicketKey>>,
}

struct TicketKey {
    name: [u8; NAME],
    aead: LessSafeKey,
}

/// The ticket keys of TCP and of QUIC.
#[derive(Clone, Debug)]
pub(crate) struct Ticketers {
    pub(crate) tcp: Arc<dyn ProducesTickets>,
    pub(crate) quic: Arc<dyn ProducesTickets>,
}

impl Ticketers {
    /// Random keys of this process, replaced every six hours.
    pub(crate) fn own() -> Result<Self, ServeError> {
        let own = || rustls::crypto::ring::Ticketer::new();
        let failed = |error| ServeError::System("make keys of tickets", io::Error::other(error));
        Ok(Self { tcp: own().map_err(failed)?, quic: own().map_err(failed)? })
    }
}

/// Keys from a file, for each transport.
#[derive(Clone, Debug)]
pub(crate) struct SharedTickets {
    tcp: Arc<Tickets>,
    quic: Arc<Tickets>,
}

impl SharedTickets {
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let tickets = |purpose| Arc::new(Tickets::new(purpose, secrets));
        Self { tcp: tickets(b"tickets over tcp"), quic: tickets(b"tickets over quic") }
    }

    /// Replaces the keys with those of a file.
    pub(crate) fn replace(&self, path: &Path) -> Result<(), ServeError> {
        let secrets = keys::read(path)?;
        self.tcp.replace(&secrets);
        self.quic.replace(&secrets);
        Ok(())
    }

    pub(crate) fn ticketers(&self) -> Ticketers {
        Ticketers { tcp: Arc::clone(&self.tcp) as _, quic: Arc::clone(&self.quic) as _ }
    }
}

impl Tickets {
    fn new(purpose: &'static [u8], secrets: &[Secret]) -> Self {
        let tickets = Self { purpose, keys: ArcSwap::default() };
        tickets.replace(secrets);
        tickets
    }

    fn replace(&self, secrets: &[Secret]) {
        let keys = secrets.iter().filter_map(|secret| TicketKey::new(self.purpose, secret));
        self.keys.store(Arc::new(keys.collect()));
    }
}

impl TicketKey {
    /// Cannot fail in practice: the length is right.
    fn new(purpose: &[u8], secret: &Secret) -> Option<Self> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&secret, purpose);
        let name = hmac::sign(&secret, &[purpose, b" name"].concat());
        let aead = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok()?);
        Some(Self { name: *name.as_ref().first_chunk()?, aead })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys.load();
        let TicketKey { name, aead } = keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut ticket = plain.to_vec();
        let sealing = Nonce::assume_unique_for_key(nonce);
        aead.seal_in_place_append_tag(sealing, Aad::from(name), &mut ticket).ok()?;
        ticket.splice(..0, name.iter().chain(&nonce).copied());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys.load();
        let key = keys.iter().find(|key| key.name == *name)?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = key.aead.open_in_place(nonce, Aad::from(name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &[u8] = b"a session";

    #[test]
    fn other_processes_decrypt_tickets_until_the_key_is_removed() {
        let [old, new] = [[1; 32], [2; 32]];
        let sealing = Tickets::new(b"tcp", &[old]);
        let ticket = sealing.encrypt(SESSION).expect("sealed");
        let opens = |secrets: &[Secret]| Tickets::new(b"tcp", secrets).decrypt(&ticket);
        assert_eq!(opens(&[old]).as_deref(), Some(SESSION));
        assert_eq!(opens(&[new, old]).as_deref(), Some(SESSION), "the second opens, too");
        assert_eq!(opens(&[new]), None);
        assert_eq!(Tickets::new(b"quic", &[old]).decrypt(&ticket), None, "of another transport");
        sealing.replace(&[new, old]);
        let newer = sealing.encrypt(SESSION).expect("sealed");
        assert_eq!(Tickets::new(b"tcp", &[old]).decrypt(&newer), None, "the first seals");
    }

    #[test]
    fn a_changed_ticket_is_refused() {
        let tickets = Tickets::new(b"tcp", &[[1; 32]]);
        let ticket = tickets.encrypt(SESSION).expect("sealed");
        for index in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[index] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "byte {index}");
            assert_eq!(tickets.decrypt(&ticket[..index]), None, "{index} bytes");
        }
        assert_ne!(tickets.encrypt(SESSION), tickets.encrypt(SESSION), "nonces differ");
    }
}
