//! How often BBRv3 wants ACKs: draft-ietf-ccwg-bbr-06 §4.1.3.3.

use super::Bbr3;
use super::state::State;
use crate::ack_frequency::AckFrequency;

impl Bbr3 {
    /// By state, as the draft's guidance goes; it says nothing of Drain, which ends as soon as an ACK
    /// shows that the queue is gone, and so wants to hear of it. Nothing is asked for before there is
    /// a round-trip time. BBR.min_rtt stands for C.srtt, which is as much or more: a shorter delay
    /// than the draft allows is within what it allows.
    //= bbr-06 4.1.3.3-1 4.1.3.3-2 4.1.3.3-3 4.1.3.3-4 4.1.3.3-5 4.1.3.3-6 4.1.3.3-7 4.1.3.3-8 4.1.3.3-9
    pub(super) fn wanted_ack_frequency(&self) -> Option<AckFrequency> {
        let rtt = self.min_rtt.get()?;
        Some(match self.state {
            State::ProbeRtt => AckFrequency::prompt(rtt),
            // A window that runs out before the next ACK arrives SHOULD have more of them.
            State::ProbeBwDown | State::ProbeBwCruise if !self.cwnd_usage.is_limited() => {
                AckFrequency::sparse(self.cwnd / self.mss, rtt)
            }
            _ => AckFrequency::frequent(self.packets_per_round_trip(), rtt),
        })
    }

    /// What arrives in BBR.min_rtt, where ACKs are at least as dense as in a longer round trip.
    fn packets_per_round_trip(&self) -> u64 {
        self.bdp.min(self.cwnd) / self.mss
    }
}
