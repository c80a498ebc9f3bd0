//! RTT estimation and the retransmission timeout: RFC 6298.

use uncork_cc::RttSample;
use uncork_units::TimeDelta;

/// Linux's minimum. RFC 6298 §2.4 recommends 1 s, which no deployed stack uses.
const MIN_RTO: TimeDelta = TimeDelta::from_millis(200);
const MAX_RTO: TimeDelta = TimeDelta::from_secs(120);

#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    latest: TimeDelta,
    smoothed: TimeDelta,
    variation: TimeDelta,
    min: TimeDelta,
}

impl RttEstimator {
    /// RFC 6298 §2.2: after the first sample, from the handshake.
    pub(crate) fn new(first: TimeDelta) -> Self {
        Self { latest: first, smoothed: first, variation: first.divided_by(2), min: first }
    }

    /// RFC 6298 §2.3.
    //= bbr-06 4.1.2.1-4
    pub(crate) fn update(&mut self, sample: TimeDelta) -> RttSample {
        let deviation = (sample - self.smoothed).max(self.smoothed - sample);
        self.variation = (self.variation.times(3) + deviation).divided_by(4);
        self.smoothed = (self.smoothed.times(7) + sample).divided_by(8);
        self.latest = sample;
        self.min = self.min.min(sample);
        RttSample { latest: sample, smoothed: self.smoothed, min: self.min }
    }

    pub(crate) fn latest(&self) -> TimeDelta {
        self.latest
    }

    pub(crate) fn smoothed(&self) -> TimeDelta {
        self.smoothed
    }

    pub(crate) fn min(&self) -> TimeDelta {
        self.min
    }

    /// RTO after `backoffs` consecutive expiries: §2.3, doubled for each (§5.5). Linux has a lower
    /// limit for the variance term, not for the sum.
    pub(crate) fn rto(&self, backoffs: u32) -> TimeDelta {
        let base = self.smoothed + self.variation.times(4).max(MIN_RTO);
        base.times(1 << backoffs.min(16)).min(MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= bbr-06 4.1.2.1-4 test
    fn follows_rfc_6298() {
        let mut rtt = RttEstimator::new(TimeDelta::from_millis(800));
        assert_eq!(rtt.smoothed(), TimeDelta::from_millis(800));
        assert_eq!(rtt.rto(0), TimeDelta::from_millis(800 + 4 * 400));
        let second = rtt.update(TimeDelta::from_millis(400));
        // RTTVAR = 3/4 · 400 + 1/4 · 400, SRTT = 7/8 · 800 + 1/8 · 400.
        assert_eq!(second.smoothed, TimeDelta::from_millis(750));
        assert_eq!(second.min, TimeDelta::from_millis(400));
        assert_eq!(rtt.rto(0), TimeDelta::from_millis(750 + 4 * 400));
        assert_eq!(rtt.rto(2), TimeDelta::from_millis(4 * 2350));
        assert_eq!(rtt.rto(60), MAX_RTO);
    }

    #[test]
    fn steady_rtts_still_wait_for_delayed_acks() {
        let mut rtt = RttEstimator::new(TimeDelta::from_millis(50));
        for _ in 0..100 {
            rtt.update(TimeDelta::from_millis(50));
        }
        assert_eq!(rtt.rto(0), TimeDelta::from_millis(250));
    }
}
