//! Shared test helpers.

use uncork_flow::{FlowRecord, LabRecord, Quantiles};

/// A flow's record.
pub(crate) fn record(start_ms: u64, completion_ms: Option<u64>, delivered: u64) -> FlowRecord {
    let quantiles = |min: f64| Some(Quantiles { min, p50: min + 1.0, p95: min + 9.0 });
    FlowRecord {
        start_ns: start_ms * 1_000_000,
        completion_ns: completion_ms.map(|ms| ms * 1_000_000),
        bytes_delivered: delivered,
        bytes_acked: delivered,
        bytes_sent: delivered,
        rtt_ms: quantiles(50.0),
        lab: Some(LabRecord { queue_ms: quantiles(0.0), ..LabRecord::default() }),
        ..FlowRecord::blank("sim", "cubic", "cubic", (1, 0))
    }
}
