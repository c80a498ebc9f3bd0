//! The key of a row.

use smol_str::SmolStr;
use uncork_flow::LARGE_BYTES;

use crate::hash;
use crate::metric::smallest;

/// How far a row's client is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fold {
    /// The row is of one unit, or its records never had one.
    #[default]
    None,
    /// Units of one AS.
    Asn,
    /// Units of all AS.
    All,
}

impl Fold {
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Asn => 1,
            Self::All => 2,
        }
    }

    pub(crate) const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Asn),
            2 => Some(Self::All),
            _ => None,
        }
    }
}

/// The key of a row. `group` is a number of the roll-up's [`crate::group::Interner`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) group: u32,
    pub(crate) fold: Fold,
    pub(crate) asn: Option<u32>,
    pub(crate) client: Option<SmolStr>,
    pub(crate) unit: Option<u64>,
    pub(crate) bucket: Option<u8>,
    pub(crate) class: u8,
}

/// Levels of folding: each level halves the units (or AS, or client networks of traffic) that have rows of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) units: u8,
    pub(crate) asns: u8,
    pub(crate) clients: u8,
}

/// Whether a hash stays at a level.
pub(crate) const fn stays(hash: u64, level: u8) -> bool {
    match level {
        0 => true,
        64.. => false,
        level => hash < 1 << (64 - level),
    }
}

impl Levels {
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            units: self.units.max(other.units),
            asns: self.asns.max(other.asns),
            clients: self.clients.max(other.clients),
        }
    }
}

impl Key {
    /// The key at these levels.
    pub(crate) fn folded(mut self, levels: Levels) -> Self {
        if let Some(unit) = self.unit
            && !stays(hash::of_unit(unit), levels.units)
        {
            self.unit = None;
            self.client = None;
            self.fold = Fold::Asn;
        }
        if self.is_of_asn() && !stays(hash::of_asn(self.asn), levels.asns) {
            self.asn = None;
            self.fold = if self.fold == Fold::None { Fold::None } else { Fold::All };
        }
        self
    }

    /// Whether the row is of large objects.
    pub(crate) fn is_large(&self) -> bool {
        smallest(self.class) >= LARGE_BYTES
    }

    /// Whether the row is of a single client.
    pub(crate) const fn is_of_unit(&self) -> bool {
        self.unit.is_some()
    }

    /// Whether the row is of an AS.
    pub(crate) const fn is_of_asn(&self) -> bool {
        self.unit.is_none() && self.asn.is_some()
    }
}
