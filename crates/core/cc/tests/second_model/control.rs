//! Pacing rate, send quantum and window (§5.6).

use super::BYTES;
use super::model::{Bbr, State};

const MILLISECOND: f64 = 1e6;

impl Bbr {
    /// In percent.
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => 277.0,
            State::Drain => 50.0,
            State::ProbeBwDown => 90.0,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 100.0,
            State::ProbeBwUp => 125.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => 2.25,
            State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    pub(crate) fn min_pipe_cwnd(&self) -> f64 {
        4.0 * self.c.smss
    }

    /// InitPacingRate(), §5.6.2.
    pub(crate) fn init_pacing_rate(&mut self) {
        let rtt = self.c.srtt.unwrap_or(MILLISECOND);
        let nominal_bandwidth = (self.c.initial_cwnd * 1e9 / rtt).floor();
        self.pacing_rate = (nominal_bandwidth * 277.0 / 100.0).floor();
    }

    /// UpdateControlParameters(), §5.2.3.
    pub(crate) fn update_control_parameters(&mut self) {
        if !self.has_seen_rtt && self.rs.rtt.is_some() {
            self.has_seen_rtt = true;
            if !self.switches.i_pacing_rate_is_set_once {
                self.init_pacing_rate();
            }
        }
        self.set_pacing_rate_with_gain(self.pacing_gain());
        self.set_send_quantum();
        self.set_cwnd();
    }

    /// SetPacingRateWithGain(), in percent.
    pub(crate) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = ((self.bw * gain / 100.0).floor() * 99.0 / 100.0).floor();
        if (self.full_bw_reached && rate > 0.0) || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetSendQuantum(), §5.6.3.
    pub(crate) fn set_send_quantum(&mut self) {
        let quantum = self.pacing_rate * MILLISECOND / 1e9;
        self.send_quantum = quantum.min(65_536.0).max(2.0 * self.c.smss);
    }

    /// BBR.bdp.
    pub(crate) fn bdp(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0)
    }

    /// BDPMultiple(), §5.6.4.2.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt == f64::INFINITY {
            return self.c.initial_cwnd;
        }
        gain * bw * self.min_rtt / 1e9
    }

    /// QuantizationBudget(), with one quantum of offload budget.
    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap.max(self.send_quantum).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap + 2.0 * self.c.smss } else { cap }
    }

    /// Inflight().
    pub(crate) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// TargetInflight(), §5.3.3.8.3.
    pub(crate) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.c.cwnd)
    }

    /// SetCwnd(), §5.6.4.6.
    fn set_cwnd(&mut self) {
        let mut extra_acked = self.extra_acked;
        if !self.switches.k_extra_acked_is_bounded_by_the_window_only {
            if extra_acked > self.bw * 0.1 {
                self.note("extra_acked beyond 100 ms");
            }
            extra_acked = extra_acked.min(self.bw * 0.1);
        }
        let cap = self.bdp_multiple(self.bw, self.cwnd_gain()) + extra_acked;
        let max_inflight = self.quantization_budget(cap);
        let newly_acked = self.rs.newly_acked;
        if self.full_bw_reached {
            self.c.cwnd = (self.c.cwnd + newly_acked).min(max_inflight);
        } else {
            self.compared_with_bdp("cwnd and max_inflight", self.c.cwnd, max_inflight);
            if self.c.cwnd < max_inflight || self.c.delivered < self.c.initial_cwnd {
                self.c.cwnd += newly_acked;
            }
        }
        self.c.cwnd = self.c.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.c.cwnd = self.c.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// BoundCwndForModel(), §5.6.4.7.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(self.min_pipe_cwnd());
        self.cwnd_may_be_lower =
            self.c.cwnd.fract() != 0.0 && (0.0..BYTES).contains(&(self.c.cwnd - cap));
        self.c.cwnd = self.c.cwnd.min(cap);
    }

    /// ProbeRTTCwnd(), §5.6.4.5.
    pub(crate) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, 0.5).max(self.min_pipe_cwnd())
    }
}
