//! The window of CUBIC's congestion avoidance as a function of time: RFC 9438 §4.2 to §4.5.

use uncork_units::wide::{full_div, full_mul, saturating_mul};
use uncork_units::{Time, TimeDelta};

use super::cbrt::cbrt;

/// Time is in units of 2^-20 s, so that cubes are divided by shifting.
const TICK_BITS: u32 = 20;
/// Maximum time (34 minutes). By then W_cubic exceeds any window; up to then its product with the MSS
/// fits in 63 bits, and that of its cube in 128.
const MAX_TICKS: u64 = 1 << 31;

/// One epoch of congestion avoidance. Windows are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    epoch: Epoch,
    /// When the last ACK that counted arrived. The time since then may turn out to be idle.
    last_ack: Time,
    /// Remainder of W_est's growth, in 1/17 bytes times the window.
    est_remainder: u64,
    /// Remainder of the window's growth, in bytes times the window.
    remainder: u64,
}

/// State to restore if a congestion event turns out to be spurious (RFC 9438 §4.9).
//= rfc9438 4.9.2-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    /// W_max: the plateau of the curve.
    w_max: u64,
    /// cwnd_prior: cwnd before the latest congestion event.
    cwnd_prior: u64,
    /// W_est: the window of a Reno flow.
    w_est: u64,
    /// t_epoch, shifted by the time that does not count.
    start: Time,
    /// K: when the curve reaches W_max, in ticks since the start of the epoch; capped at an hour. A whole
    /// word: BPF may not copy bytes that were never written, which padding would be.
    k: u64,
}

impl Epoch {
    /// An epoch with the plateau at `cwnd`, already reached.
    fn level(cwnd: u64, start: Time) -> Self {
        Self { w_max: cwnd, cwnd_prior: cwnd, w_est: cwnd, start, k: 0 }
    }

    /// Whether congestion avoidance has begun in it: not before the losses are repaired. Until then it has no time.
    fn has_begun(&self) -> bool {
        self.w_est > 0
    }
}

impl Curve {
    /// After a congestion event at `cwnd`, with the previous plateau at `last_w_max`. Call
    /// [`Self::begin`] when the losses are repaired.
    //= rfc9438 4.7-1
    pub(super) fn after_congestion(cwnd: u64, last_w_max: u64) -> Self {
        // Fast convergence, §4.7: a flow with a falling plateau makes room for others.
        let w_max = if cwnd < last_w_max { cwnd / 20 * 17 + cwnd % 20 * 17 / 20 } else { cwnd };
        Self::resumed(Epoch { w_max, w_est: 0, ..Epoch::level(cwnd, Time::ZERO) }, Time::ZERO)
    }

    /// After a slow start that ended without loss or followed a timeout (§4.8, §4.10): the plateau
    /// is `cwnd` and K is 0.
    //= rfc9438 4.8-2 4.8-3 4.10-4
    pub(super) fn plateau(now: Time, cwnd: u64) -> Self {
        Self::resumed(Epoch::level(cwnd, now), now)
    }

    /// The curve of an epoch, from now on.
    fn resumed(epoch: Epoch, now: Time) -> Self {
        Self { epoch, last_ack: now, est_remainder: 0, remainder: 0 }
    }

