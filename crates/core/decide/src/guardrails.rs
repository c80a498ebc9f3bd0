//! Guardrails answer two questions: is the limit broken for sure, and is it likely kept?
//!
//! `broken` stops at once, so before the last look it needs a bound that holds at every look. At the last planned look the fixed
//! interval counts, with Bonferroni's correction for all guardrails that could have given the alarm, in the cells of all keys.
//! Enabling needs the other question: the limit is more likely kept than not, by a shrunk estimate, and the fixed interval does not lie beyond the limit.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Case, Group, Guardrail, Harm};
use crate::distribution::{normal_cdf, normal_quantile, quantile, tail};
use crate::shrink::{Prior, shrink};

/// Harm in units of its limit: before any evidence around none, and cells differ by about one limit.
const PRIOR: Prior = Prior { root_sd: 2.0, tau_scale: 1.0 };
/// As [`PRIOR`], of harm that a defect does: it is many limits large.
const BROAD_SD: f64 = 20.0;
/// Before any evidence, the probability that harm is a defect's. With one normal prior alone, the harm of a small group would be
/// shrunk the more, the larger it is beyond the limit.
const BROAD_SHARE: f64 = 0.2;
/// A limit of nothing counts as this much: no estimate is exact.
const MIN_LIMIT: f64 = 1e-4;
const MIN_ERROR: f64 = 1e-9;
/// Probability from which a limit counts as likely kept.
const MIN_KEPT: f64 = 0.5;

/// State of the evidence about a limit, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardrailState {
    /// The interval is within the limit.
    Holds,
    /// The limit is more likely kept than not.
    LikelyHolds,
    /// Without an estimate.
    Open,
    /// The limit is more likely broken than kept.
    LikelyBroken,
    /// The limit is broken.
    Broken,
}

impl GuardrailState {
    /// Its name in `conformance/decisions.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::LikelyHolds => "likely holds",
            Self::Open => "open",
            Self::LikelyBroken => "likely broken",
            Self::Broken => "broken",
        }
    }

    /// Whether the treated arm may be enabled as far as this guardrail goes.
    pub const fn is_acceptable(self) -> bool {
        !matches!(self, Self::Broken | Self::LikelyBroken)
    }
}

/// States by measure.
pub(crate) type States = BTreeMap<String, GuardrailState>;

/// States of the whole, and of each cell.
pub(crate) fn states_of(case: &Case) -> (States, Vec<States>) {
    let whole = states(case, std::slice::from_ref(&case.whole), &BTreeMap::new(), 0).remove(0);
    let guards = case.whole.guardrails.iter();
    let otherwise = guards
        .filter_map(|one| Some((one.measure.as_str(), probability_kept(&[one], case.level)[0]?)))
        .collect();
    (whole, states(case, &case.cells, &otherwise, case.other_tests))
}

/// `otherwise`: probability of a group without an estimate of its own. `other_tests`: guardrails of cells that are not among the
/// groups.
fn states(
    case: &Case,
    groups: &[Group],
    otherwise: &BTreeMap<&str, f64>,
    other_tests: usize,
) -> Vec<States> {
    let all = || groups.iter().flat_map(|group| &group.guardrails);
    let known = all().filter(|one| one.harm.is_some()).count();
    let tests = (known + other_tests).max(1) as f64;
    let mut states = vec![States::new(); groups.len()];
    let measures: BTreeSet<&String> = all().map(|one| &one.measure).collect();
    for measure in measures {
        let places: Vec<(usize, &Guardrail)> = groups
            .iter()
            .enumerate()
            .flat_map(|(place, group)| group.guardrails.iter().map(move |one| (place, one)))
            .filter(|(_, one)| one.measure == *measure)
            .collect();
        let guards: Vec<&Guardrail> = places.iter().map(|(_, one)| *one).collect();
        for ((place, one), kept) in places.iter().zip(probability_kept(&guards, case.level)) {
            let kept = kept.or_else(|| otherwise.get(measure.as_str()).copied());
            let state = state(one, kept, case, tests);
            // Of two limits on one measure, the state further from keeping counts.
            let worst = states[*place].entry(measure.clone()).or_insert(state);
            *worst = (*worst).max(state);
        }
    }
    states
}

