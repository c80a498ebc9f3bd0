//! The results table: each class and controller of each cell.

use uncork_flow::FlowRecord;
use uncork_report::lab::{Cell, ClassResult, Estimate, Metric as Measured};

use super::outcome::RunOutcome;
use super::results::RunResults;
use super::starts::{self, Dependence};
use super::units::scaled;
use crate::scenario::{Class, Metric, Quantity, Selection, Statistic};

const P50: Statistic = Statistic::Quantile(0.5);
const P90: Statistic = Statistic::Quantile(0.9);
const P95: Statistic = Statistic::Quantile(0.95);
const P99: Statistic = Statistic::Quantile(0.99);
const P10: Statistic = Statistic::Quantile(0.1);
const P1: Statistic = Statistic::Quantile(0.01);

/// Metrics reported for every class that has them.
const REPORTED: [(Metric, &[Statistic]); 18] = [
    (Metric::Completion, &[P50, P90, P99]),
    (Metric::FirstByte, &[P50]),
    (Metric::PlaybackLatency, &[P50, P90, P99]),
    (Metric::Stutters, &[Statistic::Mean]),
    (Metric::Stalled, &[Statistic::Mean]),
    (Metric::PlayedRate, &[Statistic::Mean]),
    (Metric::Switches, &[Statistic::Mean]),
    (Metric::Bandwidth, &[P50, P10, P1]),
    (Metric::Goodput, &[P50, Statistic::Mean, Statistic::Sum]),
    (Metric::Utilisation, &[Statistic::Mean]),
    (Metric::Share, &[Statistic::Mean]),
    (Metric::Jain, &[Statistic::Mean]),
    (Metric::Rtt, &[P50, P95]),
    (Metric::RttTime, &[P50, P95]),
    (Metric::QueueDelay, &[P50, P95]),
    (Metric::Retransmitted, &[Statistic::Mean]),
    (Metric::Dropped, &[Statistic::Mean]),
    (Metric::Timeouts, &[Statistic::Mean]),
];

/// The results of every cell.
pub(crate) fn cells(results: &RunResults<'_>) -> Vec<Cell> {
    (0..results.scenario.cells.len()).map(|cell| of_cell(results, cell)).collect()
}

fn of_cell(results: &RunResults<'_>, cell: usize) -> Cell {
    let described = &results.scenario.cells[cell];
    let members = described.classes.iter().flat_map(|class| {
        let mut ccs = class.ccs.clone();
        ccs.sort_unstable();
        // The sum over several controllers is only meaningful on a shared link.
        let all = (ccs.len() > 1 && !class.own_links).then_some((class, None));
        all.into_iter().chain(ccs.into_iter().map(move |cc| (class, Some(cc))))
    });
    let by_order = results.dependences(cell);
    let classes = members.map(|(class, cc)| of_class(results, cell, class, cc, by_order)).collect();
    Cell { point: described.point.clone(), classes }
}

/// The flows of one controller of a class, or of all controllers.
fn of_class(
    results: &RunResults<'_>,
    cell: usize,
    described: &Class,
    cc: Option<String>,
    by_order: &[Dependence],
) -> ClassResult {
    let runs = results.of_cell(cell);
    let class = described.name.clone();
    let of = Selection { class: Some(class.clone()), cc: cc.clone(), ..Selection::default() };
    let is_selected =
        |flow: &&FlowRecord| flow.group == class && cc.as_ref().is_none_or(|cc| flow.cc == *cc);
    let counted = |run: &RunOutcome| {
        let flows = run.flows.iter().filter(is_selected);
        let finished = flows.clone().filter(|flow| flow.completion_ns.is_some()).count();
        (flows.count() as u64, finished as u64)
    };
    let counts = runs.iter().map(counted).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let reported = REPORTED.iter().filter(|(metric, _)| described.has(*metric));
    let quantities = reported.flat_map(|(metric, statistics)| {
        statistics.iter().map(|statistic| Quantity { metric: *metric, statistic: *statistic })
    });
    let measured = |quantity: Quantity| {
        let estimate = results.estimate(&[cell], &of, quantity, None)?;
        let (unit, scale) = quantity.unit(false);
        let estimate = scaled(estimate, scale);
        Some(Measured { name: quantity.name(), unit: unit.into(), estimate })
    };
    let mut metrics: Vec<Measured> = quantities.filter_map(measured).collect();
    // Objects have bandwidths; the share would always be everything.
    let has_objects = metrics.iter().any(|metric| metric.name.starts_with("bandwidth"));
    let alone =
        results.scenario.cells[cell].classes.iter().map(|class| class.ccs.len()).sum::<usize>()
            == 1;
    metrics.retain(|metric| !(has_objects && metric.name.starts_with("goodput")));
    let whole = alone || (cc.is_none() && results.scenario.cells[cell].classes.len() == 1);
    metrics.retain(|metric| !(whole && metric.name.starts_with("share")));
    if let Some(range) = cc.as_ref().and_then(|cc| starts::range(by_order, &class, cc)) {
        add_range(&mut metrics, range);
    }
    // For a single flow the sum is all.
    let single = described.flows == 1 && cc.is_some();
    let repeats = |name: &str| matches!(name, "goodput_p50" | "goodput_mean");
    metrics.retain(|metric| !(single && repeats(&metric.name)));
    let cc = cc.unwrap_or_else(|| described.ccs.join("+"));
    let endless = !described.has(Metric::Completion);
    ClassResult { metrics, class, cc, flows: counts.0, finished: counts.1, endless }
}

/// Adds the minimum and the maximum share in a run after the mean.
fn add_range(metrics: &mut Vec<Measured>, range: [f64; 2]) {
    let Some(at) = metrics.iter().position(|metric| metric.name == "share_mean") else { return };
    let Measured { unit, estimate, .. } = metrics[at].clone();
    let bound = |name: &str, share: f64| {
        let estimate = Estimate { value: 100.0 * share, low: None, high: None, ..estimate };
        Measured { name: name.into(), unit: unit.clone(), estimate }
    };
    let bounds = [bound("share_min", range[0]), bound("share_max", range[1])];
    let rest = metrics.split_off(at + 1);
    metrics.extend(bounds.into_iter().chain(rest));
}
