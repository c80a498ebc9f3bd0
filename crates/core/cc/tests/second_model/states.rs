//! The state machine (§5.3).

use super::BYTES;
use super::model::{AckPhase, Bbr, State};

const SECOND: f64 = 1e9;
const PROBE_RTT_INTERVAL: f64 = 5.0 * SECOND;
const MIN_RTT_FILTER_LEN: f64 = 10.0 * SECOND;
const PROBE_RTT_DURATION: f64 = 0.2 * SECOND;
const STARTUP_FULL_LOSS_CNT: u32 = 6;

impl Bbr {
    /// EnterStartup(), §5.3.1.1.
    pub(crate) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckStartupDone().
    pub(crate) fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == State::Startup && self.full_bw_reached {
            self.note("Drain");
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    /// CheckStartupHighLoss(), §5.3.1.3, as interpreted in (g).
    fn check_startup_high_loss(&mut self) {
        if self.state == State::Startup
            && self.loss_round_start
            && self.loss_ranges_in_round >= STARTUP_FULL_LOSS_CNT
            && Self::is_inflight_too_high(&self.rs)
        {
            self.note("Startup ends by loss");
            self.undo_state = Some(State::Startup);
            self.full_bw_reached = true;
            self.full_bw_now = true;
            self.inflight_longterm = self.bdp().max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.loss_ranges_in_round = 0;
        }
    }

    /// CheckDrainDone(), §5.3.2.
    pub(crate) fn check_drain_done(&mut self) {
        if self.state != State::Drain {
            return;
        }
        let rounds = if self.switches.m_drain_lasts_four_rounds { 4 } else { 3 };
        let out_of_time = self.round_count >= self.drain_start_round + rounds;
        if self.inflight_is_at_most_a_bdp_of(self.bw) {
            self.note("Drain ends by inflight");
            self.start_probe_bw_down();
        } else if out_of_time {
            self.note("Drain ends by time");
            self.start_probe_bw_down();
        }
    }

    /// C.inflight <= Inflight(bw, 1.0).
    fn inflight_is_at_most_a_bdp_of(&mut self, bw: f64) -> bool {
        let inflight = self.inflight(bw, 1.0);
        self.compared_with_bdp("inflight and BDP", self.c.inflight, inflight);
        self.c.inflight <= inflight
    }

    /// StartProbeBW_DOWN(), §5.3.3.9.
    pub(crate) fn start_probe_bw_down(&mut self) {
        self.note("DOWN");
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    /// StartProbeBW_CRUISE().
    fn start_probe_bw_cruise(&mut self) {
        self.note("CRUISE");
        self.finish_probe();
        self.state = State::ProbeBwCruise;
    }

    /// StartProbeBW_REFILL().
    pub(crate) fn start_probe_bw_refill(&mut self) {
        self.note("REFILL");
        self.filter_is_due = true;
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.growth_rounding = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// (n): the filter advances at the end of DOWN at the latest.
    fn finish_probe(&mut self) {
        if self.filter_is_due && !self.switches.n_filter_waits_for_unlimited_feedback {
            self.note("filter advances late");
            self.advance_max_bw_filter();
        }
    }

    /// StartProbeBW_UP().
    fn start_probe_bw_up(&mut self) {
        self.note("UP");
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = self.rs.delivery_rate;
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// PickProbeWait(), §5.3.3.8.3, with the same random draws as `bbr3`.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.rng.below(2);
        self.bw_probe_wait = 2.0 * SECOND + self.rng.below(1_000_000_000) as f64;
    }

    /// IsTimeToProbeBW(), IsRenoCoexistenceProbeTime(), in packets (d).
    fn is_time_to_probe_bw(&mut self) -> bool {
        let has_elapsed = self.now > self.cycle_stamp + self.bw_probe_wait;
        let (rounds, target) = (self.rounds_since_probe_up as f64, self.target_inflight());
        self.compared_with_bdp("Reno rounds", rounds * self.c.smss, target);
        let reno_rounds = (target / self.c.smss).min(63.0);
        if has_elapsed || rounds >= reno_rounds {
            self.note(if has_elapsed { "probe by the clock" } else { "probe by rounds" });
            if self.state == State::ProbeBwDown {
                self.note("DOWN ends by time");
            }
            self.finish_probe();
            self.start_probe_bw_refill();
            return true;
        }
        false
    }

    /// UpdateProbeBWCyclePhase().
    pub(crate) fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full_bw_reached || self.adapt_long_term_model() {
            return;
        }
        if self.state == State::ProbeBwDown {
            if !self.is_time_to_probe_bw() && self.is_time_to_cruise() {
                self.start_probe_bw_cruise();
            }
        } else if self.state == State::ProbeBwCruise {
            self.is_time_to_probe_bw();
        } else if self.state == State::ProbeBwRefill && self.round_start {
            self.is_bw_probe_sample = true;
            self.start_probe_bw_up();
        } else if self.state == State::ProbeBwUp && self.is_time_to_go_down() {
            self.prev_probe_too_high = false;
            self.start_probe_bw_down();
        }
    }

    pub(crate) fn is_in_a_probe_bw_state(&self) -> bool {
        !matches!(self.state, State::Startup | State::Drain | State::ProbeRtt)
    }

    pub(crate) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// IsTimeToCruise().
    fn is_time_to_cruise(&mut self) -> bool {
        let headroom = self.inflight_with_headroom();
        self.compared("inflight and headroom", self.c.inflight, headroom);
        self.c.inflight <= headroom && self.inflight_is_at_most_a_bdp_of(self.max_bw)
    }

    /// IsTimeToGoDown().
    fn is_time_to_go_down(&mut self) -> bool {
        let at_longterm = if self.switches.o_inflight_is_read_after_the_ack {
            self.compared_with_longterm(self.c.inflight);
            self.c.inflight >= self.inflight_longterm
        } else {
            let before = self.prior_inflight + self.c.smss;
            self.compared_with_longterm(before);
            before > self.inflight_longterm
        };
        if self.prev_probe_too_high && at_longterm {
            self.note("UP ends as a precaution");
            self.prev_probe_precautionary = true;
            return true;
        }
        self.compare_cwnd_with_longterm();
        if self.is_cwnd_limited && self.c.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
        } else if self.full_bw_now {
            self.note("UP ends by plateau");
            return true;
        }
        false
    }

    fn compared_with_longterm(&mut self, inflight: f64) {
        if self.prev_probe_too_high {
            self.compared("inflight and longterm", inflight, self.inflight_longterm);
        }
    }

    /// Whether the window is full at the bound. Usually the window is a copy of the bound, so the
    /// comparison is exact.
    fn compare_cwnd_with_longterm(&mut self) {
        let (cwnd, longterm) = (self.c.cwnd, self.inflight_longterm);
        if self.is_cwnd_limited {
            if cwnd != longterm {
                self.compared("cwnd and longterm", cwnd, longterm);
            } else if self.cwnd_may_be_lower {
                self.close_call = Some("cwnd and longterm");
            }
        }
        if self.full_doubted_at.is_finite() && cwnd + BYTES > longterm {
            self.close_call = Some("flight and cwnd");
        }
    }

    /// InflightWithHeadroom().
    pub(crate) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = self.c.smss.max((self.inflight_longterm * 15.0 / 100.0).floor());
        (self.inflight_longterm - headroom).max(self.min_pipe_cwnd())
    }

