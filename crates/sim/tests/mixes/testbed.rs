//! Simulation of the testbed. `tests/data/README.md` lists its settings.

use uncork_flow::FlowRecord;
use uncork_path::{Buffer, HostJitter, PathSpec};
use uncork_sim::{FlowSpec, PACKET_BYTES, RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

use crate::common::spec;
use crate::rows::Row;

/// HTB and bfifo count Ethernet's header.
const FRAME_BYTES: u64 = PACKET_BYTES as u64 + 14;
const FLOWS: u64 = 50;
/// The largest window of Linux's receivers: half of `net.ipv4.tcp_rmem`'s default maximum of 6 MiB.
const RECEIVE_WINDOW: u64 = 3 << 20;
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

/// An iperf3 opens its connections one after the other, a round trip each, and then sends on all at
/// once: of two that are started together, the one with fewer connections is first.
pub(crate) fn simulate(row: &Row) -> Report {
    let rtt = TimeDelta::from_millis(row.rtt_ms);
    let connections = |cc: &str, count: u64| {
        let start = Time::ZERO + rtt.times(count);
        let flow = FlowSpec::new(spec(cc), Workload::Until(start + TEST));
        vec![FlowSpec { start, receive_window: RECEIVE_WINDOW, ..flow }; count as usize]
    };
    let flows =
        [connections("bbr1", row.bbr), connections("cubic:linux", FLOWS - row.bbr)].concat();
    let end = Time::ZERO + rtt.times(FLOWS) + TEST;
    let run = RunSpec { host_jitter: HostJitter::Usual, ..RunSpec::over(path(row), flows, 1, end) };
    let records = uncork_sim::run(&run).flows;
    let (bbr, cubic) = records.split_at(row.bbr as usize);
    let mbit = |class: &[FlowRecord]| {
        let bytes: u64 = class.iter().map(|flow| flow.bytes_delivered).sum();
        bytes as f64 * 8.0 / TEST.as_secs_f64() / 1e6
    };
    let (bbr, cubic) = (mbit(bbr), mbit(cubic));
    Report { share: bbr / (bbr + cubic), total: bbr + cubic }
}

fn path(row: &Row) -> PathSpec {
    let wire = row.mbit * 1_000_000 * u64::from(PACKET_BYTES) / FRAME_BYTES;
    let (rate, rtt) = (Rate::from_bits_per_sec(wire), TimeDelta::from_millis(row.rtt_ms));
    PathSpec::new(rate, rtt, Buffer::MilliBdp(row.milli_bdp))
}