    /// Resumes the epoch that a spurious congestion event had ended. If that fell into a recovery, the undo ends the
    /// recovery, and the epoch begins at `cwnd`.
    //= rfc9438 4.9.2-3
    pub(super) fn undone(epoch: Epoch, now: Time, cwnd: u64, mss: u64) -> Self {
        let mut curve = Self::resumed(epoch, now);
        if !epoch.has_begun() {
            curve.begin(now, cwnd, mss);
        }
        curve
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// W_max in bytes.
    pub(super) fn w_max(&self) -> u64 {
        self.epoch.w_max
    }

    /// Starts congestion avoidance at `cwnd`: K = cbrt((W_max - cwnd) / C), in segments and
    /// seconds, with C = 2/5.
    //= rfc9438 4.2-2 4.3-2
    #[inline(never)]
    pub(super) fn begin(&mut self, now: Time, cwnd: u64, mss: u64) {
        let epoch = &mut self.epoch;
        epoch.w_max = epoch.w_max.max(cwnd);
        // below · 5/2 / mss, in cubes of a tick.
        let below = full_mul(epoch.w_max - cwnd, 5 << (3 * TICK_BITS - 1));
        epoch.k = u64::from(cbrt(full_div(below, mss)));
        epoch.w_est = cwnd;
        epoch.start = now;
        *self = Self::resumed(self.epoch, now);
    }

    /// Excludes the time since the last ACK, because the application left the window unused (§4.2,
    /// §5.8).
    //= rfc9438 4.2-4
    pub(super) fn skip(&mut self, now: Time) {
        self.epoch.start += now.since(self.last_ack);
        self.last_ack = now;
    }

    /// The new window after `acked` more bytes, starting from `cwnd`. `rtt` is the smoothed RTT.
    //= rfc9438 4.2-3 4.2-5 4.3-1 4.4-1 4.5-1
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        rtt: TimeDelta,
        acked: u64,
        cwnd: u64,
        mss: u64,
    ) -> u64 {
        self.last_ack = now;
        self.grow_w_est(acked, cwnd, mss);
        let t = now.since(self.epoch.start);
        if self.w_cubic(t, mss) < self.epoch.w_est {
            return cwnd.max(self.epoch.w_est);
        }
        let most = cwnd.saturating_add(cwnd / 2);
        let above = self.w_cubic(t + rtt, mss).min(most).saturating_sub(cwnd);
        let growth = saturating_mul(acked, above).saturating_add(self.remainder);
        let unit = cwnd.max(1);
        self.remainder = growth % unit;
        cwnd.saturating_add(growth / unit)
    }

    /// §4.3: alpha segments per window acknowledged. alpha = 3 (1 - beta) / (1 + beta) = 9/17
    /// compensates for a smaller reduction than Reno's, until W_est is back at cwnd_prior.
    //= rfc9438 4.3-2 4.3-3 4.3-4
    fn grow_w_est(&mut self, acked: u64, cwnd: u64, mss: u64) {
        let is_slower = self.epoch.w_est < self.epoch.cwnd_prior;
        let alpha = if is_slower { 9 } else { 17 };
        let growth = saturating_mul(acked, mss * alpha).saturating_add(self.est_remainder);
        let unit = saturating_mul(cwnd, 17).max(1);
        self.est_remainder = growth % unit;
        self.epoch.w_est = self.epoch.w_est.saturating_add(growth / unit);
    }

    /// W_cubic(t) = C (t - K)^3 + W_max.
    //= rfc9438 4.2-1 5.1-1 5.1-2
    fn w_cubic(&self, t: TimeDelta, mss: u64) -> u64 {
        let (t, k) = (ticks(t), self.epoch.k);
        let distance = t.abs_diff(k).min(MAX_TICKS);
        let (high, low) = full_mul(distance * distance, distance * (2 * mss));
        // In bytes.
        let is_beyond = high >> (3 * TICK_BITS) != 0;
        let height = (high << (64 - 3 * TICK_BITS)) | (low >> (3 * TICK_BITS));
        let height = if is_beyond { u64::MAX } else { height } / 5;
        if t < k {
            self.epoch.w_max.saturating_sub(height)
        } else {
            self.epoch.w_max.saturating_add(height)
        }
    }
}

