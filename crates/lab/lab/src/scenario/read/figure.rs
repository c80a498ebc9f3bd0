//! Figures.

use uncork_config::{Node, Result, Section};
use uncork_units::ByteCount;

use super::super::ScenarioError;
use super::super::keys;
use super::super::model::Axis;
use super::super::names::MetricUnit;
use super::super::question::{Figure, FigureKind, Metric, Quantity, Statistic};
use super::matrix::axis_named;
use super::question::{
    KnownNames, MetricQuery, bound, check_recorded, metric, statistic, value_of,
};

/// The kinds of figures, and what each needs in addition to the selection.
const KINDS: [(&str, FigureReader); 6] = [
    ("heatmap", FigureReader { read: heat_map, keys: &["x", "y", "metric", "over"] }),
    ("cdf", FigureReader { read: cdf, keys: &["metric", "by", "log"] }),
    (
        "lines",
        FigureReader { read: lines, keys: &["x", "metric", "by", "log_x", "log_y", "published"] },
    ),
    ("bars", FigureReader { read: bars, keys: &["metric", "statistics", "by"] }),
    ("series", FigureReader { read: series, keys: &[] }),
    ("by_size", FigureReader { read: by_size, keys: &["y", "metric", "edges", "over"] }),
];

/// Keys of only some kinds.
const OF_SOME: [&str; 11] =
    ["x", "y", "metric", "over", "by", "log", "log_x", "log_y", "published", "statistics", "edges"];

#[derive(Clone, Copy)]
struct FigureReader {
    read: fn(&Section<'_>, &KnownNames<'_>) -> Result<FigureKind>,
    keys: &'static [&'static str],
}

impl KnownNames<'_> {
    pub(crate) fn figure(&self, section: &Section<'_>) -> Result<Figure> {
        let node = section.need("kind", "\"heatmap\"")?;
        let kind = node.choice("kind of figure", &KINDS)?;
        let foreign = OF_SOME.iter().filter(|key| !kind.keys.contains(key));
        let foreign: Vec<&str> = foreign.copied().collect();
        section
            .forbid(&foreign, &format!("a figure of kind `{}` does not use it", node.text()?))?;
        Ok(Figure {
            title: section.need("title", "\"…\"")?.text()?.to_owned(),
            caption: section.text("caption")?,
            kind: (kind.read)(section, self)?,
            of: self.selection(section)?,
        })
    }
}

fn heat_map(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    let MetricQuery { quantity, over, .. } = known.asked(section)?;
    let (x, y) = (axis(section, "x", known)?, axis(section, "y", known)?);
    if x == y {
        let message = "columns and rows are the same axis";
        return Err(ScenarioError::new(section.key_place("y"), message).help("give two axes"));
    }
    Ok(FigureKind::HeatMap { x, y, quantity, over })
}

fn cdf(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    let by = axis_named(section, "by", known.axes)?;
    Ok(FigureKind::Cdf { metric: measured(section, known)?, by, log: section.flag("log")? })
}

fn lines(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    let MetricQuery { quantity, .. } = known.asked(section)?;
    let x = axis(section, "x", known)?;
    let points = section.read("published", |node| points(node, quantity, &known.axes[x]))?;
    Ok(FigureKind::Lines {
        x,
        quantity,
        by: axis_named(section, "by", known.axes)?,
        log_x: section.flag("log_x")?,
        log_y: section.flag("log_y")?,
        published: points.unwrap_or_default(),
    })
}

fn bars(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    let metric = measured(section, known)?;
    let kept = |node: &Node| {
        let statistic = statistic(node)?;
        check_recorded(&node.place, metric, statistic)?;
        Ok(statistic)
    };
    let statistics = section.read("statistics", |node| {
        node.list()?.iter().map(kept).collect::<Result<Vec<Statistic>>>()
    })?;
    let usual = || vec![Statistic::Quantile(0.5), Statistic::Quantile(0.95)];
    let by = axis_named(section, "by", known.axes)?;
    let statistics = statistics.filter(|given| !given.is_empty()).unwrap_or_else(usual);
    Ok(FigureKind::Bars { metric, statistics, by })
}

/// A metric available for the selection.
fn measured(section: &Section<'_>, known: &KnownNames<'_>) -> Result<Metric> {
    let metric = metric(section)?;
    let of = known.selection(section)?;
    known.check_measured(section.value_place("metric"), metric, &of)?;
    Ok(metric)
}

fn series(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    if !known.sampled {
        let message = "nothing is written down over time";
        return Err(ScenarioError::new(section.key_place("kind"), message)
            .help("write sample = \"100ms\" in [run]"));
    }
    Ok(FigureKind::TimeSeries)
}

fn by_size(section: &Section<'_>, known: &KnownNames<'_>) -> Result<FigureKind> {
    let MetricQuery { quantity, over, .. } = known.asked(section)?;
    let y = axis(section, "y", known)?;
    let edges = edges(section.need("edges", "[\"10kB\", \"100kB\", \"1MB\"]")?)?;
    Ok(FigureKind::BySize { edges, quantity, y, over })
}

fn edges(node: &Node) -> Result<Vec<u64>> {
    let mut edges: Vec<u64> = Vec::new();
    for member in node.list()? {
        let edge = member.parse::<ByteCount>()?.as_u64();
        if edges.last().is_some_and(|last| edge <= *last) {
            return Err(ScenarioError::new(&member.place, "this edge is not above the one before")
                .help("let edges ascend"));
        }
        edges.push(edge);
    }
    if edges.len() < 2 {
        return Err(ScenarioError::new(&node.place, "one size class has two edges")
            .help("write edges = [\"10kB\", \"100kB\", \"1MB\"]"));
    }
    Ok(edges)
}

fn axis(section: &Section<'_>, key: &str, known: &KnownNames<'_>) -> Result<usize> {
    let example = known.axes.first().map_or("path.loss", |axis| axis.key.as_str());
    section.need(key, &format!("\"{example}\""))?;
    axis_named(section, key, known.axes)?.ok_or_else(|| ScenarioError::new(section.place(), key))
}

/// Published points: label, x value, and result.
fn points(node: &Node, quantity: Quantity, axis: &Axis) -> Result<Vec<(String, usize, f64)>> {
    let example = "[\"Cardwell et al. 2016, CUBIC\", \"0.1%\", \"9.7mbit\"]";
    let point = |member: &Node| {
        let Ok([label, x, value]) = member.list() else {
            return Err(ScenarioError::new(&member.place, "a point is a list of three")
                .help(format!("write {example}")));
        };
        let unit: MetricUnit = quantity.metric.written_in();
        Ok((label.text()?.to_owned(), value_of(x, axis)?, bound(value, unit)?))
    };
    node.list()?.iter().map(point).collect()
}

/// The section already knows all keys of figures: [`keys::FIGURE`].
pub(crate) fn figures(tree: &Node, known: &KnownNames<'_>) -> Result<Vec<Figure>> {
    uncork_config::each(tree, "figure", keys::FIGURE, |section| known.figure(section))
}
