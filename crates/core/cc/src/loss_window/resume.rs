//! The phases of Careful Resume for a loss-based window: RFC 9959 §3.2 to §3.5.

use uncork_units::Time;

use super::{LossReaction, LossWindow, Usage, WindowRule};
use crate::event::Feedback;
use crate::resume::trial::Trial;
use crate::resume::{Reconnaissance, ResumeHint, ResumePhase};

/// Whether the window was taken over from an earlier connection on this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jumped {
    Never,
    Once,
    /// The jump met congestion. Reported to the host from now on, so that a single ACK cannot hide
    /// it.
    InVain,
}

impl LossWindow {
    /// Accepts a hint, unless there was congestion or an earlier hint.
    pub(crate) fn offer(&mut self, hint: ResumeHint) {
        if self.is_initial() && !self.has_jumped() && matches!(self.rule, WindowRule::Growth) {
            let confirmed_at = self.delivered.saturating_add(self.initial_window);
            self.rule = WindowRule::Reconnaissance(Reconnaissance::new(hint), confirmed_at);
        }
    }

    /// §3.2, "Path confirmed": an initial window has been acknowledged without congestion, and the
    /// sender has more data than slow start allows. A sender with less data may stay in
    /// Reconnaissance.
    //= rfc9959 3.2-1 3.2-8 3.2-9
    pub(super) fn confirms_path(&self, step: LossReaction) -> Option<Reconnaissance> {
        match self.rule {
            WindowRule::Reconnaissance(hint, confirmed_at)
                if matches!(step, LossReaction::Grow(_)) && self.delivered >= confirmed_at =>
            {
                Some(hint)
            }
            _ => None,
        }
    }

    /// §3.3: sets the window to jump_cwnd if that is larger than it would be otherwise. Returns
    /// whether it did.
    //= rfc9959 3.3-2
    pub(super) fn jump(
        &mut self,
        now: Time,
        hint: Reconnaissance,
        feedback: &Feedback<'_>,
    ) -> bool {
        let Some(rtt) = feedback.rtt else { return false };
        self.rule = WindowRule::Growth;
        let grown = self.cwnd.saturating_add(feedback.acked_bytes());
        let Some(jump) = hint.conclude(rtt).filter(|jump| jump.cwnd > grown) else {
            return false;
        };
        self.cwnd = jump.cwnd;
        self.jump = Jumped::Once;
        let rtt = rtt.smoothed.max(rtt.min);
        self.rule = WindowRule::Trial(Trial::begin(now, feedback.in_flight, self.delivered, rtt));
        true
    }

    /// Processes a feedback while the window is on trial. `is_congested` means it reports
    /// congestion.
    //= rfc9959 3.3-6 3.4-1 3.4-2 3.5-3
    pub(super) fn follow_trial(
        &mut self,
        now: Time,
        mut trial: Trial,
        is_congested: bool,
        feedback: &Feedback<'_>,
    ) -> LossReaction {
        if is_congested {
            trial.retreat(now);
            self.rule = WindowRule::Trial(trial);
            self.retreat(trial);
            return LossReaction::Hold;
        }
        match trial.phase() {
            ResumePhase::Unvalidated => {
                if let Some(rtt) = feedback.rtt {
                    trial.update_rtt(rtt.smoothed);
                }
                self.rule = WindowRule::Trial(trial);
                if trial.has_passed(feedback) || trial.is_overdue(now) {
                    self.end_unvalidated(now);
                }
                LossReaction::Hold
            }
            ResumePhase::SafeRetreat => {
                if trial.has_passed(feedback) {
                    self.end_retreat(trial);
                }
                LossReaction::Hold
            }
            ResumePhase::Reconnaissance | ResumePhase::Validating => {
                if trial.has_passed(feedback) {
                    self.rule = WindowRule::Growth;
                }
                self.growth(feedback)
            }
        }
    }

    /// §3.3, "Check flight_size": takes back the unused part of the jump. If the flight is no
    /// larger than what was delivered meanwhile, validation is complete.
    //= rfc9959 3.3-10 3.3-11
    pub(super) fn end_unvalidated(&mut self, now: Time) {
        let WindowRule::Trial(mut trial) = self.rule else { return };
        let pipe_size = trial.pipe_size(self.delivered);
        if self.in_flight < self.initial_window || self.in_flight <= pipe_size {
            // Neither below the initial window nor below one packet: packets may have grown.
            let least = self.initial_window.max(self.mss());
            self.cwnd = pipe_size.min(self.cwnd).max(least);
            self.rule = WindowRule::Growth;
            return;
        }
        trial.validate(now);
        self.rule = WindowRule::Trial(trial);
        self.cwnd = self.in_flight.min(self.cwnd).max(self.mss());
        self.usage[0] = Usage::Full;
    }

    /// §3.5: reduces to at most half of PipeSize, with the minimum of two segments. PRR's gradual
    /// reduction does not apply after an overshoot (§4.5), and spurious losses do not undo the
    /// retreat.
    //= rfc9959 3.5-2 3.5-6
    fn retreat(&mut self, trial: Trial) {
        self.jump = Jumped::InVain;
        self.recovery.confirm();
        self.cwnd = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss()).min(self.cwnd);
    }

    /// §3.5: the last unvalidated packet is acknowledged or lost. From here slow start continues up
    /// to half of the bytes delivered in total.
    //= rfc9959 3.5-5
    fn end_retreat(&mut self, trial: Trial) {
        self.recovery.end();
        self.ssthresh = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss());
        self.rule = WindowRule::Growth;
    }
}

#[cfg(test)]
mod tests;
