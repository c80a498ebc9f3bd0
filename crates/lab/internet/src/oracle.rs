//! The true gain of each controller for each group of networks, by enough simulations.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use uncork_cc::CcSpec;
use uncork_flow::FlowRecord;
use uncork_sim::parallel;
use uncork_units::Rng;

use crate::draw::uniform;
use crate::scene::{NEIGHBOURS, Scene, Visitor};
use crate::traffic::{self, AskedObject};
use crate::world::{self, PROFILES, World};

const ORACLE_STREAM: u64 = 7 << 56;
/// Parts that are left out one at a time to find the error.
const PARTS: u32 = 20;
/// Connections between two looks at the error.
const STEP: u32 = 100;
/// A standard error of a lift that needs no more connections.
const TARGET_ERROR: f64 = 0.005;
/// Limits of a lift: gain or loss, and a loss of 2 %.
const LIMITS: [f64; 2] = [0.0, -0.02];
/// A lift needs no more connections either if it is this many standard errors away from both limits,
const CLEAR_ERRORS: f64 = 5.0;
/// and has at least this many connections: with fewer the error is not known well.
const MIN_CONNECTIONS: u32 = 400;
/// The completion time of an unfinished object, as in `uncork experiment`.
const HOUR_SECONDS: f64 = 3600.0;

/// The controllers to compare, and the sample.
#[derive(Clone, Copy, Debug)]
pub struct OracleSpec {
    /// The controller that clients have.
    pub control: CcSpec,
    /// The controller that is compared with it.
    pub treated: CcSpec,
    /// Connections of each controller for a profile and class, on average: a profile with more of the
    /// traffic has more. This is the maximum. A lift has fewer if its standard error falls to 0.5 %,
    /// or if it is far from 0 and from -2 %.
    pub connections: u32,
    /// Which users are drawn; other numbers draw others.
    pub draw: u16,
}

/// Networks of a system that have the same profile, such as `AS64512:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    asn: u32,
    profile: usize,
}

impl Group {
    /// Whether a network of `world` is in it.
    pub fn is_in(&self, world: &World) -> bool {
        let asn = |network: &world::WorldNetwork| world.systems[network.system as usize].asn;
        world.networks.iter().any(|one| (asn(one), one.profile) == (self.asn, self.profile))
    }
}

impl Display for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "AS{}:{}", self.asn, self.profile)
    }
}

/// A text that is not a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an AS and a profile, 0 to {}, such as AS64512:1", PROFILES - 1)]
pub struct GroupError;

impl FromStr for Group {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        let (asn, profile) =
            text.strip_prefix("AS").and_then(|rest| rest.split_once(':')).ok_or(GroupError)?;
        let asn = asn.parse().map_err(|_| GroupError)?;
        let profile = profile.parse().ok().filter(|&one| one < PROFILES).ok_or(GroupError)?;
        Ok(Self { asn, profile })
    }
}

/// The truth about a world.
#[derive(Clone, Debug)]
pub struct Oracle<'w> {
    world: &'w World,
    /// By system, profile and class; `None` was not asked for.
    lifts: Vec<Option<Lift>>,
}

/// The effect of the treated controller on one class of objects, if all users of the network have
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lift {
    /// The p10 of the throughput in bit/s of large objects, the median completion time in s of small
    /// ones.
    control: f64,
    treated: f64,
    /// Logarithm of the gain; positive is better.
    together: f64,
    /// Its standard error.
    error: f64,
    /// The gain of a user if the neighbours keep the control.
    alone: f64,
    /// The treated controller's share of retransmitted bytes less the control's.
    resent: f64,
    /// Connections of each controller that this follows from.
    connections: u32,
}

impl Lift {
    /// Whether more connections would not change what the lift is used for.
    fn is_known(&self) -> bool {
        let far = LIMITS.map(|limit| (self.together - limit).abs() > CLEAR_ERRORS * self.error);
        self.error <= TARGET_ERROR || (self.connections >= MIN_CONNECTIONS && far == [true; 2])
    }
}

/// A sample of connections of one controller.
#[derive(Debug, Default)]
struct Sample {
    /// Of each response, with the number of its connection: those of one are not independent.
    values: Vec<(u32, f64)>,
    sent: u64,
    resent: u64,
}

impl Sample {
    fn add(
        &mut self,
        connection: u32,
        responses: Vec<FlowRecord>,
        value: impl Fn(&FlowRecord) -> f64,
    ) {
        for response in responses {
            self.values.push((connection, value(&response)));
            self.sent += response.bytes_sent;
            self.resent += response.bytes_retransmitted;
        }
    }

    fn resent_share(&self) -> f64 {
        self.resent as f64 / self.sent.max(1) as f64
    }
}

