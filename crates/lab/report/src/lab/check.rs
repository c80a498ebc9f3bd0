//! Consistency of a document.

use super::answer::{Answer, AnswerKind};
use super::document::{Cell, Estimate, LabDocument, Threshold};
use super::figure::{Curve, EstimateCurve, Figure, HeatMap, Lines, Plot};
use crate::json::DocumentError;

impl LabDocument {
    /// Checks that cells lie in the matrix, answers name cells, classes and controllers of the document, intervals
    /// contain their values, figures have unique names and data of the right shape, and numbers are finite.
    pub fn check(&self) -> Result<(), DocumentError> {
        let problems = self.cells.iter().enumerate().filter_map(|(n, cell)| self.cell(n, cell));
        let problems = problems.chain(self.thresholds_problem());
        let problems = problems.chain(self.answers.iter().enumerate().filter_map(|(n, answer)| {
            self.answer(answer).map(|problem| format!("answer {n} {problem}"))
        }));
        let problems = problems.chain(self.figures.iter().enumerate().filter_map(|(n, figure)| {
            let twin = self.figures[..n].iter().any(|other| other.id == figure.id);
            let problem =
                if twin { Some("has the name of another".to_owned()) } else { plot(figure) };
            problem.map(|problem| format!("figure {:?} {problem}", figure.id))
        }));
        problems.take(1).next().map_or(Ok(()), |problem| Err(DocumentError::Content(problem)))
    }

    fn cell(&self, n: usize, cell: &Cell) -> Option<String> {
        let inside = cell.point.iter().zip(&self.axes).all(|(at, axis)| *at < axis.values.len());
        if cell.point.len() != self.axes.len() || !inside {
            return Some(format!("cell {n} lies at {:?}, outside of the matrix", cell.point));
        }
        let metrics = cell.classes.iter().flat_map(|class| &class.metrics);
        let mut bad = metrics.filter(|metric| !is_sound(&metric.estimate));
        bad.next()
            .map(|metric| format!("cell {n}: {} is not a number with an interval", metric.name))
    }

    fn answer(&self, answer: &Answer) -> Option<String> {
        let Answer { cell, of, value, baseline_value, ratio, prices, .. } = answer;
        let Some(place) = self.cells.get(*cell) else { return Some(format!("has no cell {cell}")) };
        let is_class = |name: &str| place.classes.iter().any(|known| known.class == name);
        let of = of.split(", ").filter(|of| !of.is_empty());
        let others = prices.iter().map(|price| price.class.as_str()).filter(|it| !it.is_empty());
        let own = [answer.class.as_str(), &answer.baseline_class];
        let mut classes = own.into_iter().chain(of).chain(others);
        if let Some(class) = classes.find(|class| !is_class(class)) {
            return Some(format!("is of a class {class:?}, which is not in cell {cell}"));
        }
        for name in [&answer.choice, &answer.baseline] {
            let mut axes = self.axes.iter().flat_map(|axis| &axis.values);
            let mut ccs = place.classes.iter().flat_map(|class| [&class.cc, &class.class]);
            if !axes.any(|value| value == name) && !ccs.any(|known| known == name) {
                return Some(format!("compares {name:?}, which is not a controller or class"));
            }
        }
        let numbers = [*value, *baseline_value].into_iter().flatten();
        let prices = prices.iter().flat_map(|price| [price.value, price.baseline_value]);
        let is_decided = matches!(answer.kind, AnswerKind::Better | AnswerKind::Worse);
        match ratio {
            _ if !all_finite(numbers.chain(prices)) => {
                Some("has a value that is not a number".into())
            }
            Some(ratio) if !is_sound(ratio) => Some("has a ratio outside of its interval".into()),
            Some(ratio) if is_decided && ratio.low.is_none() => {
                Some("decides without interval".into())
            }
            _ if answer.kind == AnswerKind::ByOrder && answer.shares_by_order().is_none() => {
                Some("has no shares over the orders of starts".into())
            }
            _ => None,
        }
    }

    fn thresholds_problem(&self) -> Option<String> {
        let mut bad = self.thresholds.iter().filter(|threshold| {
            let Threshold { measured, low, high, bound, .. } = threshold;
            let measured = measured.map(|value| Estimate { value, low: *low, high: *high, n: 0 });
            !bound.is_finite() || measured.is_some_and(|measured| !is_sound(&measured))
        });
        bad.next().map(|it| format!("threshold {:?} is not a number with an interval", it.text))
    }
}

