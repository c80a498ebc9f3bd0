//! The results of all cells as a text table, for the terminal and the page.

use std::collections::HashSet;

use super::document::{Cell, ClassResult, LabDocument, Metric, chooses_controllers};
use super::priority::{fitting, is_essential};
use crate::number::{Unit, byte_unit, rate_unit, three, time_unit};

/// A row per class and cell.
pub(super) struct ResultRows {
    /// Headings of the label columns.
    pub(super) labels: Vec<String>,
    /// Headings of the figures; adjacent columns of a group share one.
    pub(super) columns: Vec<ResultColumn>,
    /// The rows, in the order of the cells.
    pub(super) rows: Vec<ResultRow>,
}

/// One column of figures.
#[derive(Clone)]
pub(super) struct ResultColumn {
    /// `completion, s`, or `goodput` if the group has one column.
    pub(super) group: String,
    /// `p50`, or the unit if the group has one column.
    pub(super) name: String,
    key: (String, String),
    size: f64,
}

/// A class in a cell.
pub(super) struct ResultRow {
    /// Labels that distinguish it from other rows.
    pub(super) labels: Vec<String>,
    /// One per column, `None` if not measured.
    pub(super) cells: Vec<Option<ResultCell>>,
}

/// A formatted figure.
#[derive(Clone)]
pub(super) struct ResultCell {
    /// The figure.
    pub(super) value: String,
    /// Its interval, `4.31–4.58`, unless both limits print like the figure itself.
    pub(super) interval: Option<String>,
}

impl ResultRows {
    /// All measurements.
    pub(super) fn of(document: &LabDocument) -> Self {
        let columns = columns(document);
        let labels = RowLabels::of(document);
        let row = |(cell, class): (&Cell, &ClassResult)| ResultRow {
            labels: labels.of_row(document, cell, class),
            cells: columns.iter().map(|column| column.cell(class)).collect(),
        };
        let rows = classes(document).map(row).collect();
        Self { labels: labels.headings(document), columns, rows }
    }

    /// The same with only the columns needed for a decision: gains and costs.
    pub(super) fn essential(&self) -> Self {
        let needed = |at: &usize| is_essential(&self.columns[*at].key.0);
        match (0..self.columns.len()).filter(needed).collect::<Vec<_>>() {
            none if none.is_empty() => self.with((0..self.columns.len()).collect()),
            kept => self.with(kept),
        }
    }

    /// The same with as many columns as `fits` allows, without the least important.
    pub(super) fn fitting(&self, fits: impl Fn(&[usize]) -> bool) -> Self {
        let metrics: Vec<&str> = self.columns.iter().map(|column| column.key.0.as_str()).collect();
        self.with(fitting(&metrics, fits))
    }

    /// Only the columns `kept`.
    pub(super) fn with(&self, kept: Vec<usize>) -> Self {
        let rows = self.rows.iter().map(|row| ResultRow {
            labels: row.labels.clone(),
            cells: kept.iter().map(|at| row.cells[*at].clone()).collect(),
        });
        let rows = rows.collect();
        let columns = kept.into_iter().map(|at| self.columns[at].clone()).collect();
        Self { labels: self.labels.clone(), columns, rows }
    }
}

impl ResultColumn {
    fn cell(&self, class: &ClassResult) -> Option<ResultCell> {
        let metric = class.metrics.iter().find(|metric| key(metric) == self.key)?;
        let estimate = metric.estimate;
        if estimate.n == 1 && repeats(class, metric) {
            return None;
        }
        let print = |value: f64| three(value / self.size);
        let value = print(estimate.value);
        let interval = estimate.low.zip(estimate.high).map(|(low, high)| (print(low), print(high)));
        let interval = interval.filter(|(low, high)| *low != value || *high != value);
        Some(ResultCell { interval: interval.map(|(low, high)| format!("{low}–{high}")), value })
    }
}

/// Whether an earlier statistic of the same single sample has the same value.
fn repeats(class: &ClassResult, metric: &Metric) -> bool {
    let earlier = class.metrics.iter().take_while(|other| other.name != metric.name);
    let mut kin = earlier.filter(|other| split(&other.name).0 == split(&metric.name).0);
    kin.any(|other| other.estimate == metric.estimate)
}

fn classes(document: &LabDocument) -> impl Iterator<Item = (&Cell, &ClassResult)> {
    document.cells.iter().flat_map(|cell| cell.classes.iter().map(move |class| (cell, class)))
}

/// The labels that distinguish rows.
struct RowLabels {
    /// Indices of axes.
    axes: Vec<usize>,
    class: bool,
    finished: bool,
}

impl RowLabels {
    fn of(document: &LabDocument) -> Self {
        let several = |of: fn(&ClassResult) -> &str| {
            let mut names = classes(document).map(|(_, class)| of(class));
            let first = names.next();
            names.any(|name| Some(name) != first)
        };
        let axes = document.axes.iter().enumerate();
        let axes = axes.filter(|(_, axis)| axis.values.len() > 1).map(|(at, _)| at);
        let finished = classes(document).any(|(_, class)| !class.endless);
        let mut labels =
            Self { axes: axes.collect(), class: several(|class| &class.class), finished };
        // Omit what the controller's column already shows.
        for at in labels.axes.clone() {
            let others = labels.axes.iter().copied().filter(|other| *other != at).collect();
            let without = Self { axes: others, ..labels };
            if chooses_controllers(&document.axes[at].key) && without.differ(document) {
                labels = without;
            }
        }
        labels
    }

