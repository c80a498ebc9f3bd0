//! The world: its systems and networks.

use std::net::{IpAddr, Ipv6Addr};

use uncork_flow::ClientNetwork;
use uncork_units::Rng;

use crate::profile::{Kind, NetworkProfile};

/// The parameters that determine a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldSpec {
    /// Seed of everything in it.
    pub seed: u64,
    /// Client networks (/48 of IPv6), 1 to [`WorldSpec::MAX_NETWORKS`].
    pub networks: u32,
    /// Autonomous systems, 1 to [`WorldSpec::MAX_SYSTEMS`].
    pub systems: u32,
}

/// Why a specification is not a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// The number of networks.
    #[error("{0} networks; expected 1 to {max}", max = WorldSpec::MAX_NETWORKS)]
    Networks(u32),
    /// The number of systems.
    #[error("{0} systems; expected 1 to {max}, and no more than networks", max = WorldSpec::MAX_SYSTEMS)]
    Systems(u32),
}

impl WorldSpec {
    /// Number of /48 in the documentation prefix 2001:db8::/32 (RFC 3849).
    pub const MAX_NETWORKS: u32 = 65_536;
    /// Numbers for private use from 64512 on (RFC 6996).
    pub const MAX_SYSTEMS: u32 = 1_023;
}

impl Default for WorldSpec {
    fn default() -> Self {
        Self { seed: 1, networks: 20_000, systems: 300 }
    }
}

/// Profiles of each system. Each of its networks has one of them.
pub(super) const PROFILES: usize = 3;
/// Countries: XA to XJ, which ISO 3166 leaves to users.
pub(super) const COUNTRIES: u32 = 10;
/// Users of the smallest networks.
const MIN_USERS: f64 = 5_000.0;
/// Users of all other networks.
const USERS: f64 = 1_000_000.0;

const SYSTEM_STREAM: u64 = 1 << 56;
const NETWORK_STREAM: u64 = 2 << 56;
const USER_STREAM: u64 = 3 << 56;

/// Networks in autonomous systems.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) spec: WorldSpec,
    pub(super) systems: Vec<System>,
    pub(super) networks: Vec<WorldNetwork>,
    /// Cumulative shares of the traffic, by network; the last one is 1.
    cumulative: Vec<f64>,
}

/// An autonomous system.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) asn: u32,
    /// Index of its country, which also sets its hours.
    pub(super) country: u32,
    pub(super) profiles: [NetworkProfile; PROFILES],
}

/// A client network.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorldNetwork {
    pub(super) system: u32,
    pub(super) profile: usize,
    /// Its share of the traffic.
    pub(super) share: f64,
    pub(super) users: u64,
}

impl World {
    /// The world of `spec`.
    ///
    /// # Errors
    ///
    /// If a number is out of range.
    pub fn new(spec: WorldSpec) -> Result<Self, WorldError> {
        if !(1..=WorldSpec::MAX_NETWORKS).contains(&spec.networks) {
            return Err(WorldError::Networks(spec.networks));
        }
        if !(1..=WorldSpec::MAX_SYSTEMS.min(spec.networks)).contains(&spec.systems) {
            return Err(WorldError::Systems(spec.systems));
        }
        let systems = (0..spec.systems).map(|nth| System::new(spec.seed, nth)).collect();
        let networks = networks(spec);
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = Vec::with_capacity(networks.len());
        for network in &networks {
            sum += network.share;
            cumulative.push(sum);
        }
        Ok(Self { spec, systems, networks, cumulative })
    }

    /// The network that has the part of the traffic at `at` (from 0 to 1).
    pub(super) fn network_at(&self, at: f64) -> u32 {
        let index = self.cumulative.partition_point(|end| *end <= at);
        index.min(self.networks.len() - 1) as u32
    }

    pub(super) fn system_of(&self, network: u32) -> &System {
        &self.systems[self.networks[network as usize].system as usize]
    }

    pub(super) fn profile_of(&self, network: u32) -> &NetworkProfile {
        &self.system_of(network).profiles[self.networks[network as usize].profile]
    }

