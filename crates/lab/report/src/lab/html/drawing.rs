//! Draws figures from data.

use super::numbers;
use super::zoom::{self, ZoomChart};
use crate::lab::figure::{
    Bar, Bars, Better, Cdf, Curve, EstimateCurve, EstimatePoint, Figure, HeatMap, HeatScale, Limit,
    Lines, Plot, StateRow, TimePanel, TimeSeries,
};
use crate::lab::inks::Inks;
use crate::number::{short, three};
use crate::svg::{
    Axis, BarChart, BarMark, Chart, ChartLabels, ChartLine, Dot, Dots, HeatGrid, Ink, Mark, Rule,
    Side, Timeline, TimelineRow, climb,
};

/// Maximum points of curves included for zooming, over all figures.
const ZOOM_POINTS: usize = 60_000;

/// Maximum points of a curve in a picture.
const SHOWN: usize = 1500;

/// Curves with more points are drawn without markers.
const MAX_DOTS: usize = 40;

/// A drawn figure.
pub(super) struct Drawing {
    /// One or several `<svg>` elements, or a table.
    pub(super) picture: String,
    /// JSON for the page's script, if there are curves to zoom.
    pub(super) zoom: Option<String>,
    /// Note on omitted parts; may be empty.
    pub(super) note: String,
}

impl Drawing {
    /// Size in bytes.
    pub(super) fn size(&self) -> usize {
        self.picture.len() + self.zoom.as_ref().map_or(0, String::len)
    }
}

/// Number of zoomable curves of a figure.
pub(super) fn curves(plot: &Plot) -> usize {
    match plot {
        Plot::Cdf(cdf) => cdf.curves.len(),
        Plot::Lines(lines) => lines.curves.len(),
        Plot::TimeSeries(series) => series.panels.iter().map(|panel| panel.curves.len()).sum(),
        Plot::HeatMap(_) | Plot::Bars(_) | Plot::Table(_) => 0,
    }
}

/// Maximum points of each of `curves` in the data for zooming.
pub(super) fn zoom_budget(curves: usize) -> usize {
    (ZOOM_POINTS / curves.max(1)).clamp(200, 4000)
}

/// Draws a figure; for zooming, curves have at most `budget` points each.
pub(super) fn draw(figure: &Figure, inks: &Inks, budget: usize) -> Drawing {
    let zoomable = |charts: Vec<Chart>, zoom: Vec<ZoomChart>, points: usize| Drawing {
        picture: charts.iter().map(Chart::render).collect(),
        zoom: Some(zoom::json(&zoom)),
        note: thinned(points),
    };
    let still = |picture: String| Drawing { picture, zoom: None, note: String::new() };
    match &figure.plot {
        Plot::HeatMap(map) => still(heat_map(figure, map).render()),
        Plot::Bars(data) => still(bars(figure, data, inks).render()),
        Plot::Table(data) => still(numbers::table(data, &figure.title)),
        Plot::Cdf(data) => {
            let chart = cdf(figure, data, inks);
            let zoom = vec![ZoomChart::stairs(&chart, budget)];
            zoomable(vec![chart], zoom, most(&data.curves))
        }
        Plot::Lines(data) => {
            let chart = lines(figure, data, inks);
            let zoom = vec![ZoomChart::of(&chart, budget)];
            let points = data.curves.iter().map(|curve| curve.points.len()).max();
            zoomable(vec![chart], zoom, points.unwrap_or(0))
        }
        Plot::TimeSeries(data) => {
            let charts = time_series(figure, data, inks);
            let zoom = charts.iter().map(|chart| ZoomChart::of(chart, budget)).collect();
            let points = data.panels.iter().map(|panel| most(&panel.curves)).max();
            let mut drawing = zoomable(charts, zoom, points.unwrap_or(0));
            drawing.picture += &states(figure, data);
            drawing
        }
    }
}

fn most(curves: &[Curve]) -> usize {
    curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0)
}

fn thinned(points: usize) -> String {
    if points <= SHOWN {
        return String::new();
    }
    format!(
        "Curves of up to {points} points are thinned out to what can be seen, extremes kept; the \
         result document has them all."
    )
}

fn heat_map(figure: &Figure, map: &HeatMap) -> HeatGrid {
    let values = || map.values.iter().flatten().flatten().copied();
    let colours = Colours::of(map.scale, map.log, values());
    let diverging = matches!(map.scale, HeatScale::Diverging(_));
    // A diverging scale runs from worse to better.
    let falls = diverging && map.better == Some(Better::Lower);
    let turned = |position: f64| if falls { 1.0 - position } else { position };
    let cell = |value: &Option<f64>| value.map(|v| (turned(colours.position(v)), short(v)));
    let comma = if map.unit.is_empty() { "" } else { ", " };
    let [low, middle, high] =
        [0.0, 0.5, 1.0].map(|position| short(colours.value(turned(position))));
    let ends = match map.better.filter(|_| diverging) {
        Some(_) => [format!("{low} worse"), middle, format!("better {high}")],
        None => [low, middle, high],
    };
    HeatGrid {
        title: figure.title.clone(),
        description: figure.caption.clone(),
        x: (map.x_label.clone(), map.x.clone()),
        y: (map.y_label.clone(), map.y.clone()),
        legend: format!("{}{comma}{}", map.quantity, map.unit),
        cells: map.values.iter().map(|row| row.iter().map(cell).collect()).collect(),
        ends,
        diverging,
    }
}

