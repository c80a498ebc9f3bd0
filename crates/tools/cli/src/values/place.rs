//! Where a random loss strikes.

use std::fmt;

use clap::ValueEnum;
use uncork_path::LossPosition;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// After the link, like a lossy last mile
    After,
    /// Before the queue
    Before,
}

impl From<Place> for LossPosition {
    fn from(place: Place) -> Self {
        match place {
            Place::After => Self::After,
            Place::Before => Self::Before,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::After => "after",
            Self::Before => "before",
        })
    }
}
