//! Mixes of Linux's BBRv1 and CUBIC as measured by Srivastava, Fund & Panwar (CNERT 2023), compared with
//! `uncork compare` with its default options. `crates/lab/sim/tests/data/README.md` describes the measurement.
//!
//! `cargo test` holds a few cells. A fifth of all cells up to 100 Mbit/s, as in `docs/evidence/fidelity.md`:
//! `UNCORK_GRID=full cargo test --release -p uncork-lab --test kernel_mixes -- --nocapture`

use std::sync::atomic::AtomicBool;

use uncork_flow::FlowRecord;
use uncork_lab::{Column, CompareSpec, Engine, Start, Workload, items, run_items};
use uncork_path::{Buffer, HostJitter};
use uncork_units::{Rate, TimeDelta};

const CSV: &str = include_str!("../../sim/tests/data/bbr_cubic_fifty_flows.csv");
const FLOWS: usize = 50;
/// Orders of starts of two controllers.
const ORDERS: u32 = 3;
const FASTEST_MBIT: f64 = 100.0;
const DURATION: TimeDelta = TimeDelta::from_secs(120);

/// A cell of the study.
#[derive(Clone, Copy, Debug)]
struct Row {
    mbit: f64,
    rtt_ms: f64,
    bdp: f64,
    bbr: usize,
    /// BBR's share of the goodput on Linux, in percent.
    share: f64,
}

fn rows() -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<f64> = line.split(',').map(|it| it.parse().expect("a number")).collect();
        let [mbit, rtt_ms, bdp, bbr, share, _] = fields[..] else { panic!("six fields: {line}") };
        Row { mbit, rtt_ms, bdp, bbr: bbr as usize, share: 100.0 * share }
    };
    CSV.lines().skip(1).map(row).filter(|row| row.mbit <= FASTEST_MBIT).collect()
}

impl Row {
    /// `uncork compare --rate … --rtt … --loss 0% --buffer … --duration 120s --cc bbr1+…+cubic`
    fn compare(&self, seeds: u32, start: Option<Start>) -> CompareSpec {
        let mix = [vec!["bbr1"; self.bbr], vec!["cubic"; FLOWS - self.bbr]].concat().join("+");
        let column: Column = mix.parse().expect("a mix");
        CompareSpec {
            preset: None,
            rates: vec![Rate::from_mbit(self.mbit as u64)],
            rtts: vec![TimeDelta::from_millis(self.rtt_ms as u64)],
            losses: vec!["0%".parse().expect("a loss")],
            loss_position: None,
            buffers: vec![Buffer::MilliBdp((self.bdp * 1e3) as u64)],
            queue: None,
            jitter: None,
            host_jitter: HostJitter::Usual,
            initial_window: None,
            workload: Workload::Duration(DURATION),
            start,
            columns: vec![column],
            flows: 1,
            seeds,
            first_seed: 1,
        }
    }

    /// BBR's share in each run, in percent.
    fn shares(&self, seeds: u32, start: Option<Start>) -> Vec<f64> {
        let scenario = self.compare(seeds, start).scenario(None).expect("valid");
        let all = items(&scenario);
        let stop = AtomicBool::new(false);
        let runs = run_items((&scenario, Engine::Sim), &all, 1, &stop, &|_, _| {}).expect("runs");
        let bytes = |flows: &[FlowRecord], cc: &str| -> f64 {
            let of_cc = flows.iter().filter(|flow| flow.cc == cc);
            of_cc.map(|flow| flow.bytes_delivered as f64).sum()
        };
        let share = |flows: &[FlowRecord]| {
            let (bbr, cubic) = (bytes(flows, "bbr1"), bytes(flows, "cubic"));
            100.0 * bbr / (bbr + cubic)
        };
        runs.iter().map(|run| share(&run.outcome.flows)).collect()
    }
}

/// The cells that are simulated, spread over links, round-trip times, buffers and mixes.
fn sample() -> Vec<Row> {
    let (step, fastest) = if is_full() { (5, FASTEST_MBIT) } else { (34, 50.0) };
    rows().into_iter().filter(|row| row.mbit <= fastest).skip(2).step_by(step).collect()
}

fn is_full() -> bool {
    std::env::var("UNCORK_GRID").is_ok_and(|grid| grid == "full")
}

/// The share of `distances` of at most this number of points.
fn part(distances: &[f64], points: f64) -> f64 {
    distances.iter().filter(|one| one.abs() <= points).count() as f64 / distances.len() as f64
}

/// The first seed is the first order of starts, three seeds are all orders.
#[test]
fn default_options_are_as_close_to_linux_as_documented() {
    let (mut first, mut outside) = (Vec::new(), Vec::new());
    for row in sample() {
        let shares = row.shares(ORDERS, None);
        let [low, high] = [f64::min, f64::max].map(|of| shares.iter().copied().reduce(of));
        let (low, high) = low.zip(high).expect("runs");
        println!("{row:?}: {:+.1} points, by order {shares:.1?}", shares[0] - row.share);
        first.push(shares[0] - row.share);
        outside.push((low - row.share).max(row.share - high).max(0.0));
    }
    let [five, ten] = [5.0, 10.0].map(|points| part(&first, points));
    let [range, range_ten] = [5.0, 10.0].map(|points| part(&outside, points));
    println!(
        "{} cells: {five:.2} within 5 points, {ten:.2} within 10; {range:.2} within 5 points of the range \
         over orders, {range_ten:.2} within 10",
        first.len()
    );
    if is_full() {
        assert!(five >= 0.5 && ten >= 0.8, "{five} {ten}");
        assert!(range >= 0.65, "{range}");
    }
    assert!(range_ten >= 0.85, "{range_ten}");
}

#[test]
fn starts_are_those_of_the_test_bed() {
    let row = Row { mbit: 50.0, rtt_ms: 80.0, bdp: 20.0, bbr: 10, share: 0.0 };
    let starts = |start| {
        let scenario = row.compare(1, Some(start)).scenario(None).expect("valid");
        let flows = scenario.instance(0, 1).run.flows;
        let ms = |index: usize| flows[index].start.as_nanos() / 1_000_000;
        (ms(0), ms(9), ms(10), ms(49))
    };
    let (bbr, same, cubic, last) = starts(Start::Iperf3);
    assert!(bbr == same && cubic == last, "a program sends on all connections at once");
    assert!((720..820).contains(&bbr), "nine round trips: {bbr}");
    assert!(cubic > 39 * 80 + 500, "39 round trips and a queue: {cubic}");
    assert_eq!(starts(Start::Together), (0, 0, 0, 0));
}
