//! The transport's loss recovery, which the draft assumes, and BBR's actions at its start and end
//! (§5.5.11, §5.6.4.4). An episode lasts as in RFC 9002 §7.3.2.

use std::collections::BTreeSet;

use uncork_cc::Timeout;

use super::model::{Ack, Bbr, State};
use super::sampler::Packet;

#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    pub(crate) in_recovery: bool,
    /// Start of the latest episode, and of the previous one.
    start: f64,
    previous_start: f64,
    /// Undos since the last reduction that was not undone.
    undone_in_a_row: u32,
    /// Packets lost in this episode that have not arrived.
    missing: BTreeSet<u64>,
    pub(crate) may_undo: bool,
    /// Whether the episode began with a retransmission timeout.
    by_timeout: bool,
    /// A timeout was reported; its losses follow.
    pub(crate) timeout_is_due: bool,
}

impl Bbr {
    /// Losses begin an episode; ACKs of packets sent in it end it. State is saved before the first
    /// loss is evaluated (h).
    pub(crate) fn update_recovery(&mut self, ack: &Ack<'_>) {
        let start = self.recovery.start;
        let ends = self.recovery.in_recovery && ack.acked.iter().any(|p| p.send_time >= start);
        if ack.lost.iter().any(|(p, _)| p.send_time >= start) {
            self.save_state_upon_loss();
            self.enter_recovery();
        } else if ends {
            self.recovery.in_recovery = false;
            if !self.recovery.by_timeout {
                self.restore_cwnd();
            }
            self.recovery.by_timeout = false;
        }
        let since = self.recovery.previous_start;
        let lost = ack.lost.iter().filter(|(packet, _)| packet.send_time >= since);
        self.recovery.missing.extend(lost.map(|(packet, _)| packet.packet_id));
    }

    fn enter_recovery(&mut self) {
        self.note("recovery");
        let previous_start = self.recovery.start;
        let by_timeout = self.recovery.by_timeout;
        let stands = !self.recovery.missing.is_empty();
        let undone_in_a_row = if stands { 0 } else { self.recovery.undone_in_a_row };
        self.recovery = Recovery {
            undone_in_a_row,
            in_recovery: true,
            start: self.now,
            previous_start,
            may_undo: true,
            by_timeout,
            ..Recovery::default()
        };
    }

    /// A timer expired without ACKs: OnEnterRTO(), or persistent congestion (k).
    pub(crate) fn on_timeout(&mut self, now: f64, timeout: Timeout) {
        self.now = now;
        self.check_if_application_limited();
        match timeout {
            Timeout::Probe => self.note("probe timeout"),
            Timeout::Retransmission => {
                self.note("RTO");
                let repeats = self.recovery.by_timeout && self.recovery.in_recovery;
                if repeats && !self.switches.h_undo_state_is_saved_each_round {
                    self.note("RTO repeats");
                    self.recovery.start = now;
                } else {
                    self.save_state_upon_loss();
                    self.enter_recovery();
                }
                self.recovery.by_timeout = true;
                self.recovery.timeout_is_due = true;
                self.c.cwnd = self.c.inflight + self.c.smss;
            }
            Timeout::Persistent => {
                self.note("persistent congestion");
                self.enter_recovery();
                self.recovery.may_undo = false;
                self.c.cwnd = self.c.cwnd.min(self.min_pipe_cwnd());
                self.prior_cwnd = self.min_pipe_cwnd();
            }
            other => panic!("not in the model: {other:?}"),
        }
    }

    /// (e): the one packet that may leave is added to what is in flight after the timeout.
    pub(crate) fn finish_timeout(&mut self) {
        if self.recovery.timeout_is_due {
            self.recovery.timeout_is_due = false;
            self.c.cwnd = self.c.inflight + self.c.smss;
        }
    }

    /// Packets turn out to have arrived.
    pub(crate) fn on_spurious(&mut self, now: f64, packets: &[Packet]) {
        self.now = now;
        let mut found = false;
        for packet in packets {
            found |= self.recovery.missing.remove(&packet.packet_id);
        }
        if found && self.recovery.missing.is_empty() && self.recovery.may_undo {
            self.recovery.may_undo = false;
            if self.recovery.undone_in_a_row == 15 {
                self.note("undo refused");
                self.recovery.undone_in_a_row = 0;
                return;
            }
            self.recovery.undone_in_a_row += 1;
            self.recovery.in_recovery = false;
            self.recovery.by_timeout = false;
            self.note("undo");
            self.handle_spurious_loss_detection();
        }
    }

    /// SaveStateUponLoss(), §5.5.11.1.
    pub(crate) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// HandleSpuriousLossDetection(), §5.5.11.2.
    pub(crate) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        if self.undo_state == Some(State::Startup) && self.state != State::Startup {
            self.note("undo to Startup");
            self.full_bw_reached = false;
            if self.state != State::ProbeRtt {
                self.enter_startup();
            }
        } else if self.undo_state == Some(State::ProbeBwUp) && self.state != State::ProbeBwUp {
            self.note("undo to REFILL");
            if self.state != State::ProbeRtt {
                self.start_probe_bw_refill();
            }
        }
        self.undo_state = None;
    }

    /// SaveCwnd(), §5.6.4.4.
    pub(crate) fn save_cwnd(&mut self) {
        self.prior_cwnd = if !self.recovery.in_recovery && self.state != State::ProbeRtt {
            self.c.cwnd
        } else {
            self.prior_cwnd.max(self.c.cwnd)
        };
    }

    /// RestoreCwnd().
    pub(crate) fn restore_cwnd(&mut self) {
        self.c.cwnd = self.c.cwnd.max(self.prior_cwnd);
    }
}
