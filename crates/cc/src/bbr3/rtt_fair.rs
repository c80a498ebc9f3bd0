//! The option `rtt_fair`, not in the draft: flows of different round-trip times share a queue more
//! evenly.
//!
//! Two rules of the draft count in a flow's own round trips, and both favour the long ones (figures
//! in `KNOWN_WEAKNESSES.md`):
//!
//! - A window of twice the BDP (§5.6.4.2) leaves one min_rtt's worth of packets in the queue. In
//!   the queue that a flow of 100 ms may so build, one of 10 ms is held to 2/11 of its rate. Here
//!   every flow may have the same *time* in the queue, within limits.
//! - A small pipe probes for bandwidth, and so ages max_bw, every few dozen rounds (§5.3.3.8.3). The
//!   short flow then forgets its rate in a second, the long one keeps what it took meanwhile for
//!   five. Here both remember for the same time; probes stay as frequent as they are.

use uncork_units::{Ratio, Time, TimeDelta};

use super::Bbr3;
use super::params::{PROBE_WAIT_MIN, UP_PACING_GAIN};
use super::state::State;

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// What a flow may have in the queue, at its own rate.
const QUEUE_TIME: TimeDelta = TimeDelta::from_millis(25);
/// The most it may have in the queue, in BDP: where min_rtt is a fraction of a millisecond, 25 ms would
/// be a hundred windows.
const QUEUE_BDP_MAX: Ratio = Ratio::new(3, 1);

/// In what a flow's place in the queue and the memory of max_bw are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Horizon {
    /// The flow's own round trips, as in the draft.
    RoundTrips,
    /// Time: the option is on.
    Time,
}

impl Bbr3 {
    /// The same controller with the option on or off.
    #[must_use]
    pub(crate) fn with_rtt_fairness(mut self, is_on: bool) -> Self {
        self.cycle.horizon = if is_on { Horizon::Time } else { Horizon::RoundTrips };
        self
    }

    /// BBR.cwnd_gain times BBR.bdp, or what this option makes of it: what the path holds at the pacing
    /// rate, and the allowance for the queue.
    pub(super) fn window_target(&self) -> u64 {
        let draft = self.bdp_multiple(self.state.cwnd_gain(self.profile));
        if self.cycle.horizon == Horizon::RoundTrips || !self.state.is_probe_bw() || self.bdp == 0 {
            return draft;
        }
        let queue = self.bw.bytes_in(QUEUE_TIME).min(QUEUE_BDP_MAX.of(self.bdp));
        let path = if self.state == State::ProbeBwUp { UP_PACING_GAIN } else { Ratio::ONE };
        path.of(self.bdp).saturating_add(queue)
    }

    /// Whether the max_bw filter must keep its slot although a cycle is over. `cycle` is when that
    /// cycle's probe ended.
    pub(super) fn keeps_max_bw(&self, cycle: Time) -> bool {
        let shortest = (PROBE_WAIT_MIN.as_nanos() / NANOS_PER_SEC) as u32;
        self.cycle.horizon == Horizon::Time
            && second(cycle) < self.cycle.advanced_second.saturating_add(shortest)
    }
}

/// Whole seconds are fine enough to tell cycles apart, and 32 bits of them fit where padding was.
pub(super) fn second(time: Time) -> u32 {
    (time.as_nanos() / NANOS_PER_SEC) as u32
}
