//! The columns of the summary, shared by the text table and the HTML table.

use crate::document::{ColumnResult, CompareDocument, FlowResult, Workload};
use crate::number::decimals;

/// One column of figures. Neighbours of one group share its heading and its decimals.
pub(crate) struct Metric {
    /// Heading with the unit: `RTT ms`.
    pub(crate) group: &'static str,
    /// Heading below it, where the group has several columns: `p95`.
    pub(crate) name: &'static str,
    of_result: fn(&ColumnResult) -> Option<f64>,
    of_flow: fn(&FlowResult) -> Option<f64>,
    /// Fixed number of decimals; otherwise the group's values decide.
    decimals: Option<usize>,
    /// Whether a result without this figure is nothing remarkable.
    optional: bool,
}

impl Metric {
    const fn new(
        group: &'static str,
        name: &'static str,
        of_result: fn(&ColumnResult) -> Option<f64>,
    ) -> Self {
        Self { group, name, of_result, of_flow: |_| None, decimals: None, optional: false }
    }

    const fn and_flow(mut self, of_flow: fn(&FlowResult) -> Option<f64>) -> Self {
        self.of_flow = of_flow;
        self
    }

    const fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = Some(decimals);
        self
    }

    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

const COMPLETION: [Metric; 3] = [
    Metric::new("completion s", "p10", |r| Some(r.completion_s?.p10)),
    Metric::new("completion s", "p50", |r| Some(r.completion_s?.p50)).and_flow(|f| f.completion_s),
    Metric::new("completion s", "p90", |r| Some(r.completion_s?.p90)),
];

const ALWAYS: [Metric; 9] = [
    Metric::new("goodput", "Mbit/s", |r| Some(r.goodput_bps as f64 / 1e6))
        .and_flow(|f| Some(f.goodput_bps as f64 / 1e6)),
    Metric::new("link", "%", |r| Some(r.utilisation * 100.0)).decimals(1),
    Metric::new("RTT ms", "min", |r| Some(r.rtt_ms?.min)),
    Metric::new("RTT ms", "p50", |r| Some(r.rtt_ms?.p50)),
    Metric::new("RTT ms", "p95", |r| Some(r.rtt_ms?.p95)),
    Metric::new("queue ms", "p50", |r| Some(r.queue_ms?.p50)),
    Metric::new("queue ms", "p95", |r| Some(r.queue_ms?.p95)),
    Metric::new("resent", "%", |r| Some(r.retransmit_fraction * 100.0)).decimals(2),
    Metric::new("RTOs", "", |r| Some(r.timeouts as f64)).decimals(0),
];

const JAIN: Metric = Metric::new("Jain", "", |r| r.jain).decimals(3).optional();

const SHARE: Metric =
    Metric::new("share", "%", |_| None).and_flow(|f| Some(f.share * 100.0)).decimals(1).optional();

/// The columns that have something to say about `document`.
fn metrics(document: &CompareDocument) -> Vec<Metric> {
    let mut metrics = Vec::new();
    if matches!(document.workload, Workload::Size { .. }) {
        metrics.extend(COMPLETION);
    }
    metrics.extend(ALWAYS);
    if document.results.iter().any(|r| r.jain.is_some()) {
        metrics.push(JAIN);
    }
    if document.results.iter().any(is_mix) {
        metrics.push(SHARE);
    }
    metrics
}

/// Whether flows of different controllers share the column's path.
pub(crate) fn is_mix(result: &ColumnResult) -> bool {
    result.per_flow.windows(2).any(|pair| pair[0].cc != pair[1].cc)
}

/// The summary as text cells.
pub(crate) struct Summary {
    /// The columns of figures; the rows' labels stand before them.
    pub(crate) metrics: Vec<Metric>,
    /// The rows, top to bottom.
    pub(crate) rows: Vec<Row>,
}

/// One row of the summary.
pub(crate) struct Row {
    /// The controller.
    pub(crate) label: String,
    /// Whether this is one flow of the mix above it.
    pub(crate) is_flow: bool,
    /// One cell for each metric; `None` where a figure is missing that others have.
    pub(crate) cells: Vec<Option<String>>,
}

impl Summary {
    /// The summary of `document`: a row for each result, and below each mix a row for each flow.
    pub(crate) fn of(document: &CompareDocument) -> Self {
        let metrics = metrics(document);
        let values: Vec<_> = document.results.iter().flat_map(|r| values(&metrics, r)).collect();
        let decimals: Vec<usize> = metrics
            .iter()
            .map(|m| m.decimals.unwrap_or_else(|| group_decimals(&metrics, &values, m.group)))
            .collect();
        let rows =
            values.into_iter().map(|figures| Row::of(figures, &metrics, &decimals)).collect();
        Self { metrics, rows }
    }
}

type Figures = (String, bool, Vec<Option<f64>>);

fn values(metrics: &[Metric], result: &ColumnResult) -> Vec<Figures> {
    let whole = metrics.iter().map(|m| (m.of_result)(result)).collect();
    let flows = if is_mix(result) { result.per_flow.as_slice() } else { &[] };
    let of_flow = |f: &FlowResult| metrics.iter().map(|m| (m.of_flow)(f)).collect();
    std::iter::once((result.cc.clone(), false, whole))
        .chain(flows.iter().map(|f| (f.cc.clone(), true, of_flow(f))))
        .collect()
}

fn group_decimals(metrics: &[Metric], rows: &[Figures], group: &str) -> usize {
    decimals(rows.iter().flat_map(|(_, _, figures)| {
        metrics.iter().zip(figures).filter(|(m, _)| m.group == group).filter_map(|(_, v)| *v)
    }))
}

impl Row {
    fn of((label, is_flow, figures): Figures, metrics: &[Metric], decimals: &[usize]) -> Self {
        let absent = |metric: &Metric| (is_flow || metric.optional).then(String::new);
        let cells = (figures.iter().zip(metrics).zip(decimals))
            .map(|((v, m), d)| v.map_or_else(|| absent(m), |v| Some(format!("{v:.d$}", d = *d))))
            .collect();
        Self { label, is_flow, cells }
    }
}
