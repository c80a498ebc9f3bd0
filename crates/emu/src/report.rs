//! What an emulation did, and whether it was in time.

use serde::Serialize;
use uncork_flow::Distribution;
use uncork_units::TimeDelta;

use crate::EmulationSpec;
use crate::flows::FlowKey;
use crate::forwarder::Forwarded;
use crate::tally::{Tally, Timing};
use uncork_path::Direction;

/// What happened between start and stop.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Seed of everything random.
    pub seed: u64,
    /// From start to stop, in seconds.
    pub duration_s: f64,
    /// Processor time that the path took, and what the kernel did at its ends on its account.
    pub cpu_s: f64,
    /// Flows that were told apart.
    pub flows: u64,
    /// To the clients.
    pub down: DirectionReport,
    /// To the servers.
    pub up: DirectionReport,
    /// What each link has sent.
    pub links: Vec<LinkReport>,
    /// How long the packets of each flow waited in queues, if that was asked for.
    #[serde(skip)]
    pub queueing: Vec<FlowQueueing>,
    /// How late 1 % of packets may be, in milliseconds.
    pub lateness_limit_ms: f64,
    /// Whether the path ran before other processes (`SCHED_FIFO`).
    pub ran_first: bool,
    /// Whether the results are those of the machine rather than of the path.
    pub flagged: bool,
    /// Why.
    pub flags: Vec<String>,
}

/// How long the packets of a flow waited in queues on their way to the client side: those that crossed all
/// links and, of TCP's, carried data.
#[derive(Clone, Debug)]
pub struct FlowQueueing {
    /// The flow.
    pub flow: FlowKey,
    /// Over all links.
    pub waited: Distribution,
}

/// What happened in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Packets that came to the path.
    pub offered_packets: u64,
    /// Their bytes, with IP headers.
    pub offered_bytes: u64,
    /// Packets that left it at the other side.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Bits per second that were delivered, from the first packet to the last one.
    pub delivered_bps: f64,
    /// Packets that queues marked (ECN).
    pub marked: u64,
    /// Packets that were dropped.
    pub dropped: Drops,
    /// Those that the path dropped, for each client.
    pub hosts: Vec<HostDrops>,
    /// Packets that were still on their way.
    pub travelling: u64,
    /// The largest packet, in bytes.
    pub largest_packet: u32,
    /// How much later than due packets were delivered.
    pub lateness_ms: Option<Spread>,
    /// How long they were on their way.
    pub delay_ms: Option<Spread>,
}

/// Packets that never arrived, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// By a queue.
    pub queue: u64,
    /// By a policer.
    pub policer: u64,
    /// At random.
    pub loss: u64,
    /// No part of the path: more packets waited than the device holds, as the path's thread was late.
    pub overrun: u64,
    /// No part of the path: the other side's device did not take them.
    pub refused: u64,
    /// Not counted as offered: no IP packet, or shorter than it said.
    pub malformed: u64,
    /// Not counted as offered: not between addresses of the emulation.
    pub stray: u64,
}

/// Packets that the path dropped on the way to or from one of the clients, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostDrops {
    /// By a queue.
    pub queue: u64,
    /// By a policer.
    pub policer: u64,
    /// At random.
    pub loss: u64,
}

/// Where a quantity lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// What 99 % do not exceed.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// What a link has sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Which one: `path`, `uplink` or `shared`, with its number where there are several.
    pub name: String,
    /// Bytes that it sent.
    pub bytes: u64,
    /// Bytes that it could have sent between the first packet that came to the path and the last one
    /// that was delivered.
    pub capacity_bytes: u64,
    /// Their quotient.
    pub utilisation: Option<f64>,
}

/// A run is flagged when more than 1 % of the packets are later than this part of the one-way delay...
const LATE_PARTS: u64 = 20;
/// ...and than this.
const LATE_AT_LEAST: TimeDelta = TimeDelta::from_micros(100);

