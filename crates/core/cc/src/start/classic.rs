//! Slow start of RFC 5681 §3.1: it ends with a loss.

use super::{SlowStart, StartAck};

/// Slow start that only a loss ends.
#[derive(Clone, Copy, Debug)]
pub struct ClassicStart;

impl SlowStart for ClassicStart {
    const INITIAL: Self = Self;

    fn on_ack(&mut self, _ack: &StartAck) -> bool {
        false
    }
}
