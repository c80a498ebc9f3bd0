//! Congestion avoidance of Linux's CUBIC: `bictcp_update()` and `tcp_cong_avoid_ai()`. Windows are in
//! segments.

use uncork_units::wide::{full_div, full_mul, saturating_mul};
use uncork_units::{Time, TimeDelta};

use crate::cubic::cbrt::cbrt;

/// Clock ticks per second (`HZ`), as most distributions build their kernels.
const HZ: u64 = 250;
const TICK: TimeDelta = TimeDelta::from_millis(1_000 / HZ);
/// For how many ticks the growth stays as it is while the window does (`HZ / 32`).
const STEADY_TICKS: u64 = HZ / 32;
/// The curve's time is in units of 2^-10 s (`BICTCP_HZ`).
const CURVE_BITS: u32 = 10;
/// C, in units of 2^-10: 0.4 (`bic_scale` times 10).
const C: u64 = 410;
/// Maximum distance from the plateau, four minutes: C times its cube fits 64 bits.
const MAX_DISTANCE: u64 = 1 << 18;
/// The factor of a reduction in units of 2^-10: 0.7 (`beta`).
const BETA: u64 = 717;
/// Minimum growth while the bandwidth is unknown: one segment per this number of acknowledged
/// segments, 5 % a round.
const UNKNOWN_COUNT: u64 = 20;
/// Maximum growth: one segment for two acknowledged.
const MIN_COUNT: u64 = 2;

/// CUBIC's state of the path (`struct bictcp`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// Acknowledged segments per segment of growth of the window (`cnt`).
    count: u64,
    /// Segments acknowledged that have not made the window grow yet (`snd_cwnd_cnt`).
    credit: u64,
    /// The window of the last congestion event, 0 before the first (`last_max_cwnd`).
    w_max: u64,
    /// The window and the tick when the growth was last computed (`last_cwnd`, `last_time`).
    last: (u64, u64),
    epoch: Option<GrowthEpoch>,
    /// Shortest RTT in microseconds, 0 before the first (`delay_min`).
    delay_min: u32,
}

/// Congestion avoidance since the last congestion event.
#[derive(Clone, Copy, Debug)]
struct GrowthEpoch {
    /// Tick of the first ACK (`epoch_start`).
    start: u64,
    /// The plateau (`bic_origin_point`).
    origin: u64,
    /// When the curve reaches it, in units of 2^-10 s (`bic_K`).
    k: u64,
    /// W_est, and the segments acknowledged towards its next step (`tcp_cwnd`, `ack_cnt`).
    w_est: u64,
    acked: u64,
}

/// The tick of an instant.
fn tick(now: Time) -> u64 {
    now.as_nanos() / TICK.as_nanos()
}

impl GrowthEpoch {
    fn new(start: u64, w_max: u64, cwnd: u64) -> Self {
        let below = w_max.saturating_sub(cwnd);
        // K = cbrt(below / C), in units of 2^-10 s.
        let cube = full_div(full_mul(below, 1 << (4 * CURVE_BITS)), C);
        Self { start, origin: w_max.max(cwnd), k: u64::from(cbrt(cube)), w_est: cwnd, acked: 0 }
    }

    /// W_cubic one `delay_min` after `now`.
    fn target(&self, now: u64, delay_min: u32) -> u64 {
        let ahead = u64::from(delay_min).div_ceil(TICK.as_micros());
        let elapsed = now.saturating_sub(self.start).saturating_add(ahead);
        let t = saturating_mul(elapsed, 1 << CURVE_BITS) / HZ;
        let distance = t.abs_diff(self.k).min(MAX_DISTANCE);
        let height = (C * distance * distance * distance) >> (4 * CURVE_BITS);
        if t < self.k {
            self.origin.saturating_sub(height)
        } else {
            self.origin.saturating_add(height)
        }
    }

    /// RFC 8312 §4.2: W_est grows by one segment for 15/8 windows acknowledged.
    fn grow_w_est(&mut self, cwnd: u64) {
        let step = (saturating_mul(cwnd, 15) / 8).max(1);
        // A step is taken once more than that is acknowledged.
        let steps = self.acked.saturating_sub(1) / step;
        self.acked -= steps * step;
        self.w_est = self.w_est.saturating_add(steps);
    }
}

