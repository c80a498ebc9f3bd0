//! Errors of roll-ups.

use ::parquet::errors::ParquetError;
use thiserror::Error;

/// Why a roll-up could not be made, read or merged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RollupError {
    /// A record has no time.
    #[error(
        "the record has no service.start_unix_ns, so it belongs to no period; roll up records of uncork serve, steer record or host watch"
    )]
    NoTime,
    /// The roll-ups are of different periods.
    #[error(
        "a roll-up of {found} does not merge with one of {expected}; merge each period on its own"
    )]
    OtherPeriod {
        /// Of the roll-up that is merged into.
        expected: String,
        /// Of the other one.
        found: String,
    },
    /// The roll-ups are of several hosts.
    #[error(
        "a roll-up of host '{found}' does not merge with one of host '{expected}'; merge each host on its own"
    )]
    OtherHost {
        /// Of the roll-up that is merged into.
        expected: String,
        /// Of the other one.
        found: String,
    },
    /// The roll-up is of many hosts.
    #[error(
        "'{0}' is merged from the roll-ups of many hosts; add merged files up with `uncork records merge`"
    )]
    Merged(String),
    /// The roll-up is not within the period of the merged file.
    #[error(
        "a roll-up of {found} is not within one of {expected}; merge it with a longer --period"
    )]
    NotWithin {
        /// Of the merged file.
        expected: String,
        /// Of the roll-up.
        found: String,
    },
    /// Two merged files count the same file, and each counts one that the other does not.
    #[error(
        "it counts {0} files that another merged file counts, too; merge the roll-ups of the hosts again, without merged files of other names"
    )]
    Overlap(usize),
    /// The file is not a roll-up.
    #[error("not a roll-up: {0}")]
    NotARollup(String),
    /// The file is not valid Parquet.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}