/// Connections of the same users.
#[derive(Debug, Default)]
struct OracleSamples {
    control: Sample,
    treated: Sample,
    /// Treated, with neighbours that keep the control.
    alone: Sample,
}

/// Simulates all profiles of `world`, or each group of `only` with as many connections, on up to
/// `jobs` threads; `None` once `stop` is set.
pub fn oracle<'w>(
    world: &'w World,
    spec: &OracleSpec,
    only: &[Group],
    jobs: usize,
    stop: &AtomicBool,
) -> Option<Oracle<'w>> {
    let count = world.systems.len() * PROFILES * 2;
    let lifts = parallel::map_until(stop, count, jobs, |nth| {
        let (system, rest) = (nth / (PROFILES * 2), nth % (PROFILES * 2));
        let at = OraclePlace { world, system, profile: rest / 2, is_large: rest % 2 == 0 };
        if only.is_empty() {
            Some(at.lift(OracleSpec { connections: at.most(spec.connections), ..*spec }))
        } else {
            only.contains(&at.group()).then(|| at.lift(*spec))
        }
    });
    (lifts.len() == count).then_some(Oracle { world, lifts })
}

impl Oracle<'_> {
    /// A line for each network and class that was asked for, as CSV.
    pub fn csv(&self) -> String {
        let head = "network,asn,country,kind,profile,share,class,control,treated,lift,error,alone,resent,connections\n";
        let mut text = head.to_owned();
        for (nth, network) in (0..).zip(&self.world.networks) {
            let system = &self.world.systems[network.system as usize];
            let kind = system.profiles[network.profile].kind;
            for (offset, class) in ["large", "small"].into_iter().enumerate() {
                let at = (network.system as usize * PROFILES + network.profile) * 2 + offset;
                let Some(lift) = self.lifts[at] else { continue };
                let Lift { control, treated, together, error, alone, resent, connections } = lift;
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{},AS{},{},{kind},{},{:.9},{class},{control:.6},{treated:.6},{together:.6},{error:.6},{alone:.6},{resent:.6},{connections}",
                    world::network_name(nth),
                    system.asn,
                    system.country_code(),
                    network.profile,
                    network.share,
                );
            }
        }
        text
    }
}

/// A profile of a system, and a class of objects.
struct OraclePlace<'w> {
    world: &'w World,
    system: usize,
    profile: usize,
    is_large: bool,
}

