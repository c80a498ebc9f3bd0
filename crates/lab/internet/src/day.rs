//! A day under a policy: which connections there are, and their records.

use std::sync::atomic::AtomicBool;

use smol_str::format_smolstr;
use uncork_flow::{Arm, Choice, ClientNetwork, FlowRecord, Scope, Service};
use uncork_policy::{Decision, Fact, Facts, Origin, Policy, UnixTime};
use uncork_sim::parallel;
use uncork_units::{ByteCount, Probability, Rng};

use crate::draw::uniform;
use crate::scene::{NEIGHBOURS, Scene, Visitor};
use crate::traffic::{self, AskedObject};
use crate::world::{self, World};

const DAY_STREAM: u64 = 5 << 56;
const OTHERS_STREAM: u64 = 6 << 56;
const HOUR_SECONDS: u64 = 3_600;
/// Visits that one thread draws at a time.
const CHUNK: u64 = 200;
/// Connections for each visit that is drawn: 2.08 for each that takes place, which are 1 / 1.7.
const CONNECTIONS_PER_DRAW: f64 = 2.08 / 1.7;
/// The listener in records and for the policy.
const LISTENER: &str = "public";

/// A day in a world.
#[derive(Clone, Copy, Debug)]
pub struct Day<'a> {
    /// The world.
    pub world: &'a World,
    /// The active policy, with its table.
    pub policy: &'a Policy,
    /// The day since 1970.
    pub day: u32,
    /// Connections of the day, all together; about as many are drawn.
    pub connections: u64,
    /// The part of the connections that no experiment decides on that are simulated and recorded.
    pub others: Probability,
}

/// Records, and what they cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DayOutcome {
    /// A response each, in no order of time.
    pub records: Vec<FlowRecord>,
    /// Connections that were drawn.
    pub drawn: u64,
    /// Connections that were simulated, with neighbours.
    pub simulated: u64,
    /// Packets of data in these.
    pub packets: u64,
}

/// A connection and what the policy says about it.
struct DayDecision<'p> {
    visitor: Visitor,
    decision: Decision<'p>,
}

