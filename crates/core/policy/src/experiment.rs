//! Experiments: assign a deterministic share of the clients to one of several arms.

use std::fmt;
use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;
use uncork_units::Probability;

use crate::headers::any_cookie;
use crate::prefix::Prefix;
use crate::{Assignment, Fact, Facts, Headers, Settings};

/// Number of slots that units are hashed to, 0.01 % each. Arms own ranges of slots.
pub const SLOTS: u16 = 10_000;

/// Number of buckets that units are hashed to for the analysis (a jackknife over them), in all arms alike.
pub const BUCKETS: u8 = 100;

/// Prefix lengths (IPv4, IPv6) that identify a client: the usual assignment of a subscriber or site.
pub(crate) const CLIENT_BITS: (u8, u8) = (24, 48);

/// The unit that an experiment assigns to arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The client's network: /24 of IPv4, /48 of IPv6.
    Prefix,
    /// The value of a cookie.
    Cookie(Box<str>),
    /// The value of a header field.
    Header(Box<str>),
}

/// An experiment.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) name: Box<str>,
    pub(crate) unit: Unit,
    pub(crate) salt: Box<str>,
    /// The policy's secret key.
    pub(crate) key: [u8; 16],
    pub(crate) arms: Box<[Arm]>,
    /// The condition's text in explanations.
    pub(crate) written: Box<str>,
}

/// An arm and its range of slots.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: Box<str>,
    pub(crate) settings: Settings,
    pub(crate) first: u16,
    pub(crate) slots: u16,
}

impl Arm {
    /// The share of all units in it.
    pub(crate) fn propensity(&self) -> Probability {
        Probability::of(u64::from(self.slots), u64::from(SLOTS))
    }
}

/// The slots of each arm: the first one and their number.
///
/// All slots are divided by `weights`; each arm takes the first `share` of its part. So a growing share
/// never moves a unit from one arm to another.
pub(crate) fn divide(weights: &[u64], share: Probability) -> Vec<(u16, u16)> {
    let total = u128::from(weights.iter().sum::<u64>().max(1));
    let mut before = 0_u128;
    let mut parts = Vec::new();
    for weight in weights {
        let first = before * u128::from(SLOTS) / total;
        before += u128::from(*weight);
        let wide = before * u128::from(SLOTS) / total - first;
        let taken = wide * u128::from(share.steps()) / u128::from(Probability::ALWAYS.steps());
        parts.push((first as u16, taken as u16));
    }
    parts
}

impl Experiment {
    /// The arm of the unit and its settings, if it takes part.
    pub(crate) fn assignment(&self, facts: &Facts<'_>) -> Fact<(Assignment<'_>, &Settings)> {
        self.hash(facts).and_then(|hash| Fact::known_or_absent(self.assignment_of(hash)))
    }

    fn assignment_of(&self, hash: u64) -> Option<(Assignment<'_>, &Settings)> {
        let slot = slot(hash);
        let arm =
            self.arms.iter().find(|arm| (arm.first..arm.first + arm.slots).contains(&slot))?;
        let assignment = Assignment {
            experiment: &self.name,
            arm: &arm.name,
            unit: hash,
            slot,
            bucket: bucket(hash),
            propensity: arm.propensity(),
        };
        Some((assignment, &arm.settings))
    }

    /// The hash of the unit in `facts`.
    pub(crate) fn hash(&self, facts: &Facts<'_>) -> Fact<u64> {
        match &self.unit {
            Unit::Prefix => facts.client.map(|address| self.hash_of_client(address)),
            Unit::Cookie(name) => self.hash_of_value(facts, b'c', |headers, first| {
                any_cookie(headers, name, first);
            }),
            Unit::Header(name) => self.hash_of_value(facts, b'h', |headers, first| {
                headers.any(name, first);
            }),
        }
    }

