//! Randomness: equal seeds give equal bytes with every random element, and adding an element does
//! not change the others' draws.

use uncork_path::{
    Buffer, Ecn, JitterDistribution, JitterSpec, LinkSpec, LteSpec, PathSpec, RateSpec,
};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload, run};
use uncork_units::{Rate, Ratio, TimeDelta};

use crate::common::{case, spec};
use crate::elements::scene::{CONTROLLERS, at};

fn link(mbit: u64, queue: &str) -> LinkSpec {
    let queue = queue.parse().expect("a queue discipline");
    LinkSpec { queue, ..LinkSpec::new(Rate::from_mbit(mbit), Buffer::Packets(300)) }
}

fn mobile(mbit: u64) -> RateSpec {
    RateSpec::Lte(LteSpec {
        mean: Rate::from_mbit(mbit),
        variation: Ratio::new(1, 4),
        correlation: TimeDelta::from_secs(1),
        outage_every: TimeDelta::from_secs(10),
        outage: TimeDelta::from_millis(100),
        length: TimeDelta::from_secs(30),
    })
}

fn jitter(max_ms: u64, reorder: bool) -> JitterSpec {
    let distribution = JitterDistribution::Bell;
    JitterSpec { distribution, max: TimeDelta::from_millis(max_ms), reorder }
}

/// A buffer of only 28 ACKs, so that some are lost.
fn slow_uplink() -> LinkSpec {
    let buffer = Buffer::Packets(1);
    let queue = "pie".parse().expect("a queue discipline");
    LinkSpec { queue, ..LinkSpec::new(Rate::from_bits_per_sec(150_000), buffer) }
}

/// Two paths with every element, two shared links, five controllers.
fn everything(seed: u64) -> RunResult {
    let mut first = case(30, 40, 1000).path;
    first.via = vec![0, 1];
    first.link = LinkSpec { rate: mobile(30), ..link(30, "dualpi2") };
    first.uplink = Some(slow_uplink());
    first.jitter = Some(jitter(8, true));
    first.loss = "gilbert:mean=0.5%,burst=3".parse().expect("a loss");
    let mut second = case(30, 20, 1000).path;
    second.via = vec![1];
    second.link.policer = Some("20mbit:100kB".parse().expect("a policer"));
    second.aggregation = Some(TimeDelta::from_millis(5).into());
    second.jitter = Some(jitter(5, false));
    second.loss = "0.3%".parse().expect("a loss");
    let marks = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1];
    let flow = |index: usize| FlowSpec {
        path: index % 2,
        ecn: marks[index % 3],
        ..FlowSpec::new(spec(CONTROLLERS[index % 5]), Workload::Until(at(10_000)))
    };
    run(&RunSpec {
        links: vec![link(60, "pie:ecn"), link(80, "cake")],
        paths: vec![first, second],
        sample_every: Some(TimeDelta::from_millis(50)),
        ..RunSpec::over(case(1, 10, 1000).path, (0..10).map(flow).collect(), seed, at(10_000))
    })
}

#[test]
fn equal_seeds_give_equal_bytes_with_everything_random() {
    let [first, again, other] = [1, 1, 2].map(everything);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let of =
        |count: fn(&uncork_flow::FlowRecord) -> u64| first.flows.iter().map(count).sum::<u64>();
    let happened = [
        of(|flow| flow.lab().packets_dropped_random),
        of(|flow| flow.lab().packets_dropped_queue),
        of(|flow| flow.lab().packets_dropped_policer),
        of(|flow| flow.packets_marked),
        of(|flow| flow.lab().acks_dropped),
    ];
    println!("lost at random, by queues, by the policer, marked, ACKs: {happened:?}");
    assert!(happened.iter().all(|count| *count > 0), "every element had an effect: {happened:?}");
}

/// Adds an element to a path.
type Change = fn(&mut PathSpec);

/// Random losses among the first ten packets of each of 300 flows: the SYN/ACK and nine segments,
/// all sent before any retransmission.
fn first_losses(change: impl Fn(&mut PathSpec)) -> Vec<u64> {
    let mut path = case(10_000, 40, 1000).packets(50_000).path;
    path.loss = "20%".parse().expect("a loss");
    change(&mut path);
    let flow = FlowSpec::new(spec("cubic"), Workload::Transfer(9 * 1448));
    let result = run(&RunSpec::over(path, vec![flow; 300], 7, at(95)));
    assert!(result.flows.iter().all(|flow| flow.bytes_retransmitted == 0));
    result.flows.iter().map(|flow| flow.lab().packets_dropped_random).collect()
}

#[test]
fn added_element_does_not_change_other_draws() {
    let alone = first_losses(|_| ());
    assert!(alone.iter().any(|lost| *lost > 3) && alone.contains(&0));
    let changes: [(&str, Change); 6] = [
        ("jitter", |path| path.jitter = Some(jitter(3, false))),
        ("overtaking", |path| path.jitter = Some(jitter(3, true))),
        ("turns", |path| path.aggregation = Some(TimeDelta::from_millis(2).into())),
        ("a queue that draws", |path| path.link.queue = "pie".parse().expect("a discipline")),
        ("a rate that is drawn", |path| path.link.rate = mobile(10_000)),
        ("an uplink", |path| path.uplink = Some(link(1000, "pie"))),
    ];
    for (name, change) in changes {
        assert_eq!(first_losses(change), alone, "{name}");
    }
}
