//! In steady state the simulator does not allocate per packet.
mod common;

use common::{case, spec};
use uncork_sim::{FlowSpec, RunSpec, Simulation, Workload};
use uncork_units::Time;

fn allocations(cc: &str, flows: usize) -> (u64, u64) {
    let end = Time::from_nanos(10_000_000_000);
    let run = RunSpec::over(
        case(1000, 20, 1000).loss("0.01%").path,
        vec![FlowSpec::new(spec(cc), Workload::Until(end)); flows],
        1,
        end,
    );
    let mut simulation = Simulation::new(&run);
    // Queues and scoreboards grow to their size in the first seconds.
    while simulation.now() < Time::from_nanos(6_000_000_000) && simulation.step() {}
    let before = simulation.packets();
    let counted = allocation_counter::measure(|| while simulation.step() {});
    (counted.count_total, simulation.packets() - before)
}

#[test]
fn no_allocation_per_packet_in_steady_state() {
    for cc in ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"] {
        for flows in [1, 20] {
            let (allocations, packets) = allocations(cc, flows);
            println!("{flows} {cc}: {allocations} allocations for {packets} packets");
            assert!(packets > 20_000, "{cc}: only {packets} packets");
            // A ring buffer that still doubles, or a delay seen for the first time, is not an
            // allocation per packet.
            assert!(allocations * 1000 <= packets, "{flows} {cc}: {allocations} allocations");
        }
    }
}
