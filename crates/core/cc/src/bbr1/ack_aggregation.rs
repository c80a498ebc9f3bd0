//! How far ACKs run ahead of the bandwidth estimate: Linux tcp_bbr.c, cf.
//! draft-cheng-iccrg-delivery-rate-estimation on aggregation.
//!
//! Wi-Fi, cable and offloads deliver ACKs in bursts. A window of one BDP would run out between
//! bursts, so the window adds room for the largest recent burst.

use uncork_units::{Rate, Time};

use super::params::EXTRA_ACKED_SLOT_ROUNDS;

/// Bytes acknowledged in excess of the bandwidth estimate: the maximum of the last 5 to 10 rounds.
#[derive(Clone, Debug)]
pub(super) struct AckAggregation {
    epoch_start: Time,
    epoch_acked: u64,
    /// Maxima of the current and of the previous [`EXTRA_ACKED_SLOT_ROUNDS`] rounds.
    current: u64,
    previous: u64,
    rounds: u32,
}

/// The report of one ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckBurst {
    pub(super) acked: u64,
    pub(super) round_started: bool,
    /// The expected bandwidth of acknowledgements.
    pub(super) bw: Rate,
    pub(super) cwnd: u64,
    /// An epoch ends after this many bytes.
    pub(super) epoch_limit: u64,
}

impl AckAggregation {
    pub(super) fn new(now: Time) -> Self {
        Self { epoch_start: now, epoch_acked: 0, current: 0, previous: 0, rounds: 0 }
    }

    /// Bytes the window grows by.
    pub(super) fn extra_acked(&self) -> u64 {
        self.current.max(self.previous)
    }

    /// Begins an epoch with no excess.
    pub(super) fn restart_epoch(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    pub(super) fn update(&mut self, now: Time, burst: AckBurst) {
        if burst.round_started {
            self.advance_round();
        }
        let mut expected = burst.bw.bytes_in(now.since(self.epoch_start));
        let acked = self.epoch_acked.saturating_add(burst.acked);
        if self.epoch_acked <= expected || acked >= burst.epoch_limit {
            self.restart_epoch(now);
            expected = 0;
        }
        self.epoch_acked = self.epoch_acked.saturating_add(burst.acked);
        let extra = self.epoch_acked.saturating_sub(expected).min(burst.cwnd);
        self.current = self.current.max(extra);
    }

    fn advance_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= EXTRA_ACKED_SLOT_ROUNDS {
            self.rounds = 0;
            self.previous = self.current;
            self.current = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BW: Rate = Rate::from_bytes_per_sec(1_000_000);

    fn burst(acked: u64, round_started: bool) -> AckBurst {
        AckBurst { acked, round_started, bw: BW, cwnd: 50_000, epoch_limit: 1 << 30 }
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn smooth_acks_add_room_for_one_ack() {
        let mut aggregation = AckAggregation::new(ms(0));
        for t in 1..100 {
            aggregation.update(ms(2 * t), burst(2_000, false));
        }
        assert_eq!(aggregation.extra_acked(), 2_000);
    }

    #[test]
    fn extra_acked_is_the_excess_over_the_bandwidth() {
        let mut aggregation = AckAggregation::new(ms(0));
        aggregation.update(ms(10), burst(8_000, false));
        aggregation.update(ms(11), burst(8_000, false));
        aggregation.update(ms(12), burst(8_000, false));
        assert_eq!(aggregation.extra_acked(), 24_000 - 2_000);
    }

    #[test]
    fn extra_acked_is_capped_by_the_window() {
        let mut aggregation = AckAggregation::new(ms(0));
        aggregation.update(ms(1), burst(1_000_000, false));
        assert_eq!(aggregation.extra_acked(), 50_000);
    }

    #[test]
    fn burst_expires_after_five_to_ten_rounds() {
        let mut aggregation = AckAggregation::new(ms(0));
        aggregation.update(ms(1), burst(30_000, false));
        for round in 1..=9 {
            aggregation.update(ms(100 * round), burst(1_000, true));
            assert_eq!(aggregation.extra_acked(), 30_000, "round {round}");
        }
        aggregation.update(ms(1_000), burst(1_000, true));
        assert_eq!(aggregation.extra_acked(), 1_000);
    }

    #[test]
    fn old_epoch_is_restarted() {
        let mut aggregation = AckAggregation::new(ms(0));
        let limited = AckBurst { epoch_limit: 10_000, ..burst(6_000, false) };
        aggregation.update(ms(1), limited);
        aggregation.update(ms(1), limited);
        assert_eq!(aggregation.extra_acked(), 6_000);
    }
}
