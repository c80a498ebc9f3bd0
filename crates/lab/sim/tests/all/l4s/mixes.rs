//! A flow of `prague` next to one of each other controller: 100 Mbit/s, 10 ms.

use uncork_path::Buffer;

use super::world::{BBRS, CUBIC, CUBIC_ECN, Kind, PRAGUE, Seen, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 5;
const RIVALS: [Kind; 6] = [CUBIC, CUBIC_ECN, BBRS[0], BBRS[1], BBRS[2], PRAGUE];
/// Queues by their name in the table. Those with ECN mark what they would drop of flows that can be marked.
const QUEUES: [(&str, &str); 8] = [
    ("FIFO", "droptail"),
    ("CoDel", "codel"),
    ("PIE", "pie"),
    ("one CoDel queue, ECN", "codel:ecn"),
    ("one PIE queue, ECN", "pie:ecn"),
    ("FQ-CoDel", "fq_codel"),
    ("CAKE", "cake"),
    ("DualPI2", "dualpi2"),
];
/// Buffers in thousandths of the BDP. A queue that manages its delay hardly fills a larger one.
const FIFO_BUFFERS: &[u64] = &[500, 1_000, 2_000, 4_000, 8_000];
const MANAGED_BUFFERS: &[u64] = &[1_000, 8_000];

struct Cell {
    label: String,
    by_rival: Vec<Vec<Seen>>,
}

fn cells() -> Vec<Cell> {
    let places = QUEUES.iter().flat_map(|(name, queue)| {
        let buffers = if *queue == "droptail" { FIFO_BUFFERS } else { MANAGED_BUFFERS };
        buffers.iter().map(move |milli_bdp| (*name, *queue, *milli_bdp))
    });
    let cell = |(name, queue, milli_bdp): (&str, &str, u64)| Cell {
        label: format!("{name}, {} BDP", milli_bdp as f64 / 1e3),
        by_rival: RIVALS.iter().map(|rival| pair(queue, milli_bdp, *rival)).collect(),
    };
    places.map(cell).collect()
}

fn pair(queue: &str, milli_bdp: u64, rival: Kind) -> Vec<Seen> {
    let path = path(queue, 100, 10, Buffer::MilliBdp(milli_bdp));
    of_seeds(SEEDS, |seed| see(&path, flows(&[PRAGUE, rival], seed), seed))
}

fn lines(cells: &[Cell], digits: usize, of: impl Fn(&Seen) -> f64) -> String {
    let header: Vec<&str> = ["queue"].into_iter().chain(RIVALS.map(|rival| rival.name)).collect();
    let row = |cell: &Cell| {
        let values = cell.by_rival.iter().map(|runs| spread(runs.iter().map(&of), digits));
        [cell.label.clone()].into_iter().chain(values).collect()
    };
    table(&header, cells.iter().map(row))
}

#[test]
#[ignore = "takes minutes"]
fn pairs_share_every_queue() {
    let cells = cells();
    publish("shares", &lines(&cells, 0, |seen| seen.share_of_first(1)));
    publish("waits", &lines(&cells, 1, Seen::p99));
    publish("utilisation", &lines(&cells, 0, Seen::used));
}
