//! Comparisons of controllers, by class and cell.

use uncork_decide::{EffectState, interval_state};
use uncork_flow::FlowRecord;
use uncork_report::lab::{
    Answer, AnswerKind, Better, Estimate, LabDocument, Payer, Price, Transfers,
};
use uncork_units::TimeDelta;

use super::results::RunResults;
use super::starts;
use crate::scenario::{Axis, Carries, Class, Metric, Quantity, Selection, Statistic};

/// Ratios this close to 1 count as equal.
const ALIKE: f64 = 0.01;
/// A cost is only reported above these differences, and if it is at least this multiple of the
/// other's.
const PRICE_RATIO: f64 = 1.2;
const PRICE_RETRANSMITTED: f64 = 0.001;
const PRICE_QUEUE_S: f64 = 0.002;
/// Of more classes that share links, each is compared with the first only: pairs grow with the square.
const MAX_EACH_WITH_EACH: usize = 8;
/// Minimum reported difference of Jain's index.
const PRICE_JAIN: f64 = 0.05;
/// Minimum reported change for other classes, if the interval excludes 1.
const PRICE_OTHERS: f64 = 0.05;

/// Compares each choice of controllers with the first one, within each class. Also returns a sentence for each choice that is not
/// compared, because it has another number of flows.
pub(crate) fn answers(results: &RunResults<'_>) -> (Vec<Answer>, Vec<String>) {
    let mut not_compared = Vec::new();
    let pairs = pairs(results, &mut not_compared);
    (answered(results, &pairs), not_compared)
}

/// Adds what classes on the same links get next to each other.
pub(crate) fn add_between_classes(results: &RunResults<'_>, document: &mut LabDocument) {
    let cells = 0..results.scenario.cells.len();
    let pairs: Vec<_> =
        cells.flat_map(|cell| between(results, cell, &mut document.not_compared)).collect();
    document.answers.extend(answered(results, &pairs));
}

fn answered(results: &RunResults<'_>, pairs: &[ComparedPair<'_>]) -> Vec<Answer> {
    let of_pair = |pair: &ComparedPair<'_>| -> Vec<Answer> {
        pair.cares().into_iter().map(|q| pair.answer(results, q)).collect()
    };
    pairs.iter().flat_map(of_pair).collect()
}

/// A class under one choice, and under the baseline.
struct ComparedPair<'a> {
    class: &'a Class,
    /// The class under the baseline.
    over: &'a Class,
    /// Whether both sides share a link in the same runs.
    competes: bool,
    place: String,
    /// Classes that have the choice, if `class` is not one of them.
    of: String,
    choice: ComparedSamples,
    baseline: ComparedSamples,
}

struct ComparedSamples {
    name: String,
    cell: usize,
    flows: Selection,
}

fn pairs<'a>(results: &RunResults<'a>, not_compared: &mut Vec<String>) -> Vec<ComparedPair<'a>> {
    let scenario = results.scenario;
    let cells = || 0..scenario.cells.len();
    // What flows take from each other comes first: a sum that stays the same says nothing of it.
    let mut pairs: Vec<ComparedPair<'a>> = cells().flat_map(|cell| within(results, cell)).collect();
    let axes = scenario.axes.iter().enumerate();
    let choices = axes.filter_map(|(nth, axis)| Some((nth, axis, chosen(axis)?)));
    for (nth, axis, classes) in choices {
        pairs.extend(along(results, (nth, axis), &classes, not_compared));
    }
    pairs
}

/// The classes with controllers that `axis` selects; `None` if it varies anything else than them
/// and their number.
pub(super) fn chosen(axis: &Axis) -> Option<Vec<String>> {
    let mut classes = Vec::new();
    for key in axis.key.split(',') {
        let (class, place) = key.trim().strip_prefix("flow.")?.rsplit_once('.')?;
        match place {
            "cc" => classes.push(class.trim_matches('"').to_owned()),
            "count" => {}
            _ => return None,
        }
    }
    (!classes.is_empty()).then_some(classes)
}

