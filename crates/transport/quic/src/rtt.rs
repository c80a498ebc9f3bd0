//! Round-trip times: RFC 9002 §5.

use uncork_cc::RttSample;
use uncork_units::TimeDelta;

/// An RTT estimator of our own: the stack updates its estimate only after it calls the controller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuicRttEstimator {
    sample: Option<RttSample>,
    variation: TimeDelta,
}

/// The default `max_ack_delay` (RFC 9000 §18.2): how long a peer may delay an acknowledgement.
const MAX_ACK_DELAY: TimeDelta = TimeDelta::from_millis(25);

impl QuicRttEstimator {
    /// Adds a sample. `ack_delay`, reported by the peer, counts up to `max_ack_delay` (RFC 9002 §5.3).
    pub(crate) fn update(&mut self, latest: TimeDelta, ack_delay: TimeDelta) -> RttSample {
        let Some(before) = self.sample else {
            self.variation = latest.divided_by(2);
            return *self.sample.insert(RttSample { latest, smoothed: latest, min: latest });
        };
        let (min, ack_delay) = (before.min.min(latest), ack_delay.min(MAX_ACK_DELAY));
        let adjusted = if latest >= min + ack_delay { latest - ack_delay } else { latest };
        let deviation = (before.smoothed - adjusted).max(adjusted - before.smoothed);
        self.variation = (self.variation.times(3) + deviation).divided_by(4);
        let smoothed = (before.smoothed.times(7) + adjusted).divided_by(8);
        *self.sample.insert(RttSample { latest, smoothed, min })
    }

    pub(crate) fn last(&self) -> Option<RttSample> {
        self.sample
    }

    /// The probe timeout (RFC 9002 §6.2.1). The stack forgets lost packets after two of them.
    pub(crate) fn probe_timeout(&self) -> TimeDelta {
        let smoothed = self.sample.map_or(TimeDelta::from_millis(333), |sample| sample.smoothed);
        smoothed + self.variation.times(4).max(TimeDelta::from_millis(1)) + MAX_ACK_DELAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    #[test]
    fn the_first_sample_is_the_estimate() {
        let mut rtt = QuicRttEstimator::default();
        let sample = rtt.update(ms(40), ms(10));
        assert_eq!((sample.latest, sample.smoothed, sample.min), (ms(40), ms(40), ms(40)));
        assert_eq!(rtt.probe_timeout(), ms(40 + 4 * 20 + 25));
    }

    /// RFC 9002 §5.3: the ACK delay is subtracted unless the result is below the minimum.
    #[test]
    fn the_ack_delay_affects_only_the_smoothed_estimate() {
        let mut rtt = QuicRttEstimator::default();
        rtt.update(ms(40), ms(0));
        let sample = rtt.update(ms(56), ms(8));
        assert_eq!((sample.latest, sample.smoothed, sample.min), (ms(56), ms(41), ms(40)));
        let sample = rtt.update(ms(41), ms(8));
        assert_eq!((sample.latest, sample.smoothed), (ms(41), ms(41)));
        assert_eq!(rtt.update(ms(33), ms(0)).min, ms(33));
        // Of the 80 ms that the peer reports, at most 25 ms count.
        assert_eq!(rtt.update(ms(40), ms(0)).smoothed, ms(40));
        assert_eq!(rtt.update(ms(145), ms(80)).smoothed, ms(50));
    }
}
