//! Linux's nsperf `shallow`: 1 Gbit/s, 100 ms, a buffer of 2 % of the BDP.
mod common;

use common::{case, is_complete, mean};
use uncork_units::TimeDelta;

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
    let lost = |run: &common::Run| {
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
