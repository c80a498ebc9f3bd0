//! Outgoing bodies without a copy.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Buf, Bytes};

/// The slot in which a [`Payload`] leaves its bytes.
pub(crate) type PayloadSlot = Rc<Cell<Option<Bytes>>>;

/// Bytes of a body, to be sent by `h3`.
///
/// `h3` wraps them into a frame that exposes only slices, which must be copied. So reading a slice of
/// a payload also leaves the reference-counted bytes in the connection's slot.
pub struct Payload {
    bytes: Bytes,
    slot: PayloadSlot,
}

impl Payload {
    pub(crate) fn new(bytes: Bytes, slot: &PayloadSlot) -> Self {
        Self { bytes, slot: Rc::clone(slot) }
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        self.slot.set(Some(self.bytes.clone()));
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}
