//! Linux' own DualPI2 next to the simulator's: the runs that `crates/transport/kernel/dualpi2.py` has measured under
//! qemu, played here.

use std::collections::BTreeMap;

use uncork_path::{Ecn, HostJitter};
use uncork_sim::{Offload, RunSpec};

use super::world::{CUBIC, CUBIC_ECN, Kind, PRAGUE, ROOM, Seen, at, flows, path};
use super::{of_seeds, publish, spread};
use crate::common::page::table;

/// Each line is a run of the kernel.
const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/l4s/kernel.tsv");
const SEEDS: u64 = 5;
/// As the script has them.
const SECS: u64 = 20;
const WARMUP_SECS: u64 = 5;
/// With the defaults of Linux.
const QUEUE: &str = "dualpi2:linux";
const BBR1: Kind = Kind { name: "bbr1", cc: "bbr1", ecn: Ecn::NotEct };

/// What both show of a run.
struct Figures {
    used: f64,
    share: f64,
    /// Of each flow: p50 and p99 of the time in the queue in ms, and the packets that were marked or dropped, in percent.
    flows: Vec<[f64; 3]>,
}

impl Figures {
    fn simulated(spec: &RunSpec) -> Self {
        let seen = Seen::of(spec);
        let flows = seen.flows.iter().map(|flow| {
            let lab = flow.lab();
            let signals = flow.packets_marked + lab.packets_dropped_queue;
            [
                lab.queue_ms.expect("it sent something").p50,
                lab.queue_p99_ms.expect("it sent something"),
                100.0 * signals as f64 / flow.packets_sent as f64,
            ]
        });
        Self { used: seen.used(), share: seen.share_of_first(1), flows: flows.collect() }
    }
}

/// Mbit/s, ms, who cuts bursts, and the flows.
type Cell<'a> = (u64, u64, &'a str, &'a str);

/// The kernel's runs by cell.
fn measured(text: &str) -> BTreeMap<Cell<'_>, Vec<Figures>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [mbit, rtt_ms, offload, mix, _seed, used, share, _busy, values @ ..] = &cells[..]
        else {
            panic!("a short line: {line}")
        };
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let flow = |values: &[&str]| {
            let [p50, p99, marked, dropped] = [0, 1, 2, 3].map(|place| number(values[place]));
            [p50, p99, marked + dropped]
        };
        let flows = values.chunks(4).filter(|values| !values[0].is_empty()).map(flow).collect();
        let cell = (number(mbit) as u64, number(rtt_ms) as u64, *offload, *mix);
        let figures = Figures { used: number(used), share: number(share), flows };
        found.entry(cell).or_default().push(figures);
    }
    found
}

/// `udp_prague` is Prague by others. The simulator has its own.
fn kinds(mix: &str) -> Vec<Kind> {
    let known = [PRAGUE, CUBIC, CUBIC_ECN, BBR1];
    let kind = |name: &str| {
        let name = name.trim_start_matches("udp_");
        known.into_iter().find(|kind| kind.name == name).expect("a known mix")
    };
    mix.split(" and ").map(kind).collect()
}

/// Hosts as those in the guest, which have no card.
fn spec((mbit, rtt_ms, offload, mix): Cell<'_>, seed: u64) -> RunSpec {
    let path = path(QUEUE, mbit, rtt_ms, ROOM);
    RunSpec {
        host_jitter: HostJitter::Virtual,
        offload: if offload == "none" { Offload::None } else { Offload::Host },
        warmup: at(1_000 * WARMUP_SECS),
        ..RunSpec::over(path, flows(&kinds(mix), seed), seed, at(1_000 * SECS))
    }
}

fn row(label: String, of: &str, runs: &[Figures]) -> Vec<String> {
    let show = |digits, of: &dyn Fn(&Figures) -> f64| spread(runs.iter().map(of), digits);
    let flow = |flow: usize| [0, 1, 2].map(|value| show(2, &|run| run.flows[flow][value]));
    let mut cells = vec![label, of.to_owned(), show(1, &|run| run.used)];
    cells.extend(flow(0));
    if runs[0].flows.len() == 2 {
        cells.push(show(0, &|run| run.share));
        cells.extend(flow(1));
    }
    cells.resize(10, String::new());
    cells
}

#[test]
#[ignore = "takes a minute"]
fn queue_of_linux_does_the_same() {
    let text = std::fs::read_to_string(MEASURED).expect("the kernel's runs");
    let rows = measured(&text).into_iter().flat_map(|(cell, runs)| {
        let here = of_seeds(SEEDS, |seed| Figures::simulated(&spec(cell, seed)));
        let (mbit, rtt_ms, offload, mix) = cell;
        let bursts = if offload == "none" { ", no bursts" } else { "" };
        let label = format!("{mbit} Mbit/s, {rtt_ms} ms{bursts}: {mix}");
        [row(label, "Linux", &runs), row(String::new(), "here", &here)]
    });
    let header = [
        "path and flows",
        "DualPI2",
        "utilisation, %",
        "first flow: wait p50, ms",
        "wait p99, ms",
        "marked or dropped, %",
        "its share, %",
        "second flow: wait p50, ms",
        "wait p99, ms",
        "marked or dropped, %",
    ];
    publish("kernel", &table(&header, rows));
}