    /// RaiseInflightLongtermSlope().
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        let per_inc = (self.c.cwnd / growth_this_round).floor();
        let is_rounded = per_inc > self.c.smss && self.c.cwnd.fract() != 0.0;
        self.slope_rounding = if is_rounded { BYTES } else { 0.0 };
        self.probe_up_acked_per_inc = per_inc.max(self.c.smss);
    }

    /// ProbeInflightLongtermUpward().
    fn probe_inflight_longterm_upward(&mut self) {
        self.compare_cwnd_with_longterm();
        if !self.is_cwnd_limited || self.c.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += self.rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            self.note("longterm grows");
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.c.smss;
            self.growth_rounding += delta * self.slope_rounding;
        }
        let (rest, rounding) = (self.bw_probe_up_acked, self.growth_rounding + self.slope_rounding);
        if rest < rounding || self.probe_up_acked_per_inc - rest < rounding {
            self.close_call = Some("growth of longterm");
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel(). Returns whether it changed the state.
    fn adapt_long_term_model(&mut self) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            let is_due = self.filter_is_due || self.switches.n_filter_waits_for_unlimited_feedback;
            if self.is_in_a_probe_bw_state() && !self.rs.is_app_limited && is_due {
                self.advance_max_bw_filter();
            }
            if self.is_in_a_probe_bw_state()
                && self.prev_probe_precautionary
                && !self.prev_probe_too_high
            {
                self.note("REFILL after a precaution");
                self.finish_probe();
                self.start_probe_bw_refill();
                return true;
            }
        }
        if !Self::is_inflight_too_high(&self.rs) {
            if self.inflight_longterm == f64::INFINITY {
                return false;
            }
            if self.rs.tx_in_flight > self.inflight_longterm {
                self.inflight_longterm = self.rs.tx_in_flight;
            }
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward();
            }
        }
        false
    }

    /// UpdateMinRTT(), §5.3.4.3.
    pub(crate) fn update_min_rtt(&mut self) {
        self.probe_rtt_expired = self.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = self.rs.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = self.now;
        }
        let min_rtt_expired = self.now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// CheckProbeRTT(), with the window saved first (p).
    pub(crate) fn check_probe_rtt(&mut self) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.note("ProbeRTT");
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        } else if self.probe_rtt_expired && self.idle_restart {
            self.note("ProbeRTT skipped after idle");
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt();
        }
        if self.rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT().
    fn handle_probe_rtt(&mut self) {
        self.c.mark_connection_app_limited();
        if self.probe_rtt_done_stamp.is_none() {
            let cwnd = self.probe_rtt_cwnd();
            self.compared_with_bdp("inflight and ProbeRTT's", self.c.inflight, cwnd);
            if self.c.inflight <= cwnd {
                self.probe_rtt_done_stamp = Some(self.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
        } else {
            if self.round_start {
                self.probe_rtt_round_done = true;
            }
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done();
            }
        }
    }

    /// CheckProbeRTTDone(), ExitProbeRTT().
    pub(crate) fn check_probe_rtt_done(&mut self) {
        if !self.probe_rtt_done_stamp.is_some_and(|stamp| self.now > stamp) {
            return;
        }
        self.probe_rtt_min_stamp = self.now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.note("ProbeRTT ends in CRUISE");
            self.start_probe_bw_down();
            self.start_probe_bw_cruise();
        } else {
            self.note("ProbeRTT ends in Startup");
            self.enter_startup();
        }
    }
}
