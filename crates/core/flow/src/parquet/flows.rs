//! The table of flows.

use std::io::Write;

use super::read::{Row, U32, read_table};
use super::service::{choice, choice_columns, optional_columns, service, service_columns};
use super::start::{start, start_columns};
use super::write::Cells::{Count, MaybeCount, MaybeNumber, Text};
use super::write::{Column, column, grouped, write_table};
use crate::error::FileError;
use crate::labelled::{Labelled, TableHead};
use crate::record::{FlowRecord, LabRecord, Playback, Quantiles};

/// The schema in the file's metadata.
const SCHEMA: &str = "uncork.flows/1";

/// The columns for parts that at least one record `has`. All tables of servers have the same
/// columns, whether or not a policy was used, because they are read together.
pub(super) fn columns<'a>(
    has: impl Fn(fn(&FlowRecord) -> bool) -> bool,
) -> Vec<Column<&'a FlowRecord>> {
    let mut columns = Vec::from(core_columns());
    if has(|flow| flow.lab.is_some()) {
        columns.extend(lab_columns());
    }
    if has(|flow| flow.playback.is_some()) {
        columns.extend(playback_columns());
    }
    let is_service = has(|flow| flow.service.is_some());
    if is_service {
        columns.extend(service_columns());
        columns.extend(optional_columns(&has));
    }
    if is_service || has(|flow| flow.choice.is_some()) {
        columns.extend(choice_columns());
    }
    if has(|flow| flow.start.is_some()) {
        columns.extend(start_columns());
    }
    columns
}

pub(super) fn core_columns<'a>() -> [Column<&'a FlowRecord>; 21] {
    [
        column("engine", Text(|flow| &flow.engine)),
        column("group", Text(|flow| &flow.group)),
        column("cc", Text(|flow| &flow.cc)),
        column("seed", Count(|flow| flow.seed)),
        column("flow", Count(|flow| u64::from(flow.flow))),
        column("start_ns", Count(|flow| flow.start_ns)),
        column("completion_ns", MaybeCount(|flow| flow.completion_ns)),
        column("first_byte_ns", MaybeCount(|flow| flow.first_byte_ns)),
        column("busy_ns", Count(|flow| flow.busy_ns)),
        column("size_bytes", MaybeCount(|flow| flow.size_bytes)),
        column("bytes_delivered", Count(|flow| flow.bytes_delivered)),
        column("bytes_acked", Count(|flow| flow.bytes_acked)),
        column("bytes_sent", Count(|flow| flow.bytes_sent)),
        column("bytes_retransmitted", Count(|flow| flow.bytes_retransmitted)),
        column("packets_sent", Count(|flow| flow.packets_sent)),
        column("packets_lost", Count(|flow| flow.packets_lost)),
        column("packets_marked", Count(|flow| flow.packets_marked)),
        column("timeouts", Count(|flow| flow.timeouts)),
        column("rtt_min_ms", MaybeNumber(|flow| flow.rtt_ms.map(|ms| ms.min))),
        column("rtt_p50_ms", MaybeNumber(|flow| flow.rtt_ms.map(|ms| ms.p50))),
        column("rtt_p95_ms", MaybeNumber(|flow| flow.rtt_ms.map(|ms| ms.p95))),
    ]
}

pub(super) fn lab_columns<'a>() -> [Column<&'a FlowRecord>; 9] {
    [
        column(
            "bytes_delivered_early",
            MaybeCount(|flow| flow.lab.map(|it| it.bytes_delivered_early)),
        ),
        column(
            "packets_dropped_queue",
            MaybeCount(|flow| flow.lab.map(|it| it.packets_dropped_queue)),
        ),
        column(
            "packets_dropped_policer",
            MaybeCount(|flow| flow.lab.map(|it| it.packets_dropped_policer)),
        ),
        column(
            "packets_dropped_random",
            MaybeCount(|flow| flow.lab.map(|it| it.packets_dropped_random)),
        ),
        column("acks_dropped", MaybeCount(|flow| flow.lab.map(|it| it.acks_dropped))),
        column("queue_min_ms", MaybeNumber(|flow| flow.lab().queue_ms.map(|ms| ms.min))),
        column("queue_p50_ms", MaybeNumber(|flow| flow.lab().queue_ms.map(|ms| ms.p50))),
        column("queue_p95_ms", MaybeNumber(|flow| flow.lab().queue_ms.map(|ms| ms.p95))),
        column("queue_p99_ms", MaybeNumber(|flow| flow.lab().queue_p99_ms)),
    ]
}

