//! The inside of single runs over time.

use uncork_flow::SeriesPoint;
use uncork_report::lab::{Curve, TimePanel, TimeSeries};

use super::document::SampledCell;
use super::results::Results;
use crate::scenario::Selection;

/// Curves of one panel: more cannot be told apart.
const MAX_CURVES: usize = 12;

/// What a panel shows of a flow.
type PointsOf = dyn Fn(&[&SeriesPoint]) -> Vec<(f64, f64)>;

/// Throughput, round-trip time, data in flight and queue of the flows of the first seed that is sampled.
pub(crate) fn time_series(
    results: &Results<'_>,
    sampled: &[SampledCell<'_>],
    of: &Selection,
) -> Option<TimeSeries> {
    let cells = results.cells(of, &[]);
    let chosen = sampled.iter().filter(|sampled| cells.contains(&sampled.cell));
    let traces: Vec<Trace<'_>> =
        chosen.flat_map(|sampled| traces(results, sampled, of)).take(MAX_CURVES).collect();
    let panel = |label: &str, unit: &str, points: &PointsOf| {
        let curve = |trace: &Trace<'_>| Curve {
            label: trace.label.clone(),
            cc: trace.cc.clone(),
            points: points(&trace.points),
        };
        TimePanel {
            label: label.into(),
            unit: unit.into(),
            curves: traces.iter().map(curve).collect(),
        }
    };
    let each = |value: fn(&SeriesPoint) -> Option<f64>| {
        move |points: &[&SeriesPoint]| {
            let point = |point: &&SeriesPoint| Some((seconds(point.time_ns), value(point)?));
            points.iter().filter_map(point).collect::<Vec<_>>()
        }
    };
    (!traces.is_empty()).then(|| TimeSeries {
        panels: vec![
            panel("throughput", "Mbit/s", &throughput),
            panel("round-trip time", "ms", &each(|point| Some(point.rtt_ns? as f64 / 1e6))),
            panel("in flight", "kB", &each(|point| Some(point.inflight_bytes as f64 / 1e3))),
            panel("queue", "kB", &each(|point| Some(point.queue_bytes as f64 / 1e3))),
        ],
        marks: Vec::new(),
    })
}

/// One flow of one run.
struct Trace<'a> {
    label: String,
    cc: String,
    points: Vec<&'a SeriesPoint>,
}

fn traces<'a>(results: &Results<'_>, sampled: &SampledCell<'a>, of: &Selection) -> Vec<Trace<'a>> {
    let seed = results.scenario.series_seeds.first();
    let run = results.of_cell(sampled.cell).iter().find(|run| Some(&run.seed) == seed);
    let flows = run.into_iter().flat_map(|run| &run.flows).filter(|flow| {
        of.class.as_ref().is_none_or(|class| flow.group == *class)
            && of.cc.as_ref().is_none_or(|cc| flow.cc == *cc)
    });
    let several = flows.clone().count() > 1;
    let trace = |flow: &uncork_flow::FlowRecord| {
        let number = if several { format!(" {}", flow.flow + 1) } else { String::new() };
        let cell = results.label(sampled.cell, of, (&[&flow.group], &flow.cc));
        let label = [format!("{}{number}", flow.cc), cell].join(", ");
        let points = sampled.points.iter().filter(|point| point.flow == flow.flow).collect();
        Trace { label: label.trim_end_matches(", ").to_owned(), cc: flow.cc.clone(), points }
    };
    flows.map(trace).filter(|trace| !trace.points.is_empty()).collect()
}

/// Payload delivered over spans of at least a hundredth of the run, in Mbit/s: from one instant to the
/// next a paced flow and one that sends in bursts would look alike only by chance.
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