/// Positions of values on the colour scale.
#[derive(Debug)]
struct Colours {
    low: f64,
    high: f64,
    log: bool,
}

impl Colours {
    /// From the lowest to the highest value, or symmetric around the centre.
    fn of(scale: HeatScale, log: bool, values: impl Iterator<Item = f64>) -> Self {
        let log = log && !matches!(scale, HeatScale::Diverging(centre) if centre <= 0.0);
        let on_scale = |v: f64| if log { v.ln() } else { v };
        let Some((low, high)) = ends(values.map(on_scale)) else {
            return Self { low: 0.0, high: 1.0, log: false };
        };
        match scale {
            HeatScale::Sequential => Self { low, high, log },
            HeatScale::Diverging(centre) => {
                let centre = on_scale(centre);
                let reach = (high - centre).abs().max((low - centre).abs()).max(1e-9);
                Self { low: centre - reach, high: centre + reach, log }
            }
        }
    }

    fn position(&self, value: f64) -> f64 {
        let value = if self.log { value.ln() } else { value };
        let position = (value - self.low) / (self.high - self.low);
        if position.is_nan() { 0.5 } else { position.clamp(0.0, 1.0) }
    }

    fn value(&self, position: f64) -> f64 {
        let value = self.low + (self.high - self.low) * position;
        if self.log { value.exp() } else { value }
    }
}

fn bars(figure: &Figure, data: &Bars, inks: &Inks) -> BarChart {
    let all = || data.groups.iter().flat_map(|group| &group.bars);
    let longest = all().map(|bar| bar.high.unwrap_or(bar.value).max(bar.value)).fold(0.0, f64::max);
    let mark = |bar: &Bar, ink: Ink| BarMark {
        name: bar.label.clone(),
        ink,
        value: bar.value,
        label: format!("{} {}", three(bar.value), data.unit),
        interval: bar.low.zip(bar.high),
    };
    let group = |group: &crate::lab::BarGroup| {
        let marks = group.bars.iter().map(|bar| (bar.cc.as_str(), bar.label.as_str(), false));
        let inks = inks.assign(marks);
        let bars = group.bars.iter().zip(inks).map(|(bar, ink)| mark(bar, ink)).collect();
        (group.label.clone(), bars)
    };
    BarChart {
        title: figure.title.clone(),
        description: figure.caption.clone(),
        axis: Axis::from_zero(&with_unit(&data.quantity, &data.unit), longest),
        groups: data.groups.iter().map(group).collect(),
    }
}

fn cdf(figure: &Figure, data: &Cdf, inks: &Inks) -> Chart {
    let marks = data.curves.iter().map(|curve| (curve.cc.as_str(), curve.label.as_str(), false));
    let line = |(curve, ink): (&Curve, Ink)| {
        let corners = climb(&curve.points).into_iter().map(|(x, share)| (x, share * 100.0));
        ChartLine { name: curve.label.clone(), ink, points: corners.collect() }
    };
    let xs = data.curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let x = axis(&with_unit(&data.x_label, &data.unit), data.log_x, xs);
    let y = Axis::from_zero("% of samples", 100.0);
    Chart {
        lines: data.curves.iter().zip(inks.assign(marks)).map(line).collect(),
        ..Chart::new(&figure.title, &figure.caption, x, y)
    }
}

