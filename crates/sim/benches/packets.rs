//! Packets per second of one core.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use uncork_path::{Buffer, LossPosition, LossSpec, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

fn spec(cc: &str, flows: usize, loss: &str, secs: u64) -> RunSpec {
    let end = Time::ZERO + TimeDelta::from_secs(secs);
    let cc = cc.parse().expect("a controller");
    RunSpec {
        path: PathSpec {
            rate: Rate::from_mbit(1000),
            rate_steps: Vec::new(),
            rtt: TimeDelta::from_millis(20),
            policer: None,
            buffer: Buffer::MilliBdp(1000),
            loss: LossSpec::Bernoulli(loss.parse().expect("a percentage")),
            loss_position: LossPosition::After,
        },
        flows: vec![FlowSpec::new(cc, Workload::Until(end)); flows],
        seed: 1,
        end,
        sample_every: None,
    }
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packets");
    group.sample_size(10);
    for (flows, loss) in [(1, "0.01%"), (100, "0%")] {
        for cc in ["bbr3", "bbr1", "cubic", "reno"] {
            let spec = spec(cc, flows, loss, 10);
            group.throughput(Throughput::Elements(run(&spec).packets));
            group.bench_function(
                format!("{flows} x {cc}, 1 Gbit/s, 20 ms, loss {loss}"),
                |bench| {
                    bench.iter(|| run(&spec));
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);
