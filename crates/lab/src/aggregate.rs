//! From flow records to the figures of a column.
//!
//! A figure of a column is the median over its seeds, except where a total says more: completion
//! times lie over all transfers of all seeds, the part sent again is taken of all bytes of all
//! seeds, and timeouts and unfinished transfers are counted over all seeds. RTT and queueing delay
//! are medians, over flows and seeds, of each flow's own minimum, median and 95th percentile.

use uncork_flow::{FlowRecord, Quantiles, jain_index, quantile};
use uncork_report::{ColumnResult, FlowResult, QueueDelay, Spread};

use crate::compare::{CompareSpec, Workload};
use crate::figures::RunFigures;
use crate::run::ColumnRuns;

/// A column's result, and the runs behind it.
#[derive(Debug)]
pub(crate) struct ColumnFigures<'a> {
    pub(crate) column: &'a crate::Column,
    pub(crate) runs: Vec<RunFigures>,
    pub(crate) result: ColumnResult,
}

impl<'a> ColumnFigures<'a> {
    pub(crate) fn of(column: &'a ColumnRuns, spec: &CompareSpec) -> Self {
        let runs: Vec<_> = column.runs.iter().map(|flows| RunFigures::of(flows, spec)).collect();
        let result = result(column, &runs, spec.workload);
        Self { column: &column.column, runs, result }
    }
}

fn result(column: &ColumnRuns, runs: &[RunFigures], workload: Workload) -> ColumnResult {
    let records = || column.runs.iter().flatten();
    let completions: Vec<f64> = runs.iter().flat_map(RunFigures::completions_s).collect();
    let unfinished = match workload {
        Workload::Transfer(_) => records().filter(|flow| flow.completion_ns.is_none()).count(),
        Workload::Duration(_) => 0,
    };
    let total = |of: fn(&FlowRecord) -> u64| records().map(of).fold(0, u64::saturating_add);
    let sent = total(|flow| flow.bytes_sent).max(1);
    let queue = middle_quantiles(records().map(|flow| flow.queue_ms));
    ColumnResult {
        cc: column.column.to_string(),
        flows: column.runs.first().map_or(0, |flows| flows.len() as u32),
        completion_s: spread(&completions),
        unfinished: unfinished as u64,
        goodput_bps: median(runs.iter().map(|run| run.goodput_bps)).unwrap_or(0.0).round() as u64,
        utilisation: median(runs.iter().map(|run| run.utilisation)).unwrap_or(0.0),
        rtt_ms: middle_quantiles(records().map(|flow| flow.rtt_ms)),
        queue_ms: queue.map(|Quantiles { p50, p95, .. }| QueueDelay { p50, p95 }),
        retransmit_fraction: total(|flow| flow.bytes_retransmitted) as f64 / sent as f64,
        timeouts: total(|flow| flow.timeouts),
        jain: median(runs.iter().filter_map(jain)),
        per_flow: per_flow(column, runs),
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    quantile(&values.collect::<Vec<_>>(), 0.5)
}

fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        p10: quantile(values, 0.1)?,
        p50: quantile(values, 0.5)?,
        p90: quantile(values, 0.9)?,
    })
}

/// The median of each quantile over the flows that have them; `None` where none has.
fn middle_quantiles(quantiles: impl Iterator<Item = Option<Quantiles>>) -> Option<Quantiles> {
    let quantiles: Vec<Quantiles> = quantiles.flatten().collect();
    let of = |part: fn(&Quantiles) -> f64| median(quantiles.iter().map(part));
    Some(Quantiles { min: of(|q| q.min)?, p50: of(|q| q.p50)?, p95: of(|q| q.p95)? })
}

/// `None` for a flow alone.
fn jain(run: &RunFigures) -> Option<f64> {
    let goodputs: Vec<f64> = run.flows.iter().map(|flow| flow.goodput_bps).collect();
    if goodputs.len() > 1 { jain_index(&goodputs) } else { None }
}

