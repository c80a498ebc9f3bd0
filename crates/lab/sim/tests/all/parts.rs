//! A run of several parts, which are simulated one after the other, gives what one event loop of all flows gives.

use crate::common::spec;
use proptest::prelude::*;
use uncork_path::{Buffer, HostJitter, LinkSpec, LossSpec, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Simulation, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

const CONTROLLERS: [&str; 4] = ["reno", "cubic", "bbr1", "bbr3"];
const SHARED_LINKS: usize = 2;
const PATHS: usize = 5;

fn after(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// A path with links of its own, or behind some of the shared ones.
fn any_path() -> impl Strategy<Value = PathSpec> {
    let via = proptest::sample::subsequence((0..SHARED_LINKS).collect::<Vec<_>>(), 0..=2);
    let via = prop_oneof![3 => Just(Vec::new()), 1 => via];
    (1_u64..50, 1_u64..100, 2_u64..60, 0_u64..4, via, any::<bool>()).prop_map(
        |(mbit, rtt, packets, loss, via, uplink)| {
            let buffer = Buffer::Packets(packets);
            let rate = Rate::from_mbit(mbit);
            let mut path = PathSpec::new(rate, TimeDelta::from_millis(rtt), buffer);
            path.loss = LossSpec::Bernoulli(format!("{loss}%").parse().expect("a percentage"));
            path.duplicates = path.loss;
            path.uplink = uplink.then(|| LinkSpec::new(Rate::from_mbit(1), buffer));
            path.via = via;
            path
        },
    )
}

fn any_flow() -> impl Strategy<Value = FlowSpec> {
    let workload = prop_oneof![
        6 => (1_u64..500_000).prop_map(Workload::Transfer),
        1 => (0_u64..3_000).prop_map(|millis| Workload::Until(after(millis))),
    ];
    (0..CONTROLLERS.len(), 0..PATHS, 0_u64..2_000, workload).prop_map(
        |(cc, path, start, workload)| FlowSpec {
            path,
            start: after(start),
            ..FlowSpec::new(spec(CONTROLLERS[cc]), workload)
        },
    )
}

fn any_run() -> impl Strategy<Value = RunSpec> {
    let paths = proptest::collection::vec(any_path(), PATHS);
    let flows = proptest::collection::vec(any_flow(), 1..12);
    let takes_time = (any::<bool>(), any::<bool>());
    (paths, flows, takes_time, 1_u64..30_000, any::<u64>()).prop_map(
        |(paths, flows, (jitter, card), end, seed)| {
            let link = LinkSpec::new(Rate::from_mbit(20), Buffer::Packets(30));
            RunSpec {
                links: vec![link; SHARED_LINKS],
                host_jitter: if jitter { HostJitter::Usual } else { HostJitter::NONE },
                card: card.then(|| Rate::from_mbit(1000)),
                ..with_paths(paths, flows, seed, after(end))
            }
        },
    )
}

fn with_paths(paths: Vec<PathSpec>, flows: Vec<FlowSpec>, seed: u64, end: Time) -> RunSpec {
    let any = PathSpec::new(Rate::from_mbit(1), TimeDelta::from_millis(1), Buffer::Packets(1));
    RunSpec { paths, ..RunSpec::over(any, flows, seed, end) }
}

proptest! {
    #[test]
    fn run_of_several_parts_equals_one_event_loop(spec in any_run()) {
        prop_assert_eq!(run(&spec), Simulation::new(&spec).run());
    }
}

/// The part that ends first still has packets on the way when its last flow ends, and they count until the last part ends.
#[test]
fn run_part_ends_early_counts_its_packets_until_the_last_part_ends() {
    let path = PathSpec::new(Rate::from_mbit(2), TimeDelta::from_millis(80), Buffer::Packets(100));
    let lossy = PathSpec { duplicates: LossSpec::EveryNth(2), ..path.clone() };
    let flow =
        |path, bytes| FlowSpec { path, ..FlowSpec::new(spec("cubic"), Workload::Transfer(bytes)) };
    let flows = vec![flow(0, 100_000), flow(1, 1_000_000), flow(2, 300_000)];
    let spec = with_paths(vec![lossy.clone(), lossy, path], flows, 3, after(60_000));
    assert_eq!(run(&spec), Simulation::new(&spec).run());
}
