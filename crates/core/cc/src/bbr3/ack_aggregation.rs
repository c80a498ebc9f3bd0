//! BBR.extra_acked: draft-ietf-ccwg-bbr-06 §5.5.9.

use uncork_units::{Rate, Time};

use crate::filter::WindowedMax;

/// The degree of ACK aggregation: bytes acknowledged at once in excess of the bandwidth estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckAggregation {
    /// BBR.extra_acked_interval_start.
    interval_start: Time,
    /// BBR.extra_acked_delivered.
    delivered: u64,
    /// BBR.extra_acked_filter, in rounds.
    filter: WindowedMax,
}

/// One ACK, as input of the estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckArrival {
    /// Arrival time.
    pub(super) now: Time,
    /// RS.newly_acked.
    pub(super) newly_acked: u64,
    /// BBR.bw.
    pub(super) bw: Rate,
    /// C.cwnd, the upper limit of a sample.
    pub(super) cwnd: u64,
    /// BBR.round_count.
    pub(super) round: u64,
    /// Length of the filter in rounds.
    pub(super) window: u32,
}

impl AckAggregation {
    pub(super) fn new(now: Time) -> Self {
        Self { interval_start: now, delivered: 0, filter: WindowedMax::default() }
    }

    /// BBR.extra_acked in bytes.
    pub(super) fn extra_acked(&self) -> u64 {
        self.filter.get()
    }

    /// Restart from idle: the silent period is not aggregation (§5.4.1).
    //= bbr-06 5.4.1-2
    pub(super) fn restart_interval(&mut self, now: Time) {
        self.interval_start = now;
    }

    /// UpdateACKAggregation().
    //= bbr-06 5.5.9-1 5.5.9-2 5.5.9-3
    pub(super) fn update(&mut self, ack: AckArrival) {
        let mut expected = ack.bw.bytes_in(ack.now.since(self.interval_start));
        if self.delivered <= expected {
            self.delivered = 0;
            self.interval_start = ack.now;
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(ack.newly_acked);
        let extra = self.delivered.saturating_sub(expected).min(ack.cwnd);
        self.filter.update(ack.window, ack.round as u32, extra);
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::TimeDelta;

    use super::*;

    fn ack(now: Time, newly_acked: u64, round: u64) -> AckArrival {
        let bw = Rate::from_bytes_per_sec(1_000_000);
        AckArrival { now, newly_acked, bw, cwnd: 100_000, round, window: 10 }
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    #[test]
    //= bbr-06 5.5.9-1 test
    fn a_burst_of_acks_is_measured_against_the_bandwidth() {
        let mut aggregation = AckAggregation::new(ms(0));
        // 20 ms without ACKs, then the data of those 20 ms in two ACKs a millisecond apart.
        aggregation.update(ack(ms(20), 10_000, 1));
        aggregation.update(ack(ms(21), 10_000, 1));
        assert_eq!(aggregation.extra_acked(), 19_000);
    }

    #[test]
    //= bbr-06 5.5.9-2 test
    fn smooth_acks_leave_one_ack_of_surplus() {
        let mut aggregation = AckAggregation::new(ms(0));
        for i in 1..50 {
            aggregation.update(ack(ms(i), 1_000, i / 10));
        }
        assert_eq!(aggregation.extra_acked(), 1_000);
    }

    #[test]
    //= bbr-06 5.5.9-3 test
    fn no_sample_exceeds_the_window() {
        let mut aggregation = AckAggregation::new(ms(0));
        aggregation.update(ack(ms(1), 5_000_000, 1));
        assert_eq!(aggregation.extra_acked(), 100_000);
    }

    #[test]
    //= bbr-06 2.12-1 5.5.9-4 test
    fn burst_expires_after_ten_rounds() {
        let mut aggregation = AckAggregation::new(ms(0));
        aggregation.update(ack(ms(1), 50_000, 1));
        for round in 2..=13 {
            aggregation.update(ack(ms(100 * round), 1_000, round));
        }
        assert_eq!(aggregation.extra_acked(), 1_000);
    }
}
