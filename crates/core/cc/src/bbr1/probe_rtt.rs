//! min_rtt, and ProbeRTT to renew it: draft-00 §4.1.2 and §4.3.5.

use uncork_units::{Time, TimeDelta};

use super::params::{MIN_RTT_WINDOW, PROBE_RTT_DURATION};
use super::{Ack, Bbr1, Mode};

/// The smallest RTT of the last 10 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    rtt: Option<TimeDelta>,
    stamp: Time,
}

/// Progress of a ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end, set once inflight has come down.
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

    /// An expired minimum is replaced by any sample except one that a delayed ACK may have
    /// inflated. A sample equal to the minimum does not renew it: flows with a standing queue would
    /// otherwise keep confirming an inflated minimum to each other.
    fn update(&mut self, ack: &Ack<'_>, expired: bool) {
        let Some(rtt) = ack.sample.rtt else { return };
        let is_lower = self.rtt.is_none_or(|min_rtt| rtt < min_rtt);
        if is_lower || (expired && !ack.maybe_delayed) {
            *self = Self { rtt: Some(rtt), stamp: ack.now };
        }
    }
}

impl Bbr1 {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack<'_>) {
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

    /// Holds four packets in flight for 200 ms and one round, long enough for every flow at the
    /// bottleneck to do the same and empty the queue.
    fn hold_probe_rtt(&mut self, ack: &Ack<'_>) {
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
        if self.full_pipe.reached() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::RateSample;

    /// The minimum after samples given as (seconds, RTT in milliseconds, maybe delayed).
    fn min_rtt(samples: &[(u64, u64, bool)]) -> MinRtt {
        let mut min_rtt = MinRtt::new(Time::ZERO, None);
        for &(secs, rtt, maybe_delayed) in samples {
            let now = Time::ZERO + TimeDelta::from_secs(secs);
            let rtt = Some(TimeDelta::from_millis(rtt));
            let sample = RateSample { rtt, ..RateSample::default() };
            let ack =
                Ack { now, sample: &sample, in_flight: 0, oldest_sent: Time::NEVER, maybe_delayed };
            let expired = min_rtt.has_expired(now);
            min_rtt.update(&ack, expired);
        }
        min_rtt
    }

    fn is(min_rtt: MinRtt, rtt: u64, secs: u64) -> bool {
        let stamp = Time::ZERO + TimeDelta::from_secs(secs);
        min_rtt.rtt == Some(TimeDelta::from_millis(rtt)) && min_rtt.stamp == stamp
    }

    #[test]
    fn only_a_lower_sample_renews_the_minimum() {
        assert!(is(min_rtt(&[(1, 50, false), (2, 60, false), (3, 50, false)]), 50, 1));
        assert!(is(min_rtt(&[(1, 50, false), (3, 49, false)]), 49, 3));
    }

    #[test]
    fn after_ten_seconds_any_sample_except_a_delayed_ack_replaces_the_minimum() {
        assert!(is(min_rtt(&[(1, 50, false), (11, 80, false)]), 50, 1));
        assert!(is(min_rtt(&[(1, 50, false), (12, 80, false)]), 80, 12));
        assert!(is(min_rtt(&[(1, 50, false), (12, 80, true)]), 50, 1));
    }
}
