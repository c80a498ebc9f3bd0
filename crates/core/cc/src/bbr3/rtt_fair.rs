//! Option `rtt_fair` (not in the draft): flows with different RTTs share a queue more evenly.
//!
//! Two rules of the draft are measured in the flow's own round trips. Both favour long RTTs (see
//! `KNOWN_WEAKNESSES.md` for figures):
//!
//! - A window of twice the BDP (§5.6.4.2) keeps one min_rtt's worth of packets in the queue. In the
//!   queue built by a flow with an RTT of 100 ms, a flow with 10 ms gets only 2/11 of its rate.
//!   With this option every flow may keep the same *time* in the queue, within limits.
//! - A small pipe probes for bandwidth, and so ages max_bw, every few dozen rounds (§5.3.3.8.3).
//!   The short-RTT flow then loses its max_bw after a second, while the long-RTT flow keeps its
//!   higher share for five seconds. With this option max_bw has the same lifetime for both; the
//!   probing interval is unchanged.

use uncork_units::{Ratio, Time, TimeDelta};

use super::Bbr3;
use super::params::{PROBE_WAIT_MIN, UP_PACING_GAIN};
use super::state::State;

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Queueing time allowed to a flow at its own rate.
const QUEUE_TIME: TimeDelta = TimeDelta::from_millis(25);
/// Maximum queue of a flow in BDP: with a min_rtt below a millisecond, 25 ms would be a hundred
/// windows.
const QUEUE_BDP_MAX: Ratio = Ratio::new(3, 1);

/// Unit of a flow's queue share and of max_bw's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Horizon {
    /// The flow's own round trips, as in the draft.
    RoundTrips,
    /// Time, with the option on.
    Time,
}

impl Bbr3 {
    /// The same controller with the option on or off.
    #[must_use]
    pub(crate) fn with_rtt_fairness(mut self, is_on: bool) -> Self {
        self.cycle.horizon = if is_on { Horizon::Time } else { Horizon::RoundTrips };
        self
    }

    /// BBR.cwnd_gain times BBR.bdp. With this option: the BDP at the pacing rate plus the queue
    /// allowance.
    pub(super) fn window_target(&self) -> u64 {
        let draft = self.bdp_multiple(self.state.cwnd_gain(self.profile));
        if self.cycle.horizon == Horizon::RoundTrips || !self.state.is_probe_bw() || self.bdp == 0 {
            return draft;
        }
        let queue = self.bw.bytes_in(QUEUE_TIME).min(QUEUE_BDP_MAX.of(self.bdp));
        let path = if self.state == State::ProbeBwUp { UP_PACING_GAIN } else { Ratio::ONE };
        path.of(self.bdp).saturating_add(queue)
    }

    /// Whether the max_bw filter must keep its slot at the end of a cycle. `cycle` is when that
    /// cycle's probe ended.
    pub(super) fn keeps_max_bw(&self, cycle: Time) -> bool {
        let shortest = (PROBE_WAIT_MIN.as_nanos() / NANOS_PER_SEC) as u32;
        self.cycle.horizon == Horizon::Time
            && second(cycle) < self.cycle.advanced_second.saturating_add(shortest)
    }
}

/// Whole seconds are precise enough to distinguish cycles, and 32 bits fit into existing padding.
pub(super) fn second(time: Time) -> u32 {
    (time.as_nanos() / NANOS_PER_SEC) as u32
}
