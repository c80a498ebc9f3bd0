//! The drop probability, updated every T_UPDATE (RFC 8033 §4.2), and the burst allowance (§4.4).

use uncork_units::{Time, TimeDelta};

use super::PieSpec;
use crate::queue::pi::{Gains, Likelihood, UpdateSchedule};

/// Auto-tuning (§4.2): below each probability the gains are divided by the given number.
const TUNING: [(Likelihood, u32); 6] = [
    (Likelihood::millionths(1), 2048),
    (Likelihood::millionths(10), 512),
    (Likelihood::millionths(100), 128),
    (Likelihood::millionths(1_000), 32),
    (Likelihood::millionths(10_000), 8),
    (HIGH, 2),
];

/// 10 %: from here on increases are capped (§5.5) and packets are no longer marked (§5.1).
pub(super) const HIGH: Likelihood = Likelihood::millionths(100_000);

/// Below this, packets are not dropped if the delay is small (§4.1).
const SAFEGUARD: Likelihood = Likelihood::millionths(200_000);

/// The controller of the drop probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    spec: PieSpec,
    updates: UpdateSchedule,
    state: PieState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PieState {
    /// PIE->drop_prob_.
    probability: Likelihood,
    /// PIE->qdelay_old_.
    delay: TimeDelta,
    /// PIE->burst_allowance_.
    burst: TimeDelta,
}

impl Control {
    pub(super) fn new(spec: PieSpec) -> Self {
        let state =
            PieState { probability: Likelihood::ZERO, delay: TimeDelta::ZERO, burst: spec.burst };
        Self { spec, updates: UpdateSchedule::every(spec.tupdate), state }
    }

    /// Performs the updates due by `now`. The queue's oldest packet arrived at `head`.
    ///
    /// The delay is that packet's waiting time at the update: a timestamp, which §4.3 allows.
    /// Unlike the delay of the last packet that left (appendix A) it is never stale, and it is 0
    /// for an empty queue.
    pub(super) fn update(&mut self, now: Time, head: Option<Time>) {
        let Self { spec, updates, state } = self;
        updates.make_up(now, head, |delay| {
            let before = *state;
            state.update(spec, delay);
            state.is_settled(before, spec.target)
        });
    }

    pub(super) fn probability(&self) -> Likelihood {
        self.state.probability
    }

    /// Resets the burst allowance once congestion is gone (§4.4).
    pub(super) fn renew_burst(&mut self, delay: TimeDelta) {
        let low = self.low_delay();
        let state = &mut self.state;
        if state.probability == Likelihood::ZERO && delay < low && state.delay < low {
            state.burst = self.spec.burst;
        }
    }

    /// Whether packets pass regardless of the probability.
    pub(super) fn tolerates_burst(&self) -> bool {
        !self.state.burst.is_zero()
    }

    /// Whether the queue is not congested enough to drop: the first safeguard of §4.1.
    pub(super) fn is_relaxed(&self) -> bool {
        self.state.delay < self.low_delay() && self.state.probability < SAFEGUARD
    }

    fn low_delay(&self) -> TimeDelta {
        self.spec.target.divided_by(2)
    }

    #[cfg(test)]
    pub(super) fn allow_burst(&mut self) {
        self.state.burst = self.spec.burst;
    }

    #[cfg(test)]
    pub(super) fn force(&mut self, probability: Likelihood, delay: TimeDelta) {
        self.state = PieState { probability, delay, burst: TimeDelta::ZERO };
    }
}

impl PieState {
    /// calculate_drop_prob() of appendix A, with the cap of §5.5.
    fn update(&mut self, spec: &PieSpec, delay: TimeDelta) {
        let gains = Gains { alpha: spec.alpha, beta: spec.beta };
        let before = self.probability;
        let step = gains.steps(delay, self.delay, spec.target, divisor(before));
        let mut after = before.moved(step);
        if before >= HIGH {
            after = after.min(before.plus(Likelihood::millionths(20_000)));
        }
        if delay.is_zero() && self.delay.is_zero() {
            after = after.scaled(98, 100);
        }
        self.probability = after;
        self.delay = delay;
        self.burst = self.burst - spec.tupdate;
    }

    /// Whether later updates with a delay that does not fall would change only the last delay.
    /// There are two such states. (1) An empty queue: the delay stays 0, so an update that changed
    /// nothing will change nothing again; by decay alone the probability falls from 1 to 0 in 1917
    /// updates. (2) The probability is 1 and the delay is above the target and does not fall, so
    /// neither part of the step is negative.
    fn is_settled(&self, before: Self, target: TimeDelta) -> bool {
        let idle = *self == before && self.delay.is_zero();
        let blocked = self.probability == Likelihood::ONE
            && self.burst.is_zero()
            && self.delay >= target
            && self.delay >= before.delay;
        idle || blocked
    }
}