impl OraclePlace<'_> {
    /// The lift by as many connections as it takes.
    fn lift(&self, spec: OracleSpec) -> Lift {
        let Some(network) = self.network() else {
            // No network has it, so the lift is not used.
            return Lift::default();
        };
        let mut samples = OracleSamples::default();
        let mut count = 0;
        loop {
            let more = count..spec.connections.min(count + STEP);
            count = more.end;
            self.extend(&mut samples, network, more, spec);
            let lift = self.of(&samples, count);
            if count == spec.connections || lift.is_known() {
                return lift;
            }
        }
    }

    /// The lift that follows from these samples of `connections` each.
    fn of(&self, samples: &OracleSamples, connections: u32) -> Lift {
        let OracleSamples { control, treated, alone } = samples;
        let lift = |treated: &Sample, without: Option<u32>| {
            let [one, other] =
                [control, treated].map(|sample| self.statistic(&sample.values, without));
            let ratio = libm::log(other / one);
            if self.is_large { ratio } else { -ratio }
        };
        let together = lift(treated, None);
        let has_neighbours = !alone.values.is_empty();
        Lift {
            control: self.statistic(&control.values, None),
            treated: self.statistic(&treated.values, None),
            together,
            error: jackknife(|part| lift(treated, Some(part))),
            alone: if has_neighbours { lift(alone, None) } else { together },
            resent: treated.resent_share() - control.resent_share(),
            connections,
        }
    }

    /// The share of all connections that it has by its traffic: errors of lifts are weighed by that.
    fn most(&self, mean: u32) -> u32 {
        let of_it = self.world.networks.iter().filter(|network| self.has(network));
        let share: f64 = of_it.map(|network| network.share).sum();
        let places = (self.world.systems.len() * PROFILES) as f64;
        ((f64::from(mean) * share * places) as u32).max(mean.min(STEP))
    }

    /// Any network that has the profile: they differ in size alone.
    fn network(&self) -> Option<u32> {
        let mut networks = self.world.networks.iter();
        networks.position(|network| self.has(network)).map(|at| at as u32)
    }

    fn group(&self) -> Group {
        Group { asn: self.world.systems[self.system].asn, profile: self.profile }
    }

    fn has(&self, network: &world::WorldNetwork) -> bool {
        (network.system as usize, network.profile) == (self.system, self.profile)
    }

    /// Adds these connections to each sample.
    fn extend(
        &self,
        samples: &mut OracleSamples,
        network: u32,
        more: Range<u32>,
        spec: OracleSpec,
    ) {
        let OracleSpec { control, treated, .. } = spec;
        let has_neighbours = self.world.profile_of(network).uplink.is_some();
        for nth in more {
            let add = |sample: &mut Sample, cc, neighbours| {
                let responses = self.connection(network, (spec.draw, nth), cc, neighbours);
                sample.add(nth, responses, |response| self.value(response));
            };
            add(&mut samples.control, control, control);
            add(&mut samples.treated, treated, treated);
            // No decision depends on it, so it need not be exact.
            if has_neighbours && nth < MIN_CONNECTIONS {
                add(&mut samples.alone, treated, control);
            }
        }
    }

    /// The responses on the `nth` connection of a draw. Users, hours, sizes and losses are the same for all
    /// controllers.
    fn connection(
        &self,
        network: u32,
        (draw, nth): (u16, u32),
        cc: CcSpec,
        neighbours: CcSpec,
    ) -> Vec<FlowRecord> {
        let place = (self.system * PROFILES + self.profile) * 2 + usize::from(self.is_large);
        let stream = ORACLE_STREAM | u64::from(draw) << 40 | (place as u64) << 24 | u64::from(nth);
        let mut rng = Rng::new(self.world.spec.seed, stream);
        let users = self.world.networks[network as usize].users;
        let hour = loop {
            let hour = rng.below(24) as u32;
            if uniform(&mut rng) < traffic::intensity(hour) {
                break hour;
            }
        };
        let asked =
            if self.is_large { AskedObject::large(&mut rng) } else { AskedObject::other(&mut rng) };
        let user = traffic::user(&mut rng, users);
        let mut visitors = vec![Visitor { user, asked, cc, is_kept: true }];
        let cross = self.world.cross_flows(network, hour, asked);
        if cross > 0 {
            visitors.extend((0..NEIGHBOURS).map(|_| Visitor {
                user: traffic::user(&mut rng, users),
                asked: AskedObject::large(&mut rng),
                cc: neighbours,
                is_kept: false,
            }));
        }
        let seed = rng.next_u64();
        Scene { network, visitors, cross, seed }.play(self.world).responses.swap_remove(0)
    }

    fn value(&self, flow: &FlowRecord) -> f64 {
        if self.is_large {
            flow.bytes_acked as f64 * 8e9 / flow.busy_ns.max(1) as f64
        } else {
            flow.completion_ns.map_or(HOUR_SECONDS, |time| time as f64 / 1e9)
        }
    }

    /// The p10 or the median, without the values of a part.
    fn statistic(&self, values: &[(u32, f64)], without: Option<u32>) -> f64 {
        let kept = values.iter().filter(|(nth, _)| Some(nth % PARTS) != without);
        let kept: Vec<f64> = kept.map(|(_, value)| *value).collect();
        let share = if self.is_large { 0.1 } else { 0.5 };
        uncork_flow::quantile(&kept, share).unwrap_or(f64::NAN)
    }
}

/// The standard error of an estimate by leaving out one part at a time.
fn jackknife(estimate: impl Fn(u32) -> f64) -> f64 {
    let without: Vec<f64> = (0..PARTS).map(estimate).collect();
    let mean = without.iter().sum::<f64>() / f64::from(PARTS);
    let squares: f64 = without.iter().map(|one| (one - mean) * (one - mean)).sum();
    libm::sqrt(squares * f64::from(PARTS - 1) / f64::from(PARTS))
}

#[cfg(test)]
mod tests {
    use uncork_cc::Algorithm;

    use super::*;
    use crate::{Kind, WorldSpec};

    fn spec(control: Algorithm, treated: Algorithm, connections: u32) -> OracleSpec {
        let [control, treated] = [control, treated].map(CcSpec::new);
        OracleSpec { control, treated, connections, draw: 0 }
    }

    fn world() -> World {
        World::new(WorldSpec { seed: 3, networks: 40, systems: 12 }).unwrap()
    }

