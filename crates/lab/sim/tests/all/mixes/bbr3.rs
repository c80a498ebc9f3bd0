//! BBRv3 on Linux as measured by Gomez et al. (2024): `tests/data/bbr3_kernel_runs.csv`. These tests
//! take minutes: `cargo test --release -p uncork-sim --test all mixes -- --ignored --nocapture`.

use uncork_path::{Buffer, HostJitter, PathSpec};
use uncork_sim::{FlowSpec, Offload, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

use crate::common::spec;

const CSV: &str = include_str!("../../data/bbr3_kernel_runs.csv");

/// The rows of a measure: where, and the value on Linux.
fn measured(measure: &str) -> Vec<(&'static str, f64)> {
    let rows = CSV.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [of, at, value] = fields[..] else { panic!("three fields: {line}") };
        (of == measure).then(|| (at, value.parse().expect("a number")))
    });
    rows.collect()
}

/// The scripts count a mebi too much: a BDP is 1.024² BDP.
fn path(rtt_ms: u64, bdp: f64) -> PathSpec {
    let (rtt, milli_bdp) = (TimeDelta::from_millis(rtt_ms), bdp * 1e3 * 1.024 * 1.024);
    PathSpec::new(Rate::from_mbit(1000), rtt, Buffer::MilliBdp(milli_bdp as u64))
}

/// Bytes that each flow delivers. The study's hosts are network namespaces.
fn delivered(path: PathSpec, flows: Vec<FlowSpec>, seed: u64, secs: u64) -> Vec<f64> {
    let end = Time::ZERO + TimeDelta::from_secs(secs);
    let over = RunSpec {
        host_jitter: HostJitter::Virtual,
        offload: Offload::Card,
        ..RunSpec::over(path, flows, seed, end)
    };
    run(&over).flows.iter().map(|flow| flow.bytes_delivered as f64).collect()
}

/// The mean of what five seeds give.
fn mean(of_seed: impl Fn(u64) -> f64) -> f64 {
    (1..=5).map(of_seed).sum::<f64>() / 5.0
}

/// A flow from a time in seconds to the end.
fn flow(cc: &str, from: u64, to: u64) -> FlowSpec {
    let at = |secs| Time::ZERO + TimeDelta::from_secs(secs);
    FlowSpec { start: at(from), ..FlowSpec::new(spec(cc), Workload::Until(at(to))) }
}

/// Relative excess over Linux, printed.
fn excess(what: &str, here: f64, linux: f64) -> f64 {
    let excess = here / linux - 1.0;
    println!("{what}: Linux {linux}, here {here:.3}, {:+.0} %", 100.0 * excess);
    excess
}

#[test]
#[ignore = "takes minutes"]
fn long_round_trip_has_its_share_on_linux() {
    let far = Some(TimeDelta::from_millis(100));
    let misses = measured("long_rtt_share").into_iter().filter(|(bdp, linux)| {
        let buffer = bdp.parse().expect("a number");
        let near = flow("bbr3", 0, 60);
        let share = mean(|seed| {
            let flows = vec![near, FlowSpec { rtt: far, ..near }];
            let bytes = delivered(path(20, buffer), flows, seed, 60);
            bytes[1] / (bytes[0] + bytes[1])
        });
        excess(&format!("{bdp} BDP"), share, *linux).abs() > 0.2
    });
    assert_eq!(misses.count(), 0);
}

#[test]
#[ignore = "takes minutes"]
fn cubic_keeps_its_rate_on_linux_against_more_and_more_bbr3() {
    let starts = [60, 120, 180, 240, 300].map(|start| flow("bbr3", start, 480));
    let flows: Vec<FlowSpec> = std::iter::once(flow("cubic:linux", 0, 480)).chain(starts).collect();
    let runs = [1, 2, 3, 4, 5].map(|seed| {
        let minute = delivered(path(10, 1.0), vec![flow("cubic:linux", 0, 60)], seed, 60)[0];
        let bytes = delivered(path(10, 1.0), flows.clone(), seed, 480);
        [(bytes[0] - minute) / 420.0, bytes[1] / 420.0, bytes[5] / 180.0]
    });
    let here = [0, 1, 2].map(|row| mean(|seed| runs[seed as usize - 1][row]) * 8.0 / 1e6);
    let linux = measured("minutes_mbps").into_iter();
    let excesses = linux.zip(here).map(|((what, linux), here)| excess(what, here, linux));
    let [cubic, first, last] = excesses.collect::<Vec<f64>>()[..] else { panic!("three rows") };
    assert!(cubic.abs() <= 0.25 && first.abs() <= 0.25 && last.abs() <= 0.25);
}