pub(super) fn playback_columns<'a>() -> [Column<&'a FlowRecord>; 7] {
    [
        column(
            "playback_startup_ns",
            MaybeCount(|flow| flow.playback.and_then(|it| it.startup_ns)),
        ),
        column("playback_played_ns", MaybeCount(|flow| flow.playback.map(|it| it.played_ns))),
        column("playback_stalled_ns", MaybeCount(|flow| flow.playback.map(|it| it.stalled_ns))),
        column("playback_stutters", MaybeCount(|flow| flow.playback.map(|it| it.stutters))),
        column("playback_items", MaybeCount(|flow| flow.playback.map(|it| it.items))),
        column(
            "playback_bitrate_bps",
            MaybeCount(|flow| flow.playback.and_then(|it| it.bitrate_bps)),
        ),
        column("playback_switches", MaybeCount(|flow| flow.playback.map(|it| it.switches))),
    ]
}

/// Writes one row per record, after the columns of `head`. Quantiles have their own columns, such
/// as `rtt_p95_ms` for the 95th percentile of `rtt_ms`. A part that no record has (lab, playback,
/// service, choice, start) has no columns.
pub fn write_flows<'a>(
    out: impl Write + Send,
    head: &TableHead,
    flows: impl Iterator<Item = Labelled<'a, &'a FlowRecord>> + Clone,
) -> Result<(), FileError> {
    let columns = columns(|part| flows.clone().any(|labelled| part(labelled.row)));
    Ok(write_table(out, (SCHEMA, head), &columns, grouped(flows))?)
}

/// Parses the bytes of a file from [`write_flows`], or of another program with columns of the same names.
/// Two columns must be there, `cc` and `bytes_delivered`. Any other column may be missing or null: its value is unknown,
/// or zero if every record has one. Use only for trusted files: the Parquet library panics on some kinds of damage
/// within a page, so use JSON Lines for untrusted records.
pub fn read_flows(file: Vec<u8>) -> Result<Vec<FlowRecord>, FileError> {
    let names: Vec<&str> = columns(|_| true).iter().map(|column| column.name).collect();
    read_table(file, Some(&names), flow)
}

fn flow(row: &mut Row) -> Result<FlowRecord, FileError> {
    row.require("bytes_delivered")?;
    Ok(FlowRecord {
        engine: row.text_if_any("engine")?.unwrap_or_default(),
        group: row.text_if_any("group")?.unwrap_or_default(),
        cc: row.text("cc")?,
        seed: row.count_or_zero("seed")?,
        flow: row.narrow("flow", U32)?.unwrap_or_default(),
        start_ns: row.count_or_zero("start_ns")?,
        completion_ns: row.count_if_any("completion_ns")?,
        first_byte_ns: row.count_if_any("first_byte_ns")?,
        busy_ns: row.count_or_zero("busy_ns")?,
        size_bytes: row.count_if_any("size_bytes")?,
        bytes_delivered: row.count_or_zero("bytes_delivered")?,
        bytes_acked: row.count_or_zero("bytes_acked")?,
        bytes_sent: row.count_or_zero("bytes_sent")?,
        bytes_retransmitted: row.count_or_zero("bytes_retransmitted")?,
        packets_sent: row.count_or_zero("packets_sent")?,
        packets_lost: row.count_or_zero("packets_lost")?,
        packets_marked: row.count_or_zero("packets_marked")?,
        timeouts: row.count_or_zero("timeouts")?,
        rtt_ms: quantiles(row, ["rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms"])?,
        lab: lab(row)?,
        playback: playback(row)?,
        service: service(row)?,
        choice: choice(row)?.map(Box::new),
        start: start(row)?.map(Box::new),
    })
}

