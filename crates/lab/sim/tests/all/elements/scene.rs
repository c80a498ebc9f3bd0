//! Shared by the tests of elements: paths with a queue discipline, and flows over them.

use uncork_flow::FlowRecord;
use uncork_path::Ecn;
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, Workload};
use uncork_units::{Time, TimeDelta};

use crate::common::{Case, Run, case, spec};

pub(crate) const CONTROLLERS: [&str; 5] = ["reno", "cubic", "bbr1", "bbr2", "bbr3"];

/// A buffer that no AQM fills.
const ROOM: u64 = 5_000;

/// A link of `mbit` Mbit/s with `queue`, such as `codel:ecn`, and a large buffer.
pub(crate) fn behind(queue: &str, mbit: u64, rtt_ms: u64) -> Case {
    let mut case = case(mbit, rtt_ms, 1000).packets(ROOM);
    case.path.link.queue = queue.parse().expect("a queue discipline");
    case
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// Endless flows that start a tenth of a second apart, with ECN field `ecn`.
pub(crate) fn flows(ccs: &[&str], ecn: Ecn, secs: u64) -> Vec<FlowSpec> {
    let flow = |(index, cc): (u64, &&str)| FlowSpec {
        start: at(100 * index),
        ecn,
        ..FlowSpec::new(spec(cc), Workload::Until(at(1000 * secs)))
    };
    (0..).zip(ccs).map(flow).collect()
}

/// `flows` over `case` for `secs` seconds.
pub(crate) fn go(case: &Case, flows: Vec<FlowSpec>, secs: u64) -> Run {
    case.run(flows, 1, at(1000 * secs))
}

/// A flow's delivered payload with its headers, in bytes.
pub(crate) fn on_the_wire(payload: u64) -> f64 {
    payload as f64 * f64::from(PACKET_BYTES) / f64::from(MSS_BYTES)
}

/// Median and 95th percentile of a flow's queueing delay in milliseconds.
pub(crate) fn waited(flow: &FlowRecord) -> (f64, f64) {
    let queue = flow.lab().queue_ms.expect("it sent something");
    (queue.p50, queue.p95)
}

/// The sum of something over all flows.
pub(crate) fn total(run: &Run, of: impl Fn(&FlowRecord) -> u64) -> u64 {
    run.result.flows.iter().map(of).sum()
}