/// Cells along a controller axis, each compared with the cell of the first value.
fn along<'a>(
    results: &RunResults<'a>,
    (nth, axis): (usize, &Axis),
    chosen: &[String],
    not_compared: &mut Vec<String>,
) -> Vec<ComparedPair<'a>> {
    let cells = &results.scenario.cells;
    let mut pairs = Vec::new();
    for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.point[nth] > 0) {
        let mut point = cell.point.clone();
        point[nth] = 0;
        let Some(base) = cells.iter().position(|cell| cell.point == point) else { continue };
        let fixed = Selection { at: vec![(nth, cell.point[nth])], ..Selection::default() };
        for class in cell.classes.iter().filter(|class| !class.background) {
            let of = if chosen.contains(&class.name) { String::new() } else { chosen.join(", ") };
            let side = |value: usize, cell| ComparedSamples {
                name: axis.values[value].clone(),
                cell,
                flows: Selection { class: Some(class.name.clone()), ..Selection::default() },
            };
            let (choice, baseline) = (side(cell.point[nth], at), side(0, base));
            let over = cells[base].classes.iter().find(|over| over.name == class.name);
            let over = over.unwrap_or(class);
            // One flow has more than one of two: that is not due to the controller.
            if of.is_empty() && class.flows != over.flows {
                let (flows, others) = (class.flows, over.flows);
                let names = (&choice.name, &baseline.name);
                let sentence = format!(
                    "{} is not compared with {}: {flows} flows against {others}.",
                    names.0, names.1
                );
                say_once(not_compared, sentence);
                continue;
            }
            pairs.push(ComparedPair {
                class,
                over,
                competes: false,
                place: results.label(at, &fixed, (&[], "")),
                of,
                choice,
                baseline,
            });
        }
    }
    pairs
}

/// Controllers within a class, each compared with the first.
fn within<'a>(results: &RunResults<'a>, cell: usize) -> Vec<ComparedPair<'a>> {
    let mut pairs = Vec::new();
    for class in results.scenario.cells[cell].classes.iter().filter(|class| !class.background) {
        let side = |cc: &String| ComparedSamples {
            name: cc.clone(),
            cell,
            flows: Selection {
                class: Some(class.name.clone()),
                cc: Some(cc.clone()),
                ..Selection::default()
            },
        };
        let Some((first, others)) = class.ccs.split_first() else { continue };
        for cc in others {
            let place = results.label(cell, &Selection::default(), (&[], ""));
            let (choice, baseline) = (side(cc), side(first));
            let (over, competes, of) = (class, !class.own_links, String::new());
            pairs.push(ComparedPair { class, over, competes, place, of, choice, baseline });
        }
    }
    pairs
}

/// Stream classes on the same links with different controllers or paths, each compared with the next. Media with a rate of their
/// own take no more than that.
fn between<'a>(
    results: &RunResults<'a>,
    at: usize,
    not_compared: &mut Vec<String>,
) -> Vec<ComparedPair<'a>> {
    let cell = &results.scenario.cells[at];
    let plans = cell.classes.iter().zip(&cell.plan.flows);
    let streams = plans.filter(|(class, plan)| {
        !class.background
            && class.carries == Carries::Streams
            && class.ccs.len() == 1
            && !plan.work.is_media()
    });
    let streams: Vec<_> = streams.collect();
    let side = |class: &Class| ComparedSamples {
        name: class.ccs[0].clone(),
        cell: at,
        flows: Selection { class: Some(class.name.clone()), ..Selection::default() },
    };
    let mut pairs = Vec::new();
    let is_first_alone = streams.len() > MAX_EACH_WITH_EACH;
    if is_first_alone {
        let (count, first) = (streams.len(), &streams[0].0.name);
        let sentence = format!("Of {count} classes each is compared with {first} only.");
        say_once(not_compared, sentence);
    }
    let baselines = if is_first_alone { 1 } else { streams.len() };
    for (nth, (class, plan)) in streams.iter().enumerate().take(baselines) {
        for (over, other) in &streams[nth + 1..] {
            let differs = class.ccs != over.ccs || plan.rtt != other.rtt || plan.path != other.path;
            if differs && cell.plan.meet(plan, other) {
                let [own, of_other] = [cell.span(class, plan), cell.span(over, other)];
                if !is_together(own, of_other) {
                    say_once(not_compared, apart([class, over], [own, of_other]));
                    continue;
                }
                let place = results.label(at, &Selection::default(), (&[], ""));
                let (choice, baseline) = (side(class), side(over));
                let of = String::new();
                pairs.push(ComparedPair {
                    class,
                    over,
                    competes: true,
                    place,
                    of,
                    choice,
                    baseline,
                });
            }
        }
    }
    pairs
}

/// In each cell of other axes a sentence comes again.
fn say_once(not_compared: &mut Vec<String>, sentence: String) {
    if !not_compared.contains(&sentence) {
        not_compared.push(sentence);
    }
}

