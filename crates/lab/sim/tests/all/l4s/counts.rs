//! One to a hundred flows: DualPI2 with room, 100 Mbit/s, 10 ms.

use super::world::{CUBIC, Kind, PRAGUE, ROOM, Seen, flows, path, see};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

const SEEDS: u64 = 5;
const COUNTS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

fn row(count: usize, others: usize) -> Vec<String> {
    let kinds: Vec<Kind> = [vec![PRAGUE; count], vec![CUBIC; others]].concat();
    let path = path("dualpi2", 100, 10, ROOM);
    let runs = of_seeds(SEEDS, |seed| see(&path, flows(&kinds, seed), seed));
    let show = |digits, of: &dyn Fn(&Seen) -> f64| spread(runs.iter().map(of), digits);
    let share = |seen: &Seen| seen.share_of_first(count);
    vec![
        count.to_string(),
        others.to_string(),
        show(1, &Seen::used),
        show(2, &Seen::p50),
        show(2, &Seen::p99),
        show(0, &|seen: &Seen| seen.marked(count)),
        show(2, &|seen: &Seen| seen.jain(count)),
        if others > 0 { show(0, &share) } else { String::new() },
    ]
}

#[test]
#[ignore = "takes minutes"]
fn many_flows_share_the_queue() {
    let alone = COUNTS.iter().map(|count| row(*count, 0));
    let mixed = COUNTS[..6].iter().map(|count| row(*count, *count));
    let header = [
        "flows of prague",
        "of cubic",
        "utilisation, %",
        "wait p50, ms",
        "wait p99, ms",
        "marked, %",
        "Jain's index of prague",
        "share of prague, %",
    ];
    publish("counts", &table(&header, alone.chain(mixed)));
}
