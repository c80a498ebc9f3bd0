//! The table of series.

use std::io::Write;

use super::read::{Row, read_table};
use super::write::Cells::{Count, MaybeCount, Text};
use super::write::{Column, column, write_table};
use crate::error::FileError;
use crate::labelled::{Labelled, TableHead};
use crate::record::FlowRecord;
use crate::series::{RunSeries, SeriesPoint, SeriesRow};

/// A point and its run.
type Tagged<'a> = (&'a RunSeries<'a>, &'a SeriesPoint);

/// The schema in the file's metadata.
const SCHEMA: &str = "uncork.series/1";

pub(super) fn columns<'a>() -> [Column<Tagged<'a>>; 15] {
    [
        column("group", Text(group)),
        column("cc", Text(cc)),
        column("seed", Count(|(run, _)| run.seed)),
        column("flow", Count(|(_, point)| u64::from(point.flow))),
        column("time_ns", Count(|(_, point)| point.time_ns)),
        column("state", Text(|(_, point)| point.state)),
        column("cwnd_bytes", Count(|(_, point)| point.cwnd_bytes)),
        column("inflight_bytes", Count(|(_, point)| point.inflight_bytes)),
        column("pacing_bps", MaybeCount(|(_, point)| point.pacing_bps)),
        column("max_bw_bps", MaybeCount(|(_, point)| point.max_bw_bps)),
        column("min_rtt_ns", MaybeCount(|(_, point)| point.min_rtt_ns)),
        column("rtt_ns", MaybeCount(|(_, point)| point.rtt_ns)),
        column("queue_bytes", Count(|(_, point)| point.queue_bytes)),
        column("delivered_bytes", Count(|(_, point)| point.delivered_bytes)),
        column("lost_bytes", Count(|(_, point)| point.lost_bytes)),
    ]
}

fn group<'r>(tagged: &'r Tagged<'_>) -> &'r str {
    flow(tagged).map_or("", |flow| &flow.group)
}

fn cc<'r>(tagged: &'r Tagged<'_>) -> &'r str {
    flow(tagged).map_or("", |flow| &flow.cc)
}

fn flow<'r>((run, point): &'r Tagged<'_>) -> Option<&'r FlowRecord> {
    run.flows.get(point.flow as usize)
}

/// Writes one row per point and one row group per run, after the columns of `head`.
pub fn write_series(
    out: impl Write + Send,
    head: &TableHead,
    runs: &[RunSeries<'_>],
) -> Result<(), FileError> {
    let groups = runs.iter().map(|run| {
        let row = |point| Labelled { labels: run.labels, row: (run, point) };
        run.points.iter().map(row).collect::<Vec<Labelled<'_, Tagged<'_>>>>()
    });
    Ok(write_table(out, (SCHEMA, head), &columns(), groups)?)
}

/// Parses the bytes of a file from [`write_series`], with the restrictions of
/// [`super::read_flows`].
pub fn read_series(file: Vec<u8>) -> Result<Vec<SeriesRow>, FileError> {
    read_table(file, None, series_row)
}

fn series_row(row: &mut Row) -> Result<SeriesRow, FileError> {
    Ok(SeriesRow {
        group: row.text("group")?,
        cc: row.text("cc")?,
        seed: row.count("seed")?,
        point: point(row)?,
    })
}

fn point(row: &mut Row) -> Result<SeriesPoint<String>, FileError> {
    Ok(SeriesPoint {
        time_ns: row.count("time_ns")?,
        flow: row.index("flow")?,
        state: row.text("state")?.into(),
        cwnd_bytes: row.count("cwnd_bytes")?,
        inflight_bytes: row.count("inflight_bytes")?,
        pacing_bps: row.maybe_count("pacing_bps")?,
        max_bw_bps: row.maybe_count("max_bw_bps")?,
        min_rtt_ns: row.maybe_count("min_rtt_ns")?,
        rtt_ns: row.maybe_count("rtt_ns")?,
        queue_bytes: row.count("queue_bytes")?,
        delivered_bytes: row.count("delivered_bytes")?,
        lost_bytes: row.count("lost_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{points, record};

    fn flow(group: &str, cc: &str) -> FlowRecord {
        FlowRecord { group: group.into(), cc: cc.into(), ..record() }
    }

    fn written(runs: &[RunSeries<'_>]) -> Vec<u8> {
        let mut file = Vec::new();
        write_series(&mut file, &TableHead::default(), runs).unwrap();
        file
    }

    /// The point as it should read back.
    fn owned(point: &SeriesPoint) -> SeriesPoint<String> {
        SeriesPoint {
            state: point.state.to_owned(),
            time_ns: point.time_ns,
            flow: point.flow,
            cwnd_bytes: point.cwnd_bytes,
            inflight_bytes: point.inflight_bytes,
            pacing_bps: point.pacing_bps,
            max_bw_bps: point.max_bw_bps,
            min_rtt_ns: point.min_rtt_ns,
            rtt_ns: point.rtt_ns,
            queue_bytes: point.queue_bytes,
            delivered_bytes: point.delivered_bytes,
            lost_bytes: point.lost_bytes,
        }
    }

    #[test]
    fn points_read_back_with_their_run() {
        let points = points(1_000);
        let mix = ["bbr3", "cubic"];
        let [one, two] = ["one", "two"].map(|group| mix.map(|cc| flow(group, cc)));
        let run = |flows, seed| RunSeries { labels: &[], seed, flows, points: &points };
        let rows = read_series(written(&[run(&one, 1), run(&two, u64::MAX)])).unwrap();
        let expected = |group: &str, seed| {
            let row = |point: &SeriesPoint| SeriesRow {
                group: group.into(),
                cc: mix[point.flow as usize].into(),
                seed,
                point: owned(point),
            };
            points.iter().map(row).collect::<Vec<_>>()
        };
        assert!(rows == [expected("one", 1), expected("two", u64::MAX)].concat());
    }

    #[test]
    fn flow_with_unknown_controller_has_an_empty_name() {
        let points = points(2);
        let flows = [flow("g", "reno")];
        let run = RunSeries { labels: &[], seed: 1, flows: &flows, points: &points };
        let rows = read_series(written(&[run])).unwrap();
        assert_eq!(rows.iter().map(|row| row.cc.as_str()).collect::<Vec<_>>(), ["reno", ""]);
    }

    #[test]
    fn runs_without_points_leave_no_rows() {
        let run = RunSeries { labels: &[], seed: 1, flows: &[], points: &[] };
        assert_eq!(read_series(written(&[run])).unwrap(), []);
        assert_eq!(read_series(written(&[])).unwrap(), []);
    }

    #[test]
    fn equal_rows_give_equal_and_small_files() {
        let points = points(20_000);
        let flows = [flow("g", "bbr3"), flow("g", "cubic")];
        let run = RunSeries { labels: &[], seed: 1, flows: &flows, points: &points };
        let file = written(std::slice::from_ref(&run));
        assert_eq!(file, written(&[run]));
        assert!(file.len() < 20_000 * 60, "{} bytes", file.len());
    }

    #[test]
    fn table_of_flows_is_not_a_table_of_series() {
        let mut file = Vec::new();
        let record = record();
        crate::write_flows(
            &mut file,
            &TableHead::default(),
            [Labelled::plain(&record)].into_iter(),
        )
        .unwrap();
        assert!(matches!(read_series(file), Err(FileError::MissingColumn("time_ns"))));
    }
}
