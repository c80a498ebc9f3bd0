//! Undo of a spurious recovery: draft-ietf-ccwg-bbr-06 §5.5.11, and the window around recovery and
//! ProbeRTT, §5.6.4.4.

use uncork_units::{Rate, Time};

use super::Bbr3;
use super::bounds::Bounds;
use super::state::State;
use crate::event::Feedback;
use crate::recovery::RecoveryChange;

/// State at the start of the recovery episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// BBR.prior_cwnd.
    pub(super) prior_cwnd: u64,
    /// BBR.undo_bw_shortterm, undo_inflight_shortterm and undo_inflight_longterm.
    bounds: Bounds,
}

impl Undo {
    pub(super) const NOTHING: Self = Self { prior_cwnd: 0, bounds: Bounds::NONE };
}

impl Bbr3 {
    /// OnEnterFastRecovery() and the exit from recovery. State is saved at the start of an episode,
    /// before its losses change anything.
    //= bbr-06 5.5.10.2-7 5.6.4.4-2
    pub(super) fn update_recovery(&mut self, now: Time, feedback: &Feedback<'_>) {
        let was_active = self.recovery.is_active();
        match self.recovery.on_feedback(now, feedback) {
            RecoveryChange::None => {}
            RecoveryChange::Entered => self.save_state_upon_loss(was_active),
            RecoveryChange::Exited => self.exit_recovery(),
        }
    }

    /// After a timeout the window regrows with the bytes delivered. TCP leaves loss recovery when
    /// everything outstanding is repaired, and its window has regrown by then. Here recovery ends
    /// with the first ACK of a retransmission, too early to restore the window.
    //= bbr-06 5.6.4.4-3
    fn exit_recovery(&mut self) {
        if !self.timed_out {
            self.restore_cwnd();
        }
        self.timed_out = false;
    }

    /// SaveStateUponLoss().
    //= bbr-06 5.5.11.1-1
    pub(super) fn save_state_upon_loss(&mut self, was_in_recovery: bool) {
        self.save_cwnd(was_in_recovery);
        self.undo_state = None;
        self.undo.bounds = self.bounds;
    }

    /// SaveCwnd(): the last window not reduced by recovery or ProbeRTT.
    //= bbr-06 5.6.4.4-4
    pub(super) fn save_cwnd(&mut self, in_recovery: bool) {
        let is_cut = in_recovery || self.state == State::ProbeRtt;
        let at_least = if is_cut { self.undo.prior_cwnd } else { 0 };
        self.undo.prior_cwnd = self.cwnd.max(at_least);
    }

    /// RestoreCwnd(). The window was saved with the packet size at that time; its minimum uses the
    /// current one.
    //= bbr-06 5.6.4.4-5
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.undo.prior_cwnd).max(self.min_pipe_cwnd());
    }

    /// HandleSpuriousLossDetection().
    //= bbr-06 5.5.11.2-2 5.5.11.2-3
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.timed_out = false;
        self.restore_cwnd();
        self.signals.is_loss_in_round = false;
        self.full_pipe.restart(Rate::ZERO);
        self.bounds.widen_to(&self.undo.bounds);
        let ended = self.undo_state.take().filter(|_| self.profile.resumes_state());
        match ended {
            Some(State::Startup) if self.state != State::Startup => self.resume_startup(),
            Some(State::ProbeBwUp) if self.state != State::ProbeBwUp => self.resume_probe(),
            _ => {}
        }
    }

    //= bbr-06 5.5.11.2-5 5.5.11.2-7
    fn resume_startup(&mut self) {
        self.full_pipe.retract();
        if self.state != State::ProbeRtt {
            self.transition(State::Startup);
        }
    }

    //= bbr-06 5.5.11.2-6 5.5.11.2-7
    fn resume_probe(&mut self) {
        if self.state != State::ProbeRtt {
            self.start_probe_bw_refill();
        }
    }
}
