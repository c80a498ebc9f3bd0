//! A link that changes its rate once: how long until the queue is short again, or the link is full.

use uncork_flow::SeriesPoint;
use uncork_path::{PathSpec, RateSpec, Step};
use uncork_sim::{MSS_BYTES, PACKET_BYTES, RunSpec, run};
use uncork_units::{Rate, TimeDelta};

use super::world::{BBRS, CUBIC_ECN, Kind, PRAGUE, ROOM, at, flows, path, spec_of};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 10;
const CHANGES_MBIT: [(u64, u64); 6] =
    [(100, 50), (100, 20), (100, 10), (50, 100), (20, 100), (10, 100)];
const KINDS: [Kind; 3] = [PRAGUE, CUBIC_ECN, BBRS[2]];
/// When the rate changes.
const CHANGE_SECS: u64 = 30;
/// A queue that is short: twice what the queue for L4S holds.
const SHORT_MS: f64 = 2.0;
const SAMPLE: TimeDelta = TimeDelta::from_millis(10);
/// A link is full when it carried nine tenths of its rate in this time.
const FULL_POINTS: usize = 20;

fn changing(first: u64, second: u64) -> PathSpec {
    let mut path = path("dualpi2", first, 10, ROOM);
    let steps = vec![Step { at: at(1_000 * CHANGE_SECS), value: Rate::from_mbit(second) }];
    path.link.rate = RateSpec::Steps { first: Rate::from_mbit(first), steps: steps.into() };
    path
}

fn points_after((first, second): (u64, u64), kind: Kind, seed: u64) -> Vec<SeriesPoint> {
    let spec = spec_of(changing(first, second), flows(&[kind], seed), seed);
    let spec = RunSpec { sample_every: Some(SAMPLE), ..spec };
    let since = at(1_000 * CHANGE_SECS).as_nanos();
    run(&spec).series.into_iter().filter(|point| point.time_ns >= since).collect()
}

/// Milliseconds that the queue takes to leave at `mbit`.
fn queue_ms(point: &SeriesPoint, mbit: u64) -> f64 {
    point.queue_bytes as f64 * 8.0 / (mbit as f64 * 1e3)
}

/// Milliseconds from the change to a point.
fn since_change(index: usize) -> f64 {
    (index as u64 * SAMPLE.as_nanos()) as f64 / 1e6
}

/// Milliseconds until the queue stays short for a second.
fn until_short(points: &[SeriesPoint], mbit: u64) -> f64 {
    let second = 1_000_000_000 / SAMPLE.as_nanos() as usize;
    let is_short =
        |window: &[SeriesPoint]| window.iter().all(|point| queue_ms(point, mbit) <= SHORT_MS);
    since_change(points.windows(second).position(is_short).unwrap_or(points.len()))
}

/// Milliseconds until the link is full.
fn until_full(points: &[SeriesPoint], mbit: u64) -> f64 {
    let secs = since_change(FULL_POINTS) / 1e3;
    let is_full = |window: &[SeriesPoint]| {
        let bytes = window[FULL_POINTS].delivered_bytes - window[0].delivered_bytes;
        let bits = bytes as f64 * 8.0 * f64::from(PACKET_BYTES) / f64::from(MSS_BYTES);
        bits / secs >= 0.9e6 * mbit as f64
    };
    since_change(points.windows(FULL_POINTS + 1).position(is_full).unwrap_or(points.len()))
}

fn row(change: (u64, u64)) -> Vec<String> {
    let (first, second) = change;
    let values = KINDS.iter().flat_map(|kind| {
        let runs = of_seeds(SEEDS, |seed| points_after(change, *kind, seed));
        let peak = |points: &Vec<SeriesPoint>| {
            points.iter().map(|point| queue_ms(point, second)).fold(0.0, f64::max)
        };
        let until = if first > second { until_short } else { until_full };
        [
            spread(runs.iter().map(peak), 0),
            spread(runs.iter().map(|points| until(points, second) / 1e3), 2),
        ]
    });
    [format!("{first} to {second} Mbit/s")].into_iter().chain(values).collect()
}

#[test]
#[ignore = "takes minutes"]
fn rate_changes_are_followed() {
    let names = KINDS.iter().flat_map(|kind| {
        [
            format!("{}: longest queue, ms", kind.name),
            format!("{}: s until short or full", kind.name),
        ]
    });
    let header: Vec<String> = ["change".to_owned()].into_iter().chain(names).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    publish("steps", &table(&header, CHANGES_MBIT.map(row)));
}
