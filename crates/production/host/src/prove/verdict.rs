//! What to do, by the rules of `uncork-decide`.

use std::collections::BTreeMap;

use serde::Serialize;
use uncork_decide::{
    Action, Block, Case, Decision, EffectState, Estimate, Group, Guardrail, Harm, decide,
    effect_state,
};

use super::effect::{Effect, Metric};
use super::spec::ProveSpec;

/// Smallest relative gain that is worth a change.
const WORTH: f64 = 0.01;
/// Two-sided level of the intervals, and of the decision at the planned end.
const ALPHA: f64 = 0.05;
/// The same before the planned end (Haybittle 1971, Peto 1976): a test may have been ended because of what it showed.
const EARLY_ALPHA: f64 = 0.001;

/// How a test ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// As planned.
    #[default]
    Planned,
    /// Before.
    Early,
    /// The second controller exceeded a safety limit.
    UnsafeCandidate,
}

/// Whether the second controller is better, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What to do, by the rules of `conformance/README.md`.
    pub decision: Choice,
    /// Whether the second controller is better, by the deciding metric.
    pub answer: Answer,
    /// The one metric that decides, fixed before the test: the median throughput of large transfers if there are enough of them,
    /// else the median completion of small ones.
    pub metric: Metric,
    /// State of each guardrail, in the words of `conformance/README.md`.
    #[cfg_attr(test, schemars(extend(
        "propertyNames" = {"const": "retransmitted"},
        "additionalProperties" = {"enum": ["holds", "likely holds", "open", "likely broken", "broken"]},
    )))]
    pub guardrails: BTreeMap<String, &'static str>,
    /// 1: harm is proven, or an A/A test shows a difference; else 0.
    #[serde(skip)]
    pub status: u8,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Enable the second controller.
    Enable,
    /// Keep the first.
    Keep,
    /// Collect more data.
    Wait,
    /// A guardrail or a safety limit is broken.
    Stop,
    /// Both arms run the same controller.
    AaTest,
}

/// Whether the second controller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The interval is on its side.
    Better,
    /// The interval is on the other's side.
    Worse,
    /// The interval contains zero and no difference of 1 % or more.
    Equivalent,
    /// The interval contains zero.
    NotShown,
    /// Without an interval.
    Open,
}

impl Verdict {
    /// One metric decides: of six intervals of 95 %, one in four sets would have one that excludes zero by chance.
    pub(super) fn of(spec: &ProveSpec, effects: &[Effect], end: End) -> Self {
        let by = |metric| effects.iter().find(|effect| effect.metric == metric);
        let deciding = [Metric::ThroughputP50, Metric::CompletionP50];
        let known = |metric: &Metric| by(*metric).and_then(estimate).map(|one| (*metric, one));
        let decides = deciding.iter().find_map(known);
        let (metric, estimate) =
            decides.map_or((deciding[0], None), |(metric, one)| (metric, Some(one)));
        let is_aa_test = spec.controllers[0] == spec.controllers[1];
        let guardrail = by(Metric::Retransmitted).map(|effect| guardrail(spec, effect));
        let guardrails = guardrail.into_iter().filter(|_| !is_aa_test).collect();
        let is_final = end == End::Planned;
        let decision = decide(&Case {
            alpha: if is_final { ALPHA } else { EARLY_ALPHA },
            worth: WORTH,
            is_final,
            block: is_aa_test.then_some(Block::AaTest),
            ..Case::of(Group { name: String::new(), share: 1.0, estimate, guardrails })
        });
        let p = estimate.as_ref().map(Estimate::p_value);
        Self {
            decision: choice(&decision, end),
            answer: answer(effect_state(estimate.as_ref(), p, ALPHA, WORTH)),
            metric,
            status: u8::from(decision.exit_status > 0 || end == End::UnsafeCandidate),
            guardrails: decision
                .guardrails
                .into_iter()
                .map(|(measure, state)| (measure, state.name()))
                .collect(),
        }
    }
}

/// The gain of a metric on a logarithmic scale; `None` without an interval.
fn estimate(effect: &Effect) -> Option<Estimate> {
    let (change, [low, high], p) = (effect.change?, effect.interval?, effect.p?);
    let [change, low, high] = [change, low, high].map(f64::ln_1p);
    let (gain, interval) = match effect.metric {
        Metric::CompletionP50 | Metric::CompletionP90 => (-change, [-high, -low]),
        _ => (change, [low, high]),
    };
    Some(Estimate::of_interval(gain, interval, ALPHA, effect.pairs as f64 - 1.0, p))
}

fn guardrail(spec: &ProveSpec, effect: &Effect) -> Guardrail {
    let df = effect.pairs as f64 - 1.0;
    let harm = |(value, interval)| Harm { value, interval, df, p: None };
    Guardrail {
        measure: "retransmitted".to_owned(),
        limit: spec.max_retransmitted_increase.as_f64(),
        harm: effect.change.zip(effect.interval).map(harm),
        valid: None,
    }
}

fn choice(decision: &Decision, end: End) -> Choice {
    match decision.action {
        Action::None(_) => Choice::AaTest,
        _ if end == End::UnsafeCandidate => Choice::Stop,
        Action::Enable | Action::EnableSome => Choice::Enable,
        Action::Keep => Choice::Keep,
        Action::Wait => Choice::Wait,
        Action::Stop => Choice::Stop,
    }
}

