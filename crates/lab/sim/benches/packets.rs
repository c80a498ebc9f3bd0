//! Packets per second of one core.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use uncork_path::{Buffer, LossSpec, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

fn spec(cc: &str, flows: usize, mbit: u64, loss: &str, secs: u64) -> RunSpec {
    let end = Time::ZERO + TimeDelta::from_secs(secs);
    let cc = cc.parse().expect("a controller");
    RunSpec::over(
        PathSpec {
            loss: LossSpec::Bernoulli(loss.parse().expect("a percentage")),
            ..PathSpec::new(
                Rate::from_mbit(mbit),
                TimeDelta::from_millis(20),
                Buffer::MilliBdp(1000),
            )
        },
        vec![FlowSpec::new(cc, Workload::Until(end)); flows],
        1,
        end,
    )
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packets");
    group.sample_size(10);
    for (flows, loss) in [(1, "0.01%"), (100, "0%")] {
        for cc in ["bbr3", "bbr1", "cubic", "reno"] {
            let spec = spec(cc, flows, 1000, loss, 10);
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

/// The cost of a flow should not depend on the number of other flows: each has 10 Mbit/s of the
/// link.
fn flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flows");
    group.sample_size(10);
    for flows in [10, 100, 1000] {
        for cc in ["bbr3", "cubic"] {
            let spec = spec(cc, flows, 10 * flows as u64, "0%", 3);
            group.throughput(Throughput::Elements(run(&spec).packets));
            group.bench_function(format!("{flows} x {cc}, 10 Mbit/s each, 20 ms"), |bench| {
                bench.iter(|| run(&spec));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, packets, flows);
criterion_main!(benches);
