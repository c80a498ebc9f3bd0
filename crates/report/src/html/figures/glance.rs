//! The whole comparison in one picture.

use super::Figure;
use crate::document::{ColumnResult, CompareDocument, Workload};
use crate::number::{Unit, rate_unit, short, time_unit};
use crate::svg::{Axis, Range, RangeChart, RangePanel};
use crate::words;

/// Completion (or goodput) and queueing delay of every column, side by side.
pub(super) fn figure(document: &CompareDocument) -> Figure {
    let results = &document.results;
    let mut panels = Vec::new();
    if matches!(document.workload, Workload::Size { .. }) {
        panels.push(panel(
            results,
            "completion",
            "p10, p50 and p90; shorter is better",
            &time_unit,
            |r| r.completion_s.map(|c| (c.p10, c.p50, c.p90)),
        ));
    }
    panels.push(panel(results, "goodput", "median; more is better", &rate_unit, |r| {
        Some((r.goodput_bps as f64, r.goodput_bps as f64, r.goodput_bps as f64))
    }));
    panels.push(panel(results, "queueing delay", "p50 to p95; less is better", &time_unit, |r| {
        r.queue_ms.map(|queue| (queue.p50 / 1e3, queue.p50 / 1e3, queue.p95 / 1e3))
    }));
    let rows = results.iter().map(|r| r.cc.clone()).collect();
    let title = "Completion, goodput and queueing delay by controller".to_owned();
    let description = "Dots mark medians, bars the ranges; the summary table has the figures.";
    let chart = RangeChart { title, description: description.to_owned(), rows, panels };
    Figure {
        heading: "At a glance".to_owned(),
        svg: chart.render(),
        caption: format!(
            "Dots and the figures above them are medians over {}; bars span the percentiles named \
             above each panel. All axes begin at zero.",
            words::counted(document.seeds, "seed")
        ),
        source: String::new(),
    }
}

fn panel(
    results: &[ColumnResult],
    name: &str,
    hint: &str,
    unit: &dyn Fn(f64) -> Unit,
    range: impl Fn(&ColumnResult) -> Option<(f64, f64, f64)>,
) -> RangePanel {
    let ranges: Vec<_> = results.iter().map(range).collect();
    let max = ranges.iter().flatten().map(|(_, _, high)| *high).fold(0.0, f64::max);
    let unit = unit(max);
    let print = |(low, middle, high): (f64, f64, f64)| Range {
        low: low / unit.size,
        middle: middle / unit.size,
        high: high / unit.size,
        label: short(middle / unit.size),
    };
    RangePanel {
        hint: hint.to_owned(),
        axis: Axis::from_zero(&format!("{name}, {}", unit.name), max / unit.size),
        ranges: ranges.into_iter().map(|range| range.map(print)).collect(),
    }
}
