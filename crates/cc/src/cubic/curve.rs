//! The window of CUBIC's congestion avoidance as a function of time: RFC 9438 §4.2 to §4.5.

use uncork_units::{Time, TimeDelta};

use super::cbrt::cbrt;

/// Time on the curve counts in 2^-20 s, so that cubes are divided by shifting.
const TICK_BITS: u32 = 20;
/// Time is cut off here (34 minutes): by then W_cubic is beyond any window, and with it the product
/// of a cube and the MSS fits 128 bits.
const MAX_TICKS: u64 = 1 << 31;

/// One epoch of congestion avoidance. Windows are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    epoch: Epoch,
    /// When the last ACK that counted arrived; time since then may turn out to be idle.
    seen: Time,
    /// What is left over of W_est's growth, in 1/17 bytes times the window.
    est_remainder: u64,
    /// What is left over of the window's growth, in bytes times the window.
    remainder: u64,
}

/// What a congestion event that turns out to be spurious must give back (RFC 9438 §4.9.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    /// W_max: the plateau of the curve.
    w_max: u64,
    /// cwnd_prior: the window that the latest congestion event met.
    cwnd_prior: u64,
    /// W_est: the window that Reno would have.
    w_est: u64,
    /// K: when the curve reaches W_max, in ticks since the epoch began.
    k: u64,
    /// t_epoch, moved forward by the time that did not count.
    start: Time,
}

impl Curve {
    /// After a congestion event that met `cwnd`, when the plateau had been `last_w_max`. Call
    /// [`Self::begin`] when the losses are repaired.
    pub(super) fn after_congestion(cwnd: u64, last_w_max: u64) -> Self {
        // Fast convergence, §4.7: a flow whose plateau sinks makes room for others.
        let w_max = if cwnd < last_w_max { cwnd / 20 * 17 + cwnd % 20 * 17 / 20 } else { cwnd };
        let epoch = Epoch { w_max, cwnd_prior: cwnd, w_est: 0, k: 0, start: Time::ZERO };
        Self::resumed(epoch, Time::ZERO)
    }

    /// After a slow start that ended without loss, or that followed a timeout (§4.8, §4.10): the
    /// plateau is `cwnd`, and K is 0.
    pub(super) fn plateau(now: Time, cwnd: u64) -> Self {
        let epoch = Epoch { w_max: cwnd, cwnd_prior: cwnd, w_est: cwnd, k: 0, start: now };
        Self::resumed(epoch, now)
    }

    /// An epoch that a spurious congestion event had cut short.
    pub(super) fn resumed(epoch: Epoch, now: Time) -> Self {
        Self { epoch, seen: now, est_remainder: 0, remainder: 0 }
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// W_max in bytes.
    pub(super) fn w_max(&self) -> u64 {
        self.epoch.w_max
    }

    /// Congestion avoidance begins with `cwnd`: K = cbrt((W_max - cwnd) / C), in segments and
    /// seconds, with C = 2/5.
    pub(super) fn begin(&mut self, now: Time, cwnd: u64, mss: u64) {
        let epoch = &mut self.epoch;
        epoch.w_max = epoch.w_max.max(cwnd);
        let below = u128::from(epoch.w_max - cwnd) << (3 * TICK_BITS);
        epoch.k = cbrt(below * 5 / (2 * u128::from(mss)));
        epoch.w_est = cwnd;
        epoch.start = now;
        *self = Self::resumed(self.epoch, now);
    }

    /// The time since the last ACK does not count: the application had left the window unused
    /// (§4.2, §5.8).
    pub(super) fn skip(&mut self, now: Time) {
        self.epoch.start += now.since(self.seen);
        self.seen = now;
    }

    /// The window after `acked` bytes more, coming from `cwnd`. `rtt` is the smoothed RTT.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        rtt: TimeDelta,
        acked: u64,
        cwnd: u64,
        mss: u64,
    ) -> u64 {
        self.seen = now;
        self.grow_w_est(acked, cwnd, mss);
        let t = now.since(self.epoch.start);
        if self.w_cubic(t, mss) < self.epoch.w_est {
            return cwnd.max(self.epoch.w_est);
        }
        let most = cwnd.saturating_add(cwnd / 2);
        let target = self.w_cubic(t + rtt, mss).clamp(cwnd, most);
        let growth = acked.saturating_mul(target - cwnd).saturating_add(self.remainder);
        self.remainder = growth % cwnd;
        cwnd.saturating_add(growth / cwnd)
    }

    /// §4.3: alpha segments per window acknowledged, where alpha = 3 (1 - beta) / (1 + beta) =
    /// 9/17 makes up for giving back less than Reno does, until W_est is back where it was.
    fn grow_w_est(&mut self, acked: u64, cwnd: u64, mss: u64) {
        let alpha = if self.epoch.w_est < self.epoch.cwnd_prior { 9 } else { 17 };
        let growth = acked.saturating_mul(mss * alpha).saturating_add(self.est_remainder);
        let unit = cwnd.saturating_mul(17);
        self.est_remainder = growth % unit;
        self.epoch.w_est = self.epoch.w_est.saturating_add(growth / unit);
    }

    /// W_cubic(t) = C (t - K)^3 + W_max.
    fn w_cubic(&self, t: TimeDelta, mss: u64) -> u64 {
        let t = ticks(t);
        let distance = u128::from(t.abs_diff(self.epoch.k).min(MAX_TICKS));
        let height = (distance * distance * distance * u128::from(2 * mss)) >> (3 * TICK_BITS);
        let height = u64::try_from(height).unwrap_or(u64::MAX) / 5;
        if t < self.epoch.k {
            self.epoch.w_max.saturating_sub(height)
        } else {
            self.epoch.w_max.saturating_add(height)
        }
    }
}

/// 2^20 ticks per 10^6 microseconds.
fn ticks(span: TimeDelta) -> u64 {
    span.as_micros().saturating_mul(1 << 14) / 15_625
}
