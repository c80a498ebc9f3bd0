//! The counters of each combination of labels.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use uncork_flow::{EcnUse, FlowRecord, RATE_EDGES, RATIO_EDGES, Service, TIME_EDGES};

use super::buckets::SharedBuckets;

/// Minimum size in bytes of a response with a rate. Shorter ones do not leave slow start,
/// and the kernel measures their time only in clock ticks.
const LONG_BYTES: u64 = 100_000;

/// The first digits of status codes.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counters that never decrease, and the gauge of open connections.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) open: AtomicI64,
    pub(super) connections: AtomicU64,
    /// By the first digit of the status code.
    pub(super) responses: [AtomicU64; 5],
    pub(super) broken_off: AtomicU64,
    pub(super) bytes_acked: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) bytes_retransmitted: AtomicU64,
    pub(super) packets_sent: AtomicU64,
    pub(super) packets_lost: AtomicU64,
    pub(super) packets_marked: AtomicU64,
    pub(super) ecn_failures: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) goodput: SharedBuckets,
    pub(super) first_byte: SharedBuckets,
    pub(super) min_rtt: SharedBuckets,
    pub(super) rtt_ratio: SharedBuckets,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            open: AtomicI64::default(),
            connections: AtomicU64::default(),
            responses: Default::default(),
            broken_off: AtomicU64::default(),
            bytes_acked: AtomicU64::default(),
            bytes_sent: AtomicU64::default(),
            bytes_retransmitted: AtomicU64::default(),
            packets_sent: AtomicU64::default(),
            packets_lost: AtomicU64::default(),
            packets_marked: AtomicU64::default(),
            ecn_failures: AtomicU64::default(),
            timeouts: AtomicU64::default(),
            goodput: SharedBuckets::new(RATE_EDGES),
            first_byte: SharedBuckets::new(TIME_EDGES),
            min_rtt: SharedBuckets::new(TIME_EDGES),
            rtt_ratio: SharedBuckets::new(RATIO_EDGES),
        }
    }
}

impl Series {
    pub(super) fn count_connection(&self, service: &Service) {
        add(&self.connections, 1);
        add(&self.ecn_failures, (service.ecn == Some(EcnUse::Failed)).into());
    }

    pub(super) fn count_response(&self, record: &FlowRecord, service: &Service) {
        let class = usize::from(service.status.unwrap_or(0) / 100).wrapping_sub(1);
        if let Some(class) = self.responses.get(class) {
            add(class, service.responses);
        }
        add(&self.broken_off, service.broken_off);
        if let Some(goodput) = goodput(record) {
            self.goodput.observe(goodput);
        }
        if let Some(first) = record.first_byte_ns {
            self.first_byte.observe(first as f64 / 1e9);
        }
        if let Some(min) = service.min_rtt_ns {
            self.min_rtt.observe(min as f64 / 1e9);
        }
    }
}

pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Bytes acknowledged per second of busy time, if the response is long enough.
fn goodput(record: &FlowRecord) -> Option<f64> {
    let is_long = record.bytes_acked >= LONG_BYTES && record.busy_ns > 0;
    is_long.then(|| record.bytes_acked as f64 * 1e9 / record.busy_ns as f64)
}
