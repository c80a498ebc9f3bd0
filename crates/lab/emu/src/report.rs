//! The results of an emulation, and whether it kept its timing.

use serde::Serialize;
use uncork_flow::Distribution;
use uncork_units::TimeDelta;

use crate::EmulationSpec;
use crate::flows::FlowKey;
use crate::forwarder::Forwarded;
use crate::tally::{Tally, TimingHistogram};
use uncork_path::Direction;

/// Everything between start and stop.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Duration from start to stop, in seconds.
    pub duration_s: f64,
    /// CPU time of the path's thread, including the kernel's work at its ends.
    pub cpu_s: f64,
    /// Number of flows distinguished.
    pub flows: u64,
    /// Towards the clients.
    pub down: DirectionReport,
    /// Towards the servers.
    pub up: DirectionReport,
    /// Bytes sent by each link.
    pub links: Vec<LinkReport>,
    /// Queueing delays of each flow, if requested.
    #[serde(skip)]
    pub queueing: Vec<FlowQueueing>,
    /// The lateness that at most 1 % of the packets may exceed, in milliseconds.
    pub lateness_limit_ms: f64,
    /// Whether the path ran with real-time priority (`SCHED_FIFO`).
    pub ran_first: bool,
    /// Whether the results were limited by the machine, not the path.
    pub flagged: bool,
    /// The reasons.
    pub flags: Vec<String>,
}

/// Queueing delays of a flow's packets towards the client side. Only packets that crossed all links
/// and, for TCP, carried data.
#[derive(Clone, Debug)]
pub struct FlowQueueing {
    /// The flow.
    pub flow: FlowKey,
    /// Sum over all links.
    pub waited: Distribution,
}

/// Statistics of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionReport {
    /// Packets that arrived at the path.
    pub offered_packets: u64,
    /// Their bytes including IP headers.
    pub offered_bytes: u64,
    /// Packets delivered at the other side.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Delivered bits per second, from the first to the last packet.
    pub delivered_bps: f64,
    /// Packets marked by queues (ECN).
    pub marked: u64,
    /// Packets dropped.
    pub dropped: Drops,
    /// Drops by the path for each client.
    pub hosts: Vec<HostDrops>,
    /// Packets still in flight.
    pub travelling: u64,
    /// The largest packet, in bytes.
    pub largest_packet: u32,
    /// How late packets were delivered.
    pub lateness_ms: Option<Spread>,
    /// Time packets spent on the path.
    pub delay_ms: Option<Spread>,
}

/// Lost packets by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drops {
    /// By a queue.
    pub queue: u64,
    /// By a policer.
    pub policer: u64,
    /// At random.
    pub loss: u64,
    /// Not part of the path: the device's queue overflowed because the path's thread was late.
    pub overrun: u64,
    /// Not part of the path: rejected by the other side's device.
    pub refused: u64,
    /// Not counted as offered: not IP, or truncated.
    pub malformed: u64,
    /// Not counted as offered: not between addresses of the emulation.
    pub stray: u64,
}

/// Packets to or from one client dropped by the path, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostDrops {
    /// By a queue.
    pub queue: u64,
    /// By a policer.
    pub policer: u64,
    /// At random.
    pub loss: u64,
}

/// Distribution of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Bytes sent by a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkReport {
    /// The link: `path`, `uplink` or `shared`, numbered if there are several.
    pub name: String,
    /// Bytes that it sent.
    pub bytes: u64,
    /// Bytes it could have sent between the first packet offered and the last one delivered.
    pub capacity_bytes: u64,
    /// The ratio of the two.
    pub utilisation: Option<f64>,
}

/// A run is flagged if more than 1 % of the packets are late by more than this fraction of the
/// one-way delay...
const LATE_PARTS: u64 = 20;
/// ...and by more than this.
const MIN_LATE: TimeDelta = TimeDelta::from_micros(100);

impl Report {
    pub(crate) fn new(spec: &EmulationSpec, carried: &Forwarded, overruns: [u64; 2]) -> Self {
        let directions = [Direction::Down, Direction::Up];
        let [down, up] = directions.map(|direction| {
            let overruns = overruns[direction as usize];
            DirectionReport::new(carried.tallies.of(direction), overruns)
        });
        let limit = spec.shortest_way().divided_by(LATE_PARTS).max(MIN_LATE);
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

fn spread(timing: &TimingHistogram) -> Option<Spread> {
    let at = |share| timing.quantile_ms(share);
    Some(Spread { min: at(0.0)?, p50: at(0.5)?, p99: at(0.99)?, max: at(1.0)? })
}

/// The links in the order of [`crate::Network::sent`].
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
