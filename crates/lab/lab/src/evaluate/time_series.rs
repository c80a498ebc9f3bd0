//! Single runs over time.

use uncork_flow::SeriesPoint;
use uncork_path::RateSpec;
use uncork_report::lab::{Curve, Limit, StateRow, TimePanel, TimeSeries};

use super::document::SampledCell;
use super::results::RunResults;
use crate::scenario::Selection;

/// Maximum curves per panel.
const MAX_CURVES: usize = 12;

/// Extracts the points of a flow for a panel.
type PointsOf = dyn Fn(&[&SeriesPoint]) -> Vec<(f64, f64)>;

/// Throughput, RTT, inflight, queue and states of the flows of the first sampled seed.
pub(crate) fn time_series(
    results: &RunResults<'_>,
    sampled: &[SampledCell<'_>],
    of: &Selection,
) -> Option<TimeSeries> {
    let cells = results.cells(of, &[]);
    let chosen = sampled.iter().filter(|sampled| cells.contains(&sampled.cell));
    let traces: Vec<TracedFlow<'_>> =
        chosen.flat_map(|sampled| traces(results, sampled, of)).take(MAX_CURVES).collect();
    let limits = PathLimits::of(results, &traces);
    let panel = |label: &str, unit: &str, points: &PointsOf, limit: Option<&Limit>| {
        let curve = |trace: &TracedFlow<'_>| Curve {
            label: trace.label.clone(),
            cc: trace.cc.clone(),
            points: points(&trace.points),
        };
        let curves: Vec<Curve> = traces.iter().map(curve).collect();
        let values = curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        let most = values.fold(0.0, f64::max);
        // A limit far above all values would flatten the curves.
        let limits = limit.filter(|limit| limit.value < 4.0 * most).cloned().into_iter().collect();
        TimePanel { label: label.into(), unit: unit.into(), curves, limits }
    };
    let each = |value: fn(&SeriesPoint) -> Option<f64>| {
        move |points: &[&SeriesPoint]| {
            let point = |point: &&SeriesPoint| Some((seconds(point.time_ns), value(point)?));
            points.iter().filter_map(point).collect::<Vec<_>>()
        }
    };
    (!traces.is_empty()).then(|| TimeSeries {
        panels: vec![
            panel("throughput", "Mbit/s", &throughput, limits.rate.as_ref()),
            panel(
                "round-trip time",
                "ms",
                &each(|point| Some(point.rtt_ns? as f64 / 1e6)),
                limits.rtt.as_ref(),
            ),
            panel("in flight", "kB", &each(|point| Some(point.inflight_bytes as f64 / 1e3)), None),
            panel(
                "queue",
                "kB",
                &each(|point| Some(point.queue_bytes as f64 / 1e3)),
                limits.buffer.as_ref(),
            ),
        ],
        states: traces.iter().filter_map(states).collect(),
        marks: Vec::new(),
    })
}

/// Limits of the path, if all flows share one path and it is constant.
#[derive(Default)]
struct PathLimits {
    rate: Option<Limit>,
    rtt: Option<Limit>,
    buffer: Option<Limit>,
}

impl PathLimits {
    fn of(results: &RunResults<'_>, traces: &[TracedFlow<'_>]) -> Self {
        let of_trace = |trace: &TracedFlow<'_>| {
            let plan = &results.scenario.cells[trace.cell].plan;
            let flow = plan.flows.iter().find(|flow| flow.name == trace.class)?;
            let path = &plan.paths[flow.path];
            let RateSpec::Constant(rate) = path.spec.link.rate else { return None };
            let rtt = flow.rtt.unwrap_or(path.spec.rtt);
            let buffer = path.spec.link.buffer_bytes(uncork_sim::PACKET_BYTES, path.spec.rtt);
            (!path.own_per_flow).then_some((rate, rtt, buffer))
        };
        let all: Vec<_> = traces.iter().map(of_trace).collect();
        let limit = |name: &str, value: f64, unit: &str, is_upper| Limit {
            label: format!("{name} {value} {unit}"),
            value,
            is_upper,
        };
        let rate = common(all.iter().map(|it| it.map(|(rate, ..)| rate.bits_per_sec())));
        let rtt = common(all.iter().map(|it| it.map(|(_, rtt, _)| rtt)));
        let buffer = common(all.iter().map(|it| it.map(|(.., buffer)| buffer)));
        Self {
            rate: rate.map(|rate| limit("link rate", rate as f64 / 1e6, "Mbit/s", true)),
            rtt: rtt.map(|rtt| limit("empty path", rtt.as_millis_f64(), "ms", false)),
            buffer: buffer.map(|bytes| limit("buffer", bytes as f64 / 1e3, "kB", true)),
        }
    }
}