/// `kept`: probability that the limit is kept, by the shrunk estimate. `tests`: guardrails that could give the alarm.
fn state(one: &Guardrail, kept: Option<f64>, case: &Case, tests: f64) -> GuardrailState {
    let limit = one.limit;
    let is_sure = one.valid.is_some_and(|[low, _]| low > limit);
    if is_sure || (case.is_final && p_beyond(one, case.level) * tests < (1.0 - case.level) / 2.0) {
        return GuardrailState::Broken;
    }
    let is_beyond = one.harm.is_some_and(|harm| harm.interval[0] > limit);
    if is_beyond || kept.is_some_and(|kept| kept < MIN_KEPT) {
        return GuardrailState::LikelyBroken;
    }
    let interval = if case.is_final { one.harm.map(|harm| harm.interval) } else { one.valid };
    match (interval, kept) {
        (Some([_, high]), _) if high < limit => GuardrailState::Holds,
        (_, Some(_)) => GuardrailState::LikelyHolds,
        _ => GuardrailState::Open,
    }
}

/// Of one measure in several groups: the probability that each keeps the limit.
///
/// The other groups can make harm in a group more likely, but not less: where one of many is broken, they say nothing of it.
fn probability_kept(guards: &[&Guardrail], level: f64) -> Vec<Option<f64>> {
    let scaled: Vec<(f64, f64)> =
        guards.iter().filter_map(|one| Some(in_limits(one, one.harm?, level))).collect();
    let mut broken: Vec<f64> =
        scaled.iter().map(|&(mean, error)| probability_broken(mean, error)).collect();
    if broken.len() > 1 {
        for (own, together) in broken.iter_mut().zip(shrink(&scaled, PRIOR).above(1.0)) {
            *own = own.max(together);
        }
    }
    let mut broken = broken.into_iter();
    guards.iter().map(|one| one.harm.and_then(|_| broken.next()).map(|p| 1.0 - p)).collect()
}

/// By a group's own estimate, in limits. The prior is a mixture of two normals around none.
fn probability_broken(mean: f64, error: f64) -> f64 {
    let narrow = Posterior::of(mean, error, PRIOR.root_sd);
    let broad = Posterior::of(mean, error, BROAD_SD);
    let odds = BROAD_SHARE / (1.0 - BROAD_SHARE) * (broad.fit - narrow.fit).exp();
    let share = 1.0 - 1.0 / (1.0 + odds);
    narrow.broken + share * (broad.broken - narrow.broken)
}

/// Of harm with a normal prior around none.
struct Posterior {
    /// Logarithm of the evidence's density, but for a constant.
    fit: f64,
    /// Probability of harm beyond the limit.
    broken: f64,
}

impl Posterior {
    fn of(mean: f64, error: f64, prior_sd: f64) -> Self {
        let total = prior_sd.powi(2) + error * error;
        let keep = prior_sd.powi(2) / total;
        let broken = normal_cdf((keep * mean - 1.0) / (keep.sqrt() * error));
        Self { fit: -0.5 * (total.ln() + mean * mean / total), broken }
    }
}

/// Harm and its error in limits. The error is that of the side towards the limit: intervals of rare events are not symmetric.
fn in_limits(one: &Guardrail, harm: Harm, level: f64) -> (f64, f64) {
    let scale = one.limit.max(MIN_LIMIT);
    let error = half(one, harm) / normal_quantile(0.5 + level / 2.0) / scale;
    (harm.value / scale, error.max(MIN_ERROR))
}

fn half(one: &Guardrail, harm: Harm) -> f64 {
    let [low, high] = harm.interval;
    if harm.value > one.limit { harm.value - low } else { high - harm.value }
}

/// One-sided p-value of the limit being kept; 1 without an estimate.
fn p_beyond(one: &Guardrail, level: f64) -> f64 {
    let Some(harm) = one.harm.filter(|harm| harm.value > one.limit) else { return 1.0 };
    let error = || (half(one, harm) / quantile(0.5 + level / 2.0, harm.df)).max(MIN_ERROR);
    harm.p.unwrap_or_else(|| tail((harm.value - one.limit) / error(), harm.df))
}

/// How far beyond the limit, in limits.
pub(crate) fn excess(one: &Guardrail) -> f64 {
    one.harm.map_or(0.0, |harm| harm.value) / one.limit.max(MIN_LIMIT) - 1.0
}
