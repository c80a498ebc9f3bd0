//! The document's cells as a table, with the columns of its CSV.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;
use uncork_report::lab::{Cell, ClassResult, ColumnValue, LabDocument, Metric};

type Row<'a> = (&'a Cell, &'a ClassResult, &'a Metric);

/// A row for each metric of each class and cell.
pub(crate) fn table(document: &LabDocument) -> Result<RecordBatch, ArrowError> {
    let classes =
        document.cells.iter().flat_map(|cell| cell.classes.iter().map(move |class| (cell, class)));
    let rows = classes
        .flat_map(|(cell, class)| class.metrics.iter().map(move |metric| (cell, class, metric)));
    let rows: Vec<Row<'_>> = rows.collect();
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    for (nth, axis) in document.axes.iter().enumerate() {
        columns.push((
            &axis.key,
            texts(&rows, |(cell, ..)| axis.values.get(*cell.point.get(nth)?).map(String::as_str)),
        ));
    }
    for (nth, axis) in document.axes.iter().enumerate() {
        for column in &axis.columns {
            let value = |(cell, ..): &Row<'_>| column.values.get(*cell.point.get(nth)?);
            let is_number = matches!(column.values.first(), Some(ColumnValue::Number(_)));
            let array = if is_number {
                numbers(&rows, |row| match value(row) {
                    Some(ColumnValue::Number(number)) => *number,
                    _ => None,
                })
            } else {
                texts(&rows, |row| match value(row) {
                    Some(ColumnValue::Text(text)) => Some(text.as_str()),
                    _ => None,
                })
            };
            columns.push((&column.name, array));
        }
    }
    columns.extend([
        ("class", texts(&rows, |(_, class, _)| Some(&class.class))),
        ("cc", texts(&rows, |(_, class, _)| Some(&class.cc))),
        ("flows", counts(&rows, |(_, class, _)| class.flows)),
        ("finished", counts(&rows, |(_, class, _)| class.finished)),
        ("metric", texts(&rows, |(.., metric)| Some(&metric.name))),
        ("unit", texts(&rows, |(.., metric)| Some(&metric.unit))),
        ("value", numbers(&rows, |(.., metric)| Some(metric.estimate.value))),
        ("low", numbers(&rows, |(.., metric)| metric.estimate.low)),
        ("high", numbers(&rows, |(.., metric)| metric.estimate.high)),
        ("n", counts(&rows, |(.., metric)| metric.estimate.n)),
    ]);
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
}

fn texts<'a>(rows: &[Row<'a>], value: impl Fn(&Row<'a>) -> Option<&'a str>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<StringArray>())
}

fn numbers(rows: &[Row<'_>], value: impl Fn(&Row<'_>) -> Option<f64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Float64Array>())
}

fn counts(rows: &[Row<'_>], value: impl Fn(&Row<'_>) -> u64) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<UInt64Array>())
}
