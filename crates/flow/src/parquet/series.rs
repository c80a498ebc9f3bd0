//! The table of series.

use std::io::Write;

use super::read::{Row, read_table};
use super::write::Cells::{Count, MaybeCount, Text};
use super::write::{Column, write_table};
use crate::error::FileError;
use crate::series::{RunSeries, SeriesPoint, SeriesRow};

/// A point and the run that it belongs to.
type Tagged<'a> = (&'a RunSeries<'a>, &'a SeriesPoint);

fn columns<'a>() -> [Column<Tagged<'a>>; 15] {
    [
        Column { name: "group", cells: Text(|(run, _)| run.group) },
        Column { name: "cc", cells: Text(cc) },
        Column { name: "seed", cells: Count(|(run, _)| run.seed) },
        Column { name: "flow", cells: Count(|(_, point)| u64::from(point.flow)) },
        Column { name: "time_ns", cells: Count(|(_, point)| point.time_ns) },
        Column { name: "state", cells: Text(|(_, point)| point.state) },
        Column { name: "cwnd_bytes", cells: Count(|(_, point)| point.cwnd_bytes) },
        Column { name: "inflight_bytes", cells: Count(|(_, point)| point.inflight_bytes) },
        Column { name: "pacing_bps", cells: MaybeCount(|(_, point)| point.pacing_bps) },
        Column { name: "max_bw_bps", cells: MaybeCount(|(_, point)| point.max_bw_bps) },
        Column { name: "min_rtt_ns", cells: MaybeCount(|(_, point)| point.min_rtt_ns) },
        Column { name: "rtt_ns", cells: MaybeCount(|(_, point)| point.rtt_ns) },
        Column { name: "queue_bytes", cells: Count(|(_, point)| point.queue_bytes) },
        Column { name: "delivered_bytes", cells: Count(|(_, point)| point.delivered_bytes) },
        Column { name: "lost_bytes", cells: Count(|(_, point)| point.lost_bytes) },
    ]
}

fn cc<'r>((run, point): &'r Tagged<'_>) -> &'r str {
    run.cc_of_flow.get(point.flow as usize).copied().unwrap_or_default()
}

/// Writes one row per point, one row group per run.
pub fn write_series(out: impl Write + Send, runs: &[RunSeries<'_>]) -> Result<(), FileError> {
    let tagged = |run| move |point| (run, point);
    let groups = runs.iter().map(|run| run.points.iter().map(tagged(run)).collect::<Vec<Tagged>>());
    Ok(write_table(out, &columns(), groups)?)
}

/// Reads what [`write_series`] wrote: the bytes of the file, on the terms of [`super::read_flows`].
pub fn read_series(file: Vec<u8>) -> Result<Vec<SeriesRow>, FileError> {
    read_table(file, series_row)
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
        state: row.text("state")?,
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
    use crate::sample::points;

    fn written(runs: &[RunSeries<'_>]) -> Vec<u8> {
        let mut file = Vec::new();
        write_series(&mut file, runs).unwrap();
        file
    }

    /// The point as it is expected back.
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
    fn points_come_back_with_their_run() {
        let points = points(1_000);
        let mix = ["bbr3", "cubic"];
        let run =
            |group, seed| RunSeries { group, seed, cc_of_flow: mix.to_vec(), points: &points };
        let rows = read_series(written(&[run("one", 1), run("two", u64::MAX)])).unwrap();
        let expected = |group: &str, seed| {
            let row = |point: &SeriesPoint| SeriesRow {
                group: group.to_owned(),
                cc: mix[point.flow as usize].to_owned(),
                seed,
                point: owned(point),
            };
            points.iter().map(row).collect::<Vec<_>>()
        };
        assert!(rows == [expected("one", 1), expected("two", u64::MAX)].concat());
    }

    #[test]
    fn a_flow_without_a_known_controller_has_an_empty_name() {
        let points = points(2);
        let run = RunSeries { group: "g", seed: 1, cc_of_flow: vec!["reno"], points: &points };
        let rows = read_series(written(&[run])).unwrap();
        assert_eq!(rows.iter().map(|row| row.cc.as_str()).collect::<Vec<_>>(), ["reno", ""]);
    }

    #[test]
    fn runs_without_points_leave_no_rows() {
        let run = RunSeries { group: "g", seed: 1, cc_of_flow: vec![], points: &[] };
        assert_eq!(read_series(written(&[run])).unwrap(), []);
        assert_eq!(read_series(written(&[])).unwrap(), []);
    }

    #[test]
    fn equal_rows_give_equal_bytes_and_few_of_them() {
        let points = points(20_000);
        let run =
            RunSeries { group: "g", seed: 1, cc_of_flow: vec!["bbr3", "cubic"], points: &points };
        let file = written(std::slice::from_ref(&run));
        assert_eq!(file, written(&[run]));
        assert!(file.len() < 20_000 * 60, "{} bytes", file.len());
    }

    #[test]
    fn a_table_of_flows_is_none_of_series() {
        let mut file = Vec::new();
        crate::write_flows(&mut file, &[crate::sample::record()]).unwrap();
        assert!(matches!(read_series(file), Err(FileError::MissingColumn("time_ns"))));
    }
}
