//! The metrics of a record, as `measure/metrics.py` defines them.
//!
//! `python/uncork/tests/test_rollup.py` compares the results of both.

use uncork_flow::{FlowRecord, LARGE_BYTES};

use crate::bins::bin_of;

/// Minimum size of a media chunk that counts for the bandwidth.
pub const CHUNK_BYTES: u64 = 500_000;

/// Maximum size of an object that is sent in the first round trips.
const START_BYTES: u64 = 100_000;

/// Where the classes of sizes begin, after that of the smallest objects.
pub const SIZE_LIMITS: [u64; 4] = [100_000, 1_000_000, LARGE_BYTES, 10_000_000];

/// Engines that record when the client had the last byte.
const CLIENT_ENGINES: [&str; 4] = ["sim", "quic-sim", "netns", "play"];
/// All engines of this project.
const OWN_ENGINES: [&str; 7] = ["sim", "quic-sim", "netns", "play", "serve", "watch", "bpf"];

/// What servers log as the status where the client left before an answer.
const CLIENT_LEFT: [u16; 2] = [460, 499];

const HOUR_S: f64 = 3600.0;
const MIN_DELAY_S: f64 = 1e-5;

/// A metric with a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "docs/reference/experiments.md describes the metrics")]
pub enum Metric {
    Throughput,
    Completion,
    FirstByte,
    RttInflation,
    QueueDelay,
    PlaybackLatency,
    Bandwidth,
}

/// A metric that is a ratio of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "docs/reference/experiments.md describes the metrics")]
pub enum Ratio {
    Retransmitted,
    Aborted,
    Stutters,
    Stalled,
    StartResent,
    Queued,
    Failed,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Throughput,
        Self::Completion,
        Self::FirstByte,
        Self::RttInflation,
        Self::QueueDelay,
        Self::PlaybackLatency,
        Self::Bandwidth,
    ];

    /// Its name in analyses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Completion => "completion",
            Self::FirstByte => "first_byte",
            Self::RttInflation => "rtt_inflation",
            Self::QueueDelay => "queue_delay",
            Self::PlaybackLatency => "playback_latency",
            Self::Bandwidth => "bandwidth",
        }
    }

    const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Throughput | Self::Bandwidth => (1e3, 1e12),
            Self::Completion | Self::FirstByte | Self::PlaybackLatency => (1e-6, HOUR_S),
            Self::RttInflation => (1e-2, 1e5),
            Self::QueueDelay => (MIN_DELAY_S, HOUR_S),
        }
    }

    /// The bin of the record's value; `None` if it has none.
    pub fn bin(self, record: &FlowRecord) -> Option<i32> {
        self.value(record).map(|value| bin_of(value, self.bounds()))
    }

    fn value(self, record: &FlowRecord) -> Option<f64> {
        match self {
            Self::Throughput => {
                let is_counted = size(record) >= LARGE_BYTES && record.playback.is_none();
                (is_counted && is_download(record)).then(|| rate(record)).flatten()
            }
            Self::Bandwidth => {
                let is_counted = size(record) >= CHUNK_BYTES || record.playback.is_some();
                (is_counted && is_download(record)).then(|| rate(record)).flatten()
            }
            Self::Completion => completion(record),
            Self::FirstByte => record.first_byte_ns.filter(|_| is_download(record)).map(seconds),
            Self::PlaybackLatency => {
                record.playback.map(|it| it.startup_ns.map_or(HOUR_S, seconds))
            }
            Self::RttInflation => {
                let rtt = record.rtt_ms?;
                (rtt.min != 0.0).then(|| rtt.p50 / rtt.min)
            }
            Self::QueueDelay => {
                let rtt = record.rtt_ms?;
                let delay = (rtt.p50 - rtt.min) / 1e3;
                Some(if (0.0..=MIN_DELAY_S).contains(&delay) { MIN_DELAY_S } else { delay })
            }
        }
    }
}

