//! Careful resume: RFC 9959 Appendix C. What is common to both versions is `crate::resume::bbr`.

use uncork_units::TimeDelta;

use super::Bbr3;
use super::state::State;
use crate::event::Feedback;
use crate::resume::ResumeHint;
use crate::resume::bbr::{BbrResume, Stage};
use crate::sampler::RateSample;

impl Bbr3 {
    /// A hint is worth something in Startup, as long as nothing was lost there.
    //= rfc9959 C-1
    pub(super) fn offer(&mut self, hint: ResumeHint) {
        if self.state == State::Startup && !self.full_pipe.reached() && self.sampler.lost() == 0 {
            self.resume = BbrResume::offer(hint);
        }
    }

    /// Before the model learns of a feedback: congestion on trial ends Startup for good.
    pub(super) fn check_resume(&mut self, feedback: &Feedback<'_>, sample: &mut RateSample) {
        if self.resume.on_feedback(feedback, sample) {
            self.full_pipe.declare_full();
            self.recovery.confirm();
        }
    }

    /// After the control parameters have been set. A jump paces at the larger of what Startup has
    /// come to and what the hint amounts to, and opens the window for it.
    //= rfc9959 C-2 C-4
    pub(super) fn update_resume(&mut self, feedback: &Feedback<'_>, sample: &RateSample) {
        let stage = match self.state {
            State::Startup if self.round.started() => Stage::Round {
                is_confirmed: self.sampler.delivered() >= u64::from(self.initial_window)
                    && !sample.is_app_limited,
            },
            State::Startup => Stage::Startup,
            State::Drain => Stage::Drain,
            _ => Stage::Later,
        };
        if let Some(rate) = self.resume.on_ack(stage, feedback.rtt) {
            let min_rtt = self.min_rtt.get().unwrap_or(TimeDelta::ZERO);
            self.pacing_rate = self.pacing_rate.max(rate);
            self.set_send_quantum();
            self.cwnd =
                self.cwnd.max(self.state.cwnd_gain(self.profile).of(rate.bytes_in(min_rtt)));
        }
    }
}
