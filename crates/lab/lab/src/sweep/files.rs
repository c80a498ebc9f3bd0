//! The files of all runs of a scenario: documents, and tables as Parquet.

use std::collections::BTreeMap;

use uncork_flow::{
    FileError, FlowRecord, Label, LabelColumn, Labelled, RequestRecord, RunSeries, SeriesPoint,
    TableHead, write_flows, write_objects, write_series,
};
use uncork_report::lab::{ColumnValue, LabDocument, MatrixColumn};

use super::results::{SweepResults, values};
use super::stored::checksum;
use crate::VERSION;
use crate::scenario::Scenario;

/// A table of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTable {
    /// A row for each flow of each run.
    Flows,
    /// A row for each transfer and each request of each run.
    Objects,
    /// The state of flows over time.
    Series,
}

impl SweepResults {
    /// The contents of [`SWEEP_FILES`](crate::SWEEP_FILES).
    pub fn files(
        &self,
        scenario: &Scenario,
        document: &LabDocument,
    ) -> Result<[Vec<u8>; 7], FileError> {
        let table = |table| self.table(scenario, table);
        let texts = [scenario.text.clone(), document.html(), document.to_json(), document.csv()];
        let [text, html, json, csv] = texts.map(String::into_bytes);
        let flows = table(DataTable::Flows)?;
        let objects = table(DataTable::Objects)?;
        Ok([text, html, json, csv, flows, objects, table(DataTable::Series)?])
    }

    /// A table as Parquet.
    pub fn table(&self, scenario: &Scenario, table: DataTable) -> Result<Vec<u8>, FileError> {
        let (head, cells) = labels_of(scenario);
        let mut file = Vec::new();
        match table {
            DataTable::Flows => write_flows(&mut file, &head, self.records(&cells)),
            DataTable::Objects => write_objects(&mut file, &head, self.objects(&cells)),
            DataTable::Series => write_series(&mut file, &head, &self.series(&cells)),
        }?;
        Ok(file)
    }

    /// The record of every flow with the values of its cell.
    fn records<'a>(
        &'a self,
        cells: &'a [Vec<Label>],
    ) -> impl Iterator<Item = Labelled<'a, &'a FlowRecord>> + Clone {
        self.runs.iter().flat_map(|run| {
            let labels = labels(cells, run.cell);
            run.flows.iter().map(move |row| Labelled { labels, row })
        })
    }

    /// Every transfer and every request, with its flow.
    fn objects<'a>(
        &'a self,
        cells: &'a [Vec<Label>],
    ) -> impl Iterator<Item = Labelled<'a, (&'a FlowRecord, RequestRecord)>> {
        self.runs.iter().flat_map(|run| {
            let labels = labels(cells, run.cell);
            let of_flow = move |flow: &'a FlowRecord| {
                let objects = transfer(flow).into_iter().chain(run.requests_of(flow).copied());
                objects.map(move |object| Labelled { labels, row: (flow, object) })
            };
            run.flows.iter().flat_map(of_flow)
        })
    }

    fn series<'a>(&'a self, cells: &'a [Vec<Label>]) -> Vec<RunSeries<'a>> {
        let flows: BTreeMap<(usize, u64), &[FlowRecord]> =
            self.runs.iter().map(|run| ((run.cell, run.seed), run.flows.as_slice())).collect();
        let run = |(cell, seed, points): &'a (usize, u64, Vec<SeriesPoint>)| RunSeries {
            labels: labels(cells, *cell),
            seed: *seed,
            flows: flows.get(&(*cell, *seed)).copied().unwrap_or_default(),
            points,
        };
        self.series.iter().map(run).collect()
    }
}

fn labels(cells: &[Vec<Label>], cell: usize) -> &[Label] {
    cells.get(cell).map_or(&[], Vec::as_slice)
}

/// A single-transfer flow as an object.
fn transfer(flow: &FlowRecord) -> Option<RequestRecord> {
    Some(RequestRecord {
        flow: flow.flow,
        start_ns: flow.start_ns,
        first_byte_ns: flow.first_byte_ns,
        completion_ns: flow.completion_ns,
        size_bytes: flow.size_bytes?,
        bytes_delivered: flow.bytes_delivered,
    })
}

/// The leading columns of the tables, and their content for each cell.
fn labels_of(scenario: &Scenario) -> (TableHead, Vec<Vec<Label>>) {
    let columns: Vec<(usize, MatrixColumn)> = scenario
        .axes
        .iter()
        .enumerate()
        .flat_map(|(nth, axis)| axis.columns().into_iter().map(move |column| (nth, column)))
        .collect();
    let keys = scenario.axes.iter();
    let keys = keys.map(|axis| LabelColumn { name: axis.key.clone(), is_number: false });
    let others = columns.iter().map(|(_, column)| LabelColumn {
        name: column.name.clone(),
        is_number: matches!(column.values.first(), Some(ColumnValue::Number(_))),
    });
    let metadata = [
        ("uncork.version", VERSION.to_owned()),
        ("uncork.scenario.name", scenario.name.clone()),
        ("uncork.scenario.hash", checksum(scenario.text.as_bytes())),
        ("uncork.scenario.text", scenario.text.clone()),
    ];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
    let cell = |cell: usize| {
        let point = &scenario.cells[cell].point;
        let texts = values(scenario, cell).into_iter().map(Label::Text);
        let others = columns.iter().map(|(axis, column)| match column.values.get(point[*axis]) {
            Some(ColumnValue::Number(number)) => Label::Number(*number),
            Some(ColumnValue::Text(text)) => Label::Text(text.clone()),
            None => Label::Number(None),
        });
        texts.chain(others).collect()
    };
    let cells = (0..scenario.cells.len()).map(cell).collect();
    (TableHead { labels: keys.chain(others).collect(), metadata }, cells)
}