/// `None` if the table has no such columns.
fn lab(row: &mut Row) -> Result<Option<LabRecord>, FileError> {
    let Some(bytes_delivered_early) = row.count_if_any("bytes_delivered_early")? else {
        return Ok(None);
    };
    Ok(Some(LabRecord {
        bytes_delivered_early,
        packets_dropped_queue: row.count_or_zero("packets_dropped_queue")?,
        packets_dropped_policer: row.count_or_zero("packets_dropped_policer")?,
        packets_dropped_random: row.count_or_zero("packets_dropped_random")?,
        acks_dropped: row.count_or_zero("acks_dropped")?,
        queue_ms: quantiles(row, ["queue_min_ms", "queue_p50_ms", "queue_p95_ms"])?,
        queue_p99_ms: row.maybe_number("queue_p99_ms")?,
    }))
}

/// `None` if the flow had no playback, or the table has no such columns.
fn playback(row: &mut Row) -> Result<Option<Playback>, FileError> {
    let startup_ns = row.count_if_any("playback_startup_ns")?;
    let bitrate_bps = row.count_if_any("playback_bitrate_bps")?;
    let counts = [
        "playback_played_ns",
        "playback_stalled_ns",
        "playback_stutters",
        "playback_items",
        "playback_switches",
    ];
    let counts: Result<Vec<Option<u64>>, FileError> =
        counts.into_iter().map(|name| row.count_if_any(name)).collect();
    let counts: Option<Vec<u64>> = counts?.into_iter().collect();
    let Some(&[played_ns, stalled_ns, stutters, items, switches]) = counts.as_deref() else {
        return Ok(None);
    };
    let playback =
        Playback { startup_ns, played_ns, stalled_ns, stutters, items, bitrate_bps, switches };
    Ok(Some(playback))
}