impl Day<'_> {
    /// The records of an hour (UTC), on up to `jobs` threads, which do not change them. Incomplete
    /// once `stop` is set.
    pub fn hour(&self, hour: u32, jobs: usize, stop: &AtomicBool) -> DayOutcome {
        let draws = (self.connections as f64 / 24.0 / CONNECTIONS_PER_DRAW).round() as u64;
        let chunks = draws.div_ceil(CHUNK);
        let parts = parallel::map_until(stop, chunks as usize, jobs, |nth| {
            let nth = nth as u64;
            self.chunk(hour, nth, CHUNK.min(draws - nth * CHUNK))
        });
        let mut hour = DayOutcome::default();
        for part in parts {
            hour.records.extend(part.records);
            hour.drawn += part.drawn;
            hour.simulated += part.simulated;
            hour.packets += part.packets;
        }
        hour
    }

    fn chunk(&self, hour: u32, nth: u64, draws: u64) -> DayOutcome {
        let stream = DAY_STREAM | u64::from(self.day) << 32 | u64::from(hour) << 24 | nth;
        let mut rng = Rng::new(self.world.spec.seed, stream);
        let mut outcome = DayOutcome::default();
        for _ in 0..draws {
            let network = self.world.network_at(uniform(&mut rng));
            let local = traffic::local_hour(hour, self.world.system_of(network).country);
            if uniform(&mut rng) < traffic::intensity(local) {
                self.visit((hour, local), network, &mut rng, &mut outcome);
            }
        }
        outcome
    }

    /// A visit of one user: some connections within the hour.
    fn visit(
        &self,
        (hour, local): (u32, u32),
        network: u32,
        rng: &mut Rng,
        outcome: &mut DayOutcome,
    ) {
        let users = self.world.networks[network as usize].users;
        let user = traffic::user(rng, users);
        for _ in 0..traffic::visit_length(rng) {
            let at = u64::from(hour) * HOUR_SECONDS + rng.below(HOUR_SECONDS);
            let seconds = u64::from(self.day) * 86_400 + at;
            let first = AskedObject::draw(rng);
            let cross = self.world.cross_flows(network, local, first);
            let mut asked = vec![(user, first)];
            if cross > 0 {
                asked.extend(
                    (0..NEIGHBOURS).map(|_| (traffic::user(rng, users), AskedObject::large(rng))),
                );
            }
            let seed = rng.next_u64();
            self.scene(network, (seconds, seed), &asked, cross, outcome);
        }
    }

    fn scene(
        &self,
        network: u32,
        (seconds, seed): (u64, u64),
        asked: &[(u64, AskedObject)],
        cross: usize,
        outcome: &mut DayOutcome,
    ) {
        let mut others = Rng::new(seed, OTHERS_STREAM);
        let decided: Vec<DayDecision> = asked
            .iter()
            .map(|&(user, asked)| {
                let decision = self.decide(network, user, asked, seconds);
                let is_chosen = self.others.happens(&mut others);
                let is_kept = decision.experiment.is_some() || is_chosen;
                let visitor = Visitor { user, asked, cc: decision.settings.quic, is_kept };
                DayDecision { visitor, decision }
            })
            .collect();
        outcome.drawn += decided.len() as u64;
        if !decided.iter().any(|one| one.visitor.is_kept) {
            return;
        }
        let visitors = decided.iter().map(|one| one.visitor).collect();
        let played = Scene { network, visitors, cross, seed }.play(self.world);
        outcome.simulated += decided.len() as u64;
        outcome.packets += played.packets;
        for (one, responses) in
            decided.iter().zip(played.responses).filter(|(one, _)| one.visitor.is_kept)
        {
            let record = |response| self.record(network, one, seconds, response);
            outcome.records.extend(responses.into_iter().map(record));
        }
    }

    /// The decision of a server that knows all of the request.
    fn decide(&self, network: u32, user: u64, asked: AskedObject, seconds: u64) -> Decision<'_> {
        let system = self.world.system_of(network);
        let country = system.country_code().parse().ok();
        let origin = Origin { asn: Some(system.asn), country };
        let cookies = [("cookie", format!("uid={network}-{user}"))];
        let (path, bytes) = match asked {
            AskedObject::Object(bytes) => ("/object", bytes),
            AskedObject::Song => ("/song", traffic::song().chunk),
        };
        let accepted = UnixTime(seconds.cast_signed());
        let facts = Facts {
            host: Fact::Known("internet.example"),
            path: Fact::Known(path),
            headers: Fact::Known(&cookies),
            size: Fact::Known(ByteCount::new(bytes)),
            ..Facts::at_accept(LISTENER, world::address(network, user), accepted, origin)
        };
        self.policy.decide(&facts.with_whole_origin().with_whole_request())
    }

    /// The record as `uncork serve` writes it.
    fn record(
        &self,
        network: u32,
        one: &DayDecision<'_>,
        seconds: u64,
        response: FlowRecord,
    ) -> FlowRecord {
        let system = self.world.system_of(network);
        let client = ClientNetwork::of(world::address(network, one.visitor.user));
        let start_unix_ns = seconds * 1_000_000_000 + response.start_ns;
        let min_rtt = response.rtt_ms.map(|rtt| (rtt.min * 1e6) as u64);
        let service = Service {
            host: Some("internet.example".into()),
            client: Some(format_smolstr!("{client}")),
            asn: Some(system.asn),
            country: Some(system.country_code().into()),
            status: Some(200),
            object_bytes: response.size_bytes,
            responses: 1,
            broken_off: u64::from(response.completion_ns.is_none()),
            min_rtt_ns: min_rtt,
            ..Service::blank(Scope::Response, start_unix_ns, "h1", LISTENER)
        };
        let choice = self.choice(&one.decision, &response);
        FlowRecord {
            seed: self.world.spec.seed,
            group: choice.rule.clone(),
            service: Some(service),
            choice: Some(Box::new(choice)),
            ..response
        }
    }

    fn choice(&self, decision: &Decision<'_>, response: &FlowRecord) -> Choice {
        Choice {
            policy: format_smolstr!("{:016x}", self.policy.fingerprint()),
            rule: decision.by.rule_name().into(),
            cc: Some(response.cc.clone()),
            arm: decision.experiment.map(|arm| Arm {
                experiment: arm.experiment.into(),
                arm: arm.arm.into(),
                unit: arm.unit,
                bucket: arm.bucket,
                propensity: arm.propensity.as_f64(),
            }),
        }
    }
}

