//! Pacing rate, send quantum and window: draft-ietf-ccwg-bbr-06 §5.6.

use core::mem;

use uncork_units::{Rate, Ratio, TimeDelta};

use super::Bbr3;
use super::bounds::UNBOUNDED;
use super::deviations::Deviation;
use super::params::{
    EXTRA_ACKED_MAX, MIN_PIPE_PACKETS, NOMINAL_RTT, PACING_MARGIN, PROBE_RTT_CWND_GAIN,
    SEND_QUANTUM_MAX, SEND_QUANTUM_TIME, TCP_QUANTA,
};
use super::profile::Profile;
use super::state::State;
use crate::event::RttSample;
use crate::sampler::RateSample;

/// C.is_cwnd_limited: whether the window was fully used at any point in the last packet-timed round.
//= bbr-06 2.2-12
#[derive(Clone, Copy, Debug)]
pub(super) struct CwndUsage {
    /// C.delivered when the window was last full; [`Self::NEVER`] if that was more than a round
    /// ago.
    full_at: u64,
}

impl CwndUsage {
    const NEVER: u64 = u64::MAX;

    pub(super) const UNUSED: Self = Self { full_at: Self::NEVER };

    pub(super) fn is_limited(self) -> bool {
        self.full_at != Self::NEVER
    }

    /// The window has no room for another packet.
    pub(super) fn on_full(&mut self, delivered: u64) {
        self.full_at = delivered.min(Self::NEVER - 1);
    }

    /// A packet is acknowledged that left when C.delivered was `prior_delivered`. If it left after
    /// the window was last full, a round has passed since then.
    pub(super) fn on_ack(&mut self, prior_delivered: u64) {
        if prior_delivered > self.full_at {
            *self = Self::UNUSED;
        }
    }
}

/// InitPacingRate(): the initial window over the RTT, or over a nominal RTT.
//= bbr-06 5.6.2-2
pub(super) fn init_pacing_rate(
    profile: Profile,
    initial_window: u64,
    rtt: Option<TimeDelta>,
) -> Rate {
    let nominal = Rate::of(initial_window, NOMINAL_RTT);
    let rate = rtt.map_or(nominal, |rtt| Rate::of(initial_window, rtt));
    let rate = if rate.is_zero() { nominal } else { rate };
    rate.scaled(profile.startup_pacing_gain()).max(Rate::from_bytes_per_sec(1))
}

impl Bbr3 {
    /// UpdateControlParameters().
    //= bbr-06 5.2.3-3 5.6.2-4
    pub(super) fn update_control_parameters(&mut self, sample: &RateSample) {
        if mem::take(&mut self.is_pacing_due) {
            self.set_pacing_rate(self.state.pacing_gain(self.profile));
            self.set_send_quantum();
        }
        self.set_cwnd(sample.newly_acked);
    }

    /// Replaces the pacing rate that was based on a nominal RTT when the first RTT sample arrives.
    /// That rate may be hundreds of times too high and would not decrease until the pipe is full
    /// (§5.6.2).
    pub(super) fn init_pacing_from_first_rtt(&mut self, rtt: Option<RttSample>) {
        let Some(rtt) = rtt else {
            return;
        };
        let is_first = self.min_rtt.get().is_none();
        if is_first && self.deviations.has(Deviation::PacingFromFirstRtt) {
            let rtt = Some(rtt.smoothed);
            self.pacing_rate = init_pacing_rate(self.profile, self.initial_window(), rtt);
            self.is_pacing_due = true;
        }
    }