const fn answer(state: EffectState) -> Answer {
    match state {
        EffectState::Better => Answer::Better,
        EffectState::Worse => Answer::Worse,
        EffectState::Equivalent => Answer::Equivalent,
        EffectState::Inconclusive => Answer::NotShown,
        EffectState::NoInterval => Answer::Open,
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::{ByteCount, TimeDelta};

    use super::*;
    use crate::prove::{Comparison, Limits};

    fn effect(metric: Metric, interval: Option<[f64; 2]>) -> Effect {
        let is_shown = interval.map(|[low, high]| low > 0.0 || high < 0.0);
        Effect {
            metric,
            unit: "",
            comparison: Comparison::WithinNetworks,
            common: Some(1.0),
            pairs: 12,
            levels: None,
            change: interval.map(|[low, high]| f64::midpoint(low, high)),
            interval,
            p: is_shown.map(|is_shown| if is_shown { 0.002 } else { 0.5 }),
            missing: None,
        }
    }

    fn spec(controllers: [&str; 2]) -> ProveSpec {
        ProveSpec {
            controllers: controllers.map(str::to_owned),
            routes: Vec::new(),
            pairs: 12,
            window: TimeDelta::from_secs(300),
            burn_in: TimeDelta::from_secs(30),
            large: ByteCount::new(500_000),
            limits: Limits {
                retransmitted: "10%".parse().expect("a share"),
                rtt_p95: TimeDelta::from_secs(1),
            },
            max_retransmitted_increase: "2%".parse().expect("a share"),
            period: TimeDelta::from_secs(1),
            seed: 1,
        }
    }

    fn verdict(
        throughput: Option<[f64; 2]>,
        completion: Option<[f64; 2]>,
        retransmitted: Option<[f64; 2]>,
        end: End,
    ) -> Verdict {
        let effects = [
            effect(Metric::ThroughputP10, Some([0.3, 0.4])),
            effect(Metric::ThroughputP50, throughput),
            effect(Metric::CompletionP50, completion),
            effect(Metric::Retransmitted, retransmitted),
        ];
        Verdict::of(&spec(["cubic", "bbr"]), &effects, end)
    }

    #[test]
    fn more_throughput_or_less_time_is_better() {
        use Metric::{CompletionP50, ThroughputP50};
        for (throughput, completion, answer, metric, decision) in [
            (Some([0.1, 0.2]), Some([0.1, 0.2]), Answer::Better, ThroughputP50, Choice::Enable),
            (Some([-0.2, -0.1]), None, Answer::Worse, ThroughputP50, Choice::Keep),
            (Some([-0.1, 0.1]), Some([0.1, 0.2]), Answer::NotShown, ThroughputP50, Choice::Wait),
            (Some([-0.004, 0.003]), None, Answer::Equivalent, ThroughputP50, Choice::Keep),
            (None, Some([-0.2, -0.1]), Answer::Better, CompletionP50, Choice::Enable),
            (None, Some([0.1, 0.2]), Answer::Worse, CompletionP50, Choice::Keep),
            (None, None, Answer::Open, ThroughputP50, Choice::Wait),
        ] {
            let verdict = verdict(throughput, completion, Some([-0.001, 0.001]), End::Planned);
            assert_eq!((verdict.answer, verdict.metric), (answer, metric), "{throughput:?}");
            assert_eq!(verdict.decision, decision, "{throughput:?} {completion:?}");
            assert_eq!(verdict.status, u8::from(answer == Answer::Worse));
        }
    }

    /// A region where BBR brings 16 % and retransmits 5 points more was enabled.
    #[test]
    fn a_gain_is_enabled_only_while_the_guardrail_is_likely_kept() {
        let better = Some([0.1, 0.2]);
        for (retransmitted, state, decision, status) in [
            (Some([0.001, 0.01]), "holds", Choice::Enable, 0),
            (Some([0.005, 0.025]), "likely holds", Choice::Enable, 0),
            (None, "open", Choice::Enable, 0),
            (Some([0.012, 0.032]), "likely broken", Choice::Wait, 0),
            (Some([0.0452, 0.0589]), "broken", Choice::Stop, 1),
        ] {
            let verdict = verdict(better, None, retransmitted, End::Planned);
            assert_eq!(verdict.guardrails["retransmitted"], state, "{retransmitted:?}");
            assert_eq!((verdict.decision, verdict.status), (decision, status), "{state}");
            assert_eq!(verdict.answer, Answer::Better);
        }
    }

    #[test]
    fn what_ended_early_is_not_enabled_by_a_planned_interval() {
        let better = Some([0.1, 0.2]);
        let decided = |end| verdict(better, None, Some([-0.001, 0.001]), end);
        assert_eq!(decided(End::Early).decision, Choice::Wait);
        let harmful = decided(End::UnsafeCandidate);
        assert_eq!((harmful.decision, harmful.status), (Choice::Stop, 1));
    }

    #[test]
    fn an_a_a_test_that_shows_a_difference_is_not_passed() {
        for (interval, status) in [([0.1, 0.2], 1), ([-0.1, 0.1], 0)] {
            let effects = [effect(Metric::ThroughputP50, Some(interval))];
            let verdict = Verdict::of(&spec(["bbr", "bbr"]), &effects, End::Planned);
            assert_eq!((verdict.decision, verdict.status), (Choice::AaTest, status));
        }
    }
}
