//! Careful resume of BBR: RFC 9959 Appendix C.
//!
//! What is retained of a path is a rate there, not a window: half of the rate that the hint amounts
//! to is the least that Startup paces at for a round, and the window is what Startup allows at that
//! rate. The round after it is the validation; the model learns from its samples as from any other.
//! Congestion within these two rounds ends Startup. Drain is the Safe Retreat: it sends at half of
//! what was measured, and what is measured meanwhile counts for nothing, since the packets that
//! queue ahead were sent on trust and may have pushed others' out.

use uncork_units::Rate;

use super::{Reconnaissance, ResumeHint, ResumePhase};
use crate::event::{Feedback, RttSample};
use crate::sampler::RateSample;

/// Rounds from the jump until its packets, all of them, have been acknowledged.
const ROUNDS: u8 = 2;

/// How far the careful resume of a BBR flow has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BbrResume {
    #[default]
    Off,
    Reconnaissance(Reconnaissance),
    /// The draft's carefully-resuming flag, for so many rounds more.
    Resuming {
        rounds: u8,
    },
    SafeRetreat,
}

const _: () = assert!(size_of::<BbrResume>() <= 16, "every BBR connection has one");

/// Where a flow is after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In Startup, at the beginning of a round. The path is confirmed when an initial window has been
    /// delivered and the flow is not application-limited.
    Round {
        is_confirmed: bool,
    },
    /// In Startup, within a round.
    Startup,
    Drain,
    Later,
}

impl BbrResume {
    pub(crate) fn offer(hint: ResumeHint) -> Self {
        Self::Reconnaissance(Reconnaissance::new(hint))
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    pub(crate) fn phase(&self) -> Option<ResumePhase> {
        match self {
            Self::Off => None,
            Self::Reconnaissance(_) => Some(ResumePhase::Reconnaissance),
            Self::Resuming { rounds: ROUNDS } => Some(ResumePhase::Unvalidated),
            Self::Resuming { .. } => Some(ResumePhase::Validating),
            Self::SafeRetreat => Some(ResumePhase::SafeRetreat),
        }
    }

    /// Before the model learns of a feedback. Congestion ends a careful resume, and Startup with it if
    /// the jump was made: true says so. What is measured in the retreat is discarded.
    //= rfc9959 C-5 C-6
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback<'_>, sample: &mut RateSample) -> bool {
        let is_congested =
            !feedback.lost.is_empty() || feedback.ce_packets > 0 || feedback.repaired_by_probe;
        let must_retreat = is_congested && matches!(self, Self::Resuming { .. });
        if must_retreat {
            *self = Self::SafeRetreat;
        } else if is_congested && matches!(self, Self::Reconnaissance(_)) {
            *self = Self::Off;
        }
        if matches!(self, Self::SafeRetreat) {
            sample.delivery_rate = Rate::ZERO;
        }
        must_retreat
    }

