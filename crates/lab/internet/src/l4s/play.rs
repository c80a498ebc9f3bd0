//! A server's flows to a client network, and what they prove.

use std::cell::RefCell;

use uncork_cc::{Algorithm, CcSpec};
use uncork_ecn::{Bottleneck, ConcurrentFlows, FlowEvidence, NetworkEvidence, verdict};
use uncork_path::Ecn;
use uncork_sim::{FlowSpec, RunSpec, Simulation, Workload};
use uncork_units::{Rng, Time, TimeDelta};

use crate::draw::{log_normal, uniform};
use crate::l4s::access::{AccessNetwork, OtherFlow};
use crate::l4s::watched::{Seen, WatchedSpec};
use crate::profile::millis;

/// Flows of the server before the verdict.
pub const FLOWS: usize = 20;

/// A run ends after this, even if flows are left.
const LONGEST: TimeDelta = TimeDelta::from_secs(120);
const VISIT_STREAM: u64 = 6 << 56;

/// What the flows to a network saw.
#[derive(Clone, Debug)]
pub struct Played {
    /// The evidence of each flow, in order of their visits.
    pub flows: Vec<FlowEvidence>,
    /// Likewise, by a host that sees totals twice a second.
    pub polled: Vec<FlowEvidence>,
    /// The sum of `flows`.
    pub evidence: NetworkEvidence,
    /// What it proves.
    pub bottleneck: Bottleneck,
}

/// A connection of a client.
#[derive(Clone, Copy, Debug)]
struct Connection {
    client: usize,
    start: Time,
    rtt: TimeDelta,
    bytes: u64,
}

/// Simulates [`FLOWS`] flows that probe with ECT(1), each with its own test for a classic queue.
pub fn play(network: &AccessNetwork) -> Played {
    let connections = connections(network);
    let clients = connections.last().map_or(0, |last| last.client + 1);
    let seen = RefCell::new(Seen {
        flows: vec![FlowEvidence::default(); FLOWS],
        polled: vec![FlowEvidence::default(); FLOWS],
        clients: vec![ConcurrentFlows::default(); clients],
    });
    let spec = spec(network, &connections, &seen);
    let mut run = Simulation::new(&spec);
    let mut until = Time::ZERO;
    while until < spec.end && !(0..FLOWS as u32).all(|flow| run.is_over(flow)) {
        until += TimeDelta::from_millis(500);
        while run.step_until(until) {}
    }
    drop(run);
    drop(spec);
    let Seen { flows, polled, clients } = seen.into_inner();
    let mut evidence = NetworkEvidence::default();
    for flow in &flows {
        evidence.add(flow);
    }
    for client in &clients {
        evidence.add_pairs(client.evidence());
    }
    let bottleneck = verdict(&evidence, TimeDelta::ZERO).bottleneck;
    Played { flows, polled, evidence, bottleneck }
}

fn spec<'a>(
    network: &AccessNetwork,
    connections: &[Connection],
    seen: &'a RefCell<Seen>,
) -> RunSpec<WatchedSpec<'a>> {
    let end = Time::ZERO + LONGEST;
    let own = (0..).zip(connections).map(|(flow, connection)| {
        let cc = CcSpec::new(Algorithm::Prague);
        let watch = Some((flow, connection.client, seen));
        let workload = Workload::Transfer(connection.bytes);
        let (start, rtt, ecn) = (connection.start, Some(connection.rtt), Ecn::Ect1);
        FlowSpec { start, rtt, ecn, ..FlowSpec::new(WatchedSpec { cc, watch }, workload) }
    });
    let cubic = WatchedSpec { cc: CcSpec::new(Algorithm::Cubic), watch: None };
    let others = network.others.iter().map(|&OtherFlow { ecn, start }| {
        let start = Time::ZERO + start;
        FlowSpec { start, ecn, ..FlowSpec::new(cubic, Workload::Until(end)) }
    });
    RunSpec::over(network.path.clone(), own.chain(others).collect(), network.seed, end)
}

/// Visits of clients with one to four connections each. Every fourth connection is long: seconds at the link's rate.
fn connections(network: &AccessNetwork) -> Vec<Connection> {
    let mut rng = Rng::new(network.seed, VISIT_STREAM);
    let (mut all, mut at, mut client) = (Vec::new(), TimeDelta::ZERO, 0);
    while all.len() < FLOWS {
        let rtt = millis(network.path.rtt.as_millis_f64() * (1.0 + 0.3 * uniform(&mut rng)));
        let mut since = at;
        for _ in 0..=rng.below(4).min((FLOWS - all.len()) as u64 - 1) {
            let bytes = bytes(network, &mut rng);
            all.push(Connection { client, start: Time::ZERO + since, rtt, bytes });
            since += millis(500.0 * uniform(&mut rng));
        }
        at += millis(1_000.0 + 4_000.0 * uniform(&mut rng));
        client += 1;
    }
    all
}

fn bytes(network: &AccessNetwork, rng: &mut Rng) -> u64 {
    let seconds = 2.0 + 4.0 * uniform(rng);
    let object = (300_000.0 * log_normal(rng, 1.5)) as u64;
    let long = network.rate.bytes_in(millis(1_000.0 * seconds));
    if rng.below(4) == 0 { long } else { object.clamp(5_000, long.max(5_000)) }
}
