//! A pacer that hosts may use: bursts of at most the send quantum, at the pacing rate.

use uncork_units::Time;

use crate::Control;

/// Spaces bursts so that their average rate is the pacing rate (draft-ietf-ccwg-bbr-06 §5.6.2,
/// applied to a quantum instead of a packet: a timer per quantum is what hosts can afford).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// C.next_send_time: when the next burst may begin.
    next: Time,
    /// Bytes the current burst may still hold.
    left: u64,
}

impl Pacer {
    /// When the next packet may leave: now, or later.
    pub fn release(&mut self, now: Time, control: &Control) -> Time {
        if control.pacing_rate.is_none() || self.left > 0 {
            return now;
        }
        if self.next <= now {
            self.left = control.send_quantum.max(1);
            return now;
        }
        self.next
    }

    /// A packet of `bytes` left; call after [`Self::release`] returned `now`.
    pub fn on_sent(&mut self, now: Time, bytes: u64, control: &Control) {
        let Some(rate) = control.pacing_rate else {
            return;
        };
        self.left = self.left.saturating_sub(bytes);
        self.next = self.next.max(now) + rate.time_for(bytes);
    }

    /// The sender stops for want of data or window: a burst ends, unused quantum is not saved up.
    pub fn end_burst(&mut self) {
        self.left = 0;
    }
}
