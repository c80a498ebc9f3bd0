//! Generated tables of networks: which arm each network gets.

mod networks;
mod read;
mod write;

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use crate::prefix::Prefix;
use crate::{Country, Fact, Facts, UnixTime};
use networks::{Found, Networks};

pub use write::TableText;

/// A generated table (`docs/reference/policy.md`): sections of networks, autonomous systems and countries with arms.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) version: u64,
    /// From this time on no entry matches.
    pub(crate) expires: UnixTime,
    /// The SHA-256 of its text.
    pub(crate) digest: [u8; 32],
    /// The names of the arms that occur.
    pub(crate) arms: Box<[Box<str>]>,
    pub(crate) sections: Box<[Section]>,
}

/// One of the tables in a file, such as that of large objects.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: Box<str>,
    networks: Networks,
    /// In ascending order.
    systems: Box<[(u32, u8)]>,
    /// In ascending order.
    countries: Box<[(Country, u8)]>,
    all_clients: Option<u8>,
}

/// An entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) of: Of,
    /// The index of the arm among [`Table::arms`].
    pub(crate) arm: u8,
}

/// Whom an entry is for, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Network(Prefix),
    System(u32),
    Country(Country),
    AllClients,
}

/// Why a text is not a table, or not one for this policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{problem}; {remedy}", TableLine(*.line))]
pub struct TableError {
    /// The line, from 1, if the error is in one.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

struct TableLine(Option<usize>);

impl fmt::Display for TableLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, "line {line}: "))
    }
}

impl Section {
    /// The narrowest entry for a client: its network, else its autonomous system, else its country, else
    /// all clients.
    pub(crate) fn entry(&self, facts: &Facts<'_>) -> Fact<Entry> {
        let found = facts.client.map(|client| self.network(client));
        match found {
            Fact::Unknown => return Fact::Unknown,
            Fact::Known(Some(entry)) => return Fact::Known(entry),
            Fact::Absent | Fact::Known(None) => {}
        }
        if !self.systems.is_empty() {
            match facts.asn.map(|asn| by_key(&self.systems, asn)) {
                Fact::Unknown => return Fact::Unknown,
                Fact::Known(Some(arm)) => {
                    return facts.asn.map(|asn| Entry { of: Of::System(asn), arm });
                }
                Fact::Absent | Fact::Known(None) => {}
            }
        }
        if !self.countries.is_empty() {
            match facts.country.map(|country| (country, by_key(&self.countries, country))) {
                Fact::Unknown => return Fact::Unknown,
                Fact::Known((country, Some(arm))) => {
                    return Fact::Known(Entry { of: Of::Country(country), arm });
                }
                Fact::Absent | Fact::Known((_, None)) => {}
            }
        }
        Fact::known_or_absent(self.all_clients.map(|arm| Entry { of: Of::AllClients, arm }))
    }

    /// The networks and their arms; some come twice. The first is IPv4 mapped, with 96 bits more.
    pub(crate) fn each_network(&self, visit: impl FnMut(u128, u8, u8)) {
        self.networks.each(visit);
    }

    /// Whether entries are for systems or countries.
    pub(crate) fn asks_origin(&self) -> bool {
        self.by_origin() > 0
    }

    /// How many entries are for systems or countries.
    pub(crate) fn by_origin(&self) -> usize {
        self.systems.len() + self.countries.len()
    }

    /// The arm of clients that no other entry is for.
    pub(crate) fn all_clients(&self) -> Option<u8> {
        self.all_clients
    }

    fn network(&self, client: IpAddr) -> Option<Entry> {
        let Found { bits, arm } = self.networks.find(client)?;
        Some(Entry { of: Of::Network(Prefix::of(client, bits)), arm })
    }
}

fn by_key<K: Ord + Copy>(sorted: &[(K, u8)], key: K) -> Option<u8> {
    let at = sorted.binary_search_by_key(&key, |(key, _)| *key).ok()?;
    Some(sorted[at].1)
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(prefix) => write!(f, "{prefix}"),
            Self::System(asn) => write!(f, "AS{asn}"),
            Self::Country(country) => write!(f, "{country}"),
            Self::AllClients => f.write_str("all clients"),
        }
    }
}

#[cfg(test)]
mod tests;