/// The problem in a figure's data.
fn plot(figure: &Figure) -> Option<String> {
    if let Plot::HeatMap(map) = &figure.plot
        && !is_rectangle(map)
    {
        let (rows, columns) = (map.y.len(), map.x.len());
        return Some(format!("needs {rows} rows of {columns} values"));
    }
    if !all_finite(numbers(&figure.plot).into_iter()) {
        return Some("has a value that is not a number".to_owned());
    }
    if let Plot::Lines(lines) = &figure.plot
        && let Some(x) = beyond_names(lines)
    {
        return Some(format!("has a point at {x}, which has no name"));
    }
    let disordered = curves(&figure.plot).find(|(_, points)| !points.is_sorted_by_key(|(x, _)| *x));
    if let Some((label, _)) = disordered {
        return Some(format!("has a curve {label:?} with x that does not ascend"));
    }
    let Plot::Cdf(cdf) = &figure.plot else { return None };
    let climbs = |points: &[(f64, f64)]| {
        points.is_sorted_by_key(|(_, share)| *share)
            && points.iter().all(|(_, share)| (0.0..=1.0).contains(share))
    };
    let bad = cdf.curves.iter().find(|curve| !climbs(&curve.points))?;
    Some(format!("has a distribution {:?} that does not climb from 0 to 1", bad.label))
}

/// The x position of a point outside the axis's names.
fn beyond_names(lines: &Lines) -> Option<f64> {
    let named = |x: f64| (0..lines.x_names.len()).any(|n| (n as f64 - x).abs() < f64::EPSILON);
    let mut points = lines.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
    points.find(|x| !lines.x_names.is_empty() && !named(*x))
}

/// Names and points of all curves.
fn curves(plot: &Plot) -> impl Iterator<Item = (&str, Vec<(f64, f64)>)> {
    let plain: Vec<&Curve> = match plot {
        Plot::Cdf(cdf) => cdf.curves.iter().collect(),
        Plot::TimeSeries(series) => series.panels.iter().flat_map(|panel| &panel.curves).collect(),
        _ => Vec::new(),
    };
    let estimates: &[EstimateCurve] =
        if let Plot::Lines(lines) = plot { &lines.curves } else { &[] };
    let plain = plain.into_iter().map(|curve| (curve.label.as_str(), curve.points.clone()));
    let pairs = |curve: &EstimateCurve| curve.points.iter().map(|p| (p.x, p.y)).collect();
    plain.chain(estimates.iter().map(move |curve| (curve.label.as_str(), pairs(curve))))
}

fn is_rectangle(map: &HeatMap) -> bool {
    map.values.len() == map.y.len() && map.values.iter().all(|row| row.len() == map.x.len())
}

fn numbers(plot: &Plot) -> Vec<f64> {
    let pairs =
        |points: &[(f64, f64)]| -> Vec<f64> { points.iter().flat_map(|(x, y)| [*x, *y]).collect() };
    match plot {
        Plot::HeatMap(map) => map.values.iter().flatten().flatten().copied().collect(),
        Plot::Cdf(cdf) => cdf.curves.iter().flat_map(|curve| pairs(&curve.points)).collect(),
        Plot::Bars(bars) => {
            let bars = bars.groups.iter().flat_map(|group| &group.bars);
            bars.flat_map(|bar| [Some(bar.value), bar.low, bar.high]).flatten().collect()
        }
        Plot::Lines(lines) => {
            let points = lines.curves.iter().flat_map(|curve| &curve.points);
            points.flat_map(|p| [Some(p.x), Some(p.y), p.low, p.high]).flatten().collect()
        }
        Plot::TimeSeries(series) => {
            let curves = series.panels.iter().flat_map(|panel| &panel.curves);
            let marks = series.marks.iter().map(|(at, _)| *at);
            let limits = series.panels.iter().flat_map(|panel| &panel.limits);
            let spans = series.states.iter().flat_map(|row| &row.spans);
            let curves = curves.flat_map(|curve| pairs(&curve.points));
            let curves = curves.chain(marks).chain(limits.map(|limit| limit.value));
            curves.chain(spans.flat_map(|(_, from, to)| [*from, *to])).collect()
        }
        Plot::Table(_) => Vec::new(),
    }
}

/// Whether an estimate is finite and lies in its interval.
fn is_sound(Estimate { value, low, high, .. }: &Estimate) -> bool {
    let (low, high) = (low.unwrap_or(*value), high.unwrap_or(*value));
    // The last of six digits is rounded.
    let slack = 1e-5 * value.abs();
    all_finite([*value, low, high].into_iter()) && low <= value + slack && *value <= high + slack
}

fn all_finite(mut numbers: impl Iterator<Item = f64>) -> bool {
    numbers.all(f64::is_finite)
}