impl World {
    /// Other people's flows on the network's uplink in a local hour. A song is always alone: its
    /// simulation with them would last most of a minute.
    pub(super) fn cross_flows(&self, network: u32, local_hour: u32, asked: AskedObject) -> usize {
        let is_shared = self.profile_of(network).uplink.is_some() && asked != AskedObject::Song;
        if is_shared { traffic::cross_flows(local_hour) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use uncork_flow::FlowRecord;

    use super::*;
    use crate::{POLICY, WorldSpec};

    const MONDAY: u32 = 20_759;

    fn world() -> World {
        World::new(WorldSpec { seed: 3, networks: 40, systems: 12 }).unwrap()
    }

    fn hour(policy: &str, others: &str, hour: u32, jobs: usize) -> DayOutcome {
        let (world, policy) = (world(), Policy::parse("test", policy).unwrap());
        let others = others.parse().unwrap();
        let day = Day { world: &world, policy: &policy, day: MONDAY, connections: 24_000, others };
        day.hour(hour, jobs, &AtomicBool::new(false))
    }

    fn arm(record: &FlowRecord) -> Option<&Arm> {
        record.choice.as_ref()?.arm.as_ref()
    }

    #[test]
    fn threads_do_not_change_the_records() {
        let one = hour(POLICY, "5%", 20, 1);
        assert!(one.records.len() > 50 && one.packets > 10_000, "{}", one.records.len());
        assert_eq!(one, hour(POLICY, "5%", 20, 3));
        assert_ne!(one, hour(POLICY, "5%", 19, 3));
    }

    #[test]
    fn the_policy_chooses_arm_and_controller() {
        let outcome = hour(POLICY, "100%", 20, 2);
        let arms: Vec<(&str, Option<&str>)> = outcome
            .records
            .iter()
            .map(|record| (&*record.cc, arm(record).map(|arm| &*arm.arm)))
            .collect();
        let count = |of: (&str, Option<&str>)| arms.iter().filter(|one| **one == of).count();
        let [control, treated] = [count(("cubic", Some("control"))), count(("bbr3", Some("bbr")))];
        let rest = count(("cubic", None));
        assert_eq!(control + treated + rest, arms.len());
        // A tenth of the users. Some of them come often.
        let share = (control + treated) as f64 / arms.len() as f64;
        assert!((0.05..0.2).contains(&share), "{share}");
        assert!(control.min(treated) * 2 > control.max(treated), "{control} and {treated}");
    }

    #[test]
    fn a_sample_has_the_experiment_whole() {
        let experiment = |others| -> Vec<FlowRecord> {
            let records = hour(POLICY, others, 20, 2).records;
            records.into_iter().filter(|record| arm(record).is_some()).collect()
        };
        let (all, few) = (hour(POLICY, "100%", 20, 2), hour(POLICY, "0%", 20, 2));
        assert_eq!(experiment("100%"), experiment("0%"));
        assert_eq!(few.records, experiment("0%"));
        assert!(few.simulated < all.simulated && few.drawn == all.drawn);
    }

    #[test]
    fn records_are_those_of_a_server() {
        let outcome = hour(POLICY, "20%", 7, 2);
        let begin = u64::from(MONDAY) * 86_400 + 7 * HOUR_SECONDS;
        for record in &outcome.records {
            let service = record.service.as_ref().unwrap();
            let second = service.start_unix_ns / 1_000_000_000;
            // A song's later chunks may begin after the hour.
            assert!((begin..begin + HOUR_SECONDS + 60).contains(&second));
            assert!(service.client.as_ref().unwrap().ends_with("::/48"));
            assert!((64_512..64_524).contains(&service.asn.unwrap()));
            assert_eq!(service.broken_off == 0, record.completion_ns.is_some());
            assert!(record.lab.is_none() && record.playback.is_none());
        }
        let songs = outcome.records.iter().filter(|record| record.size_bytes == Some(512_000));
        assert!(songs.count() > 3);
    }

    #[test]
    fn about_as_many_connections_are_drawn_as_asked_for() {
        let (world, policy) = (world(), Policy::parse("test", POLICY).unwrap());
        let others = Probability::NEVER;
        let day = Day { world: &world, policy: &policy, day: MONDAY, connections: 100_000, others };
        let stop = AtomicBool::new(false);
        let drawn: u64 = (0..24).map(|hour| day.hour(hour, 2, &stop).drawn).sum();
        assert!(drawn.abs_diff(100_000) < 10_000, "{drawn}");
    }
}
