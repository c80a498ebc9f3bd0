//! Size limits of scenarios.

use uncork_config::Node;
use uncork_path::RateSpec;
use uncork_sim::PACKET_BYTES;
use uncork_units::{ByteCount, Rate, Time, TimeDelta};

use super::ScenarioError;
use super::demand::{Demand, wire_bytes};
use super::draw::Between;
use super::model::Cell;
use super::plan::{ClientActivity, FlowPlan, PathPlan, SingleActivity};
use crate::CompareSpec;

/// Maximum flows per run.
pub(super) const MAX_FLOWS: u64 = 10_000;
/// Maximum points of time series over all cells: more than a gigabyte of memory.
const MAX_POINTS: u64 = 20_000_000;
/// Maximum combinations of a matrix.
pub(crate) const MAX_CELLS: u64 = 10_000;

/// Packets one processor simulates in an hour, at three million per second with many flows.
const PACKETS_AN_HOUR: u64 = 3_000_000 * 3600;

/// Approximate number of flows, packets and points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    /// Flows.
    pub flows: u64,
    /// Data packets: what all flows want to send, at most what their links carry.
    pub packets: u64,
    /// Points of time series.
    pub points: u64,
}

impl SizeEstimate {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            flows: self.flows.saturating_add(other.flows),
            packets: self.packets.saturating_add(other.packets),
            points: self.points.saturating_add(other.points),
        }
    }

    /// The load of `flow` in a run of `cell`.
    fn of(flow: &FlowPlan, cell: &Cell) -> Self {
        let end = cell.end.since(Time::ZERO);
        let demand = Demand::of(flow, end);
        let path = &cell.plan.paths[flow.path];
        let bytes = demand.bytes_in(path, flow.count, &(TimeDelta::ZERO..end));
        Self { flows: demand.flows, packets: bytes / u64::from(PACKET_BYTES), points: 0 }
    }

    /// The load of a run of `cell`.
    pub(crate) fn of_run(cell: &Cell) -> Self {
        cell.plan.flows.iter().fold(Self::default(), |sum, flow| sum.plus(Self::of(flow, cell)))
    }
}

impl Cell {
    /// Approximate number of data packets of a run: everything requested, at most what the links
    /// carry.
    pub fn expected_packets(&self) -> u64 {
        SizeEstimate::of_run(self).packets
    }

    /// Maximum points of a run's time series with one point per `every`. Arrivals are short and do not count.
    pub(super) fn points(&self, every: TimeDelta) -> u64 {
        let end = self.end.since(Time::ZERO);
        let lasting =
            self.plan.flows.iter().filter(|flow| matches!(flow.work, ClientActivity::One(_)));
        let of = |flow: &FlowPlan| {
            let span = flow.work.lasts().map_or(end, |lasts| lasts.min(end));
            (span.as_nanos() / every.as_nanos().max(1)).saturating_mul(flow.count)
        };
        lasting.map(of).fold(0, u64::saturating_add)
    }
}

/// Checks that all runs of `cells` together finish in a reasonable time.
pub(super) fn check(tree: &Node, cells: &[Cell], seeds: u32) -> Result<(), ScenarioError> {
    let mut total = SizeEstimate::default();
    let mut most: Option<(SizeEstimate, &str)> = None;
    for cell in cells {
        let mut here = SizeEstimate::default();
        for flow in &cell.plan.flows {
            let load = SizeEstimate::of(flow, cell);
            here = here.plus(load);
            if most.is_none_or(|(most, _)| load.packets > most.packets) {
                most = Some((load, &flow.name));
            }
            if here.flows > MAX_FLOWS {
                return Err(too_many(tree, &flow.name, &format!("{} flows in a run", here.flows))
                    .help(format!("the limit is {MAX_FLOWS}: use fewer clients or arrivals")));
            }
        }
        total = total.plus(here);
    }
    let [flows, packets] = [total.flows, total.packets].map(|n| n.saturating_mul(u64::from(seeds)));
    let largest = most.map_or("", |(_, name)| name);
    let over = format!("over {} cells and {seeds} seeds", cells.len());
    if flows > CompareSpec::MAX_RECORDS {
        let error = too_many(tree, largest, &format!("{flows} flows {over}"));
        let most = CompareSpec::MAX_RECORDS;
        return Err(error.help(format!("the limit is {most}: use fewer seeds, flows or cells")));
    }
    if packets > CompareSpec::MAX_PACKETS {
        let hours = packets / PACKETS_AN_HOUR;
        let what = format!(
            "about {} packets {over}, {} processor hours",
            grouped(packets),
            grouped(hours)
        );
        let most = grouped(CompareSpec::MAX_PACKETS);
        return Err(too_many(tree, largest, &what)
            .help(format!("the limit is {most}: use less data, or fewer seeds or cells")));
    }
    Ok(())
}

/// Checks that time series with one point per `every`, for `seeds` runs of each cell, fit in
/// memory.
pub(super) fn check_series(
    tree: &Node,
    cells: &[Cell],
    every: TimeDelta,
    seeds: u64,
) -> Result<(), ScenarioError> {
    let points = cells.iter().map(|cell| cell.points(every).saturating_mul(seeds));
    let points = points.fold(0, u64::saturating_add);
    if points <= MAX_POINTS {
        return Ok(());
    }
    let place =
        tree.get("run").and_then(|run| run.get("sample")).map_or(&tree.place, |node| &node.place);
    let message =
        format!("this means time series of up to {points} points over {} cells", cells.len());
    Err(ScenarioError::new(place, message)
        .help(format!("the limit is {MAX_POINTS}: sample less often, or end runs earlier")))
}

/// Classes with transfers that cannot finish before the end of their runs, with the reason.
pub(super) fn unfinishable(cells: &[Cell]) -> Vec<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for cell in cells {
        for flow in &cell.plan.flows {
            let ClientActivity::One(SingleActivity::Transfer(bytes)) = &flow.work else { continue };
            let rate = fastest(&cell.plan.paths[flow.path]);
            let span = cell.end.since(Time::ZERO) - flow.start;
            let is_listed = found.iter().any(|(name, _)| *name == flow.name);
            if is_listed || wire_bytes(*bytes) <= rate.bytes_in(span) {
                continue;
            }
            let seconds = wire_bytes(*bytes) / rate.bytes_per_sec().max(1);
            found.push((
                &flow.name,
                format!(
                    "no transfer of [flow.{}] can finish: {} at {rate} takes {} s, and runs end \
                     after {}; use less data, or a later run.end",
                    flow.name,
                    ByteCount::new(*bytes),
                    grouped(seconds),
                    cell.end.since(Time::ZERO),
                ),
            ));
        }
    }
    found.into_iter().map(|(_, warning)| warning).collect()
}

/// `number` with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Error: too many of something, mainly because of the class `name`.
fn too_many(tree: &Node, name: &str, what: &str) -> ScenarioError {
    let entries = tree.get("flow").map(Node::entries).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.name == name);
    let place = entry.map_or(&tree.place, |entry| &entry.place);
    ScenarioError::new(place, format!("this means {what}"))
}

/// A rate that the path's link does not exceed for long; a medium one for drawn rates.
fn fastest(path: &PathPlan) -> Rate {
    let drawn = path.draws.rate.as_ref().and_then(super::draw::Draw::extremes);
    let middle = drawn.map(|[least, most]| least.between(most, 1 << 63));
    let link = &path.spec.link;
    match &link.rate {
        RateSpec::Steps { first, steps } => {
            steps.iter().map(|step| step.value).fold(*first, Rate::max)
        }
        _ => middle.unwrap_or_else(|| link.nominal_rate()),
    }
}
