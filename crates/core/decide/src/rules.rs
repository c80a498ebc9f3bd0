//! The decision: rules in the order in which they apply.
//!
//! The effect over all clients decides for all cells, unless a test shows that cells differ. Then a cell decides by its own
//! evidence, shrunk towards the others. `keep` needs as much evidence as `enable`: without it a cell waits.

use crate::case::{Block, Case, Estimate};
use crate::distribution::tail;
use crate::effect::{EffectState, effect_state, q_values};
use crate::guardrails::{GuardrailState, States, excess, states_of};
use crate::heterogeneity::{Heterogeneity, heterogeneity};
use crate::shrink::{Prior, shrink};

/// The cells' common gain may be almost anything before any data, and cells deviate from it by about a tenth.
const PRIOR: Prior = Prior { root_sd: 1.0, tau_scale: 0.1 };

/// The action for all cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Enable the treated arm, in all cells.
    Enable,
    /// Enable it in some cells.
    EnableSome,
    /// Keep the control.
    Keep,
    /// Collect more data.
    Wait,
    /// Stop: a guardrail is broken over all clients.
    Stop,
    /// No verdict.
    None(Block),
}

/// The advice for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Enable the treated arm.
    Enable,
    /// Keep the control.
    Keep,
    /// Collect more data.
    Wait,
    /// The records give no verdict.
    None,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A gain is shown.
    Better,
    /// A loss is shown.
    Worse,
    /// A gain that is worth a change is excluded.
    NoGainLeft,
    /// A limit is broken.
    GuardrailBroken,
    /// A gain is shown, but a limit is likely broken.
    GuardrailLikelyBroken,
    /// Neither is shown.
    NotEnoughData,
    /// Without an estimate.
    NoInterval,
    /// A limit is broken over all clients.
    Stop,
    /// The records give no verdict.
    Blocked(Block),
}

/// The decision for one cell, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDecision {
    /// Name of the cell.
    pub name: String,
    /// The advice.
    pub advice: Advice,
    /// Why.
    pub reason: Reason,
    /// By the cell's own records.
    pub state: EffectState,
    /// p-value adjusted for all cells (Benjamini and Hochberg 1995).
    pub q: Option<f64>,
    /// Whether the cell differs from the whole, so that its own evidence decides.
    pub is_own: bool,
    /// State by measure.
    pub guardrails: States,
}

/// The decision for the whole, and for each cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The action.
    pub action: Action,
    /// Of the whole.
    pub state: EffectState,
    /// Cells with a proven loss, the largest first.
    pub worse: Vec<String>,
    /// Cells with a broken guardrail, the furthest beyond its limit first.
    pub broken: Vec<String>,
    /// Whether the cells differ by more than chance.
    pub is_heterogeneous: bool,
    /// State by measure, over all clients.
    pub guardrails: States,
    /// Each cell, in the order of the case.
    pub cells: Vec<CellDecision>,
    /// 1: harm is proven somewhere; 4: no verdict; else 0.
    pub exit_status: u8,
}

impl Decision {
    /// The cells with this advice.
    pub fn named(&self, advice: Advice) -> impl Iterator<Item = &str> {
        self.cells.iter().filter(move |cell| cell.advice == advice).map(|cell| cell.name.as_str())
    }

    fn override_cells(&mut self, advice: Advice, reason: Reason) {
        for cell in &mut self.cells {
            (cell.advice, cell.reason) = (advice, reason);
        }
    }
}

/// The decision over all clients and in each cell.
pub fn decide(case: &Case) -> Decision {
    let (whole_guards, guards) = states_of(case);
    let is_kept = whole_guards.values().all(|state| state.is_acceptable());
    let is_broken = is_any_broken(&whole_guards);
    let whole = case.whole.estimate.as_ref();
    let state = effect_state(whole, whole.map(Estimate::p_value), case.alpha, case.worth);
    let mut decision = Decision {
        action: Action::Wait,
        state,
        guardrails: whole_guards,
        ..cells(case, guards, is_kept)
    };
    if let Some(block) = case.block {
        decision.action = Action::None(block);
        decision.override_cells(Advice::None, Reason::Blocked(block));
        decision.worse = Vec::new();
        if block != Block::AaTest {
            // Such records prove nothing, harm included.
            decision.broken = Vec::new();
        }
        let differs = matches!(state, EffectState::Better | EffectState::Worse)
            || is_broken
            || !decision.broken.is_empty();
        decision.exit_status = if block == Block::AaTest && !differs { 0 } else { 4 };
    } else if is_broken {
        decision.action = Action::Stop;
        decision.override_cells(Advice::Keep, Reason::Stop);
        decision.exit_status = 1;
    } else {
        decision.action = action(case, is_kept, &decision.cells);
        let named = decision.worse.len() + decision.broken.len();
        decision.exit_status = u8::from(state == EffectState::Worse || named > 0);
    }
    decision
}

fn action(case: &Case, is_kept: bool, cells: &[CellDecision]) -> Action {
    let Some(whole) = &case.whole.estimate else { return Action::Wait };
    let has = |advice| cells.iter().any(|cell| cell.advice == advice);
    if cells.is_empty() {
        return match Evidence::of(whole, case.worth).advice(case.alpha, is_kept).0 {
            Advice::Enable => Action::Enable,
            Advice::Keep => Action::Keep,
            _ => Action::Wait,
        };
    }
    match (has(Advice::Enable), has(Advice::Keep), has(Advice::Wait)) {
        (true, false, false) => Action::Enable,
        (true, ..) => Action::EnableSome,
        (_, _, true) => Action::Wait,
        _ => Action::Keep,
    }
}

