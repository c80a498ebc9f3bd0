//! The telemetry state shared by all observers.

use std::io;
use std::sync::Arc;

use uncork_flow::FlowRecord;
use uncork_records::{Records, RecordsSpec, Writer};

use super::metrics::Metrics;
use super::probe::Probe;
use crate::error::ServeError;

/// The source of measurements, and the destinations of records.
#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(super) probe: Probe,
    metrics: Arc<Metrics>,
    records: Option<Records>,
}

impl Telemetry {
    /// Writes records as `spec` says, if it is given.
    pub(crate) fn open(spec: Option<&RecordsSpec>) -> Result<(Self, Option<Writer>), ServeError> {
        let probe = Probe::open().map_err(|error| {
            ServeError::System("ask the kernel for its connections", io::Error::other(error))
        })?;
        let (records, writer) = spec.map(RecordsSpec::open).transpose()?.unzip();
        let tally = records.as_ref().map(|records| Arc::clone(records.tally()));
        let metrics = Arc::new(Metrics::new(tally));
        Ok((Self { probe, metrics, records }, writer))
    }

    /// Counts and writes a record.
    pub(crate) fn leave(&self, record: FlowRecord) {
        let record = Arc::new(record);
        self.metrics.count(&record);
        if let Some(records) = &self.records {
            records.leave(record);
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }
}