    fn hash_of_client(&self, address: IpAddr) -> u64 {
        let (v4, v6) = CLIENT_BITS;
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { v4 } else { v6 };
        match Prefix::of(address, bits).address() {
            IpAddr::V4(v4) => self.digest(b'4', &v4.octets()[..3]),
            IpAddr::V6(v6) => self.digest(b'6', &v6.octets()[..6]),
        }
    }

    fn hash_of_value(
        &self,
        facts: &Facts<'_>,
        kind: u8,
        visit: impl FnOnce(&dyn Headers, &mut dyn FnMut(&[u8]) -> bool),
    ) -> Fact<u64> {
        facts.headers.and_then(|headers| {
            let mut hash = None;
            visit(headers, &mut |value| {
                // An empty value does not identify a unit.
                hash = (!value.is_empty()).then(|| self.digest(kind, value));
                hash.is_some()
            });
            Fact::known_or_absent(hash)
        })
    }

    /// Keyed SipHash-2-4: without the key, a client can neither choose its arm nor be identified by its hash.
    /// The byte 0xff, which never occurs in text, ends the salt.
    fn digest(&self, kind: u8, unit: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(self.salt.as_bytes());
        hasher.write(&[0xff, kind]);
        hasher.write(unit);
        hasher.finish()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => f.write_str("the client's network"),
            Self::Cookie(name) => write!(f, "the cookie `{name}`"),
            Self::Header(name) => write!(f, "the header `{name}`"),
        }
    }
}

/// The slot, from the upper half of the hash.
pub fn slot(hash: u64) -> u16 {
    (((hash >> 32) * u64::from(SLOTS)) >> 32) as u16
}

/// The bucket, from the lower half, so that each arm has units in every bucket.
pub fn bucket(hash: u64) -> u8 {
    (((hash & u64::from(u32::MAX)) * u64::from(BUCKETS)) >> 32) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percent(text: &str) -> Probability {
        text.parse().expect("a probability")
    }

    /// Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), appendix A.
    #[test]
    fn hash_is_siphash() {
        let key: [u8; 16] = std::array::from_fn(|n| n as u8);
        let mut hasher = SipHasher24::new_with_key(&key);
        let message: Vec<u8> = (0..15).collect();
        hasher.write(&message[..7]);
        hasher.write(&message[7..]);
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn slots_are_divided_by_weight() {
        assert_eq!(divide(&[1, 1], percent("100%")), [(0, 5000), (5000, 5000)]);
        assert_eq!(divide(&[1, 1], percent("10%")), [(0, 500), (5000, 500)]);
        assert_eq!(divide(&[9, 1], percent("100%")), [(0, 9000), (9000, 1000)]);
        assert_eq!(divide(&[1, 1, 1], percent("100%")), [(0, 3333), (3333, 3333), (6666, 3334)]);
        assert_eq!(divide(&[1], percent("0%")), [(0, 0)]);
    }

    #[test]
    fn extreme_hashes_map_to_the_first_and_last_slots_and_buckets() {
        assert_eq!((slot(0), bucket(0)), (0, 0));
        assert_eq!((slot(u64::MAX), bucket(u64::MAX)), (SLOTS - 1, BUCKETS - 1));
        assert_eq!((slot(u64::from(u32::MAX)), bucket(u64::from(u32::MAX) << 32)), (0, 0));
    }

    proptest! {
        #[test]
        fn parts_never_overlap_and_a_growing_share_moves_no_unit(
            weights in prop::collection::vec(1_u64..1000, 1..20),
            one in 0_u64..=10_000,
            other in 0_u64..=10_000,
        ) {
            let (small, large) = (one.min(other), one.max(other));
            let small = divide(&weights, Probability::of(small, 10_000));
            let large = divide(&weights, Probability::of(large, 10_000));
            let mut end = 0;
            for (few, many) in small.iter().zip(&large) {
                prop_assert_eq!(few.0, many.0);
                prop_assert!(few.1 <= many.1);
                prop_assert!(many.0 >= end);
                end = many.0 + many.1;
            }
            prop_assert!(end <= SLOTS);
        }
    }
}
