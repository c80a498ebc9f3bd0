//! Options of commands that write records: roll-ups and a sample.

use std::fs;

use clap::Args;
use uncork_records::{RecordsSpec, RollupSpec, Sample};
use uncork_rollup::Period;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Roll-ups")]
pub(crate) struct RollupArgs {
    /// Write counts of all records to DIR/ for each period, such as 5min (docs/reference/rollups.md)
    #[arg(long, value_name = "PERIOD")]
    rollup: Option<Period>,
    /// Write records of this share of all clients only, such as 1%
    #[arg(long, value_name = "SHARE", default_value = "100%", requires = "rollup")]
    sample: Sample,
    /// Maximum rows of single clients in a roll-up
    #[arg(long, value_name = "N", default_value = "100000", requires = "rollup")]
    rollup_rows: usize,
}

impl RollupArgs {
    /// The period of roll-ups, if they are asked for.
    pub(crate) const fn period(&self) -> Option<Period> {
        self.rollup
    }

    /// The destination, with roll-ups if they are asked for.
    pub(crate) fn apply(&self, spec: RecordsSpec) -> RecordsSpec {
        let rollup = self.rollup.map(|period| RollupSpec {
            host: host_name(),
            period,
            max_rows: self.rollup_rows,
        });
        RecordsSpec { rollup, sample: self.sample, ..spec }
    }
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "host".to_owned() } else { name.to_owned() }
}
