//! Careful Resume for BBR: RFC 9959 Appendix C.
//!
//! The state retained from a path is a rate, not a window. For a round, Startup paces at no less
//! than half of the hint's rate, with the window that Startup allows at that rate. The following
//! round is the validation; the model uses its samples like any others. Congestion within these two
//! rounds ends Startup. Drain acts as the Safe Retreat: it sends at half the measured rate and
//! discards samples, because the unvalidated packets in the queue may have displaced those of other
//! flows.

use uncork_units::Rate;

use super::{Reconnaissance, ResumeHint, ResumePhase};
use crate::event::{Feedback, RttSample};
use crate::full_pipe::FullPipe;
use crate::recovery::RecoveryEpisode;
use crate::sampler::RateSample;

/// Rounds from the jump until all of its packets have been acknowledged.
const ROUNDS: u8 = 2;

/// Progress of a BBR flow's Careful Resume.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BbrResume {
    #[default]
    Off,
    Reconnaissance(Reconnaissance),
    /// Rounds left of the draft's carefully-resuming flag.
    Resuming {
        rounds: u8,
    },
    /// The jump met congestion. Samples are discarded until it is over; the verdict remains.
    SafeRetreat {
        is_over: bool,
    },
    /// A jump was made and completed; another is not allowed.
    Done,
}

const _: () = assert!(size_of::<BbrResume>() <= 16, "every BBR connection has one");

/// State of a flow after an ACK.
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
    /// Current pacing rate.
    pub(crate) pacing_rate: Rate,
    pub(crate) rtt: Option<RttSample>,
}

/// Change of pacing rate and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResumeChange {
    /// Raise to this rate and the window for it.
    Jump(Rate),
    /// Return to the model's values, but not below an initial window. The model has already
    /// measured the used part of the jump.
    TakeBack,
}

impl BbrResume {
    /// Accepts a hint, only once and only in a Startup without losses.
    //= rfc9959 C-1
    pub(crate) fn offer(&mut self, hint: ResumeHint, is_lossless_startup: bool) {
        if is_lossless_startup && matches!(self, Self::Off) {
            *self = Self::Reconnaissance(Reconnaissance::new(hint));
        }
    }

    /// Whether it currently affects the flow.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self, Self::Off | Self::SafeRetreat { is_over: true } | Self::Done)
    }

    /// Whether the rate was taken over from an earlier connection.
    pub(crate) fn has_jumped(&self) -> bool {
        matches!(self, Self::Resuming { .. } | Self::SafeRetreat { .. } | Self::Done)
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

    /// Call before the model is updated from a feedback. Congestion ends Careful Resume; if the
    /// jump was made, it also ends Startup for good. Samples during the retreat are discarded.
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

    /// Call after the control parameters have been set.
    //= rfc9959 C-3
    pub(crate) fn on_ack(&mut self, ack: &Progress) -> Option<ResumeChange> {
        match (*self, ack.stage) {
            (Self::Reconnaissance(hint), Stage::Startup)
                if ack.round_started && ack.is_confirmed =>
            {
                // If Startup has already reached that rate, a jump is not needed.
                let jump = hint.conclude(ack.rtt?).filter(|jump| jump.rate > ack.pacing_rate);
                *self = jump.map_or(Self::Off, |_| Self::Resuming { rounds: ROUNDS });
                return jump.map(|jump| ResumeChange::Jump(jump.rate));
            }
            (Self::Reconnaissance(_), Stage::Drain | Stage::Later) => *self = Self::Off,
            (Self::Resuming { rounds }, Stage::Startup) if ack.round_started && rounds > 1 => {
                *self = Self::Resuming { rounds: rounds - 1 };
            }
            // If Drain starts with unvalidated packets outstanding, it is a retreat, for any
            // reason.
            (Self::Resuming { .. }, Stage::Drain) => *self = Self::SafeRetreat { is_over: false },
            (Self::Resuming { .. }, stage) if ack.round_started || stage == Stage::Later => {
                *self = Self::Done;
                return Some(ResumeChange::TakeBack);
            }
            (Self::SafeRetreat { .. }, Stage::Later) => *self = Self::SafeRetreat { is_over: true },
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
