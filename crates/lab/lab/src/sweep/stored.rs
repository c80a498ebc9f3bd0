//! A finished run as an entry of an archive.
//!
//! The first line is a header with a checksum. The second line is the run as JSON.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;
use uncork_flow::SeriesPoint;

use super::plan::Item;
use super::run::FinishedRun;
use crate::evaluate::RunOutcome;

const SCHEMA: &str = "uncork.run/5";

/// Why an entry cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamagedRun {
    /// It belongs to another scenario or build.
    #[error("it belongs to another scenario or build")]
    Foreign,
    /// Its checksum is wrong.
    #[error("its checksum is wrong")]
    Content,
}

/// The first line of a run.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Header {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: String,
    /// Hash of the scenario and the build.
    fingerprint: String,
    /// Index of the cell.
    cell: usize,
    /// Seed of the run.
    seed: u64,
    /// Length of the second line without its line end.
    pub(super) bytes: u64,
    /// Checksum of the second line.
    checksum: String,
}

impl Header {
    /// Parses the first line of an entry; `None` if it is invalid.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().filter(|header: &Self| header.schema == SCHEMA)
    }

    /// The run of the entry.
    pub(super) fn item(&self) -> Item {
        Item { cell: self.cell, seed: self.seed }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredBody {
    outcome: RunOutcome,
    /// Names of states, referred to by the points.
    states: Vec<String>,
    points: Vec<StoredPoint>,
}

/// A compact point of the series without names, because there may be many.
type StoredPoint =
    (u64, u32, usize, u64, u64, Option<u64>, Option<u64>, Option<u64>, Option<u64>, u64, u64, u64);

/// Names of states read from archives. They are leaked, so that they have the same type as the
/// controllers' static names; there are at most a few dozen.
#[derive(Debug, Default)]
pub struct StateNames(BTreeSet<&'static str>);

impl StateNames {
    fn name(&mut self, text: &str) -> &'static str {
        if let Some(name) = self.0.get(text) {
            return name;
        }
        let name: &'static str = String::leak(text.to_owned());
        self.0.insert(name);
        name
    }
}

impl FinishedRun {
    /// Its archive entry. `fingerprint` is the sweep's.
    pub fn to_entry(&self, fingerprint: &str) -> Vec<u8> {
        // Only numbers, names and lists, which always serialize.
        let body = serde_json::to_string(&StoredBody::of(self)).unwrap_or_default();
        let Item { cell, seed } = self.item();
        let header = Header {
            schema: SCHEMA.to_owned(),
            fingerprint: fingerprint.to_owned(),
            cell,
            seed,
            bytes: body.len() as u64,
            checksum: checksum(body.as_bytes()),
        };
        let header = serde_json::to_string(&header).unwrap_or_default();
        format!("{header}\n{body}\n").into_bytes()
    }

    /// Parses the entry of the run `item`.
    pub fn from_entry(
        entry: &[u8],
        item: Item,
        fingerprint: &str,
        names: &mut StateNames,
    ) -> Result<Self, DamagedRun> {
        let mut lines = entry.splitn(2, |byte| *byte == b'\n');
        let header = lines.next().and_then(Header::parse).filter(|header| header.item() == item);
        let header = header.ok_or(DamagedRun::Content)?;
        if header.fingerprint != fingerprint {
            return Err(DamagedRun::Foreign);
        }
        let body = lines.next().and_then(|rest| rest.strip_suffix(b"\n"));
        let body = body
            .filter(|body| body.len() as u64 == header.bytes && checksum(body) == header.checksum);
        let body: Option<StoredBody> = body.and_then(|body| serde_json::from_slice(body).ok());
        let run = body.and_then(|body| body.into_run(names));
        run.filter(|run| run.item() == item).ok_or(DamagedRun::Content)
    }
}

impl StoredBody {
    fn of(run: &FinishedRun) -> Self {
        let distinct: BTreeSet<&str> = run.series.iter().map(|point| point.state).collect();
        let states: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
        let point = |point: &SeriesPoint| -> StoredPoint {
            let state = states.binary_search_by(|state| state.as_str().cmp(point.state));
            (
                point.time_ns,
                point.flow,
                state.unwrap_or_else(|place| place),
                point.cwnd_bytes,
                point.inflight_bytes,
                point.pacing_bps,
                point.max_bw_bps,
                point.min_rtt_ns,
                point.rtt_ns,
                point.queue_bytes,
                point.delivered_bytes,
                point.lost_bytes,
            )
        };
        let points = run.series.iter().map(point).collect();
        Self { outcome: run.outcome.clone(), states, points }
    }

    fn into_run(self, names: &mut StateNames) -> Option<FinishedRun> {
        let states: Vec<&'static str> = self.states.iter().map(|name| names.name(name)).collect();
        let point = |point: StoredPoint| {
            Some(SeriesPoint {
                time_ns: point.0,
                flow: point.1,
                state: *states.get(point.2)?,
                cwnd_bytes: point.3,
                inflight_bytes: point.4,
                pacing_bps: point.5,
                max_bw_bps: point.6,
                min_rtt_ns: point.7,
                rtt_ns: point.8,
                queue_bytes: point.9,
                delivered_bytes: point.10,
                lost_bytes: point.11,
            })
        };
        let series = self.points.into_iter().map(point).collect::<Option<_>>()?;
        Some(FinishedRun { outcome: self.outcome, series })
    }
}

/// Sixteen hexadecimal digits: XXH64, which detects corruption by disks and copying.
pub(super) fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash64::oneshot(0, bytes))
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(Header, "run-5", "Header of a run in `runs/runs.archive`");
    }

    const ITEM: Item = Item { cell: 3, seed: 7 };

    fn run() -> FinishedRun {
        let point = |time_ns, state| SeriesPoint {
            time_ns,
            flow: 1,
            state,
            cwnd_bytes: 14_480,
            inflight_bytes: 1448,
            pacing_bps: None,
            max_bw_bps: Some(20_000_000),
            min_rtt_ns: Some(50_000_000),
            rtt_ns: None,
            queue_bytes: 0,
            delivered_bytes: time_ns,
            lost_bytes: 0,
        };
        let mut flow = crate::testing::record(0, Some(1234), 1_000_000);
        flow.rtt_ms = Some(uncork_flow::Quantiles { min: 0.1, p50: 1.0 / 3.0, p95: 1e-7 });
        FinishedRun {
            outcome: RunOutcome {
                cell: 3,
                seed: 7,
                flows: vec![flow],
                requests: vec![],
                clients: vec![0],
                packets: 9,
                doubts: vec!["late".into()],
                commands: vec![crate::evaluate::CommandOutcome {
                    flow: 0,
                    is_server: true,
                    output: "one\n\u{fffd}two\n".into(),
                    problem: None,
                }],
            },
            series: vec![point(5, "Startup"), point(10, "Drain"), point(15, "Startup")],
        }
    }

    fn read(entry: &[u8], item: Item, fingerprint: &str) -> Result<FinishedRun, DamagedRun> {
        FinishedRun::from_entry(entry, item, fingerprint, &mut StateNames::default())
    }

    #[test]
    fn entry_round_trips_exactly() {
        assert_eq!(read(&run().to_entry("ab"), ITEM, "ab"), Ok(run()));
    }

    #[test]
    fn from_entry_detects_any_other_length() {
        let entry = run().to_entry("ab");
        for length in 0..entry.len() {
            assert_eq!(read(&entry[..length], ITEM, "ab"), Err(DamagedRun::Content), "{length}");
        }
        let longer = [&entry[..], b"x"].concat();
        assert_eq!(read(&longer, ITEM, "ab"), Err(DamagedRun::Content));
    }

    #[test]
    fn from_entry_detects_any_changed_byte() {
        let entry = run().to_entry("ab");
        for place in 0..entry.len() {
            let mut other = entry.clone();
            other[place] ^= 1;
            read(&other, ITEM, "ab").unwrap_err();
        }
    }

    #[test]
    fn entry_is_valid_only_for_its_run() {
        let entry = run().to_entry("ab");
        assert_eq!(read(&entry, ITEM, "cd"), Err(DamagedRun::Foreign));
        assert_eq!(read(&entry, Item { cell: 3, seed: 8 }, "ab"), Err(DamagedRun::Content));
    }

    #[test]
    fn state_name_is_stored_once() {
        let mut names = StateNames::default();
        let first = names.name("Startup");
        assert!(std::ptr::eq(first, names.name("Startup")));
    }
}