    fn headings(&self, document: &LabDocument) -> Vec<String> {
        let axes = self.axes.iter().map(|at| document.axes[*at].title());
        let rest = [("class", self.class), ("controller", true), ("finished", self.finished)];
        let rest =
            rest.into_iter().filter(|(_, is_shown)| *is_shown).map(|(name, _)| name.to_owned());
        axes.chain(rest).collect()
    }

    fn of_row(&self, document: &LabDocument, cell: &Cell, class: &ClassResult) -> Vec<String> {
        let mut labels = self.names(document, cell, class);
        let finished = if class.endless {
            "–".to_owned()
        } else {
            format!("{}/{}", class.finished, class.flows)
        };
        labels.extend(self.finished.then_some(finished));
        labels
    }

    /// Cell, class and controller.
    fn names(&self, document: &LabDocument, cell: &Cell, class: &ClassResult) -> Vec<String> {
        let value = |at: &usize| {
            let value = cell.point.get(*at).and_then(|n| document.axes[*at].values.get(*n));
            value.cloned().unwrap_or_default()
        };
        let mut names: Vec<String> = self.axes.iter().map(value).collect();
        names.extend(self.class.then(|| class.class.clone()));
        names.push(class.cc.clone());
        names
    }

    /// Whether all rows have different labels.
    fn differ(&self, document: &LabDocument) -> bool {
        let mut seen = HashSet::new();
        classes(document).all(|(cell, class)| seen.insert(self.names(document, cell, class)))
    }
}

fn key(metric: &Metric) -> (String, String) {
    (metric.name.clone(), metric.unit.clone())
}

/// `completion_p50` as `completion` and `p50`: quantity and statistic.
fn split(name: &str) -> (&str, &str) {
    let is_statistic = |part: &str| {
        matches!(part, "mean" | "median" | "min" | "max")
            || part.strip_prefix('p').is_some_and(|n| n.parse::<f64>().is_ok())
    };
    match name.rsplit_once('_') {
        Some((quantity, statistic)) if is_statistic(statistic) => (quantity, statistic),
        _ => (name, ""),
    }
}

/// `queue_delay` as `queue delay`, `rtt` as `RTT`.
fn spelled(quantity: &str) -> String {
    let word = |word: &str| match word {
        "rtt" | "rto" | "rtos" | "ecn" | "ce" => word.to_ascii_uppercase().replace("RTOS", "RTOs"),
        _ => word.to_owned(),
    };
    quantity.split('_').map(word).collect::<Vec<_>>().join(" ")
}

/// All metrics of all classes in order of appearance, without empty ones.
fn columns(document: &LabDocument) -> Vec<ResultColumn> {
    let metrics: Vec<&Metric> = classes(document).flat_map(|(_, class)| &class.metrics).collect();
    let mut keys: Vec<(String, String)> = Vec::new();
    for metric in &metrics {
        if !keys.contains(&key(metric)) {
            keys.push(key(metric));
        }
    }
    let columns = keys.into_iter().map(|key| column(key, &metrics));
    let has_values =
        |column: &ResultColumn| classes(document).any(|(_, class)| column.cell(class).is_some());
    columns.filter(has_values).collect()
}

fn column(key: (String, String), metrics: &[&Metric]) -> ResultColumn {
    let (quantity, statistic) = split(&key.0);
    let kin =
        metrics.iter().filter(|metric| split(&metric.name).0 == quantity && metric.unit == key.1);
    let unit = common_unit(&key.1, kin.map(|metric| metric.estimate.value));
    let (name, size) = unit.map_or((key.1.as_str(), 1.0), |unit| (unit.name, unit.size));
    let title = spelled(quantity);
    let (group, name) = match (statistic, name) {
        ("", unit) => (title, unit.to_owned()),
        (statistic, "") => (title, statistic.to_owned()),
        (statistic, unit) => (format!("{title}, {unit}"), statistic.to_owned()),
    };
    ResultColumn { group, name, key, size }
}

/// The multiple of a base unit for all `values`: that of their geometric mean, so that neither
/// large nor small ones need many digits.
fn common_unit(base: &str, values: impl Iterator<Item = f64>) -> Option<Unit> {
    let logs: Vec<f64> = values.map(f64::abs).filter(|v| *v > 0.0).map(f64::ln).collect();
    let mean = if logs.is_empty() { 0.0 } else { logs.iter().sum::<f64>() / logs.len() as f64 };
    unit(base, if logs.is_empty() { 0.0 } else { mean.exp() })
}

/// The best multiple of a base unit for `value`.
fn unit(base: &str, value: f64) -> Option<Unit> {
    match base {
        "bit/s" => Some(rate_unit(value)),
        "B" => Some(byte_unit(value)),
        "s" => Some(time_unit(value)),
        _ => None,
    }
}

/// A figure with its unit: three digits in the best multiple. `base` is a unit of documents;
/// `bit/s`, `B` and `s` have multiples: 4.4 of `s` is `4.40 s`.
pub fn quantity(value: f64, base: &str) -> String {
    let unit = unit(base, value);
    let (name, size) = unit.map_or((base, 1.0), |unit| (unit.name, unit.size));
    format!("{} {name}", three(value / size)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_use_readable_units() {
        for (value, unit, text) in [
            (4.4271, "s", "4.43 s"),
            (0.0501, "s", "50.1 ms"),
            (0.000_05, "s", "50.0 µs"),
            (17_870_000.0, "bit/s", "17.9 Mbit/s"),
            (96_000.0, "bit/s", "96.0 kbit/s"),
            (9.4e9, "bit/s", "9.40 Gbit/s"),
            (0.0, "%", "0 %"),
            (0.001_234, "%", "0.00123 %"),
            (123.4, "", "123"),
        ] {
            assert_eq!(quantity(value, unit), text);
        }
    }
}