/// Whether two classes send at the same time, but for a tenth: only then do their rates say what they take from each other.
fn is_together([from, to]: [TimeDelta; 2], [other_from, other_to]: [TimeDelta; 2]) -> bool {
    let common = to.min(other_to) - from.max(other_from);
    let all = to.max(other_to) - from.min(other_from);
    common >= all - all.divided_by(10)
}

fn apart([class, over]: [&Class; 2], [own, other]: [[TimeDelta; 2]; 2]) -> String {
    let [from, to, other_from, other_to] =
        [own[0], own[1], other[0], other[1]].map(TimeDelta::as_secs_f64);
    format!(
        "{} is not compared with {}: they send at different times, {from} to {to} s and {other_from} to {other_to} s.",
        class.name, over.name
    )
}

/// The metrics by which a class is compared.
fn cares(class: &Class) -> Vec<Quantity> {
    let of = |metric, statistic| Quantity { metric, statistic };
    match class.carries {
        Carries::Audio | Carries::Video | Carries::RecordedAudio => vec![
            of(Metric::PlaybackLatency, Statistic::Quantile(0.9)),
            of(Metric::Stutters, Statistic::Mean),
        ],
        Carries::Streams => vec![of(Metric::Goodput, Statistic::Sum)],
        Carries::Objects | Carries::Commands | Carries::RecordedObjects => {
            vec![of(Metric::Completion, Statistic::Quantile(0.5))]
        }
    }
}

/// The costs of a class.
fn costs(class: &Class) -> Vec<Quantity> {
    let all = [
        Quantity { metric: Metric::Retransmitted, statistic: Statistic::Mean },
        Quantity { metric: Metric::QueueDelay, statistic: Statistic::Quantile(0.95) },
        Quantity { metric: Metric::Jain, statistic: Statistic::Mean },
    ];
    // For connections that come and go, goodputs are not comparable.
    let stays = class.flows < u64::MAX;
    let has = |cost: &Quantity| class.has(cost.metric) && (stays || cost.metric != Metric::Jain);
    all.into_iter().filter(has).collect()
}

