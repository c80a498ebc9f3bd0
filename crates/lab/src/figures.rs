//! What one run comes to.

use uncork_flow::FlowRecord;
use uncork_path::PathSpec;
use uncork_units::TimeDelta;

use crate::compare::{CompareSpec, Workload, wire_bytes};

/// One run of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunFigures {
    /// Its flows, in order.
    pub(crate) flows: Vec<FlowFigures>,
    /// Payload of all flows in bits per second, from the start of the first flow to the end of the
    /// last.
    pub(crate) goodput_bps: f64,
    /// The same with headers, over the rate of the link.
    pub(crate) utilisation: f64,
}

/// One flow of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowFigures {
    /// Seconds to the last byte; `None` for flows of a duration and transfers that did not finish.
    pub(crate) completion_s: Option<f64>,
    /// Payload in bits per second, from its start to its end.
    pub(crate) goodput_bps: f64,
}

impl RunFigures {
    /// The figures of `flows`, which ran as `spec` says.
    pub(crate) fn of(flows: &[FlowRecord], spec: &CompareSpec) -> Self {
        let ends = flows.iter().map(|flow| end_ns(flow, spec, flows.len() as u64));
        let start = flows.iter().map(|flow| flow.start_ns).min().unwrap_or(0);
        let span = TimeDelta::from_nanos(ends.clone().max().unwrap_or(0).saturating_sub(start));
        let payload = flows.iter().map(|flow| flow.bytes_delivered).fold(0, u64::saturating_add);
        let of_flow = |(flow, end): (&FlowRecord, u64)| FlowFigures {
            completion_s: flow.completion_ns.map(|nanos| nanos as f64 / 1e9),
            goodput_bps: bits_per_second(
                flow.bytes_delivered,
                TimeDelta::from_nanos(end.saturating_sub(flow.start_ns)),
            ),
        };
        Self {
            goodput_bps: bits_per_second(payload, span),
            utilisation: share_of_link(payload, span, &spec.path),
            flows: flows.iter().zip(ends).map(of_flow).collect(),
        }
    }

    /// Each finished transfer's seconds.
    pub(crate) fn completions_s(&self) -> impl Iterator<Item = f64> {
        self.flows.iter().filter_map(|flow| flow.completion_s)
    }
}

/// When `flow`, one of `count`, had carried all it would, in nanoseconds since the start of the run.
fn end_ns(flow: &FlowRecord, spec: &CompareSpec, count: u64) -> u64 {
    let start = flow.start_ns;
    match (flow.completion_ns, spec.workload) {
        (Some(span), _) => start.saturating_add(span),
        (None, Workload::Duration(duration)) => start.saturating_add(duration.as_nanos()),
        (None, Workload::Transfer(_)) => spec.end(count).as_nanos(),
    }
}

fn bits_per_second(bytes: u64, span: TimeDelta) -> f64 {
    if span.is_zero() { 0.0 } else { bytes as f64 * 8.0 / span.as_secs_f64() }
}

fn share_of_link(payload: u64, span: TimeDelta, path: &PathSpec) -> f64 {
    bits_per_second(wire_bytes(payload), span)
        / (path.link.nominal_rate().bits_per_sec() as f64).max(1.0)
}

/// A flow's record for tests.
#[cfg(test)]
pub(crate) fn record(start_ms: u64, completion_ms: Option<u64>, delivered: u64) -> FlowRecord {
    let quantiles = |min: f64| Some(uncork_flow::Quantiles { min, p50: min + 1.0, p95: min + 9.0 });
    FlowRecord {
        start_ns: start_ms * 1_000_000,
        completion_ns: completion_ms.map(|ms| ms * 1_000_000),
        bytes_delivered: delivered,
        bytes_acked: delivered,
        bytes_sent: delivered,
        rtt_ms: quantiles(50.0),
        queue_ms: quantiles(0.0),
        ..FlowRecord::blank("sim", "cubic", "cubic", (1, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::example;

    #[test]
    fn a_finished_transfer() {
        // 1.448 MB are 1.5 MB on the wire: 0.6 s of 20 Mbit/s.
        let figures = RunFigures::of(&[record(0, Some(800), 1_448_000)], &example(&["cubic"]));
        assert_eq!(figures.flows[0].completion_s, Some(0.8));
        assert!((figures.goodput_bps - 14_480_000.0).abs() < 1e-3);
        assert!((figures.flows[0].goodput_bps - 14_480_000.0).abs() < 1e-3);
        assert!((figures.utilisation - 0.75).abs() < 1e-9);
        assert_eq!(figures.completions_s().collect::<Vec<_>>(), [0.8]);
    }

    #[test]
    fn together_two_transfers_never_exceed_the_link() {
        // One after the other: each by itself has the whole link, the second waits for it.
        let flows = [record(0, Some(600), 1_448_000), record(0, Some(1200), 1_448_000)];
        let figures = RunFigures::of(&flows, &example(&["cubic+reno"]));
        assert!((figures.utilisation - 1.0).abs() < 1e-9, "{}", figures.utilisation);
        assert!((figures.goodput_bps - 19_306_667.0).abs() < 1.0);
        assert!((figures.flows[1].goodput_bps - 9_653_333.0).abs() < 1.0);
    }

    #[test]
    fn a_transfer_that_did_not_finish_counts_until_the_end_of_the_run() {
        let figures = RunFigures::of(&[record(0, None, 15_000)], &example(&["cubic"]));
        assert_eq!(figures.flows[0].completion_s, None);
        assert!((figures.goodput_bps - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_of_a_duration_counts_for_that() {
        let mut spec = example(&["cubic"]);
        spec.workload = Workload::Duration(TimeDelta::from_secs(2));
        let figures = RunFigures::of(&[record(50, None, 250_000)], &spec);
        assert!((figures.flows[0].goodput_bps - 1_000_000.0).abs() < 1e-3);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(RunFigures::of(&[], &example(&["cubic"])), RunFigures::default());
    }
}
