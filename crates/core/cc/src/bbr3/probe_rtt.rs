//! ProbeRTT: draft-ietf-ccwg-bbr-06 §5.3.4.

use uncork_units::Time;

use super::Bbr3;
use super::params::PROBE_RTT_DURATION;
use super::state::{AckPhase, State};
use crate::sampler::RateSample;

impl Bbr3 {
    /// CheckProbeRTT(). `expired` is BBR.probe_rtt_expired.
    //= bbr-06 5.3.4.1-2 5.3.4.2-2 5.3.4.3-4
    pub(super) fn check_probe_rtt(&mut self, now: Time, sample: &RateSample, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.enter_probe_rtt();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// EnterProbeRTT() and the steps after it. The window is saved before the state changes;
    /// otherwise SaveCwnd() would assume that ProbeRTT has already reduced it.
    //= bbr-06 5.3.4.3-3 5.3.4.3-5
    fn enter_probe_rtt(&mut self) {
        self.save_cwnd(self.recovery.is_active());
        self.transition(State::ProbeRtt);
        self.probe_rtt_done_stamp = Time::NEVER;
        self.probe_rtt_round_done = false;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
    }

    /// HandleProbeRTT().
    //= bbr-06 5.3.4.1-3 5.3.4.3-6 5.3.4.3-7
    fn handle_probe_rtt(&mut self, now: Time) {
        self.sampler.mark_app_limited();
        if self.probe_rtt_done_stamp != Time::NEVER {
            self.probe_rtt_round_done |= self.round.started();
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if self.sampler.in_flight() <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = now + PROBE_RTT_DURATION;
            self.start_round();
        }
    }

    /// CheckProbeRTTDone().
    //= bbr-06 5.3.4.3-8
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if now > self.probe_rtt_done_stamp {
            self.min_rtt.schedule_probe(now);
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// ExitProbeRTT(), §5.3.4.4.
    //= bbr-06 5.3.4.1-4 5.3.4.4-1 5.3.4.4-2
    fn exit_probe_rtt(&mut self, now: Time) {
        self.bounds.reset_short_term();
        if self.full_pipe.reached() {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.transition(State::Startup);
        }
    }
}
