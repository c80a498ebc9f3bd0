//! Simulation of the testbed. `tests/data/README.md` lists its settings.

use uncork_flow::FlowRecord;
use uncork_path::{Buffer, HostJitter, PathSpec};
use uncork_sim::{
    FlowSpec, Launch, Offload, PACKET_BYTES, Program, RunSpec, Workload, program_starts,
};
use uncork_units::{Rate, Time, TimeDelta};

use crate::common::spec;
use crate::mixes::rows::Row;

/// HTB and bfifo count Ethernet's header.
const FRAME_BYTES: u64 = PACKET_BYTES as u64 + 14;
const FLOWS: u64 = 50;
/// What a connection has in flight at most, on average. The receiver's window is half of
/// `net.ipv4.tcp_rmem`'s 6 MiB. `net.ipv4.tcp_wmem`'s 4 MiB hold 3.26 MB in packets of two segments, and
/// iperf3 writes again when a third of that is free: so it is between 2.17 and 3.15 MB.
const WINDOW: u64 = 2_660_000;
/// `iperf3 -t 120`.
const TEST: TimeDelta = TimeDelta::from_secs(120);

/// What the two iperf3 report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// BBR's share of the goodput.
    pub(crate) share: f64,
    /// Goodput of all flows in Mbit/s.
    pub(crate) total: f64,
}

/// The mix of `row`, as two iperf3 that were started together.
pub(crate) fn simulate(row: &Row) -> Report {
    let (bbr_start, cubic_start) = starts(row);
    let flows = [
        connections("bbr1", row.bbr, bbr_start),
        connections("cubic:linux", FLOWS - row.bbr, cubic_start),
    ];
    let end = bbr_start.max(cubic_start) + TEST;
    let records = uncork_sim::run(&run_of(row, flows.concat(), end)).flows;
    let (bbr, cubic) = records.split_at(row.bbr as usize);
    let mbit = |class: &[FlowRecord]| {
        let bytes: u64 = class.iter().map(|flow| flow.bytes_delivered).sum();
        bytes as f64 * 8.0 / TEST.as_secs_f64() / 1e6
    };
    let (bbr, cubic) = (mbit(bbr), mbit(cubic));
    Report { share: bbr / (bbr + cubic), total: bbr + cubic }
}

/// When BBR's and CUBIC's iperf3 begin to send. In the study's kernel BBR's SYNs do not wait if CUBIC
/// is first; `tests/data/README.md` says how the measurements show it.
fn starts(row: &Row) -> (Time, Time) {
    let cubic = FLOWS - row.bbr;
    let flows =
        [connections("bbr1", row.bbr, Time::ZERO), connections("cubic:linux", cubic, Time::ZERO)];
    let max_wait = if row.bbr < cubic { TimeDelta::MAX } else { TimeDelta::ZERO };
    let (bbr, all) = (row.bbr as usize, FLOWS as usize);
    let programs = [0..bbr, bbr..all].map(|flows| Program {
        flows: flows.collect(),
        launch: Launch::At(Time::ZERO),
        max_wait,
    });
    let starts = program_starts(&run_of(row, flows.concat(), Time::ZERO + TEST), &programs);
    (starts[0], starts[1])
}

fn connections(cc: &str, count: u64, start: Time) -> Vec<FlowSpec> {
    let flow = FlowSpec::new(spec(cc), Workload::Until(start + TEST));
    vec![FlowSpec { start, receive_window: WINDOW, ..flow }; count as usize]
}

fn run_of(row: &Row, flows: Vec<FlowSpec>, end: Time) -> RunSpec {
    RunSpec {
        host_jitter: HostJitter::Usual,
        offload: Offload::Card,
        ..RunSpec::over(path(row), flows, 1, end)
    }
}

fn path(row: &Row) -> PathSpec {
    let wire = row.mbit * 1_000_000 * u64::from(PACKET_BYTES) / FRAME_BYTES;
    let (rate, rtt) = (Rate::from_bits_per_sec(wire), TimeDelta::from_millis(row.rtt_ms));
    PathSpec::new(rate, rtt, Buffer::MilliBdp(row.milli_bdp))
}
