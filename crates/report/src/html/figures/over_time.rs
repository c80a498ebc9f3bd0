//! Rates, round trips and queues over the time of one run.

use super::{Figure, Page, Panel, Subject};
use crate::curves::{self, Envelope};
use crate::number::{Unit, byte_unit, bytes, rate, rate_unit, seconds, time_unit};
use crate::series::ColumnSeries;
use crate::svg::{Axis, Band, Chart, Ink, Line, Rule, Side};

impl Page<'_> {
    pub(super) fn delivery_rates(&self, panel: &Panel<'_>) -> Figure {
        let curves = self.rates(panel);
        let link = self.document.path.rate_bps as f64;
        let max = curves.iter().flat_map(|(_, _, c)| c).map(|(_, bps)| *bps).fold(link, f64::max);
        let unit = rate_unit(max);
        let line = |(name, ink, curve): (String, Ink, curves::Curve)| {
            let points = curve.into_iter().map(|(t, bps)| (t, bps / unit.size)).collect();
            Line { name, ink, points }
        };
        let plot = Plot {
            bands: Vec::new(),
            lines: curves.into_iter().map(line).collect(),
            rule: Some(Rule {
                name: format!("link rate {}", rate(link)),
                y: link / unit.size,
                side: Side::Above,
            }),
            y: Axis::from_zero(unit.name, max / unit.size),
            max: max / unit.size,
        };
        let caption = format!(
            "Payload that reached the receiver, in {}, averaged over {}. Headers keep it a little \
             below the link rate.",
            unit.name,
            seconds(self.rate_window.as_secs_f64())
        );
        self.figure(&format!("Delivery rate{}", panel.suffix), plot, caption, &panel.columns)
    }

    /// A curve in bits per second for each line of the panel, and for several flows of one column
    /// their sum.
    fn rates(&self, panel: &Panel<'_>) -> Vec<(String, Ink, curves::Curve)> {
        let curve = |column: &ColumnSeries, flows: &[u32]| {
            curves::delivery_rate(column, flows, self.rate_window)
        };
        let of =
            |s: &Subject<'_>| (s.strand.label.clone(), s.ink, curve(s.column, &s.strand.flows));
        let mut curves: Vec<_> = panel.subjects.iter().map(of).collect();
        if let [column] = panel.columns.as_slice()
            && column.cc.len() > 1
        {
            let flows: Vec<u32> = (0..column.cc.len() as u32).collect();
            curves.push(("total".to_owned(), Ink::Total, curve(column, &flows)));
        }
        curves
    }

    pub(super) fn round_trips(&self, panel: &Panel<'_>) -> Figure {
        let envelopes = panel.subjects.iter().map(|s| {
            let samples = curves::rtt(s.column, &s.strand.flows);
            (s.strand.label.clone(), s.ink, curves::envelopes(samples, self.sample_window))
        });
        let base = self.document.path.rtt_ms / 1e3;
        let limit = Some((format!("empty path {}", seconds(base)), base, Side::Below));
        let (mut plot, unit) = plot(&envelopes.collect::<Vec<_>>(), limit, time_unit);
        let mut zero = "";
        if plot.max < NARROW * base / unit.size {
            plot.y = Axis::between(unit.name, 0.97 * base / unit.size, plot.max);
            zero = " The axis does not begin at zero.";
        }
        let caption = format!(
            "Round-trip time as the sender measured it, in {}. Lines are medians over {}, shaded \
             areas reach from the smallest to the largest sample.{zero}",
            unit.name,
            seconds(self.sample_window.as_secs_f64())
        );
        self.figure(&format!("Round-trip time{}", panel.suffix), plot, caption, &panel.columns)
    }

    pub(super) fn queues(&self) -> Option<Figure> {
        let columns: Vec<&ColumnSeries> = self.series.columns.iter().collect();
        let envelopes = columns.iter().enumerate().map(|(n, column)| {
            let samples = curves::queue(column);
            (column.label.clone(), Ink::Series(n), curves::envelopes(samples, self.sample_window))
        });
        let envelopes: Vec<Envelopes> = envelopes.collect();
        let path = &self.document.path;
        let buffer = path.buffer_bytes as f64;
        // A limit far above all that happened would squeeze what happened onto the floor.
        let limit = (highest(&envelopes) > buffer / 4.0)
            .then(|| (format!("buffer {}", bytes(buffer)), buffer, Side::Above));
        let (plot, unit) = plot(&envelopes, limit, byte_unit);
        let drain = buffer * 8.0 / path.rate_bps.max(1) as f64;
        let caption = format!(
            "Bytes that wait at the bottleneck, of all flows, in {}. The buffer holds {}, which take \
             {} to drain. Lines are medians over {}, shaded areas reach from the lowest to the \
             highest sample.",
            unit.name,
            bytes(buffer),
            seconds(drain),
            seconds(self.sample_window.as_secs_f64())
        );
        (!columns.is_empty())
            .then(|| self.figure("Queue of the bottleneck", plot, caption, &columns))
    }

    fn figure(
        &self,
        heading: &str,
        plot: Plot,
        caption: String,
        columns: &[&ColumnSeries],
    ) -> Figure {
        let x = Axis::linear("time, s", 0.0, self.end_s);
        let chart = Chart {
            bands: plot.bands,
            lines: plot.lines,
            rules: plot.rule.into_iter().collect(),
            ..Chart::new(&format!("{heading} over time"), &caption, x, plot.y)
        };
        let source = self.source(columns);
        Figure { heading: heading.to_owned(), svg: chart.render(), caption, source }
    }
}

/// Round trips that stay below this many times that of the empty path get an axis that begins there.
const NARROW: f64 = 3.0;

/// What a chart over time adds to its time axis.
struct Plot {
    y: Axis,
    /// The largest value, limits included.
    max: f64,
    bands: Vec<Band>,
    lines: Vec<Line>,
    rule: Option<Rule>,
}

type Envelopes = (String, Ink, Vec<Envelope>);

/// Medians as lines, extremes as bands, in the unit that suits them and the limit; and that unit.
fn plot(
    envelopes: &[Envelopes],
    limit: Option<(String, f64, Side)>,
    unit: fn(f64) -> Unit,
) -> (Plot, Unit) {
    let max = limit.iter().map(|(_, y, _)| *y).fold(highest(envelopes), f64::max);
    let unit = unit(max);
    let band = |(_, ink, e): &Envelopes| Band {
        ink: *ink,
        points: e.iter().map(|e| (e.time_s, e.min / unit.size, e.max / unit.size)).collect(),
    };
    let line = |(name, ink, e): &Envelopes| Line {
        name: name.clone(),
        ink: *ink,
        points: e.iter().map(|e| (e.time_s, e.median / unit.size)).collect(),
    };
    let plot = Plot {
        y: Axis::from_zero(unit.name, max / unit.size),
        max: max / unit.size,
        bands: envelopes.iter().map(band).collect(),
        lines: envelopes.iter().map(line).collect(),
        rule: limit.map(|(name, y, side)| Rule { name, y: y / unit.size, side }),
    };
    (plot, unit)
}

fn highest(envelopes: &[Envelopes]) -> f64 {
    envelopes.iter().flat_map(|(_, _, e)| e).map(|e| e.max).fold(0.0, f64::max)
}
