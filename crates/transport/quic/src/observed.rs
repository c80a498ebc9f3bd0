//! Packets in plain text, as the stack's cryptography sees them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ack::AckFrame;

/// A packet number space (RFC 9000 §12.3): numbers are unique within one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Space {
    /// Packets of the first flight.
    #[default]
    Initial,
    /// Packets of the rest of the handshake.
    Handshake,
    /// All other packets.
    Data,
}

/// Marks a space after its keys were discarded.
const DISCARDED: u8 = u8::MAX;

impl Space {
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// Observations of a connection's plain-text packets.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Space of the last encrypted packet, which the stack reports as sent right after.
    sent: AtomicU8,
    /// Number of sending keys in each space; [`DISCARDED`] once they were discarded.
    keys: [AtomicU8; 3],
    received: Mutex<Received>,
}

/// The last decrypted packet. The stack processes it right after, unless it is a duplicate.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) space: Space,
    /// Its ACK frame, until it is used.
    pub(crate) ack: Option<AckFrame>,
    /// An ACK frame, kept to reuse its memory.
    spare: AckFrame,
}

impl Received {
    /// Returns a processed ACK frame, to reuse its memory.
    pub(crate) fn put_back(&mut self, ack: AckFrame) {
        self.spare = ack;
    }
}

impl Observed {
    pub(crate) fn on_encrypted(&self, space: Space) {
        self.sent.store(space as u8, Ordering::Relaxed);
    }

    pub(crate) fn on_decrypted(&self, space: Space, payload: &[u8]) {
        let mut received = self.received();
        let received = &mut *received;
        let mut ack = received.ack.take().unwrap_or_else(|| std::mem::take(&mut received.spare));
        received.space = space;
        if ack.read(payload) {
            received.ack = Some(ack);
        } else {
            received.spare = ack;
        }
    }

    /// A sending key of this space was created.
    pub(crate) fn on_key(&self, space: Space) {
        self.keys[space as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A sending key was dropped. Without one, packets in flight will never be acknowledged (RFC 9002 §6.4).
    /// After a Retry a client creates new Initial keys before it drops the old ones.
    pub(crate) fn on_key_gone(&self, space: Space) {
        if self.keys[space as usize].fetch_sub(1, Ordering::Relaxed) == 1 {
            self.keys[space as usize].store(DISCARDED, Ordering::Relaxed);
        }
    }

    /// The space of the packet that is being sent.
    pub(crate) fn sent_space(&self) -> Space {
        match self.sent.load(Ordering::Relaxed) {
            0 => Space::Initial,
            1 => Space::Handshake,
            _ => Space::Data,
        }
    }

    pub(crate) fn is_discarded(&self, space: Space) -> bool {
        self.keys[space as usize].load(Ordering::Relaxed) == DISCARDED
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