    /// The random numbers of a user's line, the same whenever it is used.
    pub(super) fn line(&self, network: u32, user: u64) -> Rng {
        Rng::new(self.spec.seed ^ user.rotate_left(24), USER_STREAM | u64::from(network))
    }
}

impl System {
    fn new(seed: u64, nth: u32) -> Self {
        let mut rng = Rng::new(seed, SYSTEM_STREAM | u64::from(nth));
        let country = rng.below(u64::from(COUNTRIES)) as u32;
        let typical = NetworkProfile::of_system(Kind::draw(&mut rng), &mut rng);
        let profiles = std::array::from_fn(|_| typical.varied(&mut rng));
        Self { asn: 64_512 + nth, country, profiles }
    }

    /// Its country's code.
    pub(super) fn country_code(&self) -> String {
        country_code(self.country)
    }
}

pub(super) fn country_code(country: u32) -> String {
    format!("X{}", char::from(b'A' + (country % 26) as u8))
}

/// The address of a user: 2001:db8:NETWORK::USER.
pub(super) fn address(network: u32, user: u64) -> IpAddr {
    let bits = (0x2001_0db8_u128 << 96) | (u128::from(network) << 80) | u128::from(user);
    Ipv6Addr::from_bits(bits).into()
}

/// The network as records name it.
pub(super) fn network_name(network: u32) -> String {
    ClientNetwork::of(address(network, 0)).to_string()
}

/// Networks with traffic by Zipf's law. Ranks are in random order, and each system has at least one
/// network.
fn networks(spec: WorldSpec) -> Vec<WorldNetwork> {
    let mut rng = Rng::new(spec.seed, NETWORK_STREAM);
    let mut ranks: Vec<u32> = (1..=spec.networks).collect();
    for last in (1..ranks.len()).rev() {
        ranks.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let total: f64 = ranks.iter().map(|rank| 1.0 / f64::from(*rank)).sum();
    let network = |(nth, rank): (u32, u32)| {
        let share = 1.0 / f64::from(rank) / total;
        let any = rng.below(u64::from(spec.systems)) as u32;
        WorldNetwork {
            system: if nth < spec.systems { nth } else { any },
            profile: rng.below(PROFILES as u64) as usize,
            share,
            users: (MIN_USERS + USERS * share) as u64,
        }
    };
    (0..).zip(ranks).map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn world(networks: u32, systems: u32) -> World {
        World::new(WorldSpec { seed: 1, networks, systems }).unwrap()
    }

    #[test]
    fn shares_add_up_and_follow_zipf() {
        let world = world(1000, 30);
        let mut shares: Vec<f64> = world.networks.iter().map(|network| network.share).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        shares.sort_by(f64::total_cmp);
        assert!((shares[999] / shares[990] - 10.0).abs() < 1e-9);
        assert_ne!(world.networks[0].share.to_bits(), shares[999].to_bits());
        let system = |at: u32| (0..1000).any(|network| world.networks[network].system == at);
        assert!((0..30).all(system));
    }

    #[test]
    fn networks_are_found_by_their_part_of_the_traffic() {
        let world = world(10, 2);
        assert_eq!((world.network_at(0.0), world.network_at(1.0)), (0, 9));
        let first = world.networks[0].share;
        assert_eq!((world.network_at(first * 0.99), world.network_at(first * 1.01)), (0, 1));
    }

    #[test]
    fn addresses_are_for_documentation() {
        assert_eq!(address(0xabc, 7).to_string(), "2001:db8:abc::7");
        assert_eq!(network_name(19_999), "2001:db8:4e1f::/48");
        assert_eq!((country_code(0), country_code(9)), ("XA".to_owned(), "XJ".to_owned()));
    }

    #[test]
    fn impossible_worlds_are_refused() {
        for (networks, systems) in [(0, 1), (10, 11)] {
            let error = World::new(WorldSpec { seed: 1, networks, systems }).unwrap_err();
            assert_message!(format!("{networks} {systems}"), error);
        }
    }
}
