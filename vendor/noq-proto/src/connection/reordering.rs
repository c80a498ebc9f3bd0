//! How far packets may be reordered before they are deemed lost.

use core::cmp;

use crate::{Duration, Instant, TIMER_GRANULARITY};

use super::paths::RttEstimator;

/// What an RTT is extended by without learned reordering, at most. Packets that overtake each other do
/// so on the way; the time that all of them wait in a queue is in the RTT.
const MAX_STATIC_WINDOW: Duration = Duration::from_millis(250);

/// The number of loss episodes without a late arrival after which the window is halved. RFC 8985 §6.2
/// step 4 returns to the narrowest window after as many.
const PERSIST: u8 = 16;

/// The reordering window of a path: it is widened by packets that arrive after they were deemed lost.
///
/// RFC 9002 §6.1 permits thresholds that adapt. This is the window of RACK, RFC 8985 §6.2 step 4, with
/// late arrivals in place of D-SACK. They show how late a packet was, which D-SACK does not, so the window
/// need not grow by one step in each round trip.
#[derive(Debug, Clone, Default)]
pub(super) struct Reordering {
    /// The window in quarters of the minimum RTT. Zero if no reordering is known.
    quarters: u32,
    /// Loss episodes until the window is halved.
    persist: u8,
    /// Packets sent up to now belong to the last loss episode.
    episode_at: Option<Instant>,
}

impl Reordering {
    /// A packet that was deemed lost is acknowledged.
    pub(super) fn on_late_arrival(&mut self, now: Instant, time_sent: Instant, rtt: &RttEstimator) {
        let lateness = now.saturating_duration_since(time_sent).saturating_sub(rtt.conservative());
        let needed = cmp::min(lateness, rtt.pto_base()).as_nanos() / quarter(rtt).as_nanos() + 1;
        self.persist = PERSIST;
        self.quarters = cmp::max(self.quarters, needed as u32);
    }

    /// Packets are deemed lost. The newest of them was sent at `time_sent`.
    pub(super) fn on_lost(&mut self, now: Instant, time_sent: Instant) {
        if self.quarters == 0 || self.episode_at.is_some_and(|episode| time_sent <= episode) {
            return;
        }
        self.episode_at = Some(now);
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.persist = PERSIST;
            self.quarters /= 2;
        }
    }

    /// The packet threshold: `configured`, or none where packets are known to be reordered.
    pub(super) fn packet_threshold(&self, configured: u32) -> Option<u64> {
        (self.quarters == 0).then_some(configured.into())
    }

    /// How long after it was sent a packet is deemed lost if a later one has been acknowledged.
    ///
    /// It is the RTT and a window. The window is the part of the RTT by which `time_threshold` exceeds 1,
    /// up to [`MAX_STATIC_WINDOW`], or what was learned, up to a probe timeout. RFC 8985 has one smoothed RTT
    /// as the limit, which is the same where RTTs do not vary.
    pub(super) fn loss_delay(&self, rtt: &RttEstimator, time_threshold: f32) -> Duration {
        let base = rtt.conservative();
        let fixed = base.mul_f32((time_threshold - 1.0).max(0.0));
        base + cmp::max(fixed.min(MAX_STATIC_WINDOW), self.learned_window(rtt))
    }

    fn learned_window(&self, rtt: &RttEstimator) -> Duration {
        cmp::min(quarter(rtt) * self.quarters, rtt.pto_base())
    }
}

/// The step of the window.
fn quarter(rtt: &RttEstimator) -> Duration {
    cmp::max(rtt.min() / 4, TIMER_GRANULARITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    /// RTTs that do not vary.
    fn steady(latest: Duration) -> RttEstimator {
        let mut rtt = RttEstimator::new(RTT);
        (0..100).for_each(|_| rtt.update(Duration::ZERO, latest));
        rtt
    }

    #[test]
    fn reordering_window_follows_late_arrivals() {
        let (mut reordering, rtt, start) = (Reordering::default(), steady(RTT), Instant::now());
        let mut widened = |late_ms| {
            let now = start + RTT + Duration::from_millis(late_ms);
            reordering.on_late_arrival(now, start, &rtt);
            (reordering.loss_delay(&rtt, 9.0 / 8.0), reordering.packet_threshold(3))
        };
        assert_eq!(Reordering::default().packet_threshold(3), Some(3));
        assert_eq!(Reordering::default().loss_delay(&rtt, 9.0 / 8.0), RTT * 9 / 8);
        assert_eq!(widened(6), (RTT * 5 / 4, None));
        assert_eq!(widened(25), (RTT * 7 / 4, None));
        assert_eq!(widened(12), (RTT * 7 / 4, None), "another packet was later");
        let probe_timeout = rtt.pto_base();
        assert!(probe_timeout < RTT * 9 / 8, "{probe_timeout:?}");
        assert_eq!(widened(60_000), (RTT + probe_timeout, None), "at most a probe timeout");
    }

    #[test]
    fn reordering_window_shrinks_without_late_arrivals() {
        let (mut reordering, rtt, start) = (Reordering::default(), steady(RTT), Instant::now());
        reordering.on_late_arrival(start + RTT + RTT * 5 / 8, start, &rtt);
        let mut lose = |rounds: core::ops::Range<u32>| {
            for round in rounds {
                // Two timers of one episode.
                reordering.on_lost(start + RTT * (round + 1), start + RTT * round);
                reordering.on_lost(start + RTT * (round + 1), start + RTT * round);
            }
            reordering.quarters
        };
        assert_eq!(lose(10..40), 3, "fifteen episodes");
        assert_eq!(lose(40..42), 1);
        assert_eq!(lose(42..80), 0);
        assert_eq!(reordering.packet_threshold(3), Some(3));
    }

    /// After a pause of a minute, in which the path held packets, the RTT is a minute.
    #[test]
    fn reordering_window_of_a_long_rtt_is_bounded() {
        let rtt = steady(Duration::from_secs(60));
        let delay = Reordering::default().loss_delay(&rtt, 9.0 / 8.0);
        assert_eq!(delay, Duration::from_secs(60) + MAX_STATIC_WINDOW);
    }
}
