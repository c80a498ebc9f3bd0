//! Events other than ACKs: restart from idle, timeouts, path changes.

use uncork_units::{Ratio, Time};

use super::Bbr3;
use super::deviations::Deviation;
use super::state::State;
use crate::controller::Settings;

impl Bbr3 {
    /// HandleRestartFromIdle(), §5.4.1.
    //= bbr-06 5.4.1-2 5.4.1-3 5.4.1-4
    pub(super) fn handle_restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart_interval(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(Ratio::ONE);
            self.is_pacing_due = true;
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
            self.bound_bw_for_model();
        }
    }

    /// OnEnterRTO(), §5.6.4.4. The draft's `C.inflight + 1` means one packet, not one byte. A
    /// timeout of data sent after a timeout continues the episode: an undo restores the state
    /// before the first.
    //= bbr-06 5.6.4.4-1
    pub(super) fn on_enter_rto(&mut self, now: Time) {
        let repeats = self.timed_out && self.recovery.is_active();
        if repeats && self.deviations.has(Deviation::UndoPerEpisode) {
            self.recovery.extend(now);
        } else {
            self.save_state_upon_loss(self.recovery.is_active());
            self.recovery.enter(now);
        }
        self.timed_out = true;
        self.sampler.lost_data_waits();
        self.cwnd = self.sampler.in_flight().saturating_add(self.mss);
    }

    /// The timeout is reported before its losses. The one packet that may leave is added to what is
    /// in flight after those losses.
    //= bbr-06 5.6.4.4-1
    pub(super) fn bound_cwnd_after_timeout(&mut self) {
        if self.timed_out {
            self.cwnd = self.cwnd.min(self.sampler.in_flight().saturating_add(self.mss));
        }
    }

    /// RFC 9002 §7.6.2 reduces to the minimum window, which for BBR is BBR.MinPipeCwnd. The draft
    /// has no rule. The earlier window is not restored: it grows with the bytes delivered.
    pub(super) fn on_persistent_congestion(&mut self, now: Time) {
        self.recovery.enter(now);
        self.recovery.confirm();
        self.cwnd = self.cwnd.min(self.min_pipe_cwnd());
        self.undo.prior_cwnd = self.min_pipe_cwnd();
    }

    /// The packet size changed. Volumes stay as they are, in bytes; minimums follow the packet
    /// size.
    pub(super) fn change_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss.max(1));
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        self.set_send_quantum();
    }

    /// Resets all estimates for a new path (RFC 9000 §9.4).
    pub(super) fn start_over(&mut self, now: Time) {
        let settings = Settings {
            mss: self.mss as u32,
            initial_window: self.initial_window(),
            initial_rtt: None,
            paced: false,
            segmentation_offload: self.has_offload,
            scalable_marks: self.ecn.is_on(),
            clock_granularity: self.sampler.clock_granularity(),
            inherited: None,
            seed: self.rng.next_u64(),
            now,
        };
        let (loss_floor, horizon) = (self.loss_floor.restarted(), self.cycle.horizon);
        *self = Self { loss_floor, ..Self::with(&settings, self.profile, self.deviations) };
        self.recovery.forget(now);
        self.cycle.horizon = horizon;
    }
}