    /// SetPacingRateWithGain().
    //= bbr-06 5.6.2-3 5.6.2-5
    pub(super) fn set_pacing_rate(&mut self, gain: Ratio) {
        let rate = self.bw.scaled(gain).scaled(PACING_MARGIN);
        let is_known = self.full_pipe.reached() && !rate.is_zero();
        if is_known || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetSendQuantum().
    //= bbr-06 5.6.3-1 5.6.3-3
    pub(super) fn set_send_quantum(&mut self) {
        let quantum = self.pacing_rate.bytes_in(SEND_QUANTUM_TIME);
        self.send_quantum = quantum.min(SEND_QUANTUM_MAX).max(2 * self.mss);
    }

    /// SetCwnd(), §5.6.4.6.
    //= bbr-06 5.6.4.5-2 5.6.4.6-1 5.6.4.6-2 5.6.4.6-3 5.6.4.6-4
    fn set_cwnd(&mut self, newly_acked: u64) {
        let max_inflight = self.max_inflight();
        let grown = self.cwnd.saturating_add(newly_acked);
        if self.full_pipe.reached() {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || self.sampler.delivered() < self.initial_window() {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// BoundCwndForModel(), §5.6.4.7.
    //= bbr-06 5.3.3.3-4 5.6.1-3 5.6.4.7-1 5.6.4.7-2
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => UNBOUNDED,
            State::ProbeRtt | State::ProbeBwCruise => self.inflight_with_headroom(),
            _ => self.bounds.inflight_longterm,
        };
        let cap = cap.min(self.bounds.inflight_shortterm).max(self.min_pipe_cwnd());
        self.cwnd = self.cwnd.min(cap);
    }

    /// UpdateMaxInflight(), §5.6.4.2.
    //= bbr-06 5.5.9-5 5.6.4.2-4
    pub(super) fn max_inflight(&self) -> u64 {
        let target = self.window_target();
        self.quantization_budget(target.saturating_add(self.extra_acked()))
    }

    /// BBR.extra_acked. Without an upper bound, one long ACK stall would allow a burst of a whole
    /// window. Linux also limits it to 100 ms of the bandwidth.
    fn extra_acked(&self) -> u64 {
        let extra = self.aggregation.extra_acked();
        if self.deviations.has(Deviation::BoundExtraAcked) {
            return extra.min(self.bw.bytes_in(EXTRA_ACKED_MAX));
        }
        extra
    }

    /// BDPMultiple() with BBR.bw.
    //= bbr-06 5.6.4.2-1
    pub(super) fn bdp_multiple(&self, gain: Ratio) -> u64 {
        if self.min_rtt.get().is_none() {
            return self.initial_window();
        }
        gain.of(self.bdp)
    }

    /// QuantizationBudget().
    //= bbr-06 5.6.4.2-2 5.6.4.3-1
    fn quantization_budget(&self, inflight_cap: u64) -> u64 {
        let cap = inflight_cap.max(self.offload_budget()).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap.saturating_add(2 * self.mss) } else { cap }
    }

    /// UpdateOffloadBudget(). TCP's three quanta include two that wait in the qdisc and in segmentation
    /// offload. Where packets count as in flight only once they leave, these are below this interface. A
    /// quantum is 1 ms at the pacing rate, so with an RTT of 1 ms two more would be a standing queue of
    /// two BDP there. BBR.extra_acked covers delayed ACKs.
    //= bbr-06 5.5.8.1-1 5.5.8.2-1
    fn offload_budget(&self) -> u64 {
        if self.has_offload { TCP_QUANTA * self.send_quantum } else { self.send_quantum }
    }

    /// Inflight(BBR.bw, gain).
    //= bbr-06 5.6.4.2-3
    pub(super) fn inflight(&self, gain: Ratio) -> u64 {
        self.quantization_budget(self.bdp_multiple(gain))
    }

    /// Inflight(BBR.max_bw, gain).
    //= bbr-06 5.6.4.2-3
    pub(super) fn inflight_at_max_bw(&self, gain: Ratio) -> u64 {
        let bdp = match self.min_rtt.get() {
            Some(min_rtt) => gain.of(self.max_bw.get().bytes_in(min_rtt)),
            None => self.initial_window(),
        };
        self.quantization_budget(bdp)
    }

    /// InflightWithHeadroom().
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        self.bounds.inflight_with_headroom(self.mss, self.min_pipe_cwnd())
    }

    /// TargetInflight(), §5.3.3.8.3: the BDP, unless congestion has cut the window below it.
    //= bbr-06 5.3.3.8.3-4
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp_multiple(Ratio::ONE).min(self.cwnd)
    }

    /// ProbeRTTCwnd(), §5.6.4.5.
    //= bbr-06 5.6.4.5-1
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }

    /// BBR.MinPipeCwnd in bytes.
    //= bbr-06 2.8-4
    pub(super) fn min_pipe_cwnd(&self) -> u64 {
        MIN_PIPE_PACKETS * self.mss
    }
}