impl Ratio {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Retransmitted,
        Self::Aborted,
        Self::Stutters,
        Self::Stalled,
        Self::StartResent,
        Self::Queued,
        Self::Failed,
    ];

    /// Its name in analyses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retransmitted => "retransmitted",
            Self::Aborted => "aborted",
            Self::Stutters => "stutters",
            Self::Stalled => "stalled",
            Self::StartResent => "start_resent",
            Self::Queued => "queued",
            Self::Failed => "failed",
        }
    }

    /// The record's parts of numerator and denominator.
    pub fn parts(self, record: &FlowRecord) -> (u64, u64) {
        match self {
            Self::StartResent if size(record) > START_BYTES => (0, 0),
            Self::Retransmitted | Self::StartResent => {
                (record.bytes_retransmitted, record.bytes_sent)
            }
            Self::Aborted => {
                record.service.as_ref().map_or((0, 0), |it| (it.broken_off, it.responses))
            }
            Self::Stutters => record.playback.map_or((0, 0), |it| (it.stutters, it.items)),
            Self::Stalled => record.playback.map_or((0, 0), |it| {
                let stalled = micros(it.stalled_ns);
                (stalled, stalled + micros(it.played_ns))
            }),
            Self::Queued => record.rtt_ms.map_or((0, 0), |rtt| {
                let queued = thousandths(rtt.p50 - rtt.min).zip(thousandths(rtt.p50));
                queued.unwrap_or_default()
            }),
            Self::Failed => status(record).map_or((0, 0), |it| (u64::from(is_error(it)), 1)),
        }
    }
}

/// The number of the record's class of sizes.
pub(crate) fn size_class(record: &FlowRecord) -> u8 {
    SIZE_LIMITS.iter().filter(|limit| size(record) >= **limit).count() as u8
}

/// Whether the record is of a large object.
pub(crate) fn is_large(record: &FlowRecord) -> bool {
    size(record) >= LARGE_BYTES
}

/// The smallest size of a class.
pub(crate) fn smallest(class: u8) -> u64 {
    class.checked_sub(1).map_or(0, |place| SIZE_LIMITS[usize::from(place).min(3)])
}

fn size(record: &FlowRecord) -> u64 {
    record.size_bytes.unwrap_or(record.bytes_acked)
}

/// The throughput by the best measure that the record has.
fn rate(record: &FlowRecord) -> Option<f64> {
    let is_client = CLIENT_ENGINES.contains(&record.engine.as_str());
    let timed = record
        .completion_ns
        .filter(|_| is_client && record.playback.is_none() && !is_unfinished(record));
    match timed {
        Some(took) => per_second(record.bytes_delivered, took),
        None => per_second(record.bytes_acked, record.busy_ns),
    }
}

fn per_second(bytes: u64, nanoseconds: u64) -> Option<f64> {
    (nanoseconds > 0).then(|| bytes as f64 * 8e9 / nanoseconds as f64)
}

fn completion(record: &FlowRecord) -> Option<f64> {
    record.size_bytes.filter(|size| *size < LARGE_BYTES && is_download(record))?;
    let took = record.completion_ns.map_or(HOUR_S, seconds);
    Some(if is_unfinished(record) { HOUR_S } else { took })
}

fn status(record: &FlowRecord) -> Option<u16> {
    record.service.as_ref()?.status
}

/// Whether the response had what was asked for. Error pages and redirects are short and come at once, so the
/// arm with more of them would look faster. 460 and 499 stand for a client that left.
fn is_download(record: &FlowRecord) -> bool {
    status(record).is_none_or(|it| it < 300 || CLIENT_LEFT.contains(&it))
}

fn is_error(status: u16) -> bool {
    status >= 400 && !CLIENT_LEFT.contains(&status)
}

fn is_unfinished(record: &FlowRecord) -> bool {
    let is_own = OWN_ENGINES.contains(&record.engine.as_str());
    let is_short = !is_own && record.size_bytes.is_some_and(|size| record.bytes_delivered < size);
    record.service.as_ref().is_some_and(|it| it.broken_off > 0) || is_short
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// `None` of a value that cannot be: its record does not count.
fn thousandths(milliseconds: f64) -> Option<u64> {
    let whole = (milliseconds * 1e3).floor();
    (0.0..9e18).contains(&whole).then_some(whole as u64)
}

fn micros(nanoseconds: u64) -> u64 {
    (nanoseconds as f64 / 1e3).floor() as u64
}