/// The evidence about the gain in a cell.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    /// Probability that there is any gain.
    p_better: f64,
    /// Probability that the gain is worth a change.
    p_worth: f64,
}

impl Evidence {
    fn of(one: &Estimate, worth: f64) -> Self {
        let half = one.p_value() / 2.0;
        Self {
            p_better: if one.gain > 0.0 { 1.0 - half } else { half },
            p_worth: tail((worth.ln_1p() - one.gain) / one.error, one.df),
        }
    }

    /// By the gain, and by whether all limits are likely kept.
    fn advice(self, alpha: f64, is_kept: bool) -> (Advice, Reason) {
        if self.p_better < alpha / 2.0 {
            (Advice::Keep, Reason::Worse)
        } else if self.p_worth < alpha / 2.0 {
            (Advice::Keep, Reason::NoGainLeft)
        } else if self.p_better <= 1.0 - alpha / 2.0 {
            (Advice::Wait, Reason::NotEnoughData)
        } else if is_kept {
            (Advice::Enable, Reason::Better)
        } else {
            (Advice::Wait, Reason::GuardrailLikelyBroken)
        }
    }
}

/// The cells' part of a decision. `is_kept`: all limits are likely kept over all clients; else nothing is enabled.
fn cells(case: &Case, guards: Vec<States>, is_kept: bool) -> Decision {
    let estimates: Vec<Option<Estimate>> = case.cells.iter().map(|cell| cell.estimate).collect();
    let found = heterogeneity(&estimates, case.cells.iter().map(|cell| cell.share).sum());
    let evidence = evidence(case, &estimates, &found);
    let qs = q_values(&estimates);
    let (mut cells, mut worse, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (cell, states)) in case.cells.iter().zip(guards).enumerate() {
        let known = evidence[place];
        let state = effect_state(cell.estimate.as_ref(), qs[place], case.alpha, case.worth);
        let is_own = found.is_found && (found.outliers.contains(&place) || found.rest_differs);
        let is_own_loss = is_own && known.is_some_and(|known| known.p_better < case.alpha / 2.0);
        let is_worse = state == EffectState::Worse || is_own_loss;
        if let (true, Some(estimate)) = (is_worse, cell.estimate) {
            worse.push((estimate.gain, cell.name.clone()));
        }
        if is_any_broken(&states) {
            let of = cell.guardrails.iter();
            let of = of.filter(|one| states[&one.measure] == GuardrailState::Broken);
            broken.push((-of.map(excess).fold(f64::NEG_INFINITY, f64::max), cell.name.clone()));
        }
        let (mut advice, mut reason) = cell_advice(known, &states, is_worse, is_kept, case.alpha);
        if case.whole.estimate.is_none() && advice == Advice::Enable {
            (advice, reason) = (Advice::Wait, Reason::NoInterval);
        }
        let (name, q) = (cell.name.clone(), qs[place]);
        cells.push(CellDecision { name, advice, reason, state, q, is_own, guardrails: states });
    }
    Decision {
        action: Action::Wait,
        state: EffectState::NoInterval,
        worse: sorted(worse),
        broken: sorted(broken),
        is_heterogeneous: found.is_found,
        guardrails: States::new(),
        cells,
        exit_status: 0,
    }
}

fn is_any_broken(states: &States) -> bool {
    states.values().any(|state| *state == GuardrailState::Broken)
}

fn sorted(mut named: Vec<(f64, String)>) -> Vec<String> {
    named.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
    named.into_iter().map(|(_, name)| name).collect()
}

/// The evidence that decides in each cell; `None`: no evidence.
fn evidence(
    case: &Case,
    estimates: &[Option<Estimate>],
    found: &Heterogeneity,
) -> Vec<Option<Evidence>> {
    let of = |one: &Estimate| Evidence::of(one, case.worth);
    if !found.is_found {
        return vec![case.whole.estimate.as_ref().map(of); estimates.len()];
    }
    let is_outlier = |place: &usize| found.outliers.contains(place);
    let own = |place: usize| estimates[place].as_ref().map(of);
    if let (false, Some(rest)) = (found.rest_differs, &found.rest) {
        let common = of(rest);
        let pick = |place| if is_outlier(&place) { own(place) } else { Some(common) };
        return (0..estimates.len()).map(pick).collect();
    }
    let places: Vec<usize> = (0..estimates.len())
        .filter(|place| !is_outlier(place) && estimates[*place].is_some())
        .collect();
    let cells: Vec<(f64, f64)> = places
        .iter()
        .filter_map(|place| estimates[*place])
        .map(|one| (one.gain, one.normal_error()))
        .collect();
    let after = shrink(&cells, PRIOR);
    let pairs = after.above(0.0).into_iter().zip(after.above(case.worth.ln_1p()));
    let mut decides: Vec<Option<Evidence>> = (0..estimates.len())
        .map(|place| if is_outlier(&place) { own(place) } else { None })
        .collect();
    for (place, (p_better, p_worth)) in places.into_iter().zip(pairs) {
        decides[place] = Some(Evidence { p_better, p_worth });
    }
    decides
}

fn cell_advice(
    known: Option<Evidence>,
    guards: &States,
    is_worse: bool,
    is_kept: bool,
    alpha: f64,
) -> (Advice, Reason) {
    let is_kept = is_kept && guards.values().all(|state| state.is_acceptable());
    match known {
        _ if is_any_broken(guards) => (Advice::Keep, Reason::GuardrailBroken),
        _ if is_worse => (Advice::Keep, Reason::Worse),
        None => (Advice::Wait, Reason::NoInterval),
        Some(known) => known.advice(alpha, is_kept),
    }
}
