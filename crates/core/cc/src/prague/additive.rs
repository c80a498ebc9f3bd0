//! Additive increase, §2.4.3.

use uncork_units::wide::saturating_mul;

use super::virtual_rtt::Growth;

/// The increase of the window by bytes that were acknowledged without a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AdditiveIncrease {
    /// What an increase of whole bytes has left over, in 2⁻²⁴ bytes times the window.
    remainder: u64,
}

impl AdditiveIncrease {
    /// The increase for `unmarked` bytes, in a window of `cwnd` bytes that grows by `per_round` segments per round trip.
    //= prague-04 2.4.3-1 2.4.3-3
    pub(super) fn on_ack(&mut self, unmarked: u64, cwnd: u64, mss: u64, per_round: Growth) -> u64 {
        let unit = saturating_mul(cwnd.max(1), 1 << Growth::BITS);
        // Less than a byte, also if the window has shrunk since.
        let remainder = self.remainder.min(unit - 1);
        let growth = per_round.of(saturating_mul(unmarked, mss)).saturating_add(remainder);
        self.remainder = growth % unit;
        growth / unit
    }
}