impl ComparedPair<'_> {
    /// Sums of rates are only comparable between equal numbers of flows of different runs.
    fn cares(&self) -> Vec<Quantity> {
        let is_sum_fair =
            self.choice.cell != self.baseline.cell && self.class.flows == self.over.flows;
        let fair = |quantity: Quantity| match quantity.statistic {
            Statistic::Sum if !is_sum_fair => Quantity { statistic: Statistic::Mean, ..quantity },
            _ => quantity,
        };
        cares(self.class).into_iter().map(fair).collect()
    }

    fn answer(&self, results: &RunResults<'_>, quantity: Quantity) -> Answer {
        let (unit, scale) = quantity.unit(false);
        let [value, baseline_value] =
            [&self.choice, &self.baseline].map(|side| side.value(results, quantity));
        let ratio = ratio(results, quantity, &self.choice, &self.baseline);
        let less_is_better = quantity.metric.better() != Some(Better::Higher);
        // Objects of equal sizes have equal shares, also if one is done earlier.
        let shares = self.competes && self.class.carries == Carries::Streams;
        let [share, baseline_share] = [&self.choice, &self.baseline]
            .map(|side| side.share_of_flow(results).filter(|_| shares));
        let [share_range, baseline_share_range] =
            [(self.class, &self.choice), (self.over, &self.baseline)].map(|(class, side)| {
                if shares { side.share_over_orders(results, class) } else { None }
            });
        let answer = Answer {
            class: self.class.name.clone(),
            baseline_class: self.over.name.clone(),
            cell: self.choice.cell,
            place: self.place.clone(),
            choice: self.choice.name.clone(),
            baseline: self.baseline.name.clone(),
            of: self.of.clone(),
            metric: quantity.name(),
            unit: unit.into(),
            less_is_better,
            value: value.map(|value| value * scale),
            baseline_value: baseline_value.map(|value| value * scale),
            share,
            baseline_share,
            share_range,
            baseline_share_range,
            ratio,
            kind: match ratio {
                Some(ratio) => kind(&ratio, less_is_better),
                None => self.kind_of_unfinished(results, quantity),
            },
            transfers: self.choice.transfers(results),
            baseline_transfers: self.baseline.transfers(results),
            prices: self.prices(results, ratio.as_ref()),
        };
        if answer.is_by_order() { undecided_by_order(answer) } else { answer }
    }

    /// The result if one median is infinite or both are nothing, without a ratio: based on both intervals.
    fn kind_of_unfinished(&self, results: &RunResults<'_>, quantity: Quantity) -> AnswerKind {
        let samples = |side: &ComparedSamples| results.samples(&[side.cell], &side.flows, quantity);
        let (choice, baseline) = (samples(&self.choice), samples(&self.baseline));
        match choice.value().zip(baseline.value()) {
            None if choice.value().or(baseline.value()).is_none() => return AnswerKind::Unknown,
            Some((0.0, 0.0)) => return AnswerKind::Alike,
            _ => {}
        }
        match choice.limits().zip(baseline.limits()) {
            Some(((_, high), (low, _))) if high < low => AnswerKind::Better,
            Some(((low, _), (_, high))) if high < low => AnswerKind::Worse,
            _ => AnswerKind::Open,
        }
    }

    fn prices(&self, results: &RunResults<'_>, ratio: Option<&Estimate>) -> Vec<Price> {
        let own = costs(self.class).into_iter().filter(|cost| {
            // Of flows that compete, the fairness among all of them counts.
            !self.competes || cost.metric != Metric::Jain
        });
        let own = own.filter_map(|cost| self.own_price(results, cost));
        let slowest = self.slowest(results, ratio);
        slowest
            .into_iter()
            .chain(own)
            .chain(self.unevenness(results))
            .chain(self.others(results))
            .collect()
    }

    /// The slowest tenth of objects, as a cost of the side with the better median, or no worse one.
    fn slowest(&self, results: &RunResults<'_>, median: Option<&Estimate>) -> Option<Price> {
        if cares(self.class) != [completion(0.5)] {
            return None;
        }
        let sides = [&self.choice, &self.baseline];
        let tail = tail(results, sides)?;
        if median.and_then(settled) == Some(tail) {
            return None;
        }
        let payer = if tail == AnswerKind::Worse { Payer::Choice } else { Payer::Baseline };
        let [value, baseline] = sides.map(|side| side.value(results, completion(0.9)));
        Some(price("", completion(0.9), (value?, baseline?), Some(payer)))
    }

    /// Streams that share a link unevenly, as a cost of the side that gets more.
    fn unevenness(&self, results: &RunResults<'_>) -> Option<Price> {
        let [class, over] = [self.class, self.over];
        if !self.competes || ![class, over].iter().all(|one| one.carries == Carries::Streams) {
            return None;
        }
        let classes: &[&str] =
            if class.name == over.name { &[&class.name] } else { &[&class.name, &over.name] };
        let jain = results.jain(self.choice.cell, classes)?;
        let goodput = Quantity { metric: Metric::Goodput, statistic: Statistic::Mean };
        let [own, other] = [&self.choice, &self.baseline].map(|side| side.value(results, goodput));
        let (values, payer) = if own? >= other? {
            ((jain, 1.0), Payer::Choice)
        } else {
            ((1.0, jain), Payer::Baseline)
        };
        let payer = (1.0 - jain >= PRICE_JAIN).then_some(payer);
        let jain = Quantity { metric: Metric::Jain, statistic: Statistic::Mean };
        Some(price("", jain, values, payer))
    }

    fn own_price(&self, results: &RunResults<'_>, quantity: Quantity) -> Option<Price> {
        let value = self.choice.value(results, quantity)?;
        let baseline = self.baseline.value(results, quantity)?;
        let is_paid = |paid: f64, than: f64| match quantity.metric {
            Metric::Jain => than - paid >= PRICE_JAIN,
            Metric::Retransmitted => paid - than > PRICE_RETRANSMITTED && paid > than * PRICE_RATIO,
            _ => paid - than > PRICE_QUEUE_S && paid > than * PRICE_RATIO,
        };
        let payer = if is_paid(value, baseline) {
            Some(Payer::Choice)
        } else {
            is_paid(baseline, value).then_some(Payer::Baseline)
        };
        Some(price("", quantity, (value, baseline), payer))
    }

    /// Costs for classes that share links with this one.
    fn others(&self, results: &RunResults<'_>) -> Vec<Price> {
        if self.choice.cell == self.baseline.cell || !self.of.is_empty() {
            return Vec::new();
        }
        let cell = &results.scenario.cells[self.choice.cell];
        let plans = || cell.classes.iter().zip(&cell.plan.flows);
        let Some((_, own)) = plans().find(|(class, _)| class.name == self.class.name) else {
            return Vec::new();
        };
        let met = plans()
            .filter(|(class, plan)| class.name != self.class.name && cell.plan.meet(own, plan));
        let priced = met.flat_map(|(class, _)| {
            cares(class).into_iter().filter_map(|quantity| self.other(results, class, quantity))
        });
        priced.collect()
    }

    fn other(&self, results: &RunResults<'_>, class: &Class, quantity: Quantity) -> Option<Price> {
        let side = |cell| ComparedSamples {
            name: String::new(),
            cell,
            flows: Selection { class: Some(class.name.clone()), ..Selection::default() },
        };
        let (choice, baseline) = (side(self.choice.cell), side(self.baseline.cell));
        let values = (choice.value(results, quantity)?, baseline.value(results, quantity)?);
        let less_is_better = quantity.metric.better() != Some(Better::Higher);
        let ratio = ratio(results, quantity, &choice, &baseline);
        let notable = ratio.filter(|ratio| (ratio.value - 1.0).abs() >= PRICE_OTHERS);
        // The median alone may be that of times in which the link is empty.
        let notable = notable
            .filter(|found| !is_against_the_tail(results, quantity, found, [&choice, &baseline]));
        let payer = notable.and_then(|ratio| match kind(&ratio, less_is_better) {
            AnswerKind::Worse => Some(Payer::Choice),
            AnswerKind::Better => Some(Payer::Baseline),
            _ => None,
        });
        Some(price(&class.name, quantity, values, payer))
    }
}

