//! Experiments: a deterministic share of the clients, each in one of several arms.

use std::fmt;
use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;
use uncork_units::Probability;

use crate::headers::any_cookie;
use crate::prefix::Prefix;
use crate::{Assignment, Fact, Facts, Headers, Settings};

/// The parts that all units are dealt to, of which arms take some: a hundredth of a percent each.
pub const SLOTS: u16 = 10_000;

/// The parts that units are dealt to for the analysis (a jackknife over them), whatever their arms.
pub const BUCKETS: u8 = 100;

/// Bits of an address that make a client: those that a subscriber or a site usually has.
const CLIENT_BITS: (u8, u8) = (24, 48);

/// What an experiment deals to its arms.
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
    /// The secret of the whole policy.
    pub(crate) key: [u8; 16],
    pub(crate) arms: Box<[Arm]>,
    /// How rules name it.
    pub(crate) written: Box<str>,
}

/// An arm, and the slots that it has.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: Box<str>,
    pub(crate) settings: Settings,
    pub(crate) first: u16,
    pub(crate) slots: u16,
}

/// Where the slots of arms begin and how many each has.
///
/// All slots are divided by `weights`, and each arm takes `share` of its part from the beginning.
/// So a share that grows moves nobody from one arm to another.
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
    /// What this unit is given, if it takes part.
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
            propensity: Probability::of(u64::from(arm.slots), u64::from(SLOTS)),
        };
        Some((assignment, &arm.settings))
    }

    /// The hash of the unit that `facts` are of.
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
                // An empty value tells nobody from anybody.
                hash = (!value.is_empty()).then(|| self.digest(kind, value));
                hash.is_some()
            });
            Fact::known_or_absent(hash)
        })
    }

    /// SipHash-2-4, keyed: nobody without the key can choose an arm or tell a client from its hash.
    /// The byte 0xff, which no text has, ends the salt.
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

/// The upper half of the hash decides the arm.
pub(crate) fn slot(hash: u64) -> u16 {
    (((hash >> 32) * u64::from(SLOTS)) >> 32) as u16
}

/// The lower half decides the bucket, so that each arm has units in every bucket.
fn bucket(hash: u64) -> u8 {
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
    fn the_hash_is_siphash() {
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
    fn the_ends_of_the_hash_are_the_ends_of_slots_and_buckets() {
        assert_eq!((slot(0), bucket(0)), (0, 0));
        assert_eq!((slot(u64::MAX), bucket(u64::MAX)), (SLOTS - 1, BUCKETS - 1));
        assert_eq!((slot(u64::from(u32::MAX)), bucket(u64::from(u32::MAX) << 32)), (0, 0));
    }

    proptest! {
        #[test]
        fn parts_never_overlap_and_a_growing_share_moves_nobody(
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
