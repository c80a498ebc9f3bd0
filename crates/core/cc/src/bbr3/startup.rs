//! Startup: draft-ietf-ccwg-bbr-06 §5.3.1.

use uncork_units::Ratio;

use super::Bbr3;
use super::deviations::Deviation;
use super::loss::LossSample;
use super::profile::Profile;
use super::state::State;
use crate::sampler::RateSample;

impl Bbr3 {
    /// CheckFullBWReached(), §5.3.1.2.
    //= bbr-06 5.3.1.2-2
    pub(super) fn check_full_bw_reached(&mut self, sample: &RateSample) {
        if !self.round.started() || sample.is_app_limited {
            return;
        }
        if sample.is_valid() || !self.deviations.has(Deviation::SkipInvalid) {
            self.full_pipe.on_round(match self.profile {
                Profile::V2 => self.max_bw.get(),
                Profile::V3 => sample.delivery_rate,
            });
        }
    }

    /// CheckStartupDone().
    //= bbr-06 5.3.1.1-2 5.5.10.1-1
    pub(super) fn check_startup_done(&mut self, sample: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_high_loss(sample);
        if self.full_pipe.reached() {
            self.enter_drain();
        }
    }

    /// CheckStartupHighLoss(), §5.3.1.3; the draft describes it in prose only.
    ///
    /// A loss round runs from the first loss to the ACK of a packet sent after it, so at its end
    /// the connection has been in recovery for one full round. The ACK's sample covers the same
    /// round, so its losses are those of the round.
    //= bbr-06 5.3.1.3-1 5.3.1.3-2 5.3.1.3-3 5.3.1.3-5 5.3.1.3-6
    fn check_startup_high_loss(&mut self, sample: &RateSample) {
        if self.signals.loss_round_start
            && self.signals.lost_ranges >= self.profile.startup_full_loss_count()
            && self.is_inflight_too_high(&LossSample::from(sample))
        {
            self.undo_state = Some(State::Startup);
            self.declare_startup_too_high();
        }
    }

    /// Startup has filled the pipe, and the queue.
    pub(super) fn declare_startup_too_high(&mut self) {
        self.full_pipe.declare_full();
        self.bounds.inflight_longterm = match self.profile {
            Profile::V2 => self.inflight_at_max_bw(Ratio::ONE),
            Profile::V3 => self.bdp.max(self.signals.inflight_latest),
        };
    }
}
