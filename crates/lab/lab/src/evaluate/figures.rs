//! Figures and the numbers in them.

use uncork_report::lab::{
    Answer, Bar, BarGroup, Bars, Cdf, Curve, EstimateCurve, EstimatePoint, Figure, HeatMap,
    HeatScale, Lines, Plot, Provenance,
};

use super::document::SampledCell;
use super::results::RunResults;
use super::time_series::time_series;
use super::units::scaled;
use super::usual_figures::{Drawn, usual};
use crate::scenario::{self, Axis, FigureKind, Metric, Places, Quantity, Selection, Statistic};

/// Points of one curve of a distribution.
const CURVE_POINTS: usize = 400;

/// The figures that the scenario defines.
pub(crate) fn described(
    results: &RunResults<'_>,
    sampled: &[SampledCell<'_>],
    command: &str,
) -> Vec<Figure> {
    let drawn = results.scenario.figures.iter().map(|figure| Drawn {
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        plot: plot(results, sampled, figure),
    });
    numbered(results, drawn.collect(), command)
}

/// The figures of a scenario that defines none.
pub(crate) fn usual_figures(
    results: &RunResults<'_>,
    answers: &[Answer],
    sampled: &[SampledCell<'_>],
    command: &str,
) -> Vec<Figure> {
    numbered(results, usual(results, answers, sampled), command)
}

/// `command` reproduces the runs.
fn numbered(results: &RunResults<'_>, drawn: Vec<Drawn>, command: &str) -> Vec<Figure> {
    let figure = |(index, Drawn { title, caption, plot }): (usize, Drawn)| {
        let plot = plot?;
        let seeds = match plot {
            Plot::TimeSeries(_) => 1,
            _ => u64::from(results.scenario.seeds),
        };
        let first_seed = results.scenario.first_seed;
        Some(Figure {
            id: format!("figure-{}", index + 1),
            title,
            caption,
            provenance: Provenance { first_seed, seeds, command: command.into() },
            plot,
        })
    };
    drawn.into_iter().enumerate().filter_map(figure).collect()
}

fn plot(
    results: &RunResults<'_>,
    sampled: &[SampledCell<'_>],
    figure: &scenario::Figure,
) -> Option<Plot> {
    let of = &figure.of;
    match &figure.kind {
        FigureKind::HeatMap { x, y, quantity, over } => {
            heat_map(results, of, (*x, *y), *quantity, over.as_ref()).map(Plot::HeatMap)
        }
        FigureKind::Cdf { metric, by, log } => cdf(results, of, *metric, *by, *log).map(Plot::Cdf),
        FigureKind::Lines { x, quantity, by, log_x, log_y, published } => {
            let mut lines = lines(results, of, *x, *quantity, *by, (*log_x, *log_y))?;
            add_published(&mut lines, published, &results.scenario.axes[*x], *quantity);
            Some(Plot::Lines(lines))
        }
        FigureKind::Bars { metric, statistics, by } => {
            bars(results, of, *metric, statistics, *by).map(Plot::Bars)
        }
        FigureKind::TimeSeries => time_series(results, sampled, of).map(Plot::TimeSeries),
        FigureKind::BySize { edges, quantity, y, over } => {
            by_size(results, of, edges, *quantity, *y, over.as_ref()).map(Plot::HeatMap)
        }
    }
}

/// A curve or a bar: the cells it selects within the figure's, and its controller.
struct FigureMember {
    label: String,
    cc: String,
    at: Vec<(usize, usize)>,
    of: Selection,
}

/// The members of a figure: one per value of `by` and per controller with flows. An axis that
/// selects the controller provides the label instead of the controller. If it selects the
/// controller of other flows, members use that controller.
fn members(results: &RunResults<'_>, of: &Selection, by: Option<usize>) -> Vec<FigureMember> {
    let values = by.map_or(1, |axis| results.scenario.axes[axis].values.len());
    let is_of_others = by.is_some_and(|axis| {
        of.class.as_ref().is_some_and(|class| results.scenario.axes[axis].is_cc_of_others(class))
    });
    let mut members = Vec::new();
    for value in 0..values {
        let at: Vec<(usize, usize)> = by.map(|axis| (axis, value)).into_iter().collect();
        for cc in controllers(results, of, &at) {
            let name = by.map(|axis| results.scenario.axes[axis].values[value].clone());
            let of = Selection { cc: Some(cc.clone()), ..of.clone() };
            let (label, cc) = match name {
                Some(name) if is_of_others => (format!("next to {name}"), name),
                Some(name) if name.starts_with(&cc) => (name, cc),
                Some(name) => (format!("{cc}, {name}"), cc),
                None => (cc.clone(), cc),
            };
            members.push(FigureMember { label, cc, at: at.clone(), of });
        }
    }
    members
}

/// The controllers of the selected flows, in the order of the file.
fn controllers(results: &RunResults<'_>, of: &Selection, at: &[(usize, usize)]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for cell in results.cells(of, at) {
        let classes = results.scenario.cells[cell].classes.iter();
        let selected = classes.filter(|class| of.takes(class));
        for cc in selected.flat_map(|class| &class.ccs) {
            if of.cc.as_ref().is_none_or(|only| only == cc) && !seen.contains(cc) {
                seen.push(cc.clone());
            }
        }
    }
    seen
}

fn heat_map(
    results: &RunResults<'_>,
    of: &Selection,
    (x, y): (usize, usize),
    quantity: Quantity,
    over: Option<&Selection>,
) -> Option<HeatMap> {
    let (across, up) = (&results.scenario.axes[x], &results.scenario.axes[y]);
    let value = |at: &[(usize, usize)]| {
        let cells = results.cells(of, at);
        results.estimate(&cells, of, quantity, over).map(|estimate| estimate.value)
    };
    let row =
        |up: usize| (0..across.values.len()).map(|across| value(&[(x, across), (y, up)])).collect();
    let values: Vec<Vec<Option<f64>>> = (0..up.values.len()).map(row).collect();
    is_drawn(&values).then(|| HeatMap {
        x_label: across.name.clone(),
        x: across.values.clone(),
        y_label: up.name.clone(),
        y: up.values.clone(),
        ..map_of(values, quantity, over)
    })
}

fn by_size(
    results: &RunResults<'_>,
    of: &Selection,
    edges: &[u64],
    quantity: Quantity,
    y: usize,
    over: Option<&Selection>,
) -> Option<HeatMap> {
    let up = &results.scenario.axes[y];
    let classes: Vec<(u64, u64)> = edges.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let value = |up: usize, (least, limit): (u64, u64)| {
        let of =
            Selection { at_least_bytes: Some(least), less_than_bytes: Some(limit), ..of.clone() };
        let cells = results.cells(&of, &[(y, up)]);
        results.estimate(&cells, &of, quantity, over).map(|estimate| estimate.value)
    };
    let row = |up: usize| classes.iter().map(|class| value(up, *class)).collect();
    let values: Vec<Vec<Option<f64>>> = (0..up.values.len()).map(row).collect();
    let size = |bytes: u64| uncork_units::ByteCount::new(bytes).to_string();
    is_drawn(&values).then(|| HeatMap {
        x_label: "object size".into(),
        x: classes
            .iter()
            .map(|(least, limit)| format!("{} to {}", size(*least), size(*limit)))
            .collect(),
        y_label: up.name.clone(),
        y: up.values.clone(),
        ..map_of(values, quantity, over)
    })
}

fn is_drawn(values: &[Vec<Option<f64>>]) -> bool {
    values.iter().flatten().any(Option::is_some)
}

/// A heat map without its axes.
fn map_of(
    mut values: Vec<Vec<Option<f64>>>,
    quantity: Quantity,
    over: Option<&Selection>,
) -> HeatMap {
    let (unit, scale) = quantity.figure_unit(over.is_some());
    for value in values.iter_mut().flatten().flatten() {
        *value *= scale;
    }
    let positive = values.iter().flatten().flatten().all(|value| *value > 0.0);
    HeatMap {
        x_label: String::new(),
        x: Vec::new(),
        y_label: String::new(),
        y: Vec::new(),
        quantity: quantity_words(quantity, over.is_some()),
        unit: unit.into(),
        values,
        scale: if over.is_some() { HeatScale::Diverging(1.0) } else { HeatScale::Sequential },
        log: over.is_some() && positive,
        better: quantity.metric.better(),
    }
}

fn quantity_words(quantity: Quantity, is_quotient: bool) -> String {
    let name = quantity.metric.name().replace('_', " ");
    let ratio = if is_quotient { ", ratio" } else { "" };
    format!("{name} {}{ratio}", quantity.statistic.name())
}

pub(super) fn cdf(
    results: &RunResults<'_>,
    of: &Selection,
    metric: Metric,
    by: Option<usize>,
    log_x: bool,
) -> Option<Cdf> {
    let (unit, scale) = metric.figure_unit();
    let quantity = Quantity { metric, statistic: Statistic::Quantile(0.5) };
    let curve = |member: FigureMember| {
        let cells = results.cells(&member.of, &member.at);
        let values = results.samples(&cells, &member.of, quantity).into_values();
        let points = distribution(&values, scale, log_x);
        (!points.is_empty()).then_some(Curve { label: member.label, cc: member.cc, points })
    };
    let curves: Vec<Curve> = members(results, of, by).into_iter().filter_map(curve).collect();
    let x_label = metric.name().replace('_', " ");
    (!curves.is_empty()).then(|| Cdf { x_label, unit: unit.into(), log_x, curves })
}

/// Points of the distribution of sorted values. Unfinished ones are counted but not drawn.
fn distribution(sorted: &[f64], scale: f64, log: bool) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let finite = sorted.iter().take_while(|value| value.is_finite()).count();
    let step = finite.div_ceil(CURVE_POINTS).max(1);
    let last = finite.saturating_sub(1);
    let drawn = (0..finite).filter(|index| index % step == 0 || *index == last);
    let point = |index: usize| (sorted[index] * scale, (index + 1) as f64 / count as f64);
    drawn.map(point).filter(|(x, _)| !log || *x > 0.0).collect()
}

fn lines(
    results: &RunResults<'_>,
    of: &Selection,
    x: usize,
    quantity: Quantity,
    by: Option<usize>,
    (log_x, log_y): (bool, bool),
) -> Option<Lines> {
    let Places { label: x_label, at: places, names: x_names } = results.scenario.axes[x].places();
    // Names have no scale.
    let log_x = log_x && x_names.is_empty();
    let (unit, scale) = quantity.figure_unit(false);
    let curve = |member: FigureMember| {
        let point = |value: usize| {
            let at: Vec<(usize, usize)> = member.at.iter().copied().chain([(x, value)]).collect();
            let cells = results.cells(&member.of, &at);
            let estimate = scaled(results.estimate(&cells, &member.of, quantity, None)?, scale);
            let x = places[value];
            let fits = (!log_x || x > 0.0) && (!log_y || estimate.value > 0.0);
            let low = estimate.low.filter(|low| !log_y || *low > 0.0);
            fits.then_some(EstimatePoint { x, y: estimate.value, low, high: estimate.high })
        };
        let mut points: Vec<EstimatePoint> = (0..places.len()).filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        let curve = EstimateCurve { label: member.label, cc: member.cc, published: false, points };
        (!curve.points.is_empty()).then_some(curve)
    };
    let curves: Vec<EstimateCurve> =
        members(results, of, by).into_iter().filter_map(curve).collect();
    let y_label = match unit {
        "" => quantity_words(quantity, false),
        _ => format!("{}, {unit}", quantity_words(quantity, false)),
    };
    (!curves.is_empty()).then_some(Lines { x_label, x_names, y_label, log_x, log_y, curves })
}

/// Published points: one curve per label, coloured by the controller in the label.
fn add_published(
    lines: &mut Lines,
    published: &[(String, usize, f64)],
    axis: &Axis,
    quantity: Quantity,
) {
    let (_, scale) = quantity.figure_unit(false);
    let places = axis.places().at;
    for (label, x, y) in published {
        let point = EstimatePoint { x: places[*x], y: y * scale, low: None, high: None };
        if (lines.log_x && point.x <= 0.0) || (lines.log_y && point.y <= 0.0) {
            continue;
        }
        let known = lines.curves.iter_mut().find(|curve| curve.published && curve.label == *label);
        if let Some(curve) = known {
            curve.points.push(point);
            continue;
        }
        let lower = label.to_ascii_lowercase();
        let named = lines.curves.iter().find(|curve| lower.contains(&curve.cc));
        let cc = named.map_or_else(String::new, |curve| curve.cc.clone());
        let (label, points) = (label.clone(), vec![point]);
        lines.curves.push(EstimateCurve { label, cc, published: true, points });
    }
    for curve in lines.curves.iter_mut().filter(|curve| curve.published) {
        curve.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
}

pub(super) fn bars(
    results: &RunResults<'_>,
    of: &Selection,
    metric: Metric,
    statistics: &[Statistic],
    by: Option<usize>,
) -> Option<Bars> {
    let (unit, scale) = metric.figure_unit();
    let mut groups: Vec<BarGroup> = Vec::new();
    for member in members(results, of, by) {
        let group = match (by, member.at.first()) {
            (Some(axis), Some((_, value))) => results.scenario.axes[axis].values[*value].clone(),
            _ => String::new(),
        };
        for statistic in statistics {
            let cells = results.cells(&member.of, &member.at);
            let quantity = Quantity { metric, statistic: *statistic };
            let estimate = results.estimate(&cells, &member.of, quantity, None);
            let Some(estimate) = estimate.map(|estimate| scaled(estimate, scale)) else { continue };
            let (low, high) = (estimate.low, estimate.high);
            let is_own = member.of.cc.as_ref() == Some(&member.cc);
            let label = if is_own { &member.cc } else { &member.label }.clone();
            let bar = Bar { label, cc: member.cc.clone(), value: estimate.value, low, high };
            // An axis that selects the controller does not form groups.
            let group = if group == member.cc { "" } else { &group };
            let label = [group, &statistic.name()].join(" ").trim().to_owned();
            match groups.iter_mut().find(|group| group.label == label) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label, bars: vec![bar] }),
            }
        }
    }
    let quantity = metric.name().replace('_', " ");
    (!groups.is_empty()).then(|| Bars { quantity, unit: unit.into(), groups })
}