impl ComparedSamples {
    /// The mean percentage that one of these flows has of what all flows of their link deliver.
    fn share_of_flow(&self, results: &RunResults<'_>) -> Option<f64> {
        let share = Quantity { metric: Metric::Share, statistic: Statistic::Mean };
        self.per_flow(results, self.value(results, share)?)
    }

    /// The minimum and the maximum such percentage of a run, if it depends on who starts first.
    fn share_over_orders(&self, results: &RunResults<'_>, class: &Class) -> Option<[f64; 2]> {
        let found = results.dependences(self.cell);
        let [low, high] = starts::range(found, &class.name, &self.name)?;
        self.per_flow(results, low).zip(self.per_flow(results, high)).map(<[f64; 2]>::from)
    }

    /// The percentage that is one flow's part of these flows' share.
    fn per_flow(&self, results: &RunResults<'_>, share: f64) -> Option<f64> {
        let runs = results.of_cell(self.cell);
        let flows: usize = runs.iter().map(|run| self.selected(&run.flows).count()).sum();
        (flows > 0).then(|| 100.0 * share * runs.len() as f64 / flows as f64)
    }

    fn selected<'b>(&self, flows: &'b [FlowRecord]) -> impl Iterator<Item = &'b FlowRecord> {
        let Selection { class, cc, .. } = &self.flows;
        flows.iter().filter(move |flow| {
            class.as_ref().is_none_or(|class| flow.group == *class)
                && cc.as_ref().is_none_or(|cc| flow.cc == *cc)
        })
    }

    fn value(&self, results: &RunResults<'_>, quantity: Quantity) -> Option<f64> {
        let estimate = results.estimate(&[self.cell], &self.flows, quantity, None)?;
        Some(estimate.value)
    }

    fn transfers(&self, results: &RunResults<'_>) -> Transfers {
        let live = results.of_cell(self.cell).iter().filter(|run| !run.is_dead());
        let flows = live.flat_map(|run| self.selected(&run.flows));
        flows.filter(|flow| flow.size_bytes.is_some()).fold(Transfers::default(), |sum, flow| {
            let finished = u64::from(flow.completion_ns.is_some());
            Transfers { all: sum.all + 1, finished: sum.finished + finished }
        })
    }
}

/// The answer if the order of starts decides: it names no side that gets more.
fn undecided_by_order(mut answer: Answer) -> Answer {
    answer.kind = AnswerKind::ByOrder;
    let jain = Quantity { metric: Metric::Jain, statistic: Statistic::Mean }.name();
    for price in answer.prices.iter_mut().filter(|price| price.metric == jain) {
        price.payer = None;
    }
    answer
}

fn ratio(
    results: &RunResults<'_>,
    quantity: Quantity,
    choice: &ComparedSamples,
    baseline: &ComparedSamples,
) -> Option<Estimate> {
    let at = &results.scenario.cells[baseline.cell].point;
    let over = Selection { at: at.iter().copied().enumerate().collect(), ..baseline.flows.clone() };
    results.estimate(&[choice.cell], &choice.flows, quantity, Some(&over))
}

