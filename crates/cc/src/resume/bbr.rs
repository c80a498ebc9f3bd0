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
use crate::full_pipe::FullPipe;
use crate::recovery::RecoveryEpisode;
use crate::sampler::RateSample;

/// Rounds from the jump until its packets, all of them, have been acknowledged.
const ROUNDS: u8 = 2;

/// How far the careful resume of a BBR flow has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BbrResume {
    #[default]
    Off,
    Reconnaissance(Reconnaissance),
    /// The rounds that are left of the draft's carefully-resuming flag.
    Resuming {
        rounds: u8,
    },
    /// The jump met congestion. Until it is over, what is measured is discarded; the verdict stands.
    SafeRetreat {
        is_over: bool,
    },
    /// A jump was made and is over: there is no second one.
    Done,
}

const _: () = assert!(size_of::<BbrResume>() <= 16, "every BBR connection has one");

/// Where a flow is after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Startup,
    Drain,
    Later,
}

/// A flow after an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) stage: Stage,
    /// Whether the ACK began a round.
    pub(crate) round_started: bool,
    /// Whether an initial window has been delivered and the flow is not application-limited.
    pub(crate) is_confirmed: bool,
    /// What the flow paces at.
    pub(crate) pacing_rate: Rate,
    pub(crate) rtt: Option<RttSample>,
}

/// What becomes of the pacing rate and the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// They rise to this rate and the window that goes with it.
    Jump(Rate),
    /// They return to what the model gives, but not below an initial window: the model has learned
    /// of all that was used of the jump.
    TakeBack,
}

impl BbrResume {
    /// A hint is worth something in a Startup without losses, and once.
    //= rfc9959 C-1
    pub(crate) fn offer(&mut self, hint: ResumeHint, is_lossless_startup: bool) {
        if is_lossless_startup && matches!(self, Self::Off) {
            *self = Self::Reconnaissance(Reconnaissance::new(hint));
        }
    }

    /// Whether it has a say in what the flow does.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self, Self::Off | Self::SafeRetreat { is_over: true } | Self::Done)
    }

    pub(crate) fn phase(&self) -> Option<ResumePhase> {
        match self {
            Self::Off | Self::Done => None,
            Self::Reconnaissance(_) => Some(ResumePhase::Reconnaissance),
            Self::Resuming { rounds: ROUNDS } => Some(ResumePhase::Unvalidated),
            Self::Resuming { .. } => Some(ResumePhase::Validating),
            Self::SafeRetreat { .. } => Some(ResumePhase::SafeRetreat),
        }
    }

    /// Before the model learns of a feedback. Congestion ends a careful resume, and Startup with it,
    /// for good, if the jump was made. What is measured in the retreat is discarded.
    //= rfc9959 C-5 C-6
    pub(crate) fn on_feedback(
        &mut self,
        feedback: &Feedback<'_>,
        sample: &mut RateSample,
        full_pipe: &mut FullPipe,
        recovery: &mut RecoveryEpisode,
    ) {
        let is_congested =
            !feedback.lost.is_empty() || feedback.ce_packets > 0 || feedback.repaired_by_probe;
        match self {
            Self::Resuming { .. } if is_congested => {
                *self = Self::SafeRetreat { is_over: false };
                full_pipe.declare_full();
                recovery.confirm();
            }
            Self::Reconnaissance(_) if is_congested => *self = Self::Off,
            _ => {}
        }
        if matches!(self, Self::SafeRetreat { .. }) {
            sample.delivery_rate = Rate::ZERO;
        }
    }

    /// After the control parameters have been set.
    //= rfc9959 C-3
    pub(crate) fn on_ack(&mut self, ack: &Progress) -> Option<Change> {
        match (*self, ack.stage) {
            (Self::Reconnaissance(hint), Stage::Startup)
                if ack.round_started && ack.is_confirmed =>
            {
                // A rate that Startup has come to by itself is not worth a trial.
                let jump = hint.conclude(ack.rtt?).filter(|jump| jump.rate > ack.pacing_rate);
                *self = jump.map_or(Self::Off, |_| Self::Resuming { rounds: ROUNDS });
                return jump.map(|jump| Change::Jump(jump.rate));
            }
            (Self::Reconnaissance(_), Stage::Drain | Stage::Later) => *self = Self::Off,
            (Self::Resuming { rounds }, Stage::Startup) if ack.round_started && rounds > 1 => {
                *self = Self::Resuming { rounds: rounds - 1 };
            }
            // Entered with packets of the trial unaccounted for, Drain is a retreat, whatever the
            // reason.
            (Self::Resuming { .. }, Stage::Drain) => *self = Self::SafeRetreat { is_over: false },
            (Self::Resuming { .. }, stage) if ack.round_started || stage == Stage::Later => {
                *self = Self::Done;
                return Some(Change::TakeBack);
            }
            (Self::SafeRetreat { .. }, Stage::Later) => *self = Self::SafeRetreat { is_over: true },
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
