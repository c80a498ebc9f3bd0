//! Linux's nsperf `shallow`: 1 Gbit/s, 100 ms, a buffer of 2 % of the BDP.

use crate::common::{case, is_complete, mean};
use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, Offload, RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

struct Figures {
    utilisation: f64,
    lost: f64,
    jain: f64,
}

/// Means over the seeds, from a third of the run to its end.
fn shallow(cc: &str, flows: usize) -> Figures {
    let (seeds, end) = if is_complete() { (5, 60) } else { (1, 30) };
    let (from, to) = (end as f64 / 3.0, end as f64);
    let mut case = case(1000, 100, 20);
    case.sample_every = TimeDelta::from_millis(100);
    let runs: Vec<_> = (1..=seeds).map(|seed| case.flows(&vec![cc; flows], end, seed)).collect();
    let lost = |run: &crate::common::Run| {
        let (lost, delivered) = run.lost_and_delivered(from, to);
        lost / delivered
    };
    let figures = Figures {
        utilisation: mean(runs.iter().map(|run| run.utilisation(from, to))),
        lost: mean(runs.iter().map(lost)),
        jain: mean(runs.iter().map(|run| run.jain(from, to))),
    };
    println!(
        "{flows} x {cc}: {:.3} of the link, {:.2} % lost, Jain {:.2}",
        figures.utilisation,
        100.0 * figures.lost,
        figures.jain
    );
    figures
}

#[test]
fn bbr3_fills_a_shallow_buffer_with_little_loss() {
    for flows in [1, 10, 30] {
        let Figures { utilisation, lost, jain } = shallow("bbr3", flows);
        assert!(utilisation >= 0.85, "{flows} flows: {utilisation:.3}");
        assert!(lost <= 0.01, "{flows} flows: {lost:.4}");
        assert!(jain >= 0.6, "{flows} flows: {jain:.2}");
    }
}

/// The share of 1 Gbit/s that a flow reaches in a second over 1 ms and a switch of 20 packets, from a server
/// with a card of this rate.
fn into_a_switch(cc: &str, offload: Offload, card: Option<u64>) -> f64 {
    let end = Time::ZERO + TimeDelta::from_secs(1);
    let (rate, rtt) = (Rate::from_mbit(1000), TimeDelta::from_millis(1));
    let flow = FlowSpec::new(cc.parse().expect("a controller"), Workload::Until(end));
    let over = RunSpec::over(PathSpec::new(rate, rtt, Buffer::Packets(20)), vec![flow], 1, end);
    let run = RunSpec { offload, card: card.map(Rate::from_mbit), ..over };
    uncork_sim::run(&run).flows[0].bytes_delivered as f64 * 8.0 / 1e9
}

/// A card of the link's rate sends no burst that the switch would have to hold. A faster one does.
#[test]
fn a_card_takes_the_bursts_of_its_host() {
    for offload in [Offload::None, Offload::Host] {
        for cc in ["cubic", "bbr1", "bbr3"] {
            let cards = [None, Some(100_000), Some(10_000), Some(2500), Some(1000)];
            let shares = cards.map(|card| into_a_switch(cc, offload, card));
            let [none, fast, .., equal] = shares;
            println!("| {cc} | {offload:?} | {shares:.3?} |");
            assert!(equal > 0.9, "{cc} {offload:?}: {equal:.3}");
            assert!((fast - none).abs() < 0.15, "{cc} {offload:?}: {fast:.3}, not {none:.3}");
        }
        assert!(into_a_switch("bbr1", offload, None) < 0.6, "the bursts of {offload:?}");
    }
}
