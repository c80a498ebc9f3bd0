//! The lines that the world's users truly have, to hold estimates of them against.

use std::fmt::Write;

use uncork_sim::PACKET_BYTES;
use uncork_units::Rng;

use crate::draw::uniform;
use crate::traffic;
use crate::world::{self, World};

const LINES_STREAM: u64 = 8 << 56;

/// The lines of `count` users with large objects, who are drawn by traffic as their connections are: a
/// line of CSV each.
pub fn lines(world: &World, count: u32) -> String {
    let head = "network,asn,country,kind,profile,rate_bps,rtt_ms,loss,buffer_bytes,policer_bps\n";
    let mut text = head.to_owned();
    let mut rng = Rng::new(world.spec.seed, LINES_STREAM);
    for _ in 0..count {
        let network = world.network_at(uniform(&mut rng));
        let user = traffic::user(&mut rng, world.networks[network as usize].users);
        let (system, profile) = (world.system_of(network), world.profile_of(network));
        let path = profile.path(&mut world.line(network, user));
        let policer = path.link.policer.map_or(0, |policer| policer.rate.bits_per_sec());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},AS{},{},{},{},{},{:.3},{:.8},{},{policer}",
            world::network_name(network),
            system.asn,
            system.country_code(),
            profile.kind,
            world.networks[network as usize].profile,
            path.link.nominal_rate().bits_per_sec(),
            path.rtt.as_millis_f64(),
            path.loss.mean(),
            path.buffer_bytes(PACKET_BYTES),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldSpec;

    #[test]
    fn lines_are_those_of_their_kinds() {
        let world = World::new(WorldSpec { seed: 3, networks: 40, systems: 12 }).unwrap();
        let text = lines(&world, 500);
        assert_eq!(text, lines(&world, 500));
        let rows: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 500);
        for row in &rows {
            assert_eq!(row[9] != "0", row[3] == "policed", "{row:?}");
            assert!(
                row[5].parse::<u64>().unwrap() > 200_000 && row[6].parse::<f64>().unwrap() >= 2.0
            );
        }
    }
}
