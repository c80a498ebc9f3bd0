//! Rates next to what the closed forms give for the measured marks and drops: DualPI2 with room.

use super::world::{CUBIC, PRAGUE, ROOM, Seen, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 5;
const PATHS: [(u64, u64); 5] = [(20, 10), (40, 20), (100, 10), (100, 20), (500, 10)];
/// RTT_VIRT of Prague, in seconds.
const VIRTUAL_RTT: f64 = 0.025;

/// Segments per second of Prague over 2 (1 - p) / p in a virtual round trip, for the share p of marks.
fn prague(seen: &Seen) -> f64 {
    let p = seen.marked(1) / 100.0;
    seen.segments_per_sec(0) / (2.0 * (1.0 - p) / p / VIRTUAL_RTT)
}

/// Marks that Prague gets in a virtual round trip; by the closed form two.
fn marks(seen: &Seen) -> f64 {
    seen.marked(1) / 100.0 * seen.segments_per_sec(0) * VIRTUAL_RTT
}

/// Segments per second of CUBIC over sqrt(1.5 / p) in a round trip (RFC 9438 section 4.3), for the share p of drops.
fn cubic(seen: &Seen) -> f64 {
    let flow = &seen.flows[1];
    let p = flow.lab().packets_dropped_queue as f64 / flow.packets_sent as f64;
    let rtt = flow.rtt_ms.expect("it sent something").p50 / 1e3;
    seen.segments_per_sec(1) / ((1.5 / p).sqrt() / rtt)
}

fn row((mbit, rtt_ms): (u64, u64)) -> Vec<String> {
    let path = path("dualpi2", mbit, rtt_ms, ROOM);
    let runs = of_seeds(SEEDS, |seed| see(&path, flows(&[PRAGUE, CUBIC], seed), seed));
    let show = |digits, of: fn(&Seen) -> f64| spread(runs.iter().map(of), digits);
    vec![
        format!("{mbit} Mbit/s, {rtt_ms} ms"),
        show(0, |seen| seen.share_of_first(1)),
        show(2, |seen| seen.marked(1)),
        show(2, marks),
        show(2, prague),
        show(4, |seen| {
            let flow = &seen.flows[1];
            100.0 * flow.lab().packets_dropped_queue as f64 / flow.packets_sent as f64
        }),
        show(1, |seen| seen.flows[1].rtt_ms.expect("it sent something").p50),
        show(2, cubic),
    ]
}

#[test]
#[ignore = "takes a minute"]
fn rates_are_near_the_closed_forms() {
    let header = [
        "path",
        "share of prague, %",
        "marked, %",
        "marks per 25 ms",
        "prague over its closed form",
        "cubic: dropped, %",
        "RTT p50, ms",
        "cubic over its closed form",
    ];
    publish("formulas", &table(&header, PATHS.map(row)));
}
