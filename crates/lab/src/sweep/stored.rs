//! The file that a finished run is kept in.
//!
//! Its first line says what follows, with a checksum: a run that was cut short while it was written
//! is known by that. The second line is the run, as JSON.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;
use uncork_flow::SeriesPoint;

use super::plan::Item;
use super::run::FinishedRun;
use crate::evaluate::RunOutcome;

const SCHEMA: &str = "uncork.run/4";

/// The name of the file of a run.
pub fn run_name(Item { cell, seed }: Item) -> String {
    format!("{cell:05}-{seed}.json")
}

/// Why a file is not the run that its name promises.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamagedRun {
    /// It ends before it should, or goes on after it.
    Length {
        /// Bytes that there are.
        found: usize,
        /// Bytes that there should be.
        expected: usize,
    },
    /// It is of another scenario, or of another version of this program.
    Foreign,
    /// Its bytes are not those that were written.
    Content,
}

impl fmt::Display for DamagedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found, expected } if found < expected => {
                write!(f, "it is cut short: {found} of {expected} bytes are there")
            }
            Self::Length { .. } => f.write_str("it goes on after its end"),
            Self::Foreign => f.write_str("it belongs to another scenario or version"),
            Self::Content => f.write_str("it does not hold what was written to it"),
        }
    }
}

impl std::error::Error for DamagedRun {}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    fingerprint: String,
    bytes: usize,
    checksum: String,
}

#[derive(Serialize, Deserialize)]
struct Body {
    outcome: RunOutcome,
    /// Names of states, which the points refer to.
    states: Vec<String>,
    points: Vec<Point>,
}

/// A point of the series without names: there may be many.
type Point =
    (u64, u32, usize, u64, u64, Option<u64>, Option<u64>, Option<u64>, Option<u64>, u64, u64, u64);

/// Names of states that were met in files. They live as long as the program, as those of controllers
/// do, so that what was read is of the same type as what was run; there are a few dozen at most.
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
    /// The contents of its file. `fingerprint` is that of the sweep.
    pub fn to_file(&self, fingerprint: &str) -> Vec<u8> {
        let body = Body::of(self);
        // Numbers, names and lists only: JSON has words for all of them.
        let body = serde_json::to_string(&body).unwrap_or_default();
        let header = Header {
            schema: SCHEMA.to_owned(),
            fingerprint: fingerprint.to_owned(),
            bytes: body.len(),
            checksum: checksum(body.as_bytes()),
        };
        let header = serde_json::to_string(&header).unwrap_or_default();
        format!("{header}\n{body}\n").into_bytes()
    }

    /// Reads the file of the run `item`.
    pub fn from_file(
        file: &[u8],
        item: Item,
        fingerprint: &str,
        names: &mut StateNames,
    ) -> Result<Self, DamagedRun> {
        let mut lines = file.splitn(2, |byte| *byte == b'\n');
        let (header, rest) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let header: Header = serde_json::from_slice(header).map_err(|_| DamagedRun::Content)?;
        if header.schema != SCHEMA || header.fingerprint != fingerprint {
            return Err(DamagedRun::Foreign);
        }
        let expected = file.len() - rest.len() + header.bytes + 1;
        if file.len() != expected {
            return Err(DamagedRun::Length { found: file.len(), expected });
        }
        let body = &rest[..header.bytes];
        if checksum(body) != header.checksum {
            return Err(DamagedRun::Content);
        }
        let body: Body = serde_json::from_slice(body).map_err(|_| DamagedRun::Content)?;
        body.into_run(names).filter(|run| run.item() == item).ok_or(DamagedRun::Content)
    }
}

impl Body {
    fn of(run: &FinishedRun) -> Self {
        let distinct: BTreeSet<&str> = run.series.iter().map(|point| point.state).collect();
        let states: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
        let point = |point: &SeriesPoint| -> Point {
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
        let point = |point: Point| {
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

/// Sixteen hexadecimal digits: XXH64, which finds what discs and copies do to bytes.
pub(super) fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash64::oneshot(0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut flow = crate::figures::record(0, Some(1234), 1_000_000);
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

    fn read(file: &[u8], item: Item, fingerprint: &str) -> Result<FinishedRun, DamagedRun> {
        FinishedRun::from_file(file, item, fingerprint, &mut StateNames::default())
    }

    #[test]
    fn what_is_written_reads_back_to_the_last_bit() {
        assert_eq!(read(&run().to_file("ab"), ITEM, "ab"), Ok(run()));
        assert_eq!(run_name(ITEM), "00003-7.json");
    }

    #[test]
    fn any_cut_is_noticed() {
        let file = run().to_file("ab");
        let header = file.iter().position(|byte| *byte == b'\n').unwrap();
        for length in 0..file.len() {
            let error = read(&file[..length], ITEM, "ab").unwrap_err();
            if length > header {
                let expected = file.len();
                assert_eq!(error, DamagedRun::Length { found: length, expected });
            }
        }
        let longer = [&file[..], b"x"].concat();
        assert!(matches!(read(&longer, ITEM, "ab"), Err(DamagedRun::Length { .. })));
    }

    #[test]
    fn any_other_byte_is_noticed() {
        let file = run().to_file("ab");
        for place in 0..file.len() - 1 {
            let mut other = file.clone();
            other[place] ^= 1;
            read(&other, ITEM, "ab").unwrap_err();
        }
    }

    #[test]
    fn a_run_stands_only_for_itself() {
        let file = run().to_file("ab");
        assert_eq!(read(&file, ITEM, "cd"), Err(DamagedRun::Foreign));
        assert_eq!(read(&file, Item { cell: 3, seed: 8 }, "ab"), Err(DamagedRun::Content));
    }

    #[test]
    fn a_name_is_kept_once() {
        let mut names = StateNames::default();
        let first = names.name("Startup");
        assert!(std::ptr::eq(first, names.name("Startup")));
    }
}