fn completion(quantile: f64) -> Quantity {
    Quantity { metric: Metric::Completion, statistic: Statistic::Quantile(quantile) }
}

/// What the slowest tenth of objects says of two sides: better, worse or nothing.
fn tail(results: &RunResults<'_>, [choice, baseline]: [&ComparedSamples; 2]) -> Option<AnswerKind> {
    settled(&ratio(results, completion(0.9), choice, baseline)?)
}

/// Which side is faster by this ratio of times, if the difference is large enough to be reported.
fn settled(ratio: &Estimate) -> Option<AnswerKind> {
    let kind = kind(ratio, true);
    let is_settled = matches!(kind, AnswerKind::Better | AnswerKind::Worse);
    (is_settled && (ratio.value - 1.0).abs() >= PRICE_OTHERS).then_some(kind)
}

/// Whether the slowest tenth of objects says the opposite of their median.
fn is_against_the_tail(
    results: &RunResults<'_>,
    quantity: Quantity,
    median: &Estimate,
    sides: [&ComparedSamples; 2],
) -> bool {
    quantity == completion(0.5)
        && tail(results, sides).is_some_and(|tail| tail != kind(median, true))
}

fn price(
    class: &str,
    quantity: Quantity,
    (value, baseline): (f64, f64),
    payer: Option<Payer>,
) -> Price {
    let (unit, scale) = quantity.unit(false);
    Price {
        class: class.to_owned(),
        metric: quantity.name(),
        unit: unit.into(),
        less_is_better: quantity.metric.better() != Some(Better::Higher),
        value: value * scale,
        baseline_value: baseline * scale,
        payer,
    }
}

/// The result for this ratio, by the rules of `uncork-decide`. A difference of less than 1 % counts as none.
fn kind(ratio: &Estimate, less_is_better: bool) -> AnswerKind {
    let gain = ratio.low.zip(ratio.high).map(|(low, high)| {
        let [low, high] = [low, high].map(f64::ln);
        if less_is_better { [-high, -low] } else { [low, high] }
    });
    match interval_state(gain, ALIKE) {
        EffectState::Better | EffectState::Worse if (ratio.value - 1.0).abs() < ALIKE => {
            AnswerKind::Alike
        }
        EffectState::Better => AnswerKind::Better,
        EffectState::Worse => AnswerKind::Worse,
        EffectState::Equivalent => AnswerKind::Alike,
        EffectState::Inconclusive | EffectState::NoInterval => AnswerKind::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, interval: Option<(f64, f64)>) -> Estimate {
        let (low, high) = interval.unzip();
        Estimate { value, low, high, n: 10 }
    }

    #[test]
    fn ratio_is_better_worse_alike_or_open() {
        for (value, interval, less, expected) in [
            (0.5, Some((0.4, 0.6)), true, AnswerKind::Better),
            (0.5, Some((0.4, 0.6)), false, AnswerKind::Worse),
            (1.4, None, true, AnswerKind::Open),
            (0.99, Some((0.985, 0.998)), true, AnswerKind::Better),
            (0.995, Some((0.985, 0.998)), true, AnswerKind::Alike),
            (1.0, Some((0.995, 1.004)), true, AnswerKind::Alike),
            (1.0, Some((0.9, 1.2)), true, AnswerKind::Open),
            (1.3, Some((0.9, 1.6)), false, AnswerKind::Open),
            (1.0, None, true, AnswerKind::Open),
        ] {
            assert_eq!(kind(&estimate(value, interval), less), expected, "{value} {interval:?}");
        }
    }

    #[test]
    fn controller_axes_vary_only_controllers_and_counts() {
        let axis = |key: &str| Axis {
            key: key.into(),
            name: String::new(),
            values: Vec::new(),
            written: Vec::new(),
            parts: Vec::new(),
        };
        let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(chosen(&axis("flow.main.cc")), named(&["main"]));
        assert_eq!(chosen(&axis("flow.a.cc, flow.b.cc,flow.a.count")), named(&["a", "b"]));
        for key in ["path.loss", "flow.a.count", "flow.a.cc,path.rtt", "flow.a.cc,flow.a.start"] {
            assert_eq!(chosen(&axis(key)), None, "{key}");
        }
    }
}
