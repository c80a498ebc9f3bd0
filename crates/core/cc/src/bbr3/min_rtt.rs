//! BBR.min_rtt and the schedule of ProbeRTT: draft-ietf-ccwg-bbr-06 §5.5.7, §5.3.4.3.

use uncork_units::{Time, TimeDelta};

use super::params::{MIN_RTT_FILTER_LEN, PROBE_RTT_INTERVAL};

/// Two nested minima: over ProbeRTTInterval, to schedule ProbeRTT, and over MinRTTFilterLen, to
/// estimate the propagation delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt.
    estimate: TimeDelta,
    /// BBR.min_rtt_stamp.
    stamp: Time,
    /// BBR.probe_rtt_min_delay.
    probe_min_delay: TimeDelta,
    /// BBR.probe_rtt_min_stamp.
    probe_min_stamp: Time,
}

impl MinRtt {
    /// The draft's OnInit() leaves the ProbeRTT half unset. Here both halves start from the initial
    /// RTT.
    //= bbr-06 5.2.1-2
    pub(super) fn new(now: Time, initial_rtt: Option<TimeDelta>) -> Self {
        let rtt = initial_rtt.unwrap_or(TimeDelta::MAX);
        Self { estimate: rtt, stamp: now, probe_min_delay: rtt, probe_min_stamp: now }
    }

    /// BBR.min_rtt; `None` before the first sample.
    pub(super) fn get(&self) -> Option<TimeDelta> {
        (self.estimate != TimeDelta::MAX).then_some(self.estimate)
    }

    /// Ends a ProbeRTT: the next one is due after a full interval.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        self.probe_min_stamp = now;
    }

    /// UpdateMinRTT(). Returns BBR.probe_rtt_expired: a ProbeRTT (or an idle period) is due.
    //= bbr-06 5.3.4.1-1 5.3.4.3-1 5.3.4.3-2 5.5.7.2-1
    pub(super) fn update(&mut self, now: Time, rtt: Option<TimeDelta>) -> bool {
        let probe_expired = now > self.probe_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt.filter(|rtt| *rtt < self.probe_min_delay || probe_expired) {
            self.probe_min_delay = rtt;
            self.probe_min_stamp = now;
        }
        let expired = now > self.stamp + MIN_RTT_FILTER_LEN;
        if self.probe_min_delay < self.estimate || expired {
            self.estimate = self.probe_min_delay;
            self.stamp = self.probe_min_stamp;
        }
        probe_expired
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Time {
        Time::ZERO + TimeDelta::from_secs(secs)
    }

    const fn ms(millis: u64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    #[test]
    //= bbr-06 2.16-4 5.3.4.2-1 5.3.4.3-1 test
    fn probe_is_due_after_five_seconds_without_a_new_minimum() {
        let mut min = MinRtt::new(at(0), None);
        min.update(at(1), Some(ms(40)));
        assert!(!min.update(at(6), Some(ms(50))));
        assert!(min.update(at(7), Some(ms(50))));
    }

    #[test]
    //= bbr-06 2.16-1 5.3.4.3-2 5.5.7.2-1 test
    fn estimate_survives_one_probe_but_not_two() {
        let mut min = MinRtt::new(at(0), None);
        min.update(at(1), Some(ms(40)));
        min.update(at(7), Some(ms(60)));
        assert_eq!(min.get(), Some(ms(40)));
        min.update(at(12), Some(ms(60)));
        assert_eq!(min.get(), Some(ms(60)));
    }

    /// Otherwise flows with a standing queue would keep confirming its delay to each other.
    #[test]
    fn sample_equal_to_the_minimum_does_not_postpone_the_probe() {
        let mut min = MinRtt::new(at(0), None);
        min.update(at(1), Some(ms(40)));
        min.update(at(4), Some(ms(40)));
        assert!(min.update(at(7), Some(ms(40))));
    }

    #[test]
    fn confirmed_estimate_does_not_expire_later() {
        let mut min = MinRtt::new(at(0), None);
        min.update(at(1), Some(ms(40)));
        min.update(at(7), Some(ms(40)));
        min.update(at(13), Some(ms(60)));
        assert_eq!(min.get(), Some(ms(60)));
    }

    #[test]
    //= bbr-06 5.2.1-2 test
    fn handshake_rtt_counts() {
        let mut min = MinRtt::new(at(0), Some(ms(30)));
        min.update(at(1), Some(ms(40)));
        assert_eq!(min.get(), Some(ms(30)));
    }

    proptest! {
        /// Pairs of waiting time and RTT, in milliseconds.
        #[test]
        fn min_rtt_is_a_sample_not_above_any_later_one(
            script in proptest::collection::vec((0..4_000_u64, 1..500_u64), 1..60),
        ) {
            let mut min = MinRtt::new(at(0), None);
            let mut now = at(0);
            let mut samples: Vec<(Time, TimeDelta)> = Vec::new();
            for (wait, rtt) in script {
                now += ms(wait);
                samples.push((now, ms(rtt)));
                min.update(now, Some(ms(rtt)));
                let estimate = min.get().expect("there are samples");
                prop_assert!(samples.contains(&(min.stamp, estimate)));
                let since = samples.iter().filter(|(sampled, _)| *sampled >= min.stamp);
                prop_assert!(since.map(|(_, rtt)| *rtt).min() == Some(estimate));
                // Neither half outlives its window.
                prop_assert!(now.since(min.stamp) <= MIN_RTT_FILTER_LEN);
                prop_assert!(now.since(min.probe_min_stamp) <= PROBE_RTT_INTERVAL);
            }
        }
    }
}
