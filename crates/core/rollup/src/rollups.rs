//! Roll-ups of several periods.

use std::collections::BTreeMap;

use uncork_flow::FlowRecord;

use crate::error::RollupError;
use crate::rollup::Rollup;
use crate::spec::RollupSpec;

/// Roll-ups of one host by the beginning of their period.
#[derive(Clone, Debug)]
pub struct Rollups {
    spec: RollupSpec,
    by_start: BTreeMap<u64, Rollup>,
}

impl Rollups {
    /// Of no records.
    pub fn new(spec: RollupSpec) -> Self {
        Self { spec, by_start: BTreeMap::new() }
    }

    /// Counts a record in the period in which it began.
    ///
    /// # Errors
    ///
    /// If the record has no time.
    pub fn add(&mut self, record: &FlowRecord) -> Result<(), RollupError> {
        let service = record.service.as_ref().ok_or(RollupError::NoTime)?;
        let start = self.spec.period.start(service.start_unix_ns);
        let of = self.by_start.entry(start);
        of.or_insert_with(|| Rollup::new(self.spec.clone(), start)).add(record, service);
        Ok(())
    }

    /// Adds a roll-up.
    ///
    /// # Errors
    ///
    /// If its host or the length of its period differs.
    pub fn merge(&mut self, other: &Rollup) -> Result<(), RollupError> {
        let start = other.start_ns();
        let of = self.by_start.entry(start);
        of.or_insert_with(|| Rollup::new(self.spec.clone(), start)).merge(other)
    }

    /// The roll-ups, in order. None are left.
    pub fn take(&mut self) -> Vec<Rollup> {
        std::mem::take(&mut self.by_start).into_values().collect()
    }

    /// The roll-ups of periods that ended before a time since 1970, in order. The others are left.
    pub fn take_ended(&mut self, unix_ns: u64) -> Vec<Rollup> {
        let open = self.by_start.split_off(&self.spec.period.start(unix_ns));
        std::mem::replace(&mut self.by_start, open).into_values().collect()
    }

    /// When the first of them ends, since 1970.
    pub fn next_end(&self) -> Option<u64> {
        self.by_start.keys().next().map(|start| self.spec.period.next(*start))
    }
}