    #[test]
    fn equal_controllers_have_no_lift() {
        let (world, same) = (world(), spec(Algorithm::Cubic, Algorithm::Cubic, 40));
        let found = oracle(&world, &same, &[], 2, &AtomicBool::new(false)).unwrap();
        let lifts: Vec<Lift> = found.lifts.iter().map(|lift| lift.unwrap()).collect();
        assert!(lifts.iter().all(|lift| lift.together == 0.0 && lift.error == 0.0));
        // At the first look their equality is known. Profiles that no network has are not simulated.
        let counts = lifts.iter().map(|lift| lift.connections);
        assert!(counts.clone().all(|count| count == 0 || (40..=STEP).contains(&count)));
        assert!(
            counts.clone().any(|count| count == 40) && counts.clone().any(|count| count == STEP)
        );
        assert_eq!(found.csv().lines().count(), 1 + 2 * 40);
        assert!(oracle(&world, &same, &[], 2, &AtomicBool::new(true)).is_none());
    }

    /// Other users than those of the first draw, with as many connections as are asked for.
    #[test]
    fn a_group_is_simulated_again_with_other_users() {
        let (world, other) = (world(), spec(Algorithm::Cubic, Algorithm::Bbr3, 30));
        let network = world.networks[0];
        let asn = world.systems[network.system as usize].asn;
        let group: Group = format!("AS{asn}:{}", network.profile).parse().unwrap();
        let rows = |draw| {
            let spec = OracleSpec { draw, ..other };
            let found = oracle(&world, &spec, &[group], 2, &AtomicBool::new(false)).unwrap().csv();
            found.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let (first, second) = (rows(0), rows(1));
        assert!(first.len() == second.len() && first.len() < 2 * 40 && !first.is_empty());
        assert!(
            first.iter().all(|row| row.contains(&format!(",AS{asn},")) && row.ends_with(",30"))
        );
        assert_ne!(first, second);
        assert_eq!(first, rows(0));
    }

    /// The chunks of songs are small objects, too: a controller is judged by them as it is in the records.
    #[test]
    fn small_objects_are_those_of_a_day() {
        let world = world();
        let network = &world.networks[0];
        let at = OraclePlace {
            world: &world,
            system: network.system as usize,
            profile: network.profile,
            is_large: false,
        };
        let cubic = CcSpec::new(Algorithm::Cubic);
        let responses = |nth| at.connection(0, (0, nth), cubic, cubic).len();
        let songs = (0..400).filter(|&nth| responses(nth) > 1).count();
        assert!((20..60).contains(&songs), "{songs} of 400");
    }

    #[test]
    fn groups_are_read() {
        assert_eq!("AS64512:2".parse(), Ok(Group { asn: 64_512, profile: 2 }));
        for text in ["", "AS64512", "64512:0", "AS64512:3", "AS:1", "ASx:1", "AS1:0:0"] {
            assert_eq!(text.parse::<Group>(), Err(GroupError), "{text}");
        }
    }

    /// A lift with a small error is not simulated further.
    #[test]
    fn a_lift_has_as_many_connections_as_it_needs() {
        let (world, same) = (world(), spec(Algorithm::Cubic, Algorithm::Cubic, 400));
        let network = world.networks[0];
        let at = OraclePlace {
            world: &world,
            system: network.system as usize,
            profile: network.profile,
            is_large: true,
        };
        assert_eq!(at.lift(same).connections, STEP);
        let other = at.lift(spec(Algorithm::Cubic, Algorithm::Bbr3, 400));
        assert!(other.connections == 400 || other.error <= TARGET_ERROR, "{other:?}");
    }

    /// A gain that is beyond doubt needs no exact figure.
    #[test]
    fn a_lift_far_from_the_limits_is_known() {
        let of =
            |together, error, connections| Lift { together, error, connections, ..Lift::default() };
        assert!(of(0.5, 0.09, 400).is_known() && !of(0.5, 0.09, 300).is_known());
        assert!(of(-0.5, 0.09, 400).is_known() && !of(0.5, 0.11, 400).is_known());
        // Surely not worse by 2 %, but perhaps not a gain.
        assert!(!of(0.02, 0.0079, 1000).is_known());
        assert!(of(0.001, 0.004, 100).is_known());
    }

    /// Where neighbours share a full uplink, a client that changes alone takes from them.
    #[test]
    fn on_a_shared_uplink_a_trial_is_not_the_total_effect() {
        let world = World::new(WorldSpec { seed: 2, networks: 60, systems: 12 }).unwrap();
        let of_kind = |kind| {
            let is_it = |system: &world::System| system.profiles[0].kind == kind;
            world.systems.iter().position(is_it).unwrap()
        };
        let lift = |kind| {
            let at =
                OraclePlace { world: &world, system: of_kind(kind), profile: 0, is_large: true };
            at.lift(spec(Algorithm::Cubic, Algorithm::Bbr3, 100))
        };
        let (shared, own) = (lift(Kind::Shared), lift(Kind::Wifi));
        assert_eq!(own.alone.to_bits(), own.together.to_bits());
        assert!(shared.alone > shared.together + 0.05, "{shared:?}");
    }
}