impl Report {
    pub(crate) fn new(spec: &EmulationSpec, carried: &Forwarded, overruns: [u64; 2]) -> Self {
        let directions = [Direction::Down, Direction::Up];
        let [down, up] = directions.map(|direction| {
            let overruns = overruns[direction as usize];
            DirectionReport::new(carried.tallies.of(direction), overruns)
        });
        let limit = spec.shortest_way().divided_by(LATE_PARTS).max(LATE_AT_LEAST);
        let limit = limit.as_millis_f64();
        let flags = flags(&[("down", &down), ("up", &up)], limit);
        Self {
            seed: spec.seed,
            duration_s: carried.stopped.as_secs_f64(),
            cpu_s: carried.cpu.as_secs_f64(),
            flows: carried.network.flows() as u64,
            links: links(spec, carried),
            queueing: queueing(carried),
            down,
            up,
            lateness_limit_ms: limit,
            ran_first: carried.ran_first,
            flagged: !flags.is_empty(),
            flags,
        }
    }
}

fn queueing(carried: &Forwarded) -> Vec<FlowQueueing> {
    let flows = carried.network.flow_keys().into_iter().zip(carried.queueing.flows());
    flows.map(|(flow, waited)| FlowQueueing { flow, waited: waited.clone() }).collect()
}

fn flags(directions: &[(&str, &DirectionReport)], limit: f64) -> Vec<String> {
    let mut flags = Vec::new();
    for (name, direction) in directions {
        if let Some(late) = direction.lateness_ms.filter(|late| late.p99 > limit) {
            flags.push(format!(
                "{name}: 1 % of packets were more than {:.2} ms late, where {limit:.2} ms is the limit",
                late.p99
            ));
        }
        let Drops { overrun, refused, .. } = direction.dropped;
        if overrun + refused > 0 {
            flags.push(format!(
                "{name}: {} packets were lost by the machine, not by the path",
                overrun + refused
            ));
        }
    }
    flags
}

impl DirectionReport {
    fn new(tally: &Tally, overrun: u64) -> Self {
        let all = |of: fn(&HostDrops) -> u64| tally.of_hosts.iter().map(of).sum();
        let dropped = Drops {
            queue: all(|host| host.queue),
            policer: all(|host| host.policer),
            loss: all(|host| host.loss),
            overrun,
            refused: tally.refused,
            malformed: tally.malformed,
            stray: tally.stray,
        };
        let (offered_packets, offered_bytes) = tally.offered;
        let (delivered_packets, delivered_bytes) = tally.delivered;
        let decided = delivered_packets + dropped.queue + dropped.policer + dropped.loss;
        let span = tally.first.map_or(0.0, |first| tally.last.since(first).as_secs_f64());
        let bits = 8.0 * delivered_bytes as f64;
        Self {
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            delivered_bps: if span > 0.0 { bits / span } else { 0.0 },
            marked: tally.marked,
            travelling: offered_packets.saturating_sub(decided + dropped.refused),
            dropped,
            hosts: tally.of_hosts.clone(),
            largest_packet: tally.largest,
            lateness_ms: spread(&tally.lateness),
            delay_ms: spread(&tally.delay),
        }
    }
}

fn spread(timing: &Timing) -> Option<Spread> {
    let at = |share| timing.quantile_ms(share);
    Some(Spread { min: at(0.0)?, p50: at(0.5)?, p99: at(0.99)?, max: at(1.0)? })
}

/// The links in the order in which [`crate::Network::sent`] has them.
fn links(spec: &EmulationSpec, carried: &Forwarded) -> Vec<LinkReport> {
    let uplinks = spec.paths.iter().filter(|path| path.uplink.is_some()).count();
    let mut reports = Vec::new();
    for (direction, kind, first, count) in [
        (Direction::Down, "shared", 0, spec.links.len()),
        (Direction::Down, "path", spec.links.len(), spec.paths.len()),
        (Direction::Up, "uplink", 0, uplinks),
    ] {
        for number in 0..count {
            let name = if count == 1 { kind.to_owned() } else { format!("{kind} {number}") };
            reports.push(LinkReport::new(name, carried, direction, first + number));
        }
    }
    reports
}

impl LinkReport {
    fn new(name: String, carried: &Forwarded, direction: Direction, link: usize) -> Self {
        let (network, tally) = (&carried.network, carried.tallies.of(direction));
        let bytes = network.paths.sent(direction)[link];
        let first = tally.first.unwrap_or(tally.last);
        let capacity_bytes = network.paths.capacity(direction, link as u32, first, tally.last);
        let utilisation = (capacity_bytes > 0).then(|| bytes as f64 / capacity_bytes as f64);
        Self { name, bytes, capacity_bytes, utilisation }
    }
}
