//! Curves out of the points of a run: rates from counters, envelopes of samples, runs of states.

use std::collections::BTreeMap;

use uncork_flow::SeriesPoint;
use uncork_units::{Rate, Time, TimeDelta};

use crate::series::{ColumnSeries, ReportSeries};

/// A curve's points, by time in seconds.
pub(crate) type Curve = Vec<(f64, f64)>;

/// Flows that are drawn as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strand {
    pub(crate) label: String,
    pub(crate) flows: Vec<u32>,
}

/// With more flows in a column than this, a line each would be unreadable: flows of one controller
/// are drawn together.
const MAX_LINES: usize = 8;

impl ColumnSeries {
    /// The lines to draw for this column.
    pub(crate) fn strands(&self) -> Vec<Strand> {
        let flows = self.cc.iter().enumerate().map(|(flow, cc)| (flow as u32, cc));
        if self.cc.len() <= 1 {
            return vec![Strand { label: self.label.clone(), flows: vec![0] }];
        }
        if self.cc.len() <= MAX_LINES {
            let strand =
                |(flow, cc)| Strand { label: format!("flow {flow}: {cc}"), flows: vec![flow] };
            return flows.map(strand).collect();
        }
        let mut by_cc: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (flow, cc) in flows {
            by_cc.entry(cc).or_default().push(flow);
        }
        let strand = |(cc, flows): (&str, Vec<u32>)| Strand {
            label: format!("{} × {cc}", flows.len()),
            flows,
        };
        by_cc.into_iter().map(strand).collect()
    }

    /// The points of each of `flows` (ascending), each in the order of time.
    fn points_of(&self, flows: &[u32]) -> Vec<Vec<SeriesPoint>> {
        let mut by_flow = vec![Vec::new(); flows.len()];
        for point in &self.points {
            if let Ok(at) = flows.binary_search(&point.flow) {
                by_flow[at].push(*point);
            }
        }
        for points in &mut by_flow {
            points.sort_by_key(|p| p.time_ns);
        }
        by_flow
    }
}

impl ReportSeries {
    /// When the last run ended.
    pub(crate) fn end(&self) -> Time {
        let points = self.columns.iter().flat_map(|column| &column.points);
        Time::from_nanos(points.map(|p| p.time_ns).max().unwrap_or(0))
    }
}

/// Delivery rate of `flows` together, in bits per second: differences of their counters over windows
/// of about `window`, each at the middle of its window.
pub(crate) fn delivery_rate(column: &ColumnSeries, flows: &[u32], window: TimeDelta) -> Curve {
    let counters = column.points_of(flows);
    let start = counters.iter().filter_map(|c| c.first()).map(|p| p.time_ns).min().unwrap_or(0);
    let end = counters.iter().filter_map(|c| c.last()).map(|p| p.time_ns).max().unwrap_or(0);
    let windows = (end - start).div_ceil(window.as_nanos().max(1));
    let edge =
        |k: u64| start + (u128::from(end - start) * u128::from(k) / u128::from(windows)) as u64;
    let at =
        |time: u64| counters.iter().map(|c| delivered_by(c, time)).fold(0, u64::saturating_add);
    (0..windows)
        .map(|k| {
            let (from, to) = (edge(k), edge(k + 1));
            let rate = Rate::of(at(to).saturating_sub(at(from)), TimeDelta::from_nanos(to - from));
            ((from + (to - from) / 2) as f64 / 1e9, rate.bits_per_sec() as f64)
        })
        .collect()
}

/// Bytes delivered by `time`, linear between the points of one flow.
fn delivered_by(points: &[SeriesPoint], time: u64) -> u64 {
    let next = points.partition_point(|p| p.time_ns <= time);
    let Some(before) = next.checked_sub(1).map(|at| &points[at]) else { return 0 };
    let Some(after) = points.get(next) else { return before.delivered_bytes };
    let part = (time - before.time_ns) as f64 / (after.time_ns - before.time_ns) as f64;
    let gained = after.delivered_bytes.saturating_sub(before.delivered_bytes);
    before.delivered_bytes.saturating_add((gained as f64 * part) as u64)
}

/// What samples did within one window of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Envelope {
    /// Middle of the window in seconds.
    pub(crate) time_s: f64,
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

/// Samples (nanoseconds, value) summed up by windows; windows without a sample are left out.
pub(crate) fn envelopes(
    samples: impl Iterator<Item = (u64, f64)>,
    window: TimeDelta,
) -> Vec<Envelope> {
    let width = window.as_nanos().max(1);
    let mut windows: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (time, value) in samples {
        windows.entry(time / width).or_default().push(value);
    }
    let envelope = |(k, mut values): (u64, Vec<f64>)| {
        values.sort_by(f64::total_cmp);
        Envelope {
            time_s: (k as f64 + 0.5) * width as f64 / 1e9,
            min: values[0],
            median: values[values.len() / 2],
            max: values[values.len() - 1],
        }
    };
    windows.into_iter().map(envelope).collect()
}

/// RTT samples of `flows` in seconds.
pub(crate) fn rtt(column: &ColumnSeries, flows: &[u32]) -> impl Iterator<Item = (u64, f64)> {
    column
        .points
        .iter()
        .filter(|p| flows.binary_search(&p.flow).is_ok())
        .filter_map(|p| Some((p.time_ns, p.rtt_ns? as f64 / 1e9)))
}