fn per_flow(column: &ColumnRuns, runs: &[RunFigures]) -> Vec<FlowResult> {
    let of = |nth: usize| runs.iter().filter_map(move |run| run.flows.get(nth));
    let goodput = |nth| median(of(nth).map(|flow| flow.goodput_bps)).unwrap_or(0.0);
    let first = column.runs.first().map_or(&[][..], Vec::as_slice);
    let total: f64 = (0..first.len()).map(goodput).sum();
    let flow = |(nth, record): (usize, &FlowRecord)| FlowResult {
        flow: record.flow,
        cc: record.cc.clone(),
        goodput_bps: goodput(nth).round() as u64,
        share: if total > 0.0 { goodput(nth) / total } else { 0.0 },
        completion_s: median(of(nth).filter_map(|flow| flow.completion_s)),
    };
    first.iter().enumerate().map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::example;
    use crate::figures::record;

    /// The result of one column with these runs.
    fn result_of(name: &str, runs: Vec<Vec<FlowRecord>>, spec: &CompareSpec) -> ColumnResult {
        let column = ColumnRuns { column: name.parse().unwrap(), runs, sampled: None };
        ColumnFigures::of(&column, spec).result
    }

    #[test]
    fn one_flow_over_three_seeds() {
        let mut runs = [1000, 2000, 6000].map(|ms| vec![record(0, Some(ms), 1_000_000)]);
        runs[0][0].bytes_retransmitted = 30_000;
        runs[2][0].timeouts = 2;
        runs[2][0].rtt_ms = None;
        let result = result_of("cubic", runs.to_vec(), &example(&["cubic"]));
        assert_eq!((result.cc.as_str(), result.flows, result.unfinished), ("cubic", 1, 0));
        assert_eq!(result.completion_s, Some(Spread { p10: 1.2, p50: 2.0, p90: 5.2 }));
        assert_eq!(result.goodput_bps, 4_000_000);
        assert!((result.utilisation - 0.2 * 1500.0 / 1448.0).abs() < 1e-5);
        assert_eq!(result.rtt_ms, Some(Quantiles { min: 50.0, p50: 51.0, p95: 59.0 }));
        assert_eq!(result.queue_ms, Some(QueueDelay { p50: 1.0, p95: 9.0 }));
        assert!((result.retransmit_fraction - 0.01).abs() < 1e-12);
        assert_eq!((result.timeouts, result.jain), (2, None));
        let flow = FlowResult {
            flow: 0,
            cc: "cubic".into(),
            goodput_bps: 4_000_000,
            share: 1.0,
            completion_s: Some(2.0),
        };
        assert_eq!(result.per_flow, [flow]);
    }

    #[test]
    fn flows_that_share_are_told_apart() {
        let run = || {
            let mut flows = vec![record(0, Some(1000), 300_000), record(0, Some(1000), 100_000)];
            (flows[0].cc, flows[1].flow) = ("bbr3".into(), 1);
            flows
        };
        let result = result_of("bbr3+cubic", vec![run(), run()], &example(&["bbr3+cubic"]));
        assert_eq!((result.flows, result.goodput_bps), (2, 3_200_000));
        assert_eq!(result.jain, Some(0.8));
        let shares: Vec<_> =
            result.per_flow.iter().map(|f| (f.flow, f.cc.as_str(), f.share)).collect();
        assert_eq!(shares, [(0, "bbr3", 0.75), (1, "cubic", 0.25)]);
    }

    #[test]
    fn what_did_not_finish_is_counted_and_has_no_completion() {
        let runs = vec![vec![record(0, None, 0)], vec![record(0, Some(2000), 1000)]];
        let result = result_of("cubic", runs, &example(&["cubic"]));
        assert_eq!(result.unfinished, 1);
        assert_eq!(result.completion_s, Some(Spread { p10: 2.0, p50: 2.0, p90: 2.0 }));
        let none = result_of("cubic", vec![vec![record(0, None, 0)]], &example(&["cubic"]));
        assert_eq!((none.completion_s, none.goodput_bps), (None, 0));
    }
}
