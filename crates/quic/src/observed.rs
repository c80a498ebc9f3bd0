//! What passes through the stack's cryptography.

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
    /// Those of the rest of the handshake.
    Handshake,
    /// All others.
    Data,
}

/// There have been keys, and there are none any more.
const GONE: u8 = u8::MAX;

impl Space {
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// What the packets of a connection showed while they were in plain text.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The space of the packet that was encrypted last: the stack reports it as sent right after.
    sent: AtomicU8,
    /// The keys that there are to send with in each space, and whether there have been any.
    keys: [AtomicU8; 3],
    received: Mutex<Received>,
}

/// The packet that was decrypted last: the stack works through it right after, unless it came twice.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) space: Space,
    /// Its acknowledgement, until it was made use of.
    pub(crate) ack: Option<AckFrame>,
    /// An acknowledgement whose memory can be used again.
    spare: AckFrame,
}

impl Received {
    /// The acknowledgement has been made use of.
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

    /// There is a key to send with in this space.
    pub(crate) fn on_key(&self, space: Space) {
        self.keys[space as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// There is one less. Without any, what is in flight will never be acknowledged (RFC 9002 §6.4). A
    /// Retry has a client change those of the first flight, the new ones before the old ones go.
    pub(crate) fn on_key_gone(&self, space: Space) {
        if self.keys[space as usize].fetch_sub(1, Ordering::Relaxed) == 1 {
            self.keys[space as usize].store(GONE, Ordering::Relaxed);
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
        self.keys[space as usize].load(Ordering::Relaxed) == GONE
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
