//! Careful Resume: uses an earlier connection's observations of the same path, with caution. RFC
//! 9959 (read as draft-ietf-tsvwg-careful-resume-24, which became it).
//!
//! A connection that knows the path's earlier capacity need not rediscover it by doubling from the
//! initial window. But it must not trust it blindly. The phases of §3:
//!
//! - *Reconnaissance*: an initial window is sent and acknowledged as usual. A loss, a mark or a
//!   different RTT ends it: [`Reconnaissance`].
//! - *Unvalidated*: the window jumps to half of the observed one, paced over a round trip.
//! - *Validating*: the unvalidated packets are being acknowledged.
//! - *Safe Retreat*: an unvalidated packet was lost or marked. The window is reduced below what
//!   slow start would have reached by now, until the path is drained of unvalidated packets.
//!
//! A window-based controller follows these phases literally: [`trial::Trial`]. BBR does not jump by
//! window; it uses the mapping of Appendix C: [`bbr::BbrResume`].

pub(crate) mod bbr;
pub(crate) mod trial;

use uncork_units::{Rate, TimeDelta};

use crate::event::RttSample;

/// Observations of an earlier connection over the same path, for [`crate::PathEvent::Resume`].
///
/// The host stores these hints and is responsible for them: one per pair of endpoints (RFC 9959
/// §3.1), given to one connection at a time, before its first packet, and only within the hint's
/// lifetime (§3.2, §4.3.1). It drops the hint when [`crate::Snapshot::resume`] reports Safe Retreat
/// (§3.5). A host with a max_jump (§3.3) caps `saved_cwnd` at twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeHint {
    /// Bytes delivered per round trip in steady state, not the window after a slow-start overshoot
    /// (§4.1).
    pub saved_cwnd: u64,
    /// The smallest RTT measured with it.
    pub saved_rtt: TimeDelta,
}

/// How often a connection must have delivered the window that it observed: then the application did not limit it throughout.
const MIN_WINDOWS: u64 = 10;

impl ResumeHint {
    /// What an ended connection observed: the bytes delivered in its smallest RTT at `rate`, its newest delivery rate that the
    /// application did not limit (§4.1). `None` if it delivered fewer than ten times as many bytes: `delivered`.
    pub fn observed(rate: Rate, min_rtt: TimeDelta, delivered: u64) -> Option<Self> {
        let saved_cwnd = rate.bytes_in(min_rtt);
        let is_known = saved_cwnd > 0 && min_rtt > TimeDelta::ZERO;
        let has_carried = delivered / MIN_WINDOWS >= saved_cwnd;
        (is_known && has_carried).then_some(Self { saved_cwnd, saved_rtt: min_rtt })
    }
}

/// Phase of a Careful Resume: RFC 9959 §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumePhase {
    /// The path is being compared with the hint.
    Reconnaissance,
    /// Packets are sent beyond what has been validated.
    Unvalidated,
    /// Waiting for ACKs of these packets.
    Validating,
    /// They met congestion: the hint was wrong and must not be used again (§3.5). The phase may end
    /// within one ACK, but this value is reported until the path changes.
    SafeRetreat,
}

/// A hint waiting for the path to confirm it: §3.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reconnaissance {
    /// Half of saved_cwnd (§3.3), capped at 4 GiB, the max_jump of this crate.
    jump_cwnd: u32,
    saved_rtt_us: u32,
}

/// A confirmed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// jump_cwnd in bytes.
    pub(crate) cwnd: u64,
    /// jump_cwnd per current RTT (§4.3.2, §3.3). It is slower than the path's earlier rate if the
    /// RTT has grown, and never faster, because the RTT must be more than half the saved one.
    pub(crate) rate: Rate,
}

impl Reconnaissance {
    //= rfc9959 3.3-2
    pub(crate) fn new(hint: ResumeHint) -> Self {
        Self {
            jump_cwnd: u32::try_from(hint.saved_cwnd / 2).unwrap_or(u32::MAX),
            saved_rtt_us: u32::try_from(hint.saved_rtt.as_micros()).unwrap_or(u32::MAX),
        }
    }

