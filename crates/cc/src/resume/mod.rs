//! Careful resume: what an earlier connection observed of the same path, used with caution.
//! RFC 9959 (read as draft-ietf-tsvwg-careful-resume-24, which became it).
//!
//! A connection that knows how much the path carried the last time need not find it out by doubling
//! from the initial window. It must not trust it either. The phases of §3:
//!
//! - *Reconnaissance*: an initial window is sent and acknowledged as ever. A loss, a mark or another
//!   round-trip time ends it: [`Reconnaissance`].
//! - *Unvalidated*: the window jumps to half of what was observed, paced over a round trip.
//! - *Validating*: the packets sent on trust are acknowledged, one after another.
//! - *Safe Retreat*: one of them was lost or marked. The window falls to less than slow start would
//!   have had by now, and stays there until the path is drained of them.
//!
//! A window keeps to these phases literally: [`trial::Trial`]. BBR has no use for a window that jumps;
//! its mapping of them is that of Appendix C: [`bbr::BbrResume`].

pub(crate) mod bbr;
pub(crate) mod trial;

use uncork_units::{Rate, TimeDelta};

use crate::event::RttSample;

/// What an earlier connection over the same path had observed, for [`crate::PathEvent::Resume`].
///
/// The host keeps the set and is answerable for it: one set for each pair of endpoints (RFC 9959
/// §3.1), given to one connection at a time, before its first packet, and only within its lifetime
/// (§3.2, §4.3.1); dropped when [`crate::Snapshot::resume`] says Safe Retreat (§3.5). A host with a
/// max_jump (§3.3) caps `saved_cwnd` at twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeHint {
    /// Bytes that were delivered in a round trip, in steady state: not a window that slow start had
    /// overshot to (§4.1).
    pub saved_cwnd: u64,
    /// The smallest round-trip time that went with it.
    pub saved_rtt: TimeDelta,
}

/// How far a careful resume has come: RFC 9959 §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumePhase {
    /// The path is being compared with the one of the hint.
    Reconnaissance,
    /// Packets leave on the hint's word alone.
    Unvalidated,
    /// What becomes of them is awaited.
    Validating,
    /// They met congestion: the hint was wrong, and must not be used again (§3.5). The phase itself
    /// may be over within one ACK, so this verdict stands for as long as the path does.
    SafeRetreat,
}

/// A hint that waits for the path to confirm it: §3.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reconnaissance {
    /// Half of saved_cwnd (§3.3), and 4 GiB at most, which is a max_jump of this crate's own.
    jump_cwnd: u32,
    saved_rtt_us: u32,
}

/// The path is the one of the hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// jump_cwnd in bytes.
    pub(crate) cwnd: u64,
    /// That much in a current round-trip time (§3.3, §4.3.2): slower than the path was when the
    /// round trip has grown, and never faster, since it must be more than half of what it was.
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

    /// What the initial window's acknowledgements allow. The smallest RTT must be more than half of
    /// the saved one, and ten times it at most (§3.2, §4.2.1).
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

    /// The jump of a path that carried 1 MB in 100 ms, now that its round trips take so long.
    fn jump(min: TimeDelta, smoothed: TimeDelta) -> Option<Jump> {
        let hint = ResumeHint { saved_cwnd: 1_000_000, saved_rtt: ms(100) };
        Reconnaissance::new(hint).conclude(RttSample { latest: smoothed, smoothed, min })
    }

    #[test]
    fn the_jump_is_half_of_what_was_observed_paced_over_a_round_trip() {
        let jump = jump(ms(100), ms(125)).expect("the same path");
        assert_eq!((jump.cwnd, jump.rate), (500_000, Rate::from_bytes_per_sec(4_000_000)));
    }

    #[test]
    //= rfc9959 3.2-6 test
    fn a_round_trip_of_half_the_saved_one_or_less_is_another_path() {
        assert_eq!(jump(ms(50), ms(50)), None);
        assert!(jump(ms(51), ms(51)).is_some());
    }

    #[test]
    //= rfc9959 3.2-7 test
    fn a_round_trip_of_more_than_ten_times_the_saved_one_is_another_path() {
        assert!(jump(ms(1_000), ms(1_000)).is_some());
        assert_eq!(jump(ms(1_001), ms(1_001)), None);
    }

    #[test]
    fn a_jump_is_never_faster_than_the_path_was() {
        let was = Rate::of(1_000_000, ms(100));
        assert!(
            (51..=1_000).all(|rtt| jump(ms(rtt), ms(rtt)).is_some_and(|jump| jump.rate <= was))
        );
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