/// The bottleneck's queue in bytes.
pub(crate) fn queue(column: &ColumnSeries) -> impl Iterator<Item = (u64, f64)> {
    column.points.iter().map(|p| (p.time_ns, p.queue_bytes as f64))
}

/// A span of time in one controller state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StateSpan {
    pub(crate) state: &'static str,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

/// The states of `flow`, one span for each stay. A stay lasts until the next state is seen.
pub(crate) fn states(column: &ColumnSeries, flow: u32) -> Vec<StateSpan> {
    let mut spans: Vec<StateSpan> = Vec::new();
    for point in column.points_of(&[flow]).remove(0) {
        let now = point.time_ns as f64 / 1e9;
        if let Some(last) = spans.last_mut() {
            last.to_s = now;
            if last.state == point.state {
                continue;
            }
        }
        spans.push(StateSpan { state: point.state, from_s: now, to_s: now });
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn point(time_ms: u64, flow: u32, delivered_bytes: u64, state: &'static str) -> SeriesPoint {
        SeriesPoint {
            time_ns: time_ms * 1_000_000,
            flow,
            state,
            cwnd_bytes: 0,
            inflight_bytes: 0,
            pacing_bps: None,
            max_bw_bps: None,
            min_rtt_ns: None,
            rtt_ns: None,
            queue_bytes: delivered_bytes / 10,
            delivered_bytes,
            lost_bytes: 0,
        }
    }

    fn column(cc: &[&str], points: Vec<SeriesPoint>) -> ColumnSeries {
        let cc = cc.iter().map(|cc| (*cc).to_owned()).collect();
        ColumnSeries { label: "label".to_owned(), cc, points, ..ColumnSeries::default() }
    }

    const SECOND: TimeDelta = TimeDelta::from_secs(1);

    #[test]
    fn rates_are_differences_over_windows() {
        // 1000 bytes in the first second, 3000 in the second; points are unsorted and off the edges.
        let points = vec![point(2000, 0, 4000, ""), point(0, 0, 0, ""), point(1000, 0, 1000, "")];
        let curve = delivery_rate(&column(&["a"], points), &[0], SECOND);
        assert_eq!(curve, [(0.5, 8000.0), (1.5, 24_000.0)]);
    }

    #[test]
    fn flows_add_up_even_when_sampled_apart() {
        let one = [point(0, 0, 0, ""), point(2000, 0, 2000, "")];
        let two = [point(500, 1, 0, ""), point(1500, 1, 1000, "")];
        let column = column(&["a", "b"], [one, two].concat());
        assert_eq!(delivery_rate(&column, &[0, 1], SECOND), [(0.5, 12_000.0), (1.5, 12_000.0)]);
    }

    #[test]
    fn the_area_under_the_rate_is_what_was_delivered() {
        let series = sample::series(&sample::mix());
        let column = &series.columns[1];
        let window = TimeDelta::from_millis(150);
        let curve = delivery_rate(column, &[0, 1], window);
        let step = (series.end().as_nanos() as f64 / 1e9) / curve.len() as f64;
        let area: f64 = curve.iter().map(|(_, bps)| bps * step / 8.0).sum();
        let flows = column.points_of(&[0, 1]);
        let gain = |f: &[SeriesPoint]| f[f.len() - 1].delivered_bytes - f[0].delivered_bytes;
        let delivered = flows.iter().map(|f| gain(f) as f64).sum::<f64>();
        assert!((area / delivered - 1.0).abs() < 1e-3, "{area} {delivered}");
    }

    #[test]
    fn nothing_gives_nothing() {
        let column = column(&["a"], Vec::new());
        assert!(delivery_rate(&column, &[0], SECOND).is_empty());
        assert!(envelopes(rtt(&column, &[0]), SECOND).is_empty());
        assert!(states(&column, 0).is_empty());
    }

    #[test]
    fn one_instant_has_no_rate() {
        let column = column(&["a"], vec![point(5, 0, 100, "")]);
        assert!(delivery_rate(&column, &[0], SECOND).is_empty());
    }

    #[test]
    fn an_envelope_keeps_the_extremes() {
        let samples = [(0, 5.0), (1, 1.0), (2, 9.0), (2_500_000_000, 4.0)];
        let first = Envelope { time_s: 0.5, min: 1.0, median: 5.0, max: 9.0 };
        let third = Envelope { time_s: 2.5, min: 4.0, median: 4.0, max: 4.0 };
        assert_eq!(envelopes(samples.into_iter(), SECOND), [first, third]);
    }

    #[test]
    fn stays_in_a_state_join() {
        let points = [(0, "A"), (100, "A"), (200, "B"), (300, "A")];
        let points = points.map(|(at, state)| point(at, 0, 0, state)).to_vec();
        let span = |state, from_s, to_s| StateSpan { state, from_s, to_s };
        let expected = [span("A", 0.0, 0.2), span("B", 0.2, 0.3), span("A", 0.3, 0.3)];
        assert_eq!(states(&column(&["a"], points), 0), expected);
    }

    #[test]
    fn many_flows_are_drawn_by_controller() {
        let labels = |cc: &[&str]| -> Vec<String> {
            column(cc, Vec::new()).strands().into_iter().map(|s| s.label).collect()
        };
        assert_eq!(labels(&["bbr3"]), ["label"]);
        assert_eq!(labels(&["bbr3", "cubic"]), ["flow 0: bbr3", "flow 1: cubic"]);
        let many = [["bbr3"; 6], ["cubic"; 6]].concat();
        assert_eq!(labels(&many), ["6 × bbr3", "6 × cubic"]);
    }
}
