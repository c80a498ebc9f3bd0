//! Delivery rate, for observers.

use uncork_units::{Rate, Time};

/// Measures the delivery rate over each round trip, with any algorithm. Controllers do not use it.
///
/// Like Linux's `tcpi_delivery_rate`, it is the newest sample that the application did not limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRate {
    /// Start of the round trip, which ends when a packet sent later is acknowledged.
    since: Time,
    /// Bytes acknowledged at its start.
    acked: u64,
    /// When the newest of them was sent.
    sent: Time,
    /// Whether the application ran out of data during the round trip.
    is_limited: bool,
    newest: Option<Rate>,
}

impl DeliveryRate {
    pub(crate) fn new(now: Time) -> Self {
        Self { since: now, acked: 0, sent: now, is_limited: false, newest: None }
    }

    /// Restarts the measurement after an idle period.
    pub(crate) fn begin(&mut self, now: Time, acked: u64) {
        (self.since, self.acked, self.sent) = (now, acked, now);
    }

    /// Records an acknowledgement: `acked` bytes in total; the newest packet was sent at `sent`.
    /// `is_drained`: nothing was left to send.
    pub(crate) fn on_acked(&mut self, now: Time, sent: Time, acked: u64, is_drained: bool) {
        self.is_limited |= is_drained;
        if sent < self.since || now <= self.since {
            return;
        }
        // Acknowledgements may be compressed, but data is not delivered faster than it was sent
        // (draft-ietf-ccwg-bbr-06 §4.1.1.2).
        let interval = now.since(self.since).max(sent.since(self.sent));
        let sample = Rate::of(acked - self.acked, interval);
        if !self.is_limited || self.newest.is_none_or(|newest| newest <= sample) {
            self.newest = Some(sample);
        }
        *self = Self { since: now, acked, sent, is_limited: is_drained, newest: self.newest };
    }

    /// The newest sample.
    pub(crate) fn newest(&self) -> Option<Rate> {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::TimeDelta;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(ms)
    }

    /// A packet of 1000 bytes each millisecond, acknowledged 50 ms later.
    fn steady(rate: &mut DeliveryRate, from_ms: u64, to_ms: u64, is_drained: bool) {
        for ms in from_ms..to_ms {
            rate.on_acked(at(ms + 50), at(ms), (ms + 1) * 1000, is_drained);
        }
    }

    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut rate = DeliveryRate::new(at(0));
        assert_eq!(rate.newest(), None);
        steady(&mut rate, 0, 200, false);
        assert_eq!(rate.newest(), Some(Rate::from_bytes_per_sec(1_000_000)));
    }

    /// A busy receiver acknowledges 50 ms of data at once.
    #[test]
    fn compressed_acks_do_not_raise_the_rate() {
        let mut rate = DeliveryRate::new(at(0));
        for burst in 1..20 {
            for ms in (burst - 1) * 50..burst * 50 {
                let late = TimeDelta::from_micros(ms % 50);
                rate.on_acked(at(burst * 50 + 1) + late, at(ms), (ms + 1) * 1000, false);
            }
            let newest = rate.newest().map_or(0, Rate::bytes_per_sec);
            assert!(newest <= 1_020_000, "{newest}");
        }
        assert!(rate.newest() > Some(Rate::from_bytes_per_sec(900_000)));
    }

    #[test]
    fn application_limited_samples_count_only_if_they_are_larger() {
        let mut rate = DeliveryRate::new(at(0));
        steady(&mut rate, 0, 200, false);
        let before = rate.newest();
        // A tenth of the rate, application-limited.
        for n in 0..100 {
            rate.on_acked(at(260 + 10 * n), at(210 + 10 * n), 200_000 + n * 1000, true);
        }
        assert_eq!(rate.newest(), before);
        // A pause does not count as a round trip.
        rate.begin(at(9_000), 299_000);
        rate.on_acked(at(9_050), at(9_000), 399_000, true);
        assert_eq!(rate.newest(), Some(Rate::from_bytes_per_sec(2_000_000)));
    }
}
