//! States of an effect.

use crate::case::Estimate;

/// The state of an effect, by its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectState {
    /// A gain is shown.
    Better,
    /// A loss is shown.
    Worse,
    /// No difference that is worth a change is left.
    Equivalent,
    /// Neither a difference nor its absence is shown.
    Inconclusive,
    /// Nothing was estimated.
    NoInterval,
}

impl EffectState {
    /// Its name in `conformance/decisions.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
            Self::NoInterval => "no interval",
        }
    }
}

/// The state of an effect by its estimate. `p`: its p-value, adjusted if this is one of a family.
pub fn effect_state(
    estimate: Option<&Estimate>,
    p: Option<f64>,
    alpha: f64,
    worth: f64,
) -> EffectState {
    let (Some(estimate), Some(p)) = (estimate, p) else { return EffectState::NoInterval };
    match p < alpha {
        true if estimate.gain > 0.0 => EffectState::Better,
        true => EffectState::Worse,
        false => undecided(estimate.interval(alpha), worth),
    }
}

/// The state by the interval of a gain, at the level of the decision: [`effect_state`] where only an interval is known. Gains are
/// logarithms, positive is better.
pub fn interval_state(gain: Option<[f64; 2]>, worth: f64) -> EffectState {
    match gain {
        None => EffectState::NoInterval,
        Some([low, _]) if low > 0.0 => EffectState::Better,
        Some([_, high]) if high < 0.0 => EffectState::Worse,
        Some(ends) => undecided(ends, worth),
    }
}

fn undecided(gain: [f64; 2], worth: f64) -> EffectState {
    let is_small = gain.iter().all(|end| end.exp_m1().abs() < worth);
    if is_small { EffectState::Equivalent } else { EffectState::Inconclusive }
}

/// p-values adjusted for the family of all that have an estimate (Benjamini and Hochberg 1995).
pub(crate) fn q_values(estimates: &[Option<Estimate>]) -> Vec<Option<f64>> {
    let mut ranked: Vec<(usize, f64)> = estimates
        .iter()
        .enumerate()
        .filter_map(|(place, one)| Some((place, one.as_ref()?.p_value())))
        .collect();
    ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (tests, mut smallest) = (ranked.len() as f64, 1.0_f64);
    let mut adjusted = vec![None; estimates.len()];
    for (rank, (place, p)) in ranked.into_iter().enumerate().rev() {
        smallest = smallest.min(p * tests / (rank + 1) as f64);
        adjusted[place] = Some(smallest);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_shows_a_gain_a_loss_no_difference_or_nothing() {
        use EffectState::{Better, Equivalent, Inconclusive, NoInterval, Worse};
        for (gain, state) in [
            (Some([0.001, 0.2]), Better),
            (Some([-0.2, -0.001]), Worse),
            (Some([-0.005, 0.004]), Equivalent),
            (Some([-0.2, 0.004]), Inconclusive),
            (Some([f64::NEG_INFINITY, f64::INFINITY]), Inconclusive),
            (None, NoInterval),
        ] {
            assert_eq!(interval_state(gain, 0.01), state, "{gain:?}");
        }
    }

    #[test]
    fn p_values_are_adjusted_for_the_number_of_existing_ones() {
        let with = |p| Some(Estimate { gain: 0.1, error: 0.1, df: 9.0, p: Some(p) });
        let estimates = [with(0.04), None, with(0.01), with(0.03)];
        let adjusted = q_values(&estimates);
        for (value, expected) in adjusted.iter().zip([Some(0.04), None, Some(0.03), Some(0.04)]) {
            assert_eq!(value.is_some(), expected.is_some());
            assert!((value.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-12, "{adjusted:?}");
        }
    }
}
