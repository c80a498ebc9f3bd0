//! Records and bytes of client networks without rows of their own.
//!
//! Most records of a fleet have no arm, because a table has decided. No analysis compares them by client, so their row has no client;
//! but a planner weighs each client network by its bytes.

use smol_str::SmolStr;

use crate::hash;
use crate::key::{Fold, Levels, stays};
use crate::values::add;

/// The key of a row of traffic. `group` is a number of the roll-up's [`crate::group::Interner`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TrafficKey {
    pub(crate) group: u32,
    pub(crate) fold: Fold,
    pub(crate) asn: Option<u32>,
    pub(crate) client: Option<SmolStr>,
    pub(crate) is_large: bool,
}

/// Records and acknowledged bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, other: Self) {
        add(&mut self.records, other.records);
        add(&mut self.bytes, other.bytes);
    }
}

impl TrafficKey {
    /// The key at these levels.
    pub(crate) fn folded(self, levels: Levels) -> Self {
        if stays(hash::of_client(self.client.as_deref()), levels.clients) {
            return self;
        }
        Self { fold: Fold::All, asn: None, client: None, ..self }
    }

    /// Whether the row is of a network, or of an AS without one.
    pub(crate) const fn is_of_network(&self) -> bool {
        self.client.is_some() || self.asn.is_some()
    }
}