/// The common value of all items, if they are equal.
fn common<T: PartialEq>(values: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// The states of a flow's controller; `None` if it has none.
fn states(trace: &TracedFlow<'_>) -> Option<StateRow> {
    let mut spans: Vec<(String, f64, f64)> = Vec::new();
    for point in trace.points.iter().filter(|point| !point.state.is_empty()) {
        let now = seconds(point.time_ns);
        if let Some((state, _, end)) = spans.last_mut() {
            *end = now;
            if state == point.state {
                continue;
            }
        }
        spans.push((point.state.to_owned(), now, now));
    }
    (!spans.is_empty()).then(|| StateRow { label: trace.label.clone(), spans })
}

/// A flow of a run.
struct TracedFlow<'a> {
    label: String,
    cc: String,
    class: String,
    cell: usize,
    points: Vec<&'a SeriesPoint>,
}

/// Those of the cell's flows that have points, one after the other: each is a pass over all points.
fn traces<'a>(
    results: &RunResults<'_>,
    sampled: &SampledCell<'a>,
    of: &Selection,
) -> impl Iterator<Item = TracedFlow<'a>> {
    let seed = results.scenario.series_seeds.first();
    let run = results.of_cell(sampled.cell).iter().find(|run| Some(&run.seed) == seed);
    let flows = run.into_iter().flat_map(|run| &run.flows).filter(|flow| {
        of.class.as_ref().is_none_or(|class| flow.group == *class)
            && of.cc.as_ref().is_none_or(|cc| flow.cc == *cc)
    });
    let several = flows.clone().count() > 1;
    let trace = move |flow: &uncork_flow::FlowRecord| {
        let number = if several { format!(" {}", flow.flow + 1) } else { String::new() };
        let cell = results.label(sampled.cell, of, (&[&flow.group], &flow.cc));
        let label = [format!("{}{number}", flow.cc), cell].join(", ");
        let points = sampled.points.iter().filter(|point| point.flow == flow.flow).collect();
        TracedFlow {
            label: label.trim_end_matches(", ").to_owned(),
            cc: flow.cc.to_string(),
            class: flow.group.to_string(),
            cell: sampled.cell,
            points,
        }
    };
    flows.map(trace).filter(|trace| !trace.points.is_empty())
}

/// Payload throughput in Mbit/s over spans of at least a hundredth of the run, so that paced and
/// bursty flows look alike.
fn throughput(points: &[&SeriesPoint]) -> Vec<(f64, f64)> {
    let length =
        points.last().map_or(0, |last| last.time_ns) - points.first().map_or(0, |p| p.time_ns);
    let mut edges: Vec<&SeriesPoint> = Vec::new();
    for point in points {
        if edges.last().is_none_or(|last| point.time_ns - last.time_ns >= length / 100) {
            edges.push(point);
        }
    }
    let rate = |pair: &[&SeriesPoint]| {
        let bytes = pair[1].delivered_bytes - pair[0].delivered_bytes;
        let nanos = pair[1].time_ns - pair[0].time_ns;
        (nanos > 0).then(|| (seconds(pair[1].time_ns), bytes as f64 * 8e3 / nanos as f64))
    };
    edges.windows(2).filter_map(rate).collect()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
