//! Simulation of the testbed, and iperf3's way of counting. `tests/data/README.md` lists its
//! settings.

use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, FlowView, Offload, PACKET_BYTES, RunSpec, Simulation, Workload};
use uncork_units::{Rate, Time, TimeDelta};

use crate::common::spec;
use crate::imc23::rows::Cell;

/// HTB and bfifo count Ethernet's header.
const FRAME_BYTES: u64 = PACKET_BYTES as u64 + 14;
/// `iperf3 -t 60s`.
const TEST: TimeDelta = TimeDelta::from_secs(60);

/// iperf3's report of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Payload in bits read by the receiving application.
    bits: f64,
    /// Seconds until the sender's last message reached the receiver, after all data.
    seconds: f64,
    /// Segments declared lost by then.
    pub(crate) lost: u64,
}

impl Report {
    /// In Mbit/s, as computed by the iperf3 of that kernel.
    pub(crate) fn goodput(&self, kernel: &str) -> f64 {
        let seconds = if kernel == "4.15" { TEST.as_secs_f64() } else { self.seconds };
        self.bits / seconds / 1e6
    }
}

/// With offload, as the testbed's hosts have it.
pub(crate) fn simulate(cell: &Cell) -> Report {
    simulate_with(cell, Offload::Card)
}

/// Linux's CUBIC is `cubic:linux`.
pub(crate) fn simulate_with(cell: &Cell, offload: Offload) -> Report {
    let end = Time::ZERO + TEST.times(2);
    let cc = if cell.cc == "cubic" { "cubic:linux" } else { cell.cc };
    let flow = FlowSpec::new(spec(cc), Workload::Until(end));
    let run = RunSpec { offload, ..RunSpec::over(path(cell), vec![flow], 1, end) };
    let mut simulation = Simulation::new(&run);
    while view(&simulation).is_none() {
        assert!(simulation.step(), "{cell}: no connection");
    }
    let start = simulation.now();
    let stop = start + TEST;
    while simulation.step_until(stop) {}
    let queue = view(&simulation).map_or(0, |view| view.queue_bytes);
    let link = &run.paths[0];
    let last_message = stop + link.link.nominal_rate().time_for(queue) + link.rtt.divided_by(2);
    while simulation.step_until(last_message) {}
    let view = view(&simulation).expect("a connection");
    Report {
        bits: view.in_order_bytes as f64 * 8.0,
        seconds: last_message.since(start).as_secs_f64(),
        lost: view.packets_lost,
    }
}

fn view(simulation: &Simulation<'_>) -> Option<FlowView> {
    simulation.view(0)
}

fn path(cell: &Cell) -> PathSpec {
    let wire = cell.mbit * 1_000_000 * u64::from(PACKET_BYTES) / FRAME_BYTES;
    let packets = cell.buffer_kb * 1024 / FRAME_BYTES;
    PathSpec::new(
        Rate::from_bits_per_sec(wire),
        TimeDelta::from_millis(cell.rtt_ms),
        Buffer::Packets(packets),
    )
}
