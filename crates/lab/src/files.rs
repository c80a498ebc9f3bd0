//! The files that a comparison leaves.

use uncork_flow::{FileError, Labelled, RunSeries, TableHead, write_flows, write_series};
use uncork_report::{ColumnSeries, CompareDocument, ReportSeries, compare_html};

use crate::run::{ColumnRuns, Outcome};

/// Names of the files, in the order of [`files`].
pub const FILE_NAMES: [&str; 4] =
    ["report.html", "summary.json", "flows.parquet", "series.parquet"];

/// The contents of the files: the report, the document, the record of each flow, and the inside of
/// the first run of each column.
pub fn files(outcome: &Outcome, document: &CompareDocument) -> Result<[Vec<u8>; 4], FileError> {
    let records = outcome.columns.iter().flat_map(|column| column.runs.iter().flatten());
    let (mut flows, mut series) = (Vec::new(), Vec::new());
    let head = TableHead::default();
    write_flows(&mut flows, &head, records.map(Labelled::plain))?;
    write_series(&mut series, &head, &run_series(outcome))?;
    let html = compare_html(document, &report_series(outcome));
    Ok([html.into_bytes(), document.to_json().into_bytes(), flows, series])
}

fn run_series(outcome: &Outcome) -> Vec<RunSeries<'_>> {
    fn run(column: &ColumnRuns) -> Option<RunSeries<'_>> {
        let sampled = column.sampled.as_ref()?;
        let flows = column.runs.first().map_or(&[][..], Vec::as_slice);
        Some(RunSeries { labels: &[], seed: sampled.seed, flows, points: &sampled.points })
    }
    outcome.columns.iter().filter_map(run).collect()
}

/// What the figures of the report are drawn from.
fn report_series(outcome: &Outcome) -> ReportSeries {
    let column = |column: &ColumnRuns| {
        let sampled = column.sampled.as_ref();
        let completions = column.runs.iter().flatten().filter_map(|flow| flow.completion_ns);
        ColumnSeries {
            label: column.column.to_string(),
            seed: sampled.map_or(0, |run| run.seed),
            cc: controllers(column).map(str::to_owned).collect(),
            points: sampled.map_or_else(Vec::new, |run| run.points.clone()),
            completions_s: completions.map(|nanos| nanos as f64 / 1e9).collect(),
        }
    };
    ReportSeries { columns: outcome.columns.iter().map(column).collect() }
}

/// The controller of each flow of a run, by the flow's index.
fn controllers(column: &ColumnRuns) -> impl Iterator<Item = &str> {
    column.runs.iter().take(1).flatten().map(|flow| flow.cc.as_str())
}

#[cfg(test)]
mod tests {
    use uncork_flow::{read_flows, read_series};
    use uncork_report::EngineFigures;

    use super::*;
    use crate::compare::example;

    #[test]
    fn the_files_hold_what_was_run() {
        let mut spec = example(&["cubic", "bbr3+reno"]);
        spec.sampled = true;
        let outcome = crate::run(&spec, 2, &|_| {}).unwrap();
        let engine = EngineFigures { packets: 1, wall_s: 1.0, packets_per_s: 1 };
        let document = crate::document(&spec, &outcome, "uncork compare".into(), engine);
        let [html, json, flows, series] = files(&outcome, &document).unwrap();

        let flows = read_flows(flows).unwrap();
        let expected: Vec<uncork_flow::FlowRecord> =
            outcome.columns.iter().flat_map(|column| column.runs.concat()).collect();
        assert_eq!(flows, expected);
        assert_eq!(flows.len(), 9);

        let series = read_series(series).unwrap();
        assert!(series.iter().all(|row| row.seed == 1));
        for (group, cc) in [("cubic", "cubic"), ("bbr3+reno", "bbr3"), ("bbr3+reno", "reno")] {
            let rows = series.iter().filter(|row| row.group == group && row.cc == cc).count();
            assert!((400..=1001).contains(&rows), "{group} {cc}: {rows}");
        }

        assert_eq!(json, document.to_json().into_bytes());
        let html = String::from_utf8(html).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.contains("bbr3+reno"));
    }
}
