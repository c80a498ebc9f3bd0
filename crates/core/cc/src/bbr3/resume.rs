//! Careful Resume: RFC 9959 Appendix C. The decisions are in `crate::resume::bbr`.

use uncork_units::{Rate, TimeDelta};

use super::Bbr3;
use super::state::State;
use crate::event::RttSample;
use crate::resume::ResumeHint;
use crate::resume::bbr::{Progress, ResumeChange, Stage};
use crate::sampler::RateSample;

impl Bbr3 {
    /// [`crate::PathEvent::Resume`] alone, for a host that must keep its functions small.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_hint(&mut self, hint: ResumeHint) {
        let is_lossless = !self.full_pipe.reached() && self.sampler.lost() == 0;
        self.resume.offer(hint, is_lossless && self.state == State::Startup);
    }

    /// Whether the window was taken over from an earlier connection, for a host that has no observer of starts.
    #[doc(hidden)]
    #[inline]
    pub fn has_jumped(&self) -> bool {
        self.resume.has_jumped()
    }

    /// A jump paces at the larger of Startup's current rate and the hint's rate, and raises the
    /// window to match.
    //= rfc9959 C-2 C-4
    pub(super) fn update_resume(&mut self, rtt: Option<RttSample>, sample: &RateSample) {
        let delivered = self.sampler.delivered();
        let change = self.resume.on_ack(&Progress {
            stage: match self.state {
                State::Startup => Stage::Startup,
                State::Drain => Stage::Drain,
                _ => Stage::Later,
            },
            round_started: self.round.started(),
            is_confirmed: delivered >= self.initial_window() && !sample.is_app_limited,
            pacing_rate: self.pacing_rate,
            rtt,
        });
        let min_rtt = self.min_rtt.get().unwrap_or(TimeDelta::ZERO);
        match change {
            None => {}
            Some(ResumeChange::Jump(rate)) => {
                let window = self.state.cwnd_gain(self.profile).of(rate.bytes_in(min_rtt));
                self.pacing_rate = self.pacing_rate.max(rate);
                self.set_send_quantum();
                self.cwnd = self.cwnd.max(window);
            }
            Some(ResumeChange::TakeBack) => {
                self.pacing_rate = self.pacing_rate.min(Rate::of(self.initial_window(), min_rtt));
                self.set_pacing_rate(self.state.pacing_gain(self.profile));
                self.set_send_quantum();
                let window = self.max_inflight().max(self.initial_window());
                self.cwnd = self.cwnd.min(window);
                self.undo.prior_cwnd = self.undo.prior_cwnd.min(window);
            }
        }
    }
}
