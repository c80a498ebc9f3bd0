//! Which discipline a queue follows, and how people write it.

use std::fmt;
use std::str::FromStr;

use super::{DropTail, Queue};

/// A queue discipline with its parameters. The size of the queue is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueSpec {
    /// First in, first out; what does not fit is lost.
    #[default]
    DropTail,
}

/// A text that describes no queue discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueError;

impl QueueSpec {
    /// An empty queue for at most `limit_bytes` bytes.
    pub fn build<T>(&self, limit_bytes: u64) -> Queue<T> {
        match self {
            Self::DropTail => Queue::DropTail(DropTail::new(limit_bytes)),
        }
    }
}

impl FromStr for QueueSpec {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        match text {
            "droptail" => Ok(Self::DropTail),
            _ => Err(QueueError),
        }
    }
}

/// Writes what [`QueueSpec::from_str`] reads.
impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail => f.write_str("droptail"),
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a queue discipline is expected: write droptail")
    }
}

impl std::error::Error for QueueError {}
