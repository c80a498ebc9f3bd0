//! Acknowledgements that are lost: DualPI2 with room, 100 Mbit/s, 10 ms.

use uncork_path::LossSpec;

use super::world::{CUBIC, Kind, PRAGUE, ROOM, Seen, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 10;
const LOSSES: [&str; 6] = ["0%", "1%", "5%", "10%", "25%", "50%"];

fn runs(loss: &str, kinds: &[Kind]) -> Vec<Seen> {
    let mut path = path("dualpi2", 100, 10, ROOM);
    path.uplink_loss = LossSpec::Bernoulli(loss.parse().expect("a percentage"));
    of_seeds(SEEDS, |seed| see(&path, flows(kinds, seed), seed))
}

fn row(loss: &str) -> Vec<String> {
    let [alone, mixed, cubics] =
        [[PRAGUE].as_slice(), &[PRAGUE, CUBIC], &[CUBIC]].map(|kinds| runs(loss, kinds));
    let show = |runs: &[Seen], digits, of: fn(&Seen) -> f64| spread(runs.iter().map(of), digits);
    vec![
        loss.replace('%', " %"),
        show(&alone, 1, Seen::used),
        show(&alone, 2, Seen::p99),
        show(&mixed, 0, |seen| seen.share_of_first(1)),
        show(&cubics, 1, Seen::used),
    ]
}

#[test]
#[ignore = "takes minutes"]
fn lost_acknowledgements_cost_little() {
    let header = [
        "ACKs lost",
        "prague alone: utilisation, %",
        "wait p99, ms",
        "next to cubic: share of prague, %",
        "cubic alone: utilisation, %",
    ];
    publish("acks", &table(&header, LOSSES.map(row)));
}
