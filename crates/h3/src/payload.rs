//! Bodies on their way out, without a copy.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Buf, Bytes};

/// Where a [`Payload`] lends its bytes.
pub(crate) type Slot = Rc<Cell<Option<Bytes>>>;

/// Bytes of a body that `h3` is given to send.
///
/// `h3` wraps them into a frame that shows nothing but slices, of which only copies could be kept. So
/// whoever looks at a slice of a payload finds the bytes themselves in its connection's slot.
pub struct Payload {
    bytes: Bytes,
    slot: Slot,
}

impl Payload {
    pub(crate) fn new(bytes: Bytes, slot: &Slot) -> Self {
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
