//! Results as comma-separated values, in long form for data frames.

use super::document::{Cell, ClassResult, ColumnValue, LabDocument, Metric};
use crate::csv_text::csv_text;
use crate::number::text;

/// Columns after those of the matrix.
const COLUMNS: [&str; 10] =
    ["class", "cc", "flows", "finished", "metric", "unit", "value", "low", "high", "n"];

impl LabDocument {
    /// A header line, and a line per metric, class and cell: the cell's value on each axis of the
    /// matrix, as text and as numbers, then the class and the estimate in the document's units. Unknown
    /// interval limits are empty.
    pub fn csv(&self) -> String {
        csv_text(|csv| {
            let keys = self.axes.iter().map(|axis| axis.key.as_str());
            let columns = self.axes.iter().flat_map(|axis| &axis.columns);
            let columns = columns.map(|column| column.name.as_str());
            csv.write_record(keys.chain(columns).chain(COLUMNS))?;
            for cell in &self.cells {
                for class in &cell.classes {
                    for metric in &class.metrics {
                        csv.write_record(record(self, cell, class, metric))?;
                    }
                }
            }
            Ok(())
        })
    }
}

fn record(
    document: &LabDocument,
    cell: &Cell,
    class: &ClassResult,
    metric: &Metric,
) -> Vec<String> {
    let number = |value: f64| text(value, 6);
    let estimate = metric.estimate;
    let points = || document.axes.iter().zip(&cell.point);
    let axes = points().map(|(axis, n)| axis.values.get(*n).cloned().unwrap_or_default());
    let columns = points().flat_map(|(axis, n)| {
        axis.columns.iter().map(|column| match column.values.get(*n) {
            Some(ColumnValue::Number(Some(value))) => value.to_string(),
            Some(ColumnValue::Text(text)) => text.clone(),
            Some(ColumnValue::Number(None)) | None => String::new(),
        })
    });
    let rest = [
        class.class.clone(),
        class.cc.clone(),
        class.flows.to_string(),
        class.finished.to_string(),
        metric.name.clone(),
        metric.unit.clone(),
        number(estimate.value),
        estimate.low.map(number).unwrap_or_default(),
        estimate.high.map(number).unwrap_or_default(),
        estimate.n.to_string(),
    ];
    axes.chain(columns).chain(rest).collect()
}
