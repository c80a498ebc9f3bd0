//! Connections that share an uplink, or a single one, simulated.

use uncork_apps::ClientSpec;
use uncork_cc::{Algorithm, CcSpec};
use uncork_flow::{FlowRecord, RequestRecord};
use uncork_path::{Buffer, HostJitter, LinkSpec, PathSpec};
use uncork_sim::{FlowSpec, Offload, RunResult, RunSpec, Simulation, Workload};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::draw::uniform;
use crate::profile::{bits, millis};
use crate::traffic::{self, AskedObject};
use crate::world::World;

/// A connection is aborted after this time.
const CONNECTION_TIMEOUT: TimeDelta = TimeDelta::from_secs(180);
/// Other people's flows on a full uplink begin this long before.
const LEAD: TimeDelta = TimeDelta::from_secs(2);
/// Users of a full uplink that download at the same time, next to other people's flows.
pub(super) const NEIGHBOURS: usize = 2;
const BEGIN_STREAM: u64 = 4 << 56;

/// A user's connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    pub(super) user: u64,
    pub(super) asked: AskedObject,
    pub(super) cc: CcSpec,
    /// Whether its record is used. The simulation ends when all such connections have ended.
    pub(super) is_kept: bool,
}

/// Connections of one network at one time.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) network: u32,
    pub(super) visitors: Vec<Visitor>,
    /// Other people's flows on the network's uplink; without them it does not limit.
    pub(super) cross: usize,
    pub(super) seed: u64,
}

/// The responses of each visitor, in order, and the packets that were sent.
pub(super) struct PlayedScene {
    pub(super) responses: Vec<Vec<FlowRecord>>,
    pub(super) packets: u64,
}

impl Scene {
    pub(super) fn play(&self, world: &World) -> PlayedScene {
        let spec = self.spec(world);
        let result = if self.cross == 0 { uncork_sim::run(&spec) } else { self.until_done(&spec) };
        let responses = (0..).zip(&self.visitors).map(|(at, _)| responses(&result, at)).collect();
        PlayedScene { responses, packets: result.packets }
    }

    fn spec(&self, world: &World) -> RunSpec {
        let profile = world.profile_of(self.network);
        let path = |visitor: &Visitor| {
            let path = profile.path(&mut world.line(self.network, visitor.user));
            PathSpec { via: self.via(), ..path }
        };
        let mut paths: Vec<PathSpec> = self.visitors.iter().map(path).collect();
        let mut flows = self.flows();
        let mut links = Vec::new();
        if self.cross > 0 {
            let uplink = profile.uplink.unwrap_or(1e9);
            links.push(LinkSpec::new(bits(uplink), Buffer::MilliBdp(1500)));
            let other = PathSpec::new(Rate::from_mbit(1000), millis(40.0), Buffer::MilliBdp(1000));
            paths.push(PathSpec { via: self.via(), ..other });
            flows.extend((0..self.cross).map(|_| FlowSpec {
                path: self.visitors.len(),
                ..FlowSpec::new(CcSpec::new(Algorithm::Cubic), Workload::Until(end()))
            }));
        }
        RunSpec {
            links,
            paths,
            clients: vec![ClientSpec::Audio(traffic::song())],
            commands: Vec::new(),
            receive_window_steps: Vec::new(),
            migrations: Vec::new(),
            flows,
            host_jitter: HostJitter::Usual,
            offload: Offload::None,
            card: None,
            seed: self.seed,
            warmup: Time::ZERO,
            end: end(),
            sample_every: None,
        }
    }

    fn via(&self) -> Vec<usize> {
        if self.cross > 0 { vec![0] } else { Vec::new() }
    }

    /// The visitors' flows. Neighbours begin within the time that other people's flows had before.
    fn flows(&self) -> Vec<FlowSpec> {
        let mut rng = Rng::new(self.seed, BEGIN_STREAM);
        let mut flow = |(path, visitor): (usize, &Visitor)| {
            let workload = match visitor.asked {
                AskedObject::Object(bytes) => Workload::Transfer(bytes),
                AskedObject::Song => Workload::Client(0),
            };
            let late = millis(uniform(&mut rng) * LEAD.as_millis_f64());
            let start = if self.cross > 0 { Time::ZERO + LEAD + late } else { Time::ZERO };
            FlowSpec { path, start, ..FlowSpec::new(visitor.cc, workload) }
        };
        self.visitors.iter().enumerate().map(&mut flow).collect()
    }

