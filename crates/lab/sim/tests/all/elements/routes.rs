//! Several consecutive links, some of them shared.

use uncork_path::{Buffer, LinkSpec, PathSpec};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

use crate::common::{Run, case, spec};
use crate::elements::scene::{CONTROLLERS, at};

const SECS: u64 = 30;

fn path(mbit: u64, rtt_ms: u64, via: &[usize]) -> PathSpec {
    PathSpec { via: via.to_vec(), ..case(mbit, rtt_ms, 1000).path }
}

fn link(mbit: u64, queue: &str) -> LinkSpec {
    let queue = queue.parse().expect("a queue discipline");
    LinkSpec { queue, ..LinkSpec::new(Rate::from_mbit(mbit), Buffer::MilliBdp(1000)) }
}

/// One `cc` flow on each path.
fn one_each(cc: &str, links: Vec<LinkSpec>, paths: Vec<PathSpec>, secs: u64) -> RunSpec {
    let end: Time = at(1000 * secs);
    let flow = |path| FlowSpec { path, ..FlowSpec::new(spec(cc), Workload::Until(end)) };
    let flows = (0..paths.len()).map(flow).collect();
    let sample_every = Some(TimeDelta::from_millis(10));
    RunSpec { links, paths, sample_every, ..RunSpec::over(path(1, 10, &[]), flows, 1, end) }
}

fn measured(spec: &RunSpec) -> Run {
    let result: RunResult = run(spec);
    Run { path: spec.paths[0].clone(), result }
}

/// At any position, with any other links.
#[test]
fn narrowest_link_limits_the_rate() {
    for (shared, own) in [([20, 100], 50), ([100, 20], 50), ([100, 50], 20)] {
        for cc in CONTROLLERS {
            let links = shared.map(|mbit| link(mbit, "droptail")).to_vec();
            let spec = one_each(cc, links, vec![path(own, 40, &[0, 1])], SECS);
            let goodput = measured(&spec).goodput(0, 5.0, SECS as f64);
            let used = goodput / 1448.0 * 1500.0 / 20e6;
            println!("{cc:5} over {shared:?} and {own} Mbit/s: {used:.3} of 20");
            assert!((0.9..=1.001).contains(&used), "{cc}, {shared:?}, {own}: {used:.3}");
        }
    }
}

/// The share of a flow over two links of 20 Mbit/s with one competing flow on each.
fn long_route(cc: &str, queue: &str) -> f64 {
    let links = vec![link(20, queue); 2];
    let paths = vec![path(1000, 40, &[0, 1]), path(1000, 40, &[0]), path(1000, 40, &[1])];
    let run = measured(&one_each(cc, links, paths, 2 * SECS));
    let [long, first, second] = [0, 1, 2].map(|flow| run.goodput(flow, 10.0, 60.0) / 1e6);
    let share = long / (long + f64::midpoint(first, second));
    println!(
        "{cc:5} {queue:>8}: long {long:.2}, short {first:.2} and {second:.2} Mbit/s: {share:.3}"
    );
    assert!(long + first.max(second) <= 20.0, "{cc} {queue}: more than a link carries");
    assert!(long + first.min(second) >= 17.0, "{cc} {queue}: a link is left idle");
    share
}

/// The parking lot. Fair queueing gives max-min fairness, one half. With drops, the long route has
/// those of both links and gets less: 1 / (1 + √2) for Reno at equal RTTs: its rate is
/// proportional to 1/√p (minimum potential delay; Massoulié and Roberts, INFOCOM 1999), and at
/// least half of the third that proportional fairness gives it, because queues on both links
/// increase its RTT.
#[test]
fn long_route_gets_its_share_of_a_parking_lot() {
    for cc in ["reno", "cubic", "bbr3"] {
        let fair = long_route(cc, "fq_codel");
        assert!((fair - 0.5).abs() <= 0.06, "{cc}: {fair:.3}");
    }
    for cc in ["reno", "cubic"] {
        for queue in ["droptail", "pie"] {
            let share = long_route(cc, queue);
            assert!((1.0 / 6.0..=0.5).contains(&share), "{cc} {queue}: {share:.3}");
        }
    }
}

/// One BDP of a shared link is its rate times the longest RTT that crosses it.
#[test]
fn shared_buffer_uses_the_longest_rtt() {
    let paths = vec![path(1000, 20, &[0]), path(1000, 100, &[0])];
    let mut spec = one_each("reno", vec![link(10, "droptail")], paths, SECS);
    spec.flows.truncate(1);
    let run = measured(&spec);
    let most = run.between(0, 0.0, SECS as f64).map(|point| point.queue_bytes).max();
    // 10 Mbit/s times 100 ms, minus less than one packet and sampling error.
    let most = most.expect("sampled");
    println!("1 BDP of 10 Mbit/s and 100 ms: {most} B queued at most");
    assert!((125_000 - 4_500..=125_000).contains(&most), "{most}");
}
