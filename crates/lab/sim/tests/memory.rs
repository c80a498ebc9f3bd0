//! Memory of a flow while it is idle, before its start and after its end.
mod common;

use common::{case, spec};
use uncork_sim::{FlowSpec, RunSpec, Simulation, Workload, run};
use uncork_units::{Rng, Time, TimeDelta};

const CONTROLLERS: [&str; 6] = ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"];

fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// Memory growth of a simulation in bytes after each of several sequential flows, which each send
/// over 200 Mbit/s and 50 ms for two seconds and then stay idle.
fn held_by_each(cc: &str, loss: &str) -> Vec<i64> {
    let flows = 30;
    let flow = |index: u32| FlowSpec {
        start: at(u64::from(index) * 10_000),
        ..FlowSpec::new(spec(cc), Workload::Until(at(1_000_000)))
    };
    let path = case(200, 50, 1000).loss(loss).path;
    let run = RunSpec::over(path, (0..flows).map(flow).collect(), 1, at(1_000_000));
    let mut simulation = Simulation::new(&run);
    let mut live = |flow: u32| {
        while simulation.step_until(at(u64::from(flow) * 10_000 + 2_000)) {}
        simulation.pause(flow);
        while simulation.step_until(at(u64::from(flow) * 10_000 + 9_999)) {}
        let view = simulation.view(flow).expect("connected");
        assert_eq!(view.in_flight, 0, "{cc}, flow {flow}");
        assert!(view.delivered_bytes > 1_000_000, "{cc}: {} bytes", view.delivered_bytes);
    };
    (0..flows).map(|flow| allocation_counter::measure(|| live(flow)).bytes_current).collect()
}

/// The median, because the queues shared by all flows grow occasionally.
#[test]
fn idle_flow_takes_4_2_kb() {
    let mut worst = 0;
    for cc in CONTROLLERS {
        for loss in ["0%", "0.02%"] {
            let mut held = held_by_each(cc, loss);
            held.sort_unstable();
            println!("{cc} at {loss}: {held:?} bytes");
            let median = held[held.len() / 2];
            worst = worst.max(median);
        }
    }
    assert!((1000..=4200).contains(&worst), "{worst} bytes");
}

/// Downloads of three segments with random start times, a thousand per second.
fn crowd(flows: usize) -> RunSpec {
    let mut rng = Rng::new(1, 0);
    let end = flows as u64;
    let mut flow = || FlowSpec {
        start: Time::from_nanos(rng.below(end * 1_000_000)),
        ..FlowSpec::new(spec("cubic"), Workload::Transfer(4_000))
    };
    let flows = std::iter::repeat_with(&mut flow).take(flows).collect();
    RunSpec::over(case(200, 20, 1000).path, flows, 1, at(end + 60_000))
}

/// A future flow takes a schedule entry, a finished one a record.
#[test]
fn only_active_flows_take_memory() {
    let spec = crowd(20_000);
    let mut before = 0;
    let whole = allocation_counter::measure(|| {
        before =
            allocation_counter::measure(|| std::mem::forget(Simulation::new(&spec))).bytes_current;
        let result = run(&spec);
        assert!(result.flows.iter().all(|flow| flow.completion_ns.is_some()));
    });
    let flows = spec.flows.len() as u64;
    let (before, peak) = (before.cast_unsigned() / flows, whole.bytes_max / flows);
    println!("{before} bytes before, {peak} at the peak");
    assert!(before <= 100, "{before} bytes of a flow to come");
    assert!(peak <= 2_100, "{peak} bytes of each flow at the peak");
}