/// Three columns. With less than all three values the distribution is unknown: a log has one round-trip time alone.
fn quantiles(row: &mut Row, names: [&'static str; 3]) -> Result<Option<Quantiles>, FileError> {
    let [min, p50, p95] = names.map(|name| row.maybe_number(name));
    let (Some(min), Some(p50), Some(p95)) = (min?, p50?, p95?) else { return Ok(None) };
    Ok(Some(Quantiles { min, p50, p95 }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use proptest::collection::vec;
    use proptest::{prop_assert_eq, proptest};
    use uncork_testkit::assert_message;

    use super::super::write::GROUP_ROWS;
    use super::*;
    use crate::labelled::{Label, LabelColumn};
    use crate::sample::{any_record, choice, record, service};

    fn written(flows: &[FlowRecord]) -> Vec<u8> {
        let mut file = Vec::new();
        write_flows(&mut file, &TableHead::default(), flows.iter().map(Labelled::plain)).unwrap();
        file
    }

    #[test]
    fn no_flows_give_an_empty_table() {
        assert_eq!(read_flows(written(&[])).unwrap(), []);
    }

    #[test]
    fn rows_stay_in_order_across_row_groups() {
        let flows: Vec<_> =
            (0..GROUP_ROWS as u32 + 10).map(|flow| FlowRecord { flow, ..record() }).collect();
        assert!(read_flows(written(&flows)).unwrap() == flows);
    }

    #[test]
    fn equal_rows_give_equal_bytes() {
        let flows = vec![record(); 1_000];
        assert_eq!(written(&flows), written(&flows));
    }

    fn table<'a>(record: &'a FlowRecord, columns: &[Column<&'a FlowRecord>]) -> Vec<u8> {
        let mut file = Vec::new();
        let groups = [vec![Labelled::plain(record)]].into_iter();
        write_table(&mut file, (SCHEMA, &TableHead::default()), columns, groups).unwrap();
        file
    }

    #[test]
    fn other_tables_are_an_error() {
        let mut file = written(&[record()]);
        file.truncate(file.len() - 20);
        assert!(matches!(read_flows(file), Err(FileError::Parquet(_))));
        assert!(matches!(read_flows(Vec::new()), Err(FileError::Parquet(_))));

        let record = record();
        let refused = |case: &str, columns: &[Column<_>]| {
            let error = read_flows(table(&record, columns)).unwrap_err().to_string();
            assert!(error.contains(case), "{error}");
            assert_message!(case, error);
        };
        refused("column cc", &columns(|_| true)[3..]);
        let delivered = || column("bytes_delivered", Count(|_| 1));
        refused("row 1, column cc", &[column("cc", Count(|_| 1)), delivered()]);
        let asn = column("service_asn", Count(|_| 1 << 32));
        let scope = column("service_scope", Text(|_| "response"));
        let cc = column("cc", Text(|_| ""));
        refused("column service_asn", &[cc, delivered(), asn, scope]);
    }

    #[test]
    fn failing_writer_is_an_error() {
        let full: &mut [u8] = &mut [0; 100];
        let record = record();
        let rows = [Labelled::plain(&record)].into_iter();
        assert!(matches!(write_flows(full, &TableHead::default(), rows), Err(FileError::Io(_))));
    }

    /// The column names of the table for `flows`.
    fn names(flows: &[FlowRecord]) -> Vec<String> {
        let reader = SerializedFileReader::new(Bytes::from(written(flows))).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        schema.columns().iter().map(|column| column.name().to_owned()).collect()
    }

    #[test]
    fn part_that_no_record_has_gets_no_columns() {
        let mut rng = uncork_units::Rng::new(1, 0);
        let plain = FlowRecord { lab: None, ..record() };
        let player = FlowRecord { playback: Some(Playback::default()), ..plain.clone() };
        let core: Vec<&str> = core_columns().iter().map(|column| column.name).collect();
        assert_eq!(names(std::slice::from_ref(&plain)), core);
        let simulated = names(&[record(), plain.clone()]);
        assert_eq!(simulated.len(), core.len() + lab_columns().len());
        let server = FlowRecord { service: Some(service(&mut rng)), ..plain.clone() };
        let chosen = FlowRecord { choice: Some(Box::new(choice(&mut rng))), ..server.clone() };
        assert_eq!(names(&[server]), names(&[chosen]));
        let both = names(&[plain.clone(), player.clone()]);
        assert_eq!(both[..core.len()], core);
        assert_eq!(both.len(), core.len() + playback_columns().len());
        assert_eq!(read_flows(written(&[plain.clone(), player.clone()])).unwrap(), [plain, player]);
    }

    #[test]
    fn labels_are_columns_before_the_others() {
        let flows = [record(), record()];
        let labels = [Label::Text("1%".to_owned()), Label::Number(Some(0.01))];
        let rows = [Labelled { labels: &labels, row: &flows[0] }, Labelled::plain(&flows[1])];
        let column = |name: &str, is_number| LabelColumn { name: name.to_owned(), is_number };
        let labels = vec![column("path.loss", false), column("path.loss_fraction", true)];
        let head = TableHead { labels, ..TableHead::default() };
        let mut file = Vec::new();
        write_flows(&mut file, &head, rows.into_iter()).unwrap();
        assert_eq!(read_flows(file.clone()).unwrap(), flows, "labels do not affect the records");
        let texts = read_table(file.clone(), None, |row| row.text("path.loss")).unwrap();
        assert_eq!(texts, ["1%", ""]);
        let numbers = read_table(file, None, |row| row.maybe_number("path.loss_fraction")).unwrap();
        assert_eq!(numbers, [Some(0.01), None]);
    }

    #[test]
    fn metadata_identifies_the_file() {
        let metadata = vec![("uncork.version".to_owned(), "0.1.0 (build 0)".to_owned())];
        let head = TableHead { metadata, ..TableHead::default() };
        let mut file = Vec::new();
        write_flows(&mut file, &head, std::iter::empty()).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap())).collect();
        let version = ("uncork.version", "0.1.0 (build 0)");
        assert_eq!(pairs, [("uncork.schema", "uncork.flows/1"), version]);
    }

    proptest! {
        #[test]
        fn written_records_read_back(flows in vec(any_record(), 0..20)) {
            prop_assert_eq!(read_flows(written(&flows)).unwrap(), flows);
        }
    }
}
