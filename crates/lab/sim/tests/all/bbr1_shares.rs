//! Several BBRv1 flows, and BBRv1 next to CUBIC, compared with published measurements.

use crate::common::page::{agree, page, table};
use crate::common::{Case, Run, case, is_complete, mean};
use uncork_units::TimeDelta;

fn coarse(mut case: Case) -> Case {
    case.sample_every = TimeDelta::from_millis(20);
    case
}

/// Hock et al., ICNP 2017: several BBRv1 flows overestimate the rate together and keep two BDP in
/// flight. A deep buffer then holds a queue of one BDP (Linux 6.18: 1.5 BDP); a buffer below 1.5
/// BDP overflows (Linux 6.18: 6 to 12 % loss with 0.8 BDP).
#[test]
fn bbr1_flows_fill_a_deep_buffer_and_overflow_a_shallow_one() {
    let mut rows = Vec::new();
    for flows in [2, 5, 10] {
        let run = |milli_bdp: u64| -> Run {
            coarse(case(100, 40, milli_bdp)).flows(&vec!["bbr1"; flows], 60, 1)
        };
        let deep = run(8000);
        let queued = deep.between(0, 20.0, 60.0).map(|point| point.queue_bytes as f64);
        let queue = mean(queued) / deep.path.bdp_bytes() as f64;
        let (lost, delivered) = run(800).lost_and_delivered(20.0, 60.0);
        let lost = 100.0 * lost / (lost + delivered);
        rows.push(vec![flows.to_string(), format!("{queue:.2}"), format!("{lost:.1}")]);
        assert!((1.0..=1.7).contains(&queue), "{flows}: a queue of {queue:.2} BDP");
        assert!((3.5..=13.0).contains(&lost), "{flows}: {lost:.1} % lost");
    }
    let header = ["flows", "queue in 8 BDP, BDP", "lost in 0.8 BDP, %"];
    agree(&page("docs/evidence/fidelity.md"), "BBRv1 flows", &table(&header, rows));
}

/// Cao et al., IMC 2019, figure 8: one BBRv1 and one CUBIC flow, Linux 4.15, 1 Gbit/s, 20 ms, 60 s.
/// BBRv1 had 94 % with 10 kB, about half with 5 MB, and a quarter with 10 MB. Here it has more in
/// deep buffers, for unknown reasons. If that is fixed, remove the bound in the last line.
#[test]
fn bbr1_wins_against_cubic_in_shallow_buffers() {
    let seeds = if is_complete() { 5 } else { 1 };
    let share = |packets: u64| {
        let case = coarse(case(1000, 20, 1000).packets(packets));
        let shares: Vec<f64> = (1..=seeds)
            .map(|seed| case.flows(&["bbr1", "cubic"], 60, seed).share(0, 0.0, 60.0))
            .collect();
        println!("{packets} packets: {shares:.2?}");
        mean(shares)
    };
    let (shallow, even, deep) = (share(7), share(3_333), share(6_667));
    assert!((0.91..=0.97).contains(&shallow), "{shallow:.2}");
    assert!((0.40..=0.70).contains(&even) && even < shallow && deep < even, "{even:.2} {deep:.2}");
    assert!((0.30..=0.50).contains(&deep), "{deep:.2}");
}
