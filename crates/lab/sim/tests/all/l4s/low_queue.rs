//! The delay of the queue for L4S, and the utilisation: DualPI2 with room.

use super::world::{CUBIC, CUBIC_ECN, Kind, PRAGUE, ROOM, Seen, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 10;
const PATHS: [(u64, u64); 9] = [
    (20, 10),
    (20, 50),
    (100, 5),
    (100, 10),
    (100, 20),
    (100, 50),
    (100, 100),
    (500, 10),
    (500, 50),
];
/// DualPI2 of RFC 9332 marks from 0.8 ms on, and every packet above 1.2 ms. Linux marks every packet above 1 ms.
const QUEUES: [(&str, &str); 2] = [("RFC 9332", "dualpi2"), ("Linux", "dualpi2:step=1ms")];
const MIXES: [(&str, &[Kind]); 3] = [
    ("alone", &[PRAGUE]),
    ("and cubic", &[PRAGUE, CUBIC]),
    ("and cubic, ECN", &[PRAGUE, CUBIC_ECN]),
];

fn row(
    (mbit, rtt_ms): (u64, u64),
    (name, queue): (&str, &str),
    mix: (&str, &[Kind]),
) -> Vec<String> {
    let path = path(queue, mbit, rtt_ms, ROOM);
    let runs = of_seeds(SEEDS, |seed| see(&path, flows(mix.1, seed), seed));
    let show = |digits, of: fn(&Seen) -> f64| spread(runs.iter().map(of), digits);
    let of_seed = |seen: &Seen| seen.p99() <= 1.0 && seen.used() >= 95.0;
    let met = runs.iter().filter(|seen| of_seed(seen)).count();
    let share =
        if mix.1.len() > 1 { show(0, |seen| seen.share_of_first(1)) } else { String::new() };
    vec![
        format!("{mbit} Mbit/s, {rtt_ms} ms"),
        name.to_owned(),
        mix.0.to_owned(),
        show(1, Seen::used),
        show(2, Seen::p50),
        show(2, Seen::p99),
        show(1, |seen| seen.marked(1)),
        share,
        format!("{met} of {SEEDS}"),
    ]
}

#[test]
#[ignore = "takes minutes"]
fn queue_for_l4s_waits_a_millisecond() {
    let rows = PATHS.iter().flat_map(|path| {
        let cells = QUEUES.iter().flat_map(|queue| MIXES.iter().map(move |mix| (queue, mix)));
        cells.map(|(queue, mix)| row(*path, *queue, *mix))
    });
    let header = [
        "path",
        "DualPI2 of",
        "flows",
        "utilisation, %",
        "wait p50, ms",
        "wait p99, ms",
        "marked, %",
        "share of prague, %",
        "runs within the bar",
    ];
    publish("low-queue", &table(&header, rows));
}
