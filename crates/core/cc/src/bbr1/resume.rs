//! Careful Resume: RFC 9959 Appendix C. The decisions are in `crate::resume::bbr`.

use uncork_units::{Rate, TimeDelta};

use super::{Bbr1, Mode};
use crate::event::Feedback;
use crate::resume::ResumeHint;
use crate::resume::bbr::{Progress, ResumeChange, Stage};
use crate::sampler::RateSample;

impl Bbr1 {
    /// [`crate::PathEvent::Resume`] alone, for a host that must keep its functions small.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_hint(&mut self, hint: ResumeHint) {
        let is_lossless = !self.full_pipe.reached() && self.sampler.lost() == 0;
        self.resume.offer(hint, is_lossless && self.mode == Mode::Startup);
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
    pub(super) fn update_resume(&mut self, feedback: &Feedback<'_>, sample: &RateSample) {
        let delivered = self.sampler.delivered();
        let change = self.resume.on_ack(&Progress {
            stage: match self.mode {
                Mode::Startup => Stage::Startup,
                Mode::Drain => Stage::Drain,
                Mode::ProbeBw | Mode::ProbeRtt => Stage::Later,
            },
            round_started: self.round.started(),
            is_confirmed: delivered >= self.initial_window && !sample.is_app_limited,
            pacing_rate: self.pacing_rate,
            rtt: feedback.rtt,
        });
        let min_rtt = self.min_rtt.get().unwrap_or(TimeDelta::ZERO);
        match change {
            None => {}
            Some(ResumeChange::Jump(rate)) => {
                self.pacing_rate = self.pacing_rate.max(rate);
                self.cwnd = self.cwnd.max(self.cwnd_gain().of(rate.bytes_in(min_rtt)));
            }
            Some(ResumeChange::TakeBack) => {
                self.pacing_rate = self.pacing_rate.min(Rate::of(self.initial_window, min_rtt));
                self.set_pacing_rate(self.bw(), self.pacing_gain());
                let window = self.inflight(self.bw(), self.cwnd_gain()).max(self.initial_window);
                self.cwnd = self.cwnd.min(window);
                self.prior_cwnd = self.prior_cwnd.min(window);
            }
        }
    }
}
