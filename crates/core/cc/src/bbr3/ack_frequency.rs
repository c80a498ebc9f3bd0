//! The ACK frequency BBRv3 requests: draft-ietf-ccwg-bbr-06 §4.1.3.3.

use super::Bbr3;
use super::state::State;
use crate::ack_frequency::AckFrequency;

impl Bbr3 {
    /// Depends on the state, as the draft recommends. The draft does not mention Drain; since Drain
    /// ends as soon as an ACK shows an empty queue, it wants frequent ACKs. Without an RTT sample
    /// it requests nothing. BBR.min_rtt replaces C.srtt, which is never smaller, so the requested
    /// delay stays within the draft's limit.
    //= bbr-06 4.1.3.3-1 4.1.3.3-2 4.1.3.3-3 4.1.3.3-4 4.1.3.3-5 4.1.3.3-6 4.1.3.3-7 4.1.3.3-8 4.1.3.3-9
    pub(super) fn wanted_ack_frequency(&self) -> Option<AckFrequency> {
        let rtt = self.min_rtt.get()?;
        Some(match self.state {
            State::ProbeRtt => AckFrequency::prompt(rtt),
            // If the window runs out before the next ACK arrives, the sender SHOULD request more
            // ACKs.
            State::ProbeBwDown | State::ProbeBwCruise if !self.cwnd_usage.is_limited() => {
                AckFrequency::sparse(self.cwnd / self.mss, rtt)
            }
            _ => AckFrequency::frequent(self.packets_per_round_trip(), rtt),
        })
    }

    /// Packets delivered per BBR.min_rtt. With a longer round trip, ACKs are at least as frequent.
    fn packets_per_round_trip(&self) -> u64 {
        self.bdp.min(self.cwnd) / self.mss
    }
}