    /// Simulates until the kept connections are over: other people's flows never are, and what
    /// neighbours do afterwards changes no record.
    fn until_done(&self, spec: &RunSpec) -> RunResult {
        let mut run = Simulation::new(spec);
        let mut until = Time::ZERO + LEAD + LEAD;
        loop {
            while run.step_until(until) {}
            let mut kept = (0..).zip(&self.visitors).filter(|(_, visitor)| visitor.is_kept);
            let is_done = kept.all(|(at, visitor)| {
                run.is_over(at)
                    || match (run.view(at), visitor.asked) {
                        (Some(view), AskedObject::Object(bytes)) => view.in_order_bytes >= bytes,
                        _ => false,
                    }
            });
            if is_done || until >= spec.end {
                return run.into_result();
            }
            until += TimeDelta::from_millis(250);
        }
    }
}

/// When even the last connection is aborted.
fn end() -> Time {
    Time::ZERO + LEAD + LEAD + CONNECTION_TIMEOUT
}

/// The responses on a connection: its transfer, or one for each chunk of its song.
fn responses(result: &RunResult, at: u32) -> Vec<FlowRecord> {
    let flow = &result.flows[at as usize];
    let mut responses: Vec<FlowRecord> = Vec::new();
    let requests: Vec<&RequestRecord> =
        result.requests.iter().filter(|request| request.flow == at).collect();
    let total: u64 = requests.iter().map(|request| request.size_bytes).sum();
    for request in &requests {
        let part = |count: u64| part_of(count, request.size_bytes, total);
        responses.push(FlowRecord {
            start_ns: request.start_ns,
            completion_ns: request.completion_ns,
            first_byte_ns: request.first_byte_ns,
            busy_ns: request.completion_ns.unwrap_or(flow.busy_ns),
            size_bytes: Some(request.size_bytes),
            bytes_delivered: request.bytes_delivered,
            bytes_acked: request.bytes_delivered,
            bytes_sent: part(flow.bytes_sent),
            bytes_retransmitted: part(flow.bytes_retransmitted),
            packets_sent: part(flow.packets_sent),
            packets_lost: part(flow.packets_lost),
            timeouts: part(flow.timeouts),
            playback: None,
            lab: None,
            ..flow.clone()
        });
    }
    if requests.is_empty() {
        responses.push(FlowRecord { lab: None, ..flow.clone() });
    }
    responses
}

/// The connection's counts are spread over its responses by their sizes.
fn part_of(count: u64, bytes: u64, total: u64) -> u64 {
    (u128::from(count) * u128::from(bytes) / u128::from(total.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldSpec;

    /// After the end of the recorded connection, simulating its neighbours only costs time.
    #[test]
    fn a_simulation_ends_with_what_is_kept() {
        let world = World::new(WorldSpec { seed: 2, networks: 60, systems: 12 }).unwrap();
        let is_shared = |network: &u32| world.profile_of(*network).uplink.is_some();
        let network = (0..60).find(is_shared).unwrap();
        let play = |keeps_all| {
            let visitor = |(user, bytes)| Visitor {
                user,
                asked: AskedObject::Object(bytes),
                cc: CcSpec::new(Algorithm::Cubic),
                is_kept: keeps_all || user == 1,
            };
            let visitors = [(1, 20_000), (2, 30_000_000), (3, 30_000_000)].map(visitor).to_vec();
            Scene { network, visitors, cross: 1, seed: 7 }.play(&world)
        };
        let (all, one) = (play(true), play(false));
        let completion = |played: &PlayedScene| played.responses[0][0].completion_ns.unwrap();
        assert_eq!(completion(&all), completion(&one));
        assert!(one.packets * 2 < all.packets, "{} of {}", one.packets, all.packets);
    }
}