/// The divisor of the gains at a probability (§4.2).
fn divisor(probability: Likelihood) -> u32 {
    TUNING.iter().find(|(below, _)| probability < *below).map_or(1, |(_, divisor)| *divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gain;

    fn state(probability: u64, delay_ms: u64) -> PieState {
        PieState {
            probability: Likelihood::millionths(probability),
            delay: TimeDelta::from_millis(delay_ms),
            burst: TimeDelta::ZERO,
        }
    }

    fn after(mut state: PieState, delays_ms: &[u64]) -> PieState {
        for ms in delays_ms {
            state.update(&PieSpec::default(), TimeDelta::from_millis(*ms));
        }
        state
    }

    fn least_gain() -> PieSpec {
        let (target, alpha) = (TimeDelta::from_micros(100), Gain::from_millihertz(1));
        PieSpec { target, alpha, ..PieSpec::default() }
    }

    /// The table of §4.2, on both sides of each limit.
    #[test]
    fn gains_depend_on_the_probability() {
        for (millionths, expected) in [
            (0, 2048),
            (1, 512),
            (9, 512),
            (10, 128),
            (99, 128),
            (100, 32),
            (999, 32),
            (1_000, 8),
            (9_999, 8),
            (10_000, 2),
            (99_999, 2),
            (100_000, 1),
            (1_000_000, 1),
        ] {
            assert_eq!(divisor(Likelihood::millionths(millionths)), expected, "{millionths}");
        }
    }

    /// Computed by hand: alpha · (delay − 15 ms) + beta · (delay − last delay), over the divisor.
    #[test]
    fn probability_follows_the_rfc_formula() {
        let steps = [
            // 20 ms after 0: 0.000625 + 0.025 = 0.025625; p = 0, so / 2048.
            (20, 0.025_625 / 2048.0),
            // 36 ms: 0.002625 + 0.02 = 0.022625; p = 1.25e-5, so / 128.
            (36, 0.022_625 / 128.0),
            // 36 ms: 0.002625; p = 1.893e-4, so / 32.
            (36, 0.002_625 / 32.0),
            // 10 ms: -0.000625 - 0.0325 = -0.033125; p = 2.713e-4, so / 32; not below 0.
            (10, -0.000_271_300_28),
        ];
        let (mut state, mut expected) = (state(0, 0), 0.0);
        for (delay, step) in steps {
            state = after(state, &[delay]);
            expected += step;
            assert!((state.probability.as_f64() - expected).abs() < 1e-9, "{delay} ms: {state:?}");
        }
        assert_eq!(state.probability, Likelihood::ZERO);
    }

    /// §5.5: a delay increase of 40 ms would add 0.05 + 0.005.
    #[test]
    fn increase_above_ten_percent_is_capped() {
        let capped = after(state(100_000, 15), &[55]).probability.as_f64();
        assert!((capped - 0.12).abs() < 1e-12, "{capped}");
        // Below 10 % it is half of that and not capped. Decreases are never capped.
        let free = after(state(99_000, 15), &[55]).probability.as_f64();
        assert!((free - (0.099 + 0.0275)).abs() < 1e-12, "{free}");
        let down = after(state(300_000, 55), &[15]).probability.as_f64();
        assert!((down - 0.25).abs() < 1e-12, "{down}");
    }

    #[test]
    fn a_delay_below_the_target_leaves_the_probability_at_zero() {
        let calm = after(state(0, 14), &[14; 1000]);
        assert_eq!(calm.probability, Likelihood::ZERO);
        assert_ne!(after(state(0, 16), &[16]).probability, Likelihood::ZERO);
    }

    /// p ← 0.98 (p − 0.001875) while idle at 10 % and more; closed form (p + c) · 0.98^n − c with c
    /// = 0.98 · 0.001875 / 0.02.
    #[test]
    fn idle_probability_decays_exponentially() {
        let c = 0.98 * 0.001_875 / 0.02;
        for n in [1, 10, 50, 80] {
            let p = after(state(1_000_000, 0), &vec![0; n]).probability.as_f64();
            let closed_form = (1.0 + c) * 0.98_f64.powi(n as i32) - c;
            assert!((p - closed_form).abs() < 1e-12, "{n}: {p} {closed_form}");
        }
    }

    /// Decay only: with the smallest gain, the controller subtracts less than 4e-7 per update.
    #[test]
    fn decay_alone_is_two_percent() {
        let spec = least_gain();
        let mut state = state(1_000_000, 0);
        for n in 1..=200 {
            state.update(&spec, TimeDelta::ZERO);
            let expected = 0.98_f64.powi(n);
            assert!((state.probability.as_f64() - expected).abs() < 5e-6, "{n}");
        }
    }

    /// §4.4: only with probability 0 and both delays below half of the target.
    #[test]
    fn burst_allowance_is_reset_when_congestion_is_gone() {
        let ms = TimeDelta::from_millis;
        for (millionths, last_ms, now_ms, renewed) in
            [(0, 7, 7, true), (0, 8, 7, false), (0, 7, 8, false), (1, 7, 7, false)]
        {
            let mut control = Control::new(PieSpec::default());
            control.force(Likelihood::millionths(millionths), ms(last_ms));
            control.renew_burst(ms(now_ms));
            assert_eq!(control.tolerates_burst(), renewed, "{millionths} {last_ms} {now_ms}");
        }
    }

    /// A queue that fills at once: its probability stays at 1 in the first update and falls in the
    /// following ones, because the delay is still below the target.
    #[test]
    fn effective_updates_are_not_skipped() {
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        let params = "alpha=20,beta=10,target=500ms,tupdate=15ms";
        let mut late = Control::new(PieSpec::parse(Some(params)).expect("parameters"));
        late.update(at(390), None);
        late.force(Likelihood::ONE, TimeDelta::ZERO);
        let mut timed = late;
        for tick in (405..=495).step_by(15) {
            timed.update(at(tick), Some(Time::ZERO));
            assert_eq!(timed.probability() == Likelihood::ONE, tick == 405, "{tick}");
        }
        late.update(at(495), Some(Time::ZERO));
        assert_eq!(late, timed);
    }

    /// Maximum number of delayed updates, however long the pause.
    #[test]
    fn idle_queue_settles_soon() {
        let spec = least_gain();
        let mut state = state(1_000_000, 0);
        let settled = (1..10_000).find(|_| {
            let before = state;
            state.update(&spec, TimeDelta::ZERO);
            state.is_settled(before, spec.target)
        });
        assert!(settled.is_some_and(|updates| updates < 1920), "{settled:?}");
        assert_eq!(state.probability, Likelihood::ZERO);
    }
}