impl Growth {
    pub(super) fn delay_min(&self) -> u32 {
        self.delay_min
    }

    /// Takes an RTT sample into account, except in the first second after a recovery
    /// (`cubictcp_acked()`).
    pub(super) fn measure_delay(&mut self, now: Time, rtt: TimeDelta) {
        if self.epoch.is_some_and(|epoch| tick(now) < epoch.start + HZ) {
            return;
        }
        let delay = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).max(1);
        self.delay_min = if self.delay_min == 0 { delay } else { self.delay_min.min(delay) };
    }

    /// A congestion event at window `cwnd`. Returns the window after it (`cubictcp_recalc_ssthresh()`,
    /// with fast convergence).
    pub(super) fn on_congestion(&mut self, cwnd: u64) -> u64 {
        self.epoch = None;
        let is_falling = cwnd < self.w_max;
        self.w_max = if is_falling { saturating_mul(cwnd, 1024 + BETA) / 2048 } else { cwnd };
        (saturating_mul(cwnd, BETA) / 1024).max(2)
    }

    /// Nothing was in flight from `since` until `now`: the curve waits (`CA_EVENT_TX_START`).
    pub(super) fn skip(&mut self, since: Time, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            let idle = tick(now).saturating_sub(tick(since));
            epoch.start = (epoch.start + idle).min(tick(now));
        }
    }

    /// The window after `acked` more segments in congestion avoidance at `cwnd`.
    pub(super) fn on_ack(&mut self, now: Time, acked: u64, cwnd: u64) -> u64 {
        self.update(tick(now), acked, cwnd);
        self.spend_credit(acked, cwnd)
    }

    /// How fast the window grows: `bictcp_update()`.
    fn update(&mut self, now: u64, acked: u64, cwnd: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.saturating_add(acked);
            let (last_cwnd, last_tick) = self.last;
            if cwnd == last_cwnd && now <= last_tick + STEADY_TICKS {
                return;
            }
            if now == last_tick {
                self.count = self.friendly_count(cwnd);
                return;
            }
        } else {
            self.epoch = Some(GrowthEpoch { acked, ..GrowthEpoch::new(now, self.w_max, cwnd) });
        }
        self.last = (cwnd, now);
        self.count = self.curve_count(now, cwnd);
        self.count = self.friendly_count(cwnd);
    }

    /// The growth that reaches W_cubic within a round.
    fn curve_count(&self, now: u64, cwnd: u64) -> u64 {
        let target = self.epoch.map_or(cwnd, |epoch| epoch.target(now, self.delay_min));
        let count = if target > cwnd { cwnd / (target - cwnd) } else { saturating_mul(cwnd, 100) };
        if self.w_max == 0 { count.min(UNKNOWN_COUNT) } else { count }
    }

    /// At least the growth that reaches W_est within a round.
    fn friendly_count(&mut self, cwnd: u64) -> u64 {
        let mut count = self.count;
        if let Some(epoch) = &mut self.epoch {
            epoch.grow_w_est(cwnd);
            if epoch.w_est > cwnd {
                count = count.min(cwnd / (epoch.w_est - cwnd));
            }
        }
        count.max(MIN_COUNT)
    }

    /// `tcp_cong_avoid_ai()`. Credit gathered while the growth was slower counts as one segment at
    /// most.
    fn spend_credit(&mut self, acked: u64, mut cwnd: u64) -> u64 {
        if self.credit >= self.count {
            self.credit = 0;
            cwnd = cwnd.saturating_add(1);
        }
        self.credit = self.credit.saturating_add(acked);
        let steps = self.credit / self.count;
        self.credit -= steps * self.count;
        cwnd.saturating_add(steps)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    /// After a congestion event at `w_max` segments.
    fn after_loss_at(w_max: u64) -> Growth {
        let mut growth = Growth::default();
        growth.on_congestion(w_max);
        growth
    }

    #[test]
    fn reduction_is_to_seven_tenths_and_no_less_than_two() {
        let reduced = |cwnd| Growth::default().on_congestion(cwnd);
        assert_eq!([1, 2, 7, 10, 100, 1_000].map(reduced), [2, 2, 4, 7, 70, 700]);
    }

    #[test]
    fn fast_convergence_lowers_a_falling_plateau() {
        let mut growth = after_loss_at(100);
        growth.on_congestion(100);
        assert_eq!(growth.w_max, 100);
        growth.on_congestion(99);
        assert_eq!(growth.w_max, 84);
    }

    #[test]
    fn window_grows_by_a_twentieth_before_the_first_loss() {
        let mut growth = Growth::default();
        assert_eq!(growth.on_ack(ms(1_000), 100, 100), 105);
    }

    #[test]
    fn window_grows_by_at_most_half_a_round() {
        let mut growth = after_loss_at(10);
        growth.on_ack(ms(0), 1, 7);
        // After a minute the curve is far away.
        assert_eq!(growth.on_ack(ms(60_000), 100, 7), 57);
    }

    /// Five segments: W_est takes a step for more than nine acknowledged, but is looked at only in
    /// the eighth tick of 4 ms.
    #[test]
    fn w_est_waits_for_the_eighth_tick() {
        let mut growth = after_loss_at(5);
        for at in (0..=28).step_by(4) {
            assert_eq!(growth.on_ack(ms(at), 5, 5), 5, "after {at} ms");
        }
        // 45 acknowledged: four steps, to 9. From then on, a segment for two acknowledged; what was
        // acknowledged before counts as one.
        assert_eq!(growth.on_ack(ms(32), 5, 5), 5 + 1 + 2);
        assert_eq!(growth.epoch.map(|epoch| epoch.w_est), Some(9));
    }

    /// RFC 8312 §4.2: far above the window of the loss, W_est still takes 15/8 windows a step.
    #[test]
    fn w_est_does_not_speed_up_above_the_window_of_the_loss() {
        let mut epoch = GrowthEpoch::new(0, 10, 40);
        epoch.acked = 40 * 15;
        epoch.grow_w_est(40);
        assert_eq!((epoch.w_est, epoch.acked), (40 + 7, 75));
    }

    #[test]
    fn gathered_credit_counts_as_one_segment() {
        let mut growth = Growth { count: 10, credit: 0, ..Growth::default() };
        assert_eq!(growth.spend_credit(9, 50), 50);
        growth.count = 3;
        assert_eq!(growth.spend_credit(2, 50), 51);
        assert_eq!(growth.spend_credit(7, 50), 53);
        assert_eq!(growth.credit, 0);
    }

    #[test]
    fn delays_of_the_first_second_of_an_epoch_do_not_count() {
        let mut growth = after_loss_at(10);
        let rtt = TimeDelta::from_millis;
        growth.measure_delay(ms(0), rtt(50));
        growth.on_ack(ms(0), 1, 7);
        growth.measure_delay(ms(999), rtt(10));
        assert_eq!(growth.delay_min(), 50_000);
        growth.measure_delay(ms(1_000), rtt(40));
        assert_eq!(growth.delay_min(), 40_000);
    }

    #[test]
    fn idle_time_does_not_count() {
        let (mut paused, mut steady) = (after_loss_at(100), after_loss_at(100));
        for growth in [&mut paused, &mut steady] {
            growth.on_ack(ms(0), 1, 70);
        }
        paused.skip(ms(400), ms(10_400));
        assert_eq!(paused.on_ack(ms(10_800), 70, 70), steady.on_ack(ms(800), 70, 70));
    }

    proptest! {
        #[test]
        fn extremes_do_not_overflow(
            w_max: u64, cwnd in 1u64.., acked: u64, since: u64, t: u64, rtt: u64,
        ) {
            let mut growth = after_loss_at(w_max);
            growth.measure_delay(Time::ZERO, TimeDelta::from_nanos(rtt));
            for now in [Time::ZERO, Time::from_nanos(t)] {
                growth.skip(Time::from_nanos(since), now);
                prop_assert!(growth.on_ack(now, acked, cwnd) >= cwnd);
            }
        }
    }
}
