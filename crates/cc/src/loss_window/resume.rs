//! How a loss-based window goes through the phases of a careful resume: RFC 9959 §3.2 to §3.5.

use uncork_units::Time;

use super::{LossWindow, Rule, Step};
use crate::event::Feedback;
use crate::resume::trial::Trial;
use crate::resume::{Reconnaissance, ResumeHint, ResumePhase};

/// Whether the window was once taken over from an earlier connection, on this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jumped {
    Never,
    Once,
    /// It met congestion. The host sees this from now on: an ACK cannot hide it.
    InVain,
}

impl LossWindow {
    /// A hint is worth something as long as nothing is known: no congestion was met, and no hint
    /// taken before.
    pub(crate) fn offer(&mut self, hint: ResumeHint) {
        if self.is_initial() && !self.has_jumped() && matches!(self.rule, Rule::Growth) {
            let confirmed_at = self.delivered.saturating_add(self.initial_window);
            self.rule = Rule::Reconnaissance(Reconnaissance::new(hint), confirmed_at);
        }
    }

    /// §3.2, "Path confirmed": an initial window has been acknowledged without congestion, and the
    /// sender has more to send than slow start lets it; one that has not may stay in Reconnaissance.
    //= rfc9959 3.2-1 3.2-8 3.2-9
    pub(super) fn confirms_path(&self, step: Step) -> Option<Reconnaissance> {
        match self.rule {
            Rule::Reconnaissance(hint, confirmed_at)
                if matches!(step, Step::Grow(_)) && self.delivered >= confirmed_at =>
            {
                Some(hint)
            }
            _ => None,
        }
    }

    /// §3.3: the window becomes jump_cwnd, if that is more than it would be anyway. True when it did.
    //= rfc9959 3.3-2
    pub(super) fn jump(
        &mut self,
        now: Time,
        hint: Reconnaissance,
        feedback: &Feedback<'_>,
    ) -> bool {
        let Some(rtt) = feedback.rtt else { return false };
        self.rule = Rule::Growth;
        let grown = self.cwnd.saturating_add(feedback.acked_bytes());
        let Some(jump) = hint.conclude(rtt).filter(|jump| jump.cwnd > grown) else {
            return false;
        };
        self.cwnd = jump.cwnd;
        self.jump = Jumped::Once;
        let rtt = rtt.smoothed.max(rtt.min);
        self.rule = Rule::Trial(Trial::begin(now, feedback.in_flight, self.delivered, rtt));
        true
    }

    /// A feedback to a window on trial; `is_congested` says that it is news of congestion.
    //= rfc9959 3.3-6 3.4-1 3.4-2 3.5-3
    pub(super) fn follow_trial(
        &mut self,
        now: Time,
        mut trial: Trial,
        is_congested: bool,
        feedback: &Feedback<'_>,
    ) -> Step {
        if is_congested {
            trial.retreat(now);
            self.rule = Rule::Trial(trial);
            self.retreat(trial);
            return Step::Hold;
        }
        match trial.phase() {
            ResumePhase::Unvalidated => {
                if let Some(rtt) = feedback.rtt {
                    trial.update_rtt(rtt.smoothed);
                }
                self.rule = Rule::Trial(trial);
                if trial.has_passed(feedback) || trial.is_overdue(now) {
                    self.end_unvalidated(now);
                }
                Step::Hold
            }
            ResumePhase::SafeRetreat => {
                if trial.has_passed(feedback) {
                    self.end_retreat(trial);
                }
                Step::Hold
            }
            ResumePhase::Reconnaissance | ResumePhase::Validating => {
                if trial.has_passed(feedback) {
                    self.rule = Rule::Growth;
                }
                self.growth(feedback)
            }
        }
    }

    /// §3.3, "Check flight_size": what was not used of the jump is taken back, and of a flight that
    /// is no more than what was delivered meanwhile nothing is left to prove.
    //= rfc9959 3.3-10 3.3-11
    pub(super) fn end_unvalidated(&mut self, now: Time) {
        let Rule::Trial(mut trial) = self.rule else { return };
        let pipe_size = trial.pipe_size(self.delivered);
        if self.in_flight < self.initial_window || self.in_flight <= pipe_size {
            // Neither below the initial window nor below a packet that has grown since.
            let least = self.initial_window.max(self.mss());
            self.cwnd = pipe_size.min(self.cwnd).max(least);
            self.rule = Rule::Growth;
            return;
        }
        trial.validate(now);
        self.rule = Rule::Trial(trial);
        self.cwnd = self.in_flight.min(self.cwnd).max(self.mss());
        self.full[0] = true;
    }

    /// §3.5: at most half of PipeSize, the minimum window of two segments apart. It was half of an
    /// overshoot, so PRR's gradual way down is not for it (§4.5), and no spurious loss gives it back.
    //= rfc9959 3.5-2 3.5-6
    fn retreat(&mut self, trial: Trial) {
        self.jump = Jumped::InVain;
        self.recovery.confirm();
        self.cwnd = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss()).min(self.cwnd);
    }

    /// §3.5: the last unvalidated packet is accounted for; from here slow start goes up to half of
    /// what was delivered in all.
    //= rfc9959 3.5-5
    fn end_retreat(&mut self, trial: Trial) {
        self.recovery.end();
        self.ssthresh = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss());
        self.rule = Rule::Growth;
    }
}

#[cfg(test)]
mod tests;
