//! What the tests of elements share: paths with a queue discipline, and flows over them.

use uncork_flow::FlowRecord;
use uncork_path::Ecn;
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, Workload};
use uncork_units::{Time, TimeDelta};

use crate::common::{Case, Run, case, spec};

pub(crate) const CONTROLLERS: [&str; 5] = ["reno", "cubic", "bbr1", "bbr2", "bbr3"];

/// Room that no active queue management needs.
const ROOM: u64 = 5_000;

/// A link of `mbit` Mbit/s behind `queue`, such as `codel:ecn`, with room to spare.
pub(crate) fn behind(queue: &str, mbit: u64, rtt_ms: u64) -> Case {
    let mut case = case(mbit, rtt_ms, 1000).packets(ROOM);
    case.path.link.queue = queue.parse().expect("a queue discipline");
    case
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// Flows without end, a tenth of a second apart, that tell the network `ecn`.
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

/// Median and 95th percentile of the time that a flow's packets waited, in milliseconds.
pub(crate) fn waited(flow: &FlowRecord) -> (f64, f64) {
    let queue = flow.lab().queue_ms.expect("it sent something");
    (queue.p50, queue.p95)
}

/// The sum of something over all flows.
pub(crate) fn total(run: &Run, of: impl Fn(&FlowRecord) -> u64) -> u64 {
    run.result.flows.iter().map(of).sum()
}