    /// Evaluates the ACKs of the initial window. The minimum RTT must be more than half of the
    /// saved one and at most ten times it (§3.2, §4.2.1).
    //= rfc9959 3.2-6 3.2-7
    pub(crate) fn conclude(self, rtt: RttSample) -> Option<Jump> {
        let saved_rtt = TimeDelta::from_micros(u64::from(self.saved_rtt_us));
        let fits = rtt.min > saved_rtt.divided_by(2) && rtt.min <= saved_rtt.times(10);
        let cwnd = u64::from(self.jump_cwnd);
        let rtt = rtt.smoothed.max(rtt.min);
        (fits && cwnd > 0).then(|| Jump { cwnd, rate: Rate::of(cwnd, rtt) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }

    /// The jump on a path that carried 1 MB in 100 ms, given its current RTT.
    fn jump(min: TimeDelta, smoothed: TimeDelta) -> Option<Jump> {
        let hint = ResumeHint { saved_cwnd: 1_000_000, saved_rtt: ms(100) };
        Reconnaissance::new(hint).conclude(RttSample { latest: smoothed, smoothed, min })
    }

    #[test]
    fn jump_is_half_of_the_observed_window_paced_over_a_round_trip() {
        let jump = jump(ms(100), ms(125)).expect("the same path");
        assert_eq!((jump.cwnd, jump.rate), (500_000, Rate::from_bytes_per_sec(4_000_000)));
    }

    #[test]
    //= rfc9959 3.2-6 test
    fn rtt_of_at_most_half_the_saved_one_is_another_path() {
        assert_eq!(jump(ms(50), ms(50)), None);
        assert!(jump(ms(51), ms(51)).is_some());
    }

    #[test]
    //= rfc9959 3.2-7 test
    fn rtt_above_ten_times_the_saved_one_is_another_path() {
        assert!(jump(ms(1_000), ms(1_000)).is_some());
        assert_eq!(jump(ms(1_001), ms(1_001)), None);
    }

    #[test]
    fn jump_is_never_faster_than_the_observed_rate() {
        let was = Rate::of(1_000_000, ms(100));
        assert!(
            (51..=1_000).all(|rtt| jump(ms(rtt), ms(rtt)).is_some_and(|jump| jump.rate <= was))
        );
    }

    #[test]
    fn observation_of_ten_windows_is_what_a_round_trip_delivers() {
        let rate = Rate::from_bytes_per_sec(5_000_000);
        let observed = |rate, rtt, delivered| ResumeHint::observed(rate, rtt, delivered);
        let hint = ResumeHint { saved_cwnd: 500_000, saved_rtt: ms(100) };
        assert_eq!(observed(rate, ms(100), 5_000_000), Some(hint));
        assert_eq!(observed(rate, ms(100), 4_999_999), None, "less than ten windows");
        assert_eq!(
            observed(Rate::ZERO, ms(100), 5_000_000),
            None,
            "always limited by the application"
        );
        assert_eq!(observed(rate, TimeDelta::ZERO, 5_000_000), None, "no RTT");
        assert_eq!(observed(Rate::MAX, TimeDelta::MAX, u64::MAX - 1), None);
    }

    #[test]
    fn absurd_hints_saturate() {
        let rtt = RttSample { latest: ms(1), smoothed: ms(1), min: ms(1) };
        let conclude = |saved_cwnd, saved_rtt| {
            Reconnaissance::new(ResumeHint { saved_cwnd, saved_rtt }).conclude(rtt)
        };
        assert_eq!(conclude(u64::MAX, ms(1)).map(|jump| jump.cwnd), Some(u64::from(u32::MAX)));
        assert_eq!(conclude(1, ms(1)), None);
        assert_eq!(conclude(u64::MAX, TimeDelta::ZERO), None);
        assert_eq!(conclude(u64::MAX, TimeDelta::MAX), None);
    }
}