/// 2^20 ticks per 10^6 microseconds.
fn ticks(span: TimeDelta) -> u64 {
    saturating_mul(span.as_micros(), 1 << 14) / 15_625
}

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "the figures come from the RFC's formulas")]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    const MSS: u64 = 1_448;

    fn secs(seconds: f64) -> TimeDelta {
        TimeDelta::from_nanos((seconds * 1e9) as u64)
    }

    fn segments(bytes: u64) -> f64 {
        bytes as f64 / MSS as f64
    }

    /// A curve at the start of its epoch, at time zero, with 0.7 of `w_max` segments.
    fn after_loss_at(w_max: u64) -> Curve {
        let mut curve = Curve::after_congestion(w_max * MSS, 0);
        curve.begin(Time::ZERO, w_max * MSS * 7 / 10, MSS);
        curve
    }

    #[test]
    //= rfc9438 4.3-4 test
    fn alpha_is_renos_once_w_est_is_back_at_the_window_of_the_loss() {
        let growth = |window: u64| {
            let mut curve = Curve::after_congestion(10 * MSS, 0);
            curve.begin(Time::ZERO, window * MSS, MSS);
            let before = curve.epoch.w_est;
            curve.on_ack(Time::ZERO, TimeDelta::ZERO, window * MSS, window * MSS, MSS);
            curve.epoch.w_est - before
        };
        assert_eq!(growth(15), MSS);
        assert_eq!(growth(9), MSS * 9 / 17);
    }

    #[test]
    //= rfc9438 4.2-1 5.1-1 5.1-2 test
    fn curve_matches_the_rfc() {
        for w_max in [10_u32, 100, 1_000, 100_000] {
            let curve = after_loss_at(u64::from(w_max));
            let w_max = f64::from(w_max);
            let k = (w_max * 0.3 / 0.4).cbrt();
            for step in 0..40_u32 {
                let t = k * f64::from(step) / 20.0;
                let expected = 0.4 * (t - k).powi(3) + w_max;
                let window = segments(curve.w_cubic(secs(t), MSS));
                assert!(
                    (window - expected).abs() < 1e-4 * expected,
                    "W_max {w_max}, t {t:.3}: {window:.4}, expected {expected:.4}"
                );
            }
        }
    }

    #[test]
    //= rfc9438 4.2-2 test
    fn plateau_is_at_the_window_of_the_loss() {
        // K = cbrt(100 * 0.3 / 0.4) = 4.217 s.
        let curve = after_loss_at(100);
        let at = |seconds| segments(curve.w_cubic(secs(seconds), MSS));
        assert!((at(0.0) - 70.0).abs() < 0.01, "{}", at(0.0));
        assert!((at(4.217) - 100.0).abs() < 0.01, "{}", at(4.217));
        assert!((at(8.434) - 130.0).abs() < 0.01, "{}", at(8.434));
    }

    #[test]
    fn plateau_below_the_window_is_raised_to_it() {
        let mut curve = Curve::after_congestion(100 * MSS, 0);
        curve.begin(Time::ZERO, 120 * MSS, MSS);
        assert_eq!(curve.w_cubic(TimeDelta::ZERO, MSS), 120 * MSS);
        assert_eq!(curve.w_cubic(secs(10.0), MSS), 520 * MSS);
    }

    #[test]
    //= rfc9438 4.7-1 test
    fn fast_convergence_lowers_a_falling_plateau() {
        assert_eq!(Curve::after_congestion(100_000, 0).w_max(), 100_000);
        assert_eq!(Curve::after_congestion(100_000, 100_000).w_max(), 100_000);
        assert_eq!(Curve::after_congestion(100_000, 100_001).w_max(), 85_000);
        assert_eq!(Curve::after_congestion(99, 100).w_max(), 84);
    }

    /// Runs a flow with one ACK per segment from the start of the epoch until `end`.
    fn run(curve: &mut Curve, mut cwnd: u64, rtt: TimeDelta, end: TimeDelta) -> u64 {
        let mut now = Time::ZERO;
        while now < Time::ZERO + end {
            for _ in 0..cwnd / MSS {
                cwnd = curve.on_ack(now, rtt, MSS, cwnd, MSS);
            }
            now += rtt;
        }
        cwnd
    }

    #[test]
    //= rfc9438 4.2-3 4.4-1 4.5-1 test
    fn the_window_follows_the_curve() {
        let rtt = TimeDelta::from_millis(100);
        for seconds in [2.0, 4.0, 6.0, 8.0] {
            let mut curve = after_loss_at(500);
            let cwnd = segments(run(&mut curve, 350 * MSS, rtt, secs(seconds)));
            let expected = 0.4 * (seconds - (500.0_f64 * 0.3 / 0.4).cbrt()).powi(3) + 500.0;
            assert!((cwnd - expected).abs() < 3.0, "t {seconds}: {cwnd:.1}, not {expected:.1}");
        }
    }

    #[test]
    //= rfc9438 4.2-5 4.3-1 4.3-2 test
    fn w_est_grows_by_nine_seventeenths_and_then_by_one() {
        let rtt = TimeDelta::from_millis(1);
        // From 70 to 100 segments at 9/17 per round takes 57 rounds; the curve needs 4 s.
        let mut curve = after_loss_at(100);
        let cwnd = segments(run(&mut curve, 70 * MSS, rtt, rtt.times(40)));
        assert!((cwnd - (70.0 + 40.0 * 9.0 / 17.0)).abs() < 0.5, "{cwnd}");
        let mut curve = after_loss_at(100);
        let cwnd = segments(run(&mut curve, 70 * MSS, rtt, rtt.times(57 + 30)));
        assert!((cwnd - 130.0).abs() < 1.0, "{cwnd}");
    }

    #[test]
    //= rfc9438 4.2-3 test
    fn window_grows_by_at_most_half_per_round() {
        let mut curve = after_loss_at(10);
        let now = Time::ZERO + TimeDelta::from_secs(100);
        let cwnd = curve.on_ack(now, TimeDelta::from_millis(10), 7 * MSS, 7 * MSS, MSS);
        assert_eq!(cwnd, 7 * MSS * 3 / 2);
    }

    #[test]
    //= rfc9438 4.2-4 test
    fn skipped_time_does_not_count() {
        let rtt = TimeDelta::from_millis(50);
        let pause = TimeDelta::from_secs(3_600);
        let (mut paused, mut steady) = (after_loss_at(100), after_loss_at(100));
        let at = |ms| Time::ZERO + TimeDelta::from_millis(ms);
        paused.on_ack(at(50), rtt, MSS, 70 * MSS, MSS);
        steady.on_ack(at(50), rtt, MSS, 70 * MSS, MSS);
        paused.skip(at(50) + pause);
        let paused = paused.on_ack(at(100) + pause, rtt, MSS, 70 * MSS, MSS);
        assert_eq!(paused, steady.on_ack(at(100), rtt, MSS, 70 * MSS, MSS));
    }

    #[test]
    //= rfc9438 4.3-3 test
    fn growth_does_not_depend_on_the_segment_size() {
        // The same flow, acknowledged in whole segments or in tenths of a segment.
        let rtt = TimeDelta::from_millis(100);
        let now = Time::ZERO + TimeDelta::from_secs(6);
        let (mut whole, mut tenths) = (after_loss_at(100), after_loss_at(100));
        let (mut one, mut other) = (70 * MSS, 70 * MSS);
        for _ in 0..70 {
            one = whole.on_ack(now, rtt, 1_440, one, MSS);
            for _ in 0..10 {
                other = tenths.on_ack(now, rtt, 144, other, MSS);
            }
        }
        assert!(one.abs_diff(other) < MSS / 10, "{one} and {other}");
    }

    proptest! {
        #[test]
        fn extremes_do_not_overflow(
            w_max: u64, cwnd in 1u64.., mss in 1u64..=u64::from(u32::MAX), acked: u64, t: u64, rtt: u64,
        ) {
            let mut curve = Curve::after_congestion(w_max, cwnd);
            curve.begin(Time::ZERO, cwnd, mss);
            let (t, rtt) = (Time::from_nanos(t), TimeDelta::from_nanos(rtt));
            let grown = curve.on_ack(t, rtt, acked, cwnd, mss);
            prop_assert!(grown >= cwnd);
        }
    }
}
