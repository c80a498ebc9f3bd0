//! How much the share of a link depends on the round-trip time: two flows of one controller.

use uncork_sim::FlowSpec;
use uncork_units::TimeDelta;

use super::world::{CUBIC_ECN, Kind, PRAGUE, ROOM, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 5;
const RTTS_MS: [u64; 5] = [5, 10, 25, 50, 100];
const MBIT: [u64; 2] = [40, 100];

fn set(flow: &mut FlowSpec, millis: u64) {
    flow.rtt = Some(TimeDelta::from_millis(millis));
}

/// The share of the shorter, in percent, by seed.
fn shares(mbit: u64, (short, long): (u64, u64), kind: Kind) -> Vec<f64> {
    let path = path("dualpi2", mbit, short, ROOM);
    of_seeds(SEEDS, |seed| {
        let mut pair = flows(&[kind; 2], seed);
        set(&mut pair[0], short);
        set(&mut pair[1], long);
        see(&path, pair, seed).share_of_first(1)
    })
}

fn row(mbit: u64, (short, long): (u64, u64)) -> Vec<String> {
    let [prague, cubic] = [PRAGUE, CUBIC_ECN].map(|kind| shares(mbit, (short, long), kind));
    let ratio = |shares: &[f64]| {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        mean / (100.0 - mean)
    };
    let is_within = |shares: &[f64]| {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        if (40.0..=60.0).contains(&mean) { "yes" } else { "no" }.to_owned()
    };
    vec![
        format!("{mbit} Mbit/s, {short} and {long} ms"),
        spread(prague.iter().copied(), 0),
        format!("{:.2}", ratio(&prague)),
        is_within(&prague),
        spread(cubic.iter().copied(), 0),
        format!("{:.2}", ratio(&cubic)),
    ]
}

#[test]
#[ignore = "takes minutes"]
fn rates_depend_little_on_the_rtt() {
    let pairs = RTTS_MS
        .iter()
        .enumerate()
        .flat_map(|(index, short)| RTTS_MS[index + 1..].iter().map(move |long| (*short, *long)));
    let pairs: Vec<(u64, u64)> = pairs.collect();
    let rows = MBIT.iter().flat_map(|mbit| pairs.iter().map(|pair| row(*mbit, *pair)));
    let header = [
        "flows",
        "prague: share of the shorter, %",
        "ratio of the rates",
        "both within 20 % of half",
        "cubic, ECN: share of the shorter, %",
        "ratio of the rates",
    ];
    publish("rtt", &table(&header, rows));
}
