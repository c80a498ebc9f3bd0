//! The status document that the page shows, as JSON.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use uncork_flow::{FlowRecord, RATIO_EDGES};

use super::series::{CLASSES, Series, read};
use super::{MetricKey, Metrics, locked};
use crate::clock;

/// The current status of the server. Fields may be added; removing one requires another `schema`.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    schema: &'static str,
    version: &'static str,
    /// `serving` or `draining`.
    state: &'static str,
    unix_s: f64,
    start_unix_s: f64,
    policy: Option<String>,
    records_written: Option<u64>,
    records_lost: Option<u64>,
    /// Upper bounds of the buckets of `rtt_ratio`.
    rtt_ratio_edges: &'static [f64],
    series: Vec<SeriesStatus>,
    /// The latest responses, newest first.
    recent: Vec<FlowRecord>,
}

#[cfg(test)]
impl Status {
    pub(super) fn recent(&self) -> &[FlowRecord] {
        &self.recent
    }
}

/// The counters of a combination of labels since the start.
#[derive(Debug, Serialize)]
struct SeriesStatus {
    listener: String,
    protocol: &'static str,
    cc: String,
    experiment: String,
    arm: String,
    open: i64,
    connections: u64,
    responses: Vec<(&'static str, u64)>,
    broken_off: u64,
    bytes_acked: u64,
    bytes_sent: u64,
    bytes_retransmitted: u64,
    /// Samples in each bucket, and above the last.
    rtt_ratio: Vec<u64>,
}

impl Metrics {
    /// The current status; `is_draining` if no more requests are accepted.
    pub(crate) fn status(&self, is_draining: bool) -> Status {
        let records = self.records.as_ref().map(|records| records.summary());
        Status {
            schema: "uncork.serve-status/1",
            version: env!("CARGO_PKG_VERSION"),
            state: if is_draining { "draining" } else { "serving" },
            unix_s: unix(clock::today()),
            start_unix_s: unix(self.started),
            policy: locked(&self.policy).as_ref().map(|policy| policy.fingerprint.clone()),
            records_written: records.map(|records| records.written),
            records_lost: records.map(|records| records.lost),
            rtt_ratio_edges: RATIO_EDGES,
            series: self.all().iter().map(|(key, series)| SeriesStatus::of(key, series)).collect(),
            recent: locked(&self.recent).iter().rev().map(|it| (**it).clone()).collect(),
        }
    }
}

impl SeriesStatus {
    fn of(key: &MetricKey, series: &Series) -> Self {
        let responses = CLASSES.into_iter().zip(&series.responses);
        Self {
            listener: key.listener.to_string(),
            protocol: key.protocol,
            cc: key.cc.to_string(),
            experiment: key.experiment.to_string(),
            arm: key.arm.to_string(),
            open: series.open.load(Ordering::Relaxed),
            connections: read(&series.connections),
            responses: responses.map(|(class, count)| (class, read(count))).collect(),
            broken_off: read(&series.broken_off),
            bytes_acked: read(&series.bytes_acked),
            bytes_sent: read(&series.bytes_sent),
            bytes_retransmitted: read(&series.bytes_retransmitted),
            rtt_ratio: series.rtt_ratio.locked().counts().to_vec(),
        }
    }
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
