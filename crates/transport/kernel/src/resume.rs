//! Careful Resume (RFC 9959) of a loaded controller: how many client networks it remembers, and what became of them.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Serialize;

use crate::error::Error;
use crate::map::Map;
use crate::object::Maps;

/// The maps of an object: `bpf/resume.h`.
pub(crate) const OBSERVATIONS: &str = "observations";
const COUNTS: &str = "resume_counts";

/// How many client networks a controller remembers. The kernel takes their memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeNetworks(u32);

impl ResumeNetworks {
    /// As in `uncork serve`.
    pub const DEFAULT: Self = Self(1 << 16);
    /// Fewer are refused, and more: the kernel's map keeps some aside for each processor.
    pub const LIMITS: RangeInclusive<u32> = 64..=1 << 20;

    /// This many, if they are within [`Self::LIMITS`].
    pub fn new(networks: u32) -> Option<Self> {
        Self::LIMITS.contains(&networks).then_some(Self(networks))
    }

    /// Their number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for ResumeNetworks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let networks = text.parse().ok().and_then(Self::new);
        let (least, most) = (Self::LIMITS.start(), Self::LIMITS.end());
        networks.ok_or_else(|| format!("expected {least} to {most} networks"))
    }
}

impl fmt::Display for ResumeNetworks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Careful Resume of a controller, since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResumeStatus {
    /// Maximum number of client networks.
    pub networks_max: u32,
    /// Connections that left an observation.
    pub kept: u64,
    /// Connections that began with one.
    pub lent: u64,
    /// Connections that began without, because another one had it.
    pub in_use: u64,
    /// Observations that were too old.
    pub expired: u64,
    /// Connections that met congestion with the window of an earlier one (Safe Retreat).
    pub retreats: u64,
}

/// The memory of a controller: the maps of its programs.
#[derive(Debug)]
pub(crate) struct ResumeMemory {
    observations: Map,
    counts: Map,
}

impl ResumeMemory {
    pub(crate) const MAPS: [&str; 2] = [OBSERVATIONS, COUNTS];

    /// `None` if one is missing.
    pub(crate) fn of(maps: &mut Maps) -> Option<Self> {
        Some(Self { observations: maps.remove(OBSERVATIONS)?, counts: maps.remove(COUNTS)? })
    }

    /// For as many networks; of a controller without Careful Resume, for one.
    fn networks(&self) -> Result<u32, Error> {
        self.observations.max_entries()
    }

    pub(crate) fn observations(&self) -> &Map {
        &self.observations
    }

    /// Whether the programs use it.
    pub(crate) fn is_used(&self) -> bool {
        self.networks().is_ok_and(|networks| ResumeNetworks::new(networks).is_some())
    }

    /// What became of them.
    pub(crate) fn status(&self, processors: usize) -> Result<ResumeStatus, Error> {
        let sum =
            |of: u32| self.counts.values(of, processors).map(|each: Vec<u64>| each.iter().sum());
        let read = || {
            let [kept, lent, in_use, expired, retreats] =
                [sum(0)?, sum(1)?, sum(2)?, sum(3)?, sum(4)?];
            io::Result::Ok(ResumeStatus { networks_max: 0, kept, lent, in_use, expired, retreats })
        };
        let status =
            read().map_err(|error| Error::step("read the counts of Careful Resume", error))?;
        Ok(ResumeStatus { networks_max: self.networks()?, ..status })
    }
}
