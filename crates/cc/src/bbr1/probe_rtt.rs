//! min_rtt, and ProbeRTT to renew it: draft-00 §4.1.2 and §4.3.5.

use uncork_units::{Time, TimeDelta};

use super::params::{MIN_RTT_WINDOW, PROBE_RTT_DURATION};
use super::{Ack, Bbr1, Mode};

/// The smallest RTT of the last ten seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    rtt: Option<TimeDelta>,
    stamp: Time,
}

/// How far a ProbeRTT has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end, once the flight has come down.
    done: Option<Time>,
    round_done: bool,
}

impl MinRtt {
    pub(super) fn new(now: Time, initial_rtt: Option<TimeDelta>) -> Self {
        Self { rtt: initial_rtt, stamp: now }
    }

    pub(super) fn get(self) -> Option<TimeDelta> {
        self.rtt
    }

    fn has_expired(self, now: Time) -> bool {
        now > self.stamp + MIN_RTT_WINDOW
    }

    /// An expired minimum gives way to any sample but one that a delayed ACK may have stretched. A
    /// sample that only equals the minimum does not renew it: flows whose queue never empties agree
    /// on too long a minimum and would confirm it to each other for ever.
    fn update(&mut self, ack: &Ack, expired: bool) {
        let Some(rtt) = ack.sample.rtt else { return };
        let is_lower = self.rtt.is_none_or(|min_rtt| rtt < min_rtt);
        if is_lower || (expired && !ack.maybe_delayed) {
            *self = Self { rtt: Some(rtt), stamp: ack.now };
        }
    }
}

impl Bbr1 {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let expired = self.min_rtt.has_expired(ack.now);
        self.min_rtt.update(ack, expired);
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.hold_probe_rtt(ack);
        }
        if ack.sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Four packets in flight for 200 ms and a round: long enough for every flow at the bottleneck
    /// to do the same, so that the queue empties.
    fn hold_probe_rtt(&mut self, ack: &Ack) {
        self.sampler.mark_app_limited();
        if self.probe_rtt.done.is_some() {
            self.probe_rtt.round_done |= self.round.started();
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(ack.now);
            }
        } else if ack.in_flight <= self.min_pipe_cwnd() {
            let done = Some(ack.now + PROBE_RTT_DURATION);
            self.probe_rtt = ProbeRtt { done, round_done: false };
            self.round.restart(self.sampler.delivered());
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_pipe.is_reached() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}
