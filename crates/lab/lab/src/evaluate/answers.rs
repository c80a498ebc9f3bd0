//! Thresholds, and comparison with published results.

use uncork_report::lab::{self, Estimate, Judgement, Published, Threshold, Verdict};

use super::results::RunResults;
use super::units::{change, scaled, shown_change, shown_estimate};
use crate::scenario::{self, Expectation};

/// Thresholds by cell, with one row per bound.
pub(crate) fn thresholds(results: &RunResults<'_>) -> Vec<Threshold> {
    let of_one = |threshold: &scenario::Threshold| {
        let cells = results.cells(&threshold.of, &[]);
        cells
            .into_iter()
            .flat_map(|cell| threshold_in(results, threshold, cell))
            .collect::<Vec<_>>()
    };
    results.scenario.thresholds.iter().flat_map(of_one).collect()
}

fn threshold_in(
    results: &RunResults<'_>,
    threshold: &scenario::Threshold,
    cell: usize,
) -> Vec<Threshold> {
    let scenario::Threshold { of, quantity, over, minus, expected, .. } = threshold;
    let measured = match minus {
        Some(minus) => results.difference(cell, of, *quantity, minus),
        None => results.estimate(&[cell], of, *quantity, over.as_ref()),
    };
    let (unit, scale) = quantity.unit(over.is_some());
    let (classes, cc) = who(results, cell, of);
    let absent = match measured {
        Some(_) => String::new(),
        None => format!(
            " ({})",
            results.absence(&[cell], of, *quantity, over.as_ref().or(minus.as_ref()))
        ),
    };
    let row = |words: &str, bound: f64, holds: fn(f64, f64) -> bool| Threshold {
        text: format!("{} {words}{absent}", threshold.measures),
        class: classes.join(", "),
        cell: results.label(cell, &scenario::Selection::default(), (&classes, &cc)),
        cc: cc.clone(),
        measured: measured.map(|estimate| estimate.value * scale),
        low: measured.and_then(|estimate| estimate.low).map(|low| low * scale),
        high: measured.and_then(|estimate| estimate.high).map(|high| high * scale),
        bound: bound * scale,
        unit: unit.into(),
        passed: measured.is_some_and(|estimate| holds(estimate.value, bound)),
    };
    let (least, most) = (format!("≥ {}", threshold.min_text), format!("≤ {}", threshold.max_text));
    let least = expected.min.map(|min| row(&least, min, |value, min| value >= min));
    let most = expected.max.map(|max| row(&most, max, |value, max| value <= max));
    least.into_iter().chain(most).collect()
}

/// The classes with flows that `of` combines in a cell, and their controllers.
fn who<'a>(
    results: &RunResults<'a>,
    cell: usize,
    of: &scenario::Selection,
) -> (Vec<&'a str>, String) {
    let classes = results.scenario.cells[cell].classes.iter().filter(|class| of.takes(class));
    let names: Vec<&str> = classes.clone().map(|class| class.name.as_str()).collect();
    let mut ccs: Vec<&str> = Vec::new();
    for cc in classes.flat_map(|class| &class.ccs) {
        if of.cc.as_ref().is_none_or(|only| only == cc) && !ccs.contains(&cc.as_str()) {
            ccs.push(cc);
        }
    }
    (names, ccs.join(", "))
}

/// Results compared with published ones.
pub(crate) fn published(results: &RunResults<'_>) -> Vec<Published> {
    results.scenario.published.iter().map(|published| compare(results, published)).collect()
}

fn compare(results: &RunResults<'_>, published: &scenario::Published) -> Published {
    let scenario::Published { of, quantity, over, .. } = published;
    let cells = results.cells(of, &[]);
    let measured = results.estimate(&cells, of, *quantity, over.as_ref());
    let (unit, scale) = quantity.unit(over.is_some());
    Published {
        what: published.what.clone(),
        published: published.value.clone(),
        measured: match measured {
            None => results.absence(&cells, of, *quantity, over.as_ref()),
            Some(estimate) if published.as_change => shown_change(&estimate),
            Some(estimate) => shown_estimate(&scaled(estimate, scale), unit),
        },
        judgement: published.range.as_ref().map(|range| Judgement {
            verdict: range.bounds.verdict(measured),
            range: range.bounds.shown(|bound| {
                if published.as_change { change(bound) } else { lab::quantity(bound * scale, unit) }
            }),
            range_from: range.from.clone(),
        }),
        source: published.source.clone(),
        note: published.note.clone(),
    }
}

impl Expectation {
    /// Whether `value` is within the bounds.
    fn holds(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }

    /// Whether an estimate's interval is within the bounds, outside, or neither.
    pub(super) fn verdict(&self, estimate: Option<Estimate>) -> Verdict {
        let interval = estimate.and_then(|estimate| estimate.low.zip(estimate.high));
        let Some((low, high)) = interval else { return Verdict::Open };
        let below = self.min.is_some_and(|min| high < min);
        let above = self.max.is_some_and(|max| low > max);
        match self.holds(low) && self.holds(high) {
            true => Verdict::Agrees,
            false if below || above => Verdict::Differs,
            false => Verdict::Open,
        }
    }

    /// The bounds as text.
    fn shown(&self, bound: impl Fn(f64) -> String) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{} to {}", bound(min), bound(max)),
            (Some(min), None) => format!("≥ {}", bound(min)),
            (None, Some(max)) => format!("≤ {}", bound(max)),
            (None, None) => String::new(),
        }
    }
}
