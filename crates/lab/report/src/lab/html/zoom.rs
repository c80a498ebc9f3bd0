//! Data for the page's script to draw zoomable curves.

use serde::Serialize;

use crate::number::rounded;
use crate::svg::{Chart, Ink, Scale, downsample};

/// The data of one chart.
#[derive(Debug, Serialize)]
pub(super) struct ZoomChart {
    x: String,
    y: String,
    /// Range of the x axis.
    range: (f64, f64),
    /// Labels for x = 0, 1, 2 and so on, if they are not numbers.
    names: Vec<String>,
    log_x: bool,
    log_y: bool,
    /// Whether curves are step functions.
    stairs: bool,
    series: Vec<ZoomSeries>,
    marks: Vec<(f64, String)>,
    limits: Vec<(f64, String)>,
}

#[derive(Debug, Serialize)]
struct ZoomSeries {
    label: String,
    /// CSS classes for its colour and dashes.
    ink: String,
    dots: bool,
    x: Vec<f64>,
    y: Vec<f64>,
    /// x, low and high of each interval.
    errors: Vec<(f64, f64, f64)>,
}

impl ZoomChart {
    /// The same as `chart`, with at most `points` points per curve.
    pub(super) fn of(chart: &Chart, points: usize) -> Self {
        let series = chart.lines.iter().enumerate().map(|(n, line)| {
            let dots = chart.dots.get(n);
            ZoomSeries::new(&line.name, line.ink, &downsample(&line.points, points / 2), dots)
        });
        Self {
            x: chart.x.label.clone(),
            y: chart.y.label.clone(),
            range: chart.x.range(),
            names: chart.x.names().to_vec(),
            log_x: chart.x.scale() == Scale::Log,
            log_y: chart.y.scale() == Scale::Log,
            stairs: false,
            series: series.collect(),
            marks: chart.marks.iter().map(|mark| (short(mark.x), mark.name.clone())).collect(),
            limits: chart.rules.iter().map(|rule| (short(rule.y), rule.name.clone())).collect(),
        }
    }

    /// A step function is defined by its upper corners.
    pub(super) fn stairs(chart: &Chart, points: usize) -> Self {
        let mut zoom = Self::of(chart, points);
        zoom.stairs = true;
        for (series, line) in zoom.series.iter_mut().zip(&chart.lines) {
            let upper: Vec<(f64, f64)> = line.points.iter().skip(1).step_by(2).copied().collect();
            *series = ZoomSeries::new(&line.name, line.ink, &downsample(&upper, points / 2), None);
        }
        zoom
    }
}

impl ZoomSeries {
    fn new(label: &str, ink: Ink, points: &[(f64, f64)], dots: Option<&crate::svg::Dots>) -> Self {
        let errors = dots.iter().flat_map(|dots| &dots.points).filter_map(|dot| {
            let (low, high) = dot.interval?;
            Some((short(dot.at.0), short(low), short(high)))
        });
        Self {
            label: label.to_owned(),
            ink: ink.stroke(),
            dots: dots.is_some(),
            x: points.iter().map(|(x, _)| short(*x)).collect(),
            y: points.iter().map(|(_, y)| short(*y)).collect(),
            errors: errors.collect(),
        }
    }
}

/// The charts as JSON escaped for markup.
pub(super) fn json(charts: &[ZoomChart]) -> String {
    let json = serde_json::to_string(charts).expect("plain structs into memory");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn short(value: f64) -> f64 {
    rounded(value, 6)
}