    /// After the model has learned of an ACK. Gives the rate to send at when the path is confirmed.
    //= rfc9959 C-3
    pub(crate) fn on_ack(&mut self, stage: Stage, rtt: Option<RttSample>) -> Option<Rate> {
        match (*self, stage) {
            (Self::Reconnaissance(hint), Stage::Round { is_confirmed: true }) => {
                let jump = hint.conclude(rtt?);
                *self = jump.map_or(Self::Off, |_| Self::Resuming { rounds: ROUNDS });
                return jump.map(|jump| jump.rate);
            }
            (Self::Resuming { rounds }, Stage::Round { .. }) if rounds > 1 => {
                *self = Self::Resuming { rounds: rounds - 1 };
            }
            // Entered with packets of the trial unaccounted for, Drain is a retreat, whatever the
            // reason.
            (Self::Resuming { .. }, Stage::Drain) => *self = Self::SafeRetreat,
            (Self::Resuming { .. }, Stage::Round { .. })
            | (Self::Reconnaissance(_), Stage::Drain)
            | (_, Stage::Later) => *self = Self::Off,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::TimeDelta;

    use super::*;
    use crate::bbr1::Bbr1;
    use crate::bbr3::Bbr3;
    use crate::script::{Host, segments, settings};
    use crate::{Controller, PathEvent, Snapshot};

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// The rate of half of what was observed.
    fn half() -> Rate {
        Rate::of(segments(200), RTT)
    }

    /// A connection that was told of 400 segments in 100 ms.
    fn told<C: Controller>(cc: C) -> Host<C> {
        let mut host = Host::new(cc);
        let hint = ResumeHint { saved_cwnd: segments(400), saved_rtt: RTT };
        host.cc.on_path(host.now, PathEvent::Resume(hint));
        host
    }

    /// An initial window of 10 has been delivered, in a round that an ACK ends.
    fn jumped<C: Controller>(cc: C) -> Host<C> {
        let mut host = told(cc);
        for _ in 0..20 {
            if phase(&host) == Some(ResumePhase::Unvalidated) {
                break;
            }
            host.fill();
            host.advance(host.rtt);
            host.ack(host.in_flight().min(10));
        }
        assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
        host
    }

    fn phase<C: Controller>(host: &Host<C>) -> Option<ResumePhase> {
        host.cc.snapshot().resume
    }

    fn v1() -> Bbr1 {
        Bbr1::new(&settings(10))
    }

    fn v3() -> Bbr3 {
        Bbr3::new(&settings(10), false)
    }

    fn jumps<C: Controller>(cc: C) {
        let host = jumped(cc);
        let control = host.cc.control();
        assert!(control.pacing_rate >= Some(half()), "{control:?}");
        assert!(control.cwnd >= segments(400), "Startup's window at that rate");
        assert_eq!(host.cc.snapshot().state, "Startup");
    }

    #[test]
    //= rfc9959 C-1 C-2 C-4 test
    fn startup_paces_at_half_of_what_was_observed() {
        jumps(v1());
        jumps(v3());
    }

    fn lasts_two_rounds<C: Controller>(cc: C) {
        let mut host = jumped(cc);
        let mut round = || {
            host.fill();
            host.advance(host.rtt);
            host.ack(host.in_flight());
            phase(&host)
        };
        assert_eq!(round(), Some(ResumePhase::Validating));
        assert_eq!(round(), None);
    }

    #[test]
    //= rfc9959 C-3 test
    fn a_trial_lasts_two_rounds() {
        lasts_two_rounds(v1());
        lasts_two_rounds(v3());
    }

    fn retreats<C: Controller>(cc: C) {
        let mut host = jumped(cc);
        host.fill();
        host.advance(host.rtt);
        let max_bw = |snapshot: Snapshot| snapshot.max_bw;
        let before = max_bw(host.cc.snapshot());
        host.lose(1);
        let missing = host.missing();
        assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
        assert_eq!(host.cc.snapshot().state, "Drain");
        // What is delivered meanwhile would be the largest rate so far.
        host.ack(host.in_flight() / 2);
        if host.cc.snapshot().state == "Drain" {
            assert_eq!(max_bw(host.cc.snapshot()), before);
        }
        host.cc.on_spurious(host.now, &missing);
        assert_ne!(host.cc.snapshot().state, "Startup", "it is not undone");
        for _ in 0..10 {
            host.ack(host.in_flight());
            host.fill();
            host.advance(host.rtt);
        }
        assert_eq!(phase(&host), None);
        assert!(host.cc.snapshot().state.starts_with("ProbeBW"), "{}", host.cc.snapshot().state);
    }

    #[test]
    //= rfc9959 C-5 C-6 test
    fn congestion_on_trial_ends_startup_and_drain_measures_nothing() {
        retreats(v1());
        retreats(v3());
    }

    fn refuses<C: Controller>(cc: C, rtt_ms: u64, lost: usize) {
        let mut host = told(cc);
        host.rtt = TimeDelta::from_millis(rtt_ms);
        host.fill();
        host.advance(host.rtt);
        if lost > 0 {
            host.lose(lost);
        }
        for _ in 0..3 {
            host.ack(host.in_flight());
            host.fill();
            host.advance(host.rtt);
        }
        assert_eq!(phase(&host), None);
    }

    #[test]
    //= rfc9959 3.2-2 3.2-6 3.2-7 test
    fn congestion_or_another_round_trip_time_ends_reconnaissance() {
        for (rtt_ms, lost) in [(100, 1), (50, 0), (1_001, 0)] {
            refuses(v1(), rtt_ms, lost);
            refuses(v3(), rtt_ms, lost);
        }
    }

    fn ignores<C: Controller>(cc: C) {
        let mut host = Host::new(cc);
        host.fill();
        host.advance(host.rtt);
        host.lose(1);
        let hint = ResumeHint { saved_cwnd: segments(400), saved_rtt: RTT };
        host.cc.on_path(host.now, PathEvent::Resume(hint));
        assert_eq!(phase(&host), None);
    }

    #[test]
    fn a_hint_after_a_loss_is_ignored() {
        ignores(v1());
        ignores(v3());
    }
}
