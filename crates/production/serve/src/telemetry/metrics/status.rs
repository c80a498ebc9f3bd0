//! The status document that the page shows, as JSON.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use uncork_flow::{FlowRecord, RATIO_EDGES};

use super::series::{CLASSES, Series, read};
use super::{MetricKey, Metrics, locked};
use crate::clock;

const SCHEMA: &str = "uncork.serve-status/1";

/// The current status of the server. Fields may be added; removing one requires another `schema`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Status {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Version of uncork.
    version: &'static str,
    /// Whether it accepts requests.
    #[cfg_attr(test, schemars(extend("enum" = ["serving", "draining"])))]
    state: &'static str,
    /// The current time.
    unix_s: f64,
    /// When it was started.
    start_unix_s: f64,
    /// Fingerprint of the policy, as in records; null if it has none.
    policy: Option<String>,
    /// Records written; null if it keeps none.
    records_written: Option<u64>,
    /// Records lost; null if it keeps none.
    records_lost: Option<u64>,
    /// Upper bounds of the buckets of `rtt_ratio`.
    rtt_ratio_edges: &'static [f64],
    /// The counters of each combination of labels.
    series: Vec<SeriesStatus>,
    /// The latest responses, newest first.
    #[cfg_attr(test, schemars(with = "Vec<serde_json::Value>", extend("items" = {"$ref": "flow-record.json"})))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SeriesStatus {
    /// Name of the listener.
    listener: String,
    /// `h1`, `h2`, `h3`; `tcp`, `tls` or `quic` before the first request; `other` of all series beyond 1,000.
    protocol: &'static str,
    /// The controller.
    cc: String,
    /// The experiment; empty without one.
    experiment: String,
    /// The arm; empty without an experiment.
    arm: String,
    /// Open connections.
    open: i64,
    /// Connections that began.
    connections: u64,
    /// Responses by class of their status code.
    responses: Vec<(&'static str, u64)>,
    /// Aborted responses.
    broken_off: u64,
    /// Payload acknowledged.
    bytes_acked: u64,
    /// Payload sent, retransmissions included.
    bytes_sent: u64,
    /// Payload retransmitted.
    bytes_retransmitted: u64,
    /// Samples in each bucket, and above the last.
    rtt_ratio: Vec<u64>,
}

impl Metrics {
    /// The current status; `is_draining` if no more requests are accepted.
    pub(crate) fn status(&self, is_draining: bool) -> Status {
        let records = self.records.as_ref().map(|records| records.summary());
        Status {
            schema: SCHEMA,
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

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        let title = "Status of `uncork serve`: `/status.json` of its admin endpoint";
        assert_schema!(Status, "serve-status-1", title);
    }
}
