//! The base probability p', updated every Tupdate (RFC 9332, figure 8), and the probabilities
//! derived from it.

use uncork_units::{Time, TimeDelta};

use super::DualPi2Spec;
use crate::queue::pi::{Gains, Likelihood, UpdateSchedule};

/// The PI controller of both queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    spec: DualPi2Spec,
    updates: UpdateSchedule,
    state: DualPi2State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DualPi2State {
    /// p'.
    base: Likelihood,
    /// prevq: the delay at the last update.
    delay: TimeDelta,
}

impl Control {
    pub(super) fn new(spec: DualPi2Spec) -> Self {
        let state = DualPi2State { base: Likelihood::ZERO, delay: TimeDelta::ZERO };
        Self { spec, updates: UpdateSchedule::every(spec.tupdate), state }
    }

    /// Performs the updates due by `now`, for two queues with their oldest packets from `head`:
    /// uses the larger delay, as in line 2a of figure 8.
    pub(super) fn update(&mut self, now: Time, head: Option<Time>) {
        let Self { spec, updates, state } = self;
        updates.make_up(now, head, |delay| {
            let before = *state;
            state.update(spec, delay);
            state.is_settled(before, spec.target)
        });
    }

    /// p_C = p'^2: the probability that a classic packet is dropped or marked.
    pub(super) fn classic(&self) -> Likelihood {
        self.state.base.squared()
    }

    /// p_CL = k p', at most 1: the probability that an L packet is marked through coupling.
    pub(super) fn coupled(&self) -> Likelihood {
        self.state.base.scaled(u64::from(self.spec.k), 1)
    }

    /// Whether marking is saturated: p_CL has reached p_Lmax = 1, which is when p_C reaches p_Cmax
    /// = 1/k^2 (A.2).
    pub(super) fn is_overloaded(&self) -> bool {
        self.coupled() == Likelihood::ONE
    }

    /// laqm() of figure 5: the probability that an L packet is marked because of its own queue's
    /// delay.
    pub(super) fn native(&self, delay: TimeDelta) -> Likelihood {
        let (min, range) = (self.spec.min_threshold, self.spec.range);
        if delay >= min + range {
            Likelihood::ONE
        } else {
            Likelihood::ONE.scaled((delay - min).as_nanos(), range.as_nanos())
        }
    }

    #[cfg(test)]
    pub(super) fn force(&mut self, base: Likelihood, delay: TimeDelta) {
        self.state = DualPi2State { base, delay };
    }
}

impl DualPi2State {
    fn update(&mut self, spec: &DualPi2Spec, delay: TimeDelta) {
        let gains = Gains { alpha: spec.alpha, beta: spec.beta };
        self.base = self.base.moved(gains.steps(delay, self.delay, spec.target, 1));
        self.delay = delay;
    }

    /// Whether later updates with a delay that does not fall would change only the last delay.
    /// There are two such states. (1) Empty queues: the delay stays 0, so an update that changed
    /// nothing will change nothing again; p' reaches 0 in 1 / (alpha · target) updates, 417 by
    /// default. (2) p' is 1 and the delay is above the target and does not fall, so neither part of
    /// the step is negative.
    fn is_settled(&self, before: Self, target: TimeDelta) -> bool {
        let idle = *self == before && self.delay.is_zero();
        let blocked =
            self.base == Likelihood::ONE && self.delay >= target && self.delay >= before.delay;
        idle || blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(params: &str) -> Control {
        let params = (!params.is_empty()).then_some(params);
        Control::new(DualPi2Spec::parse(params).expect("parameters"))
    }

    /// Computed by hand: 0.16 · (delay − 15 ms) + 3.2 · (delay − last delay), limited to 0 to 1.
    #[test]
    fn the_base_probability_follows_figure_8() {
        let mut state = control("").state;
        for (delay_ms, expected) in [
            // 0.16 · 5 ms + 3.2 · 20 ms = 0.0008 + 0.064
            (20, 0.0648),
            // 0.0008 + 0
            (20, 0.0656),
            // 0.16 · 10 ms + 3.2 · 5 ms = 0.0016 + 0.016
            (25, 0.0832),
            // − 0.0008 − 0.048
            (10, 0.0344),
            // − 0.0024 − 0.032
            (0, 0.0),
            (0, 0.0),
            // 0.16 · 385 ms + 3.2 · 400 ms > 1
            (400, 1.0),
        ] {
            state.update(&DualPi2Spec::default(), TimeDelta::from_millis(delay_ms));
            assert!((state.base.as_f64() - expected).abs() < 1e-15, "{delay_ms}: {state:?}");
        }
    }

    /// 1 / (0.16 · 15 ms) = 416.7.
    #[test]
    fn p_falls_to_zero_in_an_empty_queue_and_settles() {
        let spec = DualPi2Spec::default();
        let mut state = DualPi2State { base: Likelihood::ONE, delay: TimeDelta::ZERO };
        let settled = (1..10_000).find(|_| {
            let before = state;
            state.update(&spec, TimeDelta::ZERO);
            state.is_settled(before, spec.target)
        });
        assert_eq!((settled, state.base), (Some(418), Likelihood::ZERO));
    }

    /// A queue that fills at once: p' stays at 1 in the first update and falls in the following
    /// ones, because the delay is still below the target.
    #[test]
    fn effective_updates_are_not_skipped() {
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        let params = "alpha=20,beta=10,target=500ms,tupdate=15ms";
        let mut late = control(params);
        late.update(at(390), None);
        late.force(Likelihood::ONE, TimeDelta::ZERO);
        let mut timed = late;
        for tick in (405..=495).step_by(15) {
            timed.update(at(tick), Some(Time::ZERO));
            assert_eq!(timed.state.base == Likelihood::ONE, tick == 405, "{tick}");
        }
        late.update(at(495), Some(Time::ZERO));
        assert_eq!(late, timed);
    }

    /// Equation (1): p_C = (p_CL / k)^2; both saturate together.
    #[test]
    fn the_queues_are_coupled() {
        for k in [1, 2, 3, 4] {
            let mut control = control(&format!("k={k}"));
            for millionths in (0..=1_000_000).step_by(9973) {
                control.force(Likelihood::millionths(millionths), TimeDelta::ZERO);
                let (classic, coupled) = (control.classic(), control.coupled());
                let k = f64::from(k);
                if control.is_overloaded() {
                    assert!(classic.as_f64() >= 1.0 / (k * k) - 1e-12, "{k} {millionths}");
                } else {
                    let expected = (coupled.as_f64() / k).powi(2);
                    assert!((classic.as_f64() - expected).abs() < 1e-12, "{k} {millionths}");
                    assert!(classic.as_f64() < 1.0 / (k * k), "{k} {millionths}");
                }
            }
        }
    }

    #[test]
    fn ramp_rises_from_its_threshold_to_one() {
        let native =
            |params, micros| control(params).native(TimeDelta::from_micros(micros)).as_f64();
        for (micros, expected) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0)] {
            assert!((native("", micros) - expected).abs() < 1e-15, "{micros}");
        }
        assert_eq!([999, 1000].map(|micros| native("step=1ms", micros) as u32), [0, 1]);
    }
}
