//! The results of all cells as one table of text, shared by the terminal and the page.

use super::document::{Cell, ClassResult, LabDocument, Metric};
use crate::number::{Unit, byte_unit, rate_unit, three, time_unit};

/// A row for each class of each cell.
pub(super) struct Results {
    /// Headings of what tells the rows apart.
    pub(super) labels: Vec<String>,
    /// Headings of the figures; neighbours of one group share it.
    pub(super) columns: Vec<ResultColumn>,
    /// The rows, in the order of the cells.
    pub(super) rows: Vec<ResultRow>,
}

/// One column of figures.
pub(super) struct ResultColumn {
    /// `completion, s`, or `goodput` where the group has one column.
    pub(super) group: String,
    /// `p50`, or the unit where the group has one column.
    pub(super) name: String,
    key: (String, String),
    size: f64,
}

/// One class of one cell.
pub(super) struct ResultRow {
    /// What tells it from others.
    pub(super) labels: Vec<String>,
    /// One for each column, empty where nothing was measured.
    pub(super) cells: Vec<Option<ResultCell>>,
}

/// One figure in print.
pub(super) struct ResultCell {
    /// The figure.
    pub(super) value: String,
    /// Its interval, `4.31–4.58`, unless both ends print as the figure itself.
    pub(super) interval: Option<String>,
}

impl Results {
    pub(super) fn of(document: &LabDocument) -> Self {
        let columns = columns(document);
        let several = |of: fn(&ClassResult) -> &str| {
            let mut names = classes(document).map(|(_, class)| of(class));
            let first = names.next();
            names.any(|name| Some(name) != first)
        };
        let with_class = several(|class| &class.class);
        let mut labels: Vec<String> =
            varied(document).map(|at| document.axes[at].name.clone()).collect();
        labels.extend(with_class.then(|| "class".to_owned()));
        labels.extend(["controller", "finished"].map(str::to_owned));
        let row = |(cell, class): (&Cell, &ClassResult)| ResultRow {
            labels: row_labels(document, cell, class, with_class),
            cells: columns.iter().map(|column| column.cell(class)).collect(),
        };
        let rows = classes(document).map(row).collect();
        Self { labels, columns, rows }
    }
}

impl ResultColumn {
    fn cell(&self, class: &ClassResult) -> Option<ResultCell> {
        let estimate = class.metrics.iter().find(|metric| key(metric) == self.key)?.estimate;
        let print = |value: f64| three(value / self.size);
        let value = print(estimate.value);
        let interval = estimate.low.zip(estimate.high).map(|(low, high)| (print(low), print(high)));
        let interval = interval.filter(|(low, high)| *low != value || *high != value);
        Some(ResultCell { interval: interval.map(|(low, high)| format!("{low}–{high}")), value })
    }
}

fn classes(document: &LabDocument) -> impl Iterator<Item = (&Cell, &ClassResult)> {
    document.cells.iter().flat_map(|cell| cell.classes.iter().map(move |class| (cell, class)))
}

/// Axes that tell cells apart. What a controller's axis says, the controller's column says too.
fn varied(document: &LabDocument) -> impl Iterator<Item = usize> {
    let axes = document.axes.iter().enumerate();
    axes.filter(|(_, axis)| axis.values.len() > 1 && axis.name != "cc").map(|(at, _)| at)
}

fn row_labels(
    document: &LabDocument,
    cell: &Cell,
    class: &ClassResult,
    with_class: bool,
) -> Vec<String> {
    let value = |at: usize| {
        let value = cell.point.get(at).and_then(|n| document.axes[at].values.get(*n));
        value.cloned().unwrap_or_default()
    };
    let mut labels: Vec<String> = varied(document).map(value).collect();
    labels.extend(with_class.then(|| class.class.clone()));
    labels.push(class.cc.clone());
    labels.push(format!("{}/{}", class.finished, class.flows));
    labels
}

fn key(metric: &Metric) -> (String, String) {
    (metric.name.clone(), metric.unit.clone())
}

/// `completion_p50` as `completion` and `p50`: a quantity and what it is of its distribution.
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

/// All metrics of all classes, in the order of their appearance.
fn columns(document: &LabDocument) -> Vec<ResultColumn> {
    let metrics: Vec<&Metric> = classes(document).flat_map(|(_, class)| &class.metrics).collect();
    let mut keys: Vec<(String, String)> = Vec::new();
    for metric in &metrics {
        if !keys.contains(&key(metric)) {
            keys.push(key(metric));
        }
    }
    keys.into_iter().map(|key| column(key, &metrics)).collect()
}

fn column(key: (String, String), metrics: &[&Metric]) -> ResultColumn {
    let (quantity, statistic) = split(&key.0);
    let kin =
        metrics.iter().filter(|metric| split(&metric.name).0 == quantity && metric.unit == key.1);
    let values: Vec<f64> = kin.map(|metric| metric.estimate.value).collect();
    let unit = unit(&key.1, values.iter().fold(0.0, |most: f64, value| most.max(value.abs())));
    let (name, size) = unit.map_or((key.1.as_str(), 1.0), |unit| (unit.name, unit.size));
    let title = spelled(quantity);
    let (group, name) = match (statistic, name) {
        ("", unit) => (title, unit.to_owned()),
        (statistic, "") => (title, statistic.to_owned()),
        (statistic, unit) => (format!("{title}, {unit}"), statistic.to_owned()),
    };
    ResultColumn { group, name, key, size }
}

/// The multiple of a base unit in which values up to `most` read best.
fn unit(base: &str, most: f64) -> Option<Unit> {
    match base {
        "bit/s" => Some(rate_unit(most)),
        "B" => Some(byte_unit(most)),
        "s" => Some(time_unit(most)),
        _ => None,
    }
}

/// A figure with its unit: three digits, in the multiple in which it reads best. `base` is a unit of
/// documents; of `bit/s`, `B` and `s` there are multiples: 4.4 of `s` is `4.40 s`.
pub fn quantity(value: f64, base: &str) -> String {
    let unit = unit(base, value);
    let (name, size) = unit.map_or((base, 1.0), |unit| (unit.name, unit.size));
    format!("{} {name}", three(value / size)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
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