fn lines(figure: &Figure, data: &Lines, inks: &Inks) -> Chart {
    let marks = data.curves.iter().map(|c| (c.cc.as_str(), c.label.as_str(), c.published));
    let inks = inks.assign(marks);
    let points = || data.curves.iter().flat_map(|curve| &curve.points);
    let ys = points().flat_map(|p| [Some(p.y), p.low, p.high]).flatten();
    let line = |(curve, ink): (&EstimateCurve, &Ink)| ChartLine {
        name: curve.label.clone(),
        ink: *ink,
        points: curve.points.iter().map(|p| (p.x, p.y)).collect(),
    };
    let dot = |p: &EstimatePoint| Dot { at: (p.x, p.y), interval: p.low.zip(p.high) };
    let dots = |(curve, ink): (&EstimateCurve, &Ink)| Dots {
        ink: *ink,
        hollow: curve.published,
        points: curve
            .points
            .iter()
            .take_while(|_| curve.points.len() <= MAX_DOTS || !data.x_names.is_empty())
            .map(dot)
            .collect(),
    };
    let x = match ends(points().map(|p| p.x)) {
        _ if !data.x_names.is_empty() => Axis::named(&data.x_label, &data.x_names),
        Some((low, high)) if !data.log_x => {
            let margin = (high - low) * 0.02;
            Axis::linear(&data.x_label, low - margin, high + margin)
        }
        _ => axis(&data.x_label, data.log_x, points().map(|p| p.x)),
    };
    let y = axis(&data.y_label, data.log_y, ys);
    Chart {
        lines: data.curves.iter().zip(&inks).map(line).collect(),
        dots: data.curves.iter().zip(&inks).map(dots).collect(),
        labels: ChartLabels::Ends,
        ..Chart::new(&figure.title, &figure.caption, x, y)
    }
}

/// A chart per panel with a common time axis; events are labelled in the first.
fn time_series(figure: &Figure, data: &TimeSeries, inks: &Inks) -> Vec<Chart> {
    let (start, end) = times(data);
    let chart = |(n, panel): (usize, &TimePanel)| {
        let marks =
            panel.curves.iter().map(|curve| (curve.cc.as_str(), curve.label.as_str(), false));
        let line = |(curve, ink): (&Curve, Ink)| ChartLine {
            name: curve.label.clone(),
            ink,
            points: curve.points.clone(),
        };
        let label = if n + 1 == data.panels.len() { "time, s" } else { "" };
        let values = panel.curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        let values = values.chain(panel.limits.iter().map(|limit| limit.value));
        let y = axis(&with_unit(&panel.label, &panel.unit), false, values);
        let rule = |limit: &Limit| Rule {
            name: limit.label.clone(),
            y: limit.value,
            side: if limit.is_upper { Side::Above } else { Side::Below },
        };
        let title = format!("{}: {}", figure.title, panel.label);
        let name = |name: &String| if n == 0 { name.clone() } else { String::new() };
        Chart {
            lines: panel.curves.iter().zip(inks.assign(marks)).map(line).collect(),
            rules: panel.limits.iter().map(rule).collect(),
            marks: data.marks.iter().map(|(x, text)| Mark { name: name(text), x: *x }).collect(),
            ..Chart::new(&title, &figure.caption, Axis::linear(label, start, end), y)
        }
    };
    let mut charts: Vec<Chart> = data.panels.iter().enumerate().map(chart).collect();
    // Curves that occur in all panels are labelled once.
    let names = |chart: &Chart| -> Vec<(String, Ink)> {
        chart.lines.iter().map(|line| (line.name.clone(), line.ink)).collect()
    };
    for n in 1..charts.len() {
        if names(&charts[n]) == names(&charts[n - 1]) {
            charts[n].labels = ChartLabels::Elsewhere;
        }
    }
    charts
}

/// The controllers' states over the same time axis; empty if there are none.
fn states(figure: &Figure, data: &TimeSeries) -> String {
    if data.states.is_empty() {
        return String::new();
    }
    let row = |row: &StateRow| TimelineRow { name: row.label.clone(), spans: row.spans.clone() };
    let (start, end) = times(data);
    let timeline = Timeline {
        title: format!("{}: states", figure.title),
        description: "States of the controllers, by their names in the specifications.".to_owned(),
        x: Axis::linear("time, s", start, end),
        rows: data.states.iter().map(row).collect(),
    };
    timeline.render()
}

/// Start and end of the time axis.
fn times(data: &TimeSeries) -> (f64, f64) {
    let curves = data.panels.iter().flat_map(|panel| &panel.curves);
    let times = curves.flat_map(|curve| &curve.points).map(|(t, _)| *t);
    let (first, end) = ends(times).unwrap_or((0.0, 1.0));
    (if first < 0.1 * end { first.min(0.0) } else { first }, end)
}

/// An axis over all values; starts at zero if they come close to it.
fn axis(label: &str, log: bool, values: impl Iterator<Item = f64>) -> Axis {
    match ends(values.filter(|v| !log || *v > 0.0)) {
        None => Axis::from_zero(label, 1.0),
        Some((low, high)) if log => {
            let margin = (high / low).powf(0.02);
            Axis::log(&format!("{label} (log scale)"), low / margin, high * margin)
        }
        Some((low, high)) if low >= 0.0 && low < high / 2.0 => Axis::from_zero(label, high),
        Some((low, high)) => Axis::between(label, low, high),
    }
}

/// Minimum and maximum.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite()).map(|value| (value, value));
    values.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
}

fn with_unit(quantity: &str, unit: &str) -> String {
    if unit.is_empty() { quantity.to_owned() } else { format!("{quantity}, {unit}") }
}
