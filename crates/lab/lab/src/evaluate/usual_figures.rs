//! The default figures.

use uncork_report::lab::{
    Answer, Better, EstimateCurve, EstimatePoint, HeatMap, HeatScale, Lines, Plot,
};

use super::comparisons::chosen;
use super::document::SampledCell;
use super::figures::{bars, cdf};
use super::results::RunResults;
use super::time_series::time_series;
use crate::scenario::{Carries, Class, Metric, Places, Selection, Statistic};

const P50: Statistic = Statistic::Quantile(0.5);
const P90: Statistic = Statistic::Quantile(0.9);
const P95: Statistic = Statistic::Quantile(0.95);

/// Maximum rows of a heat map.
const MAX_ROWS: usize = 60;

/// A figure without its number.
pub(super) struct Drawn {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) plot: Option<Plot>,
}

/// Ratios to the baseline by cell; with a single cell, the results of each controller; and the
/// first runs over time.
pub(super) fn usual(
    results: &RunResults<'_>,
    answers: &[Answer],
    sampled: &[SampledCell<'_>],
) -> Vec<Drawn> {
    let mut figures = ratios(results, answers);
    if figures.is_empty() {
        let classes = results.scenario.cells.first().map_or(&[][..], |cell| &cell.classes);
        let measured = classes.iter().filter(|class| !class.background);
        figures.extend(measured.flat_map(|class| of_class(results, class)));
    }
    let series = time_series(results, sampled, &Selection::default());
    figures.extend(series.map(|series| Drawn {
        title: "The first run over time".into(),
        caption: "Payload delivered, round-trip times as the sender measured them, data in flight, and \
                  the queue of the bottleneck, in the run of the first seed."
            .into(),
        plot: Some(Plot::TimeSeries(series)),
    }));
    figures
}

/// The answers to one question, by choice.
struct FigureQuestion<'a> {
    first: &'a Answer,
    choices: Vec<(&'a str, Vec<&'a Answer>)>,
}

fn questions(answers: &[Answer]) -> Vec<FigureQuestion<'_>> {
    let key = |answer: &Answer| {
        let Answer { class, baseline_class, of, metric, baseline, .. } = answer;
        [class, baseline_class, of, metric, baseline].map(String::clone)
    };
    let mut questions: Vec<FigureQuestion<'_>> = Vec::new();
    for answer in answers {
        let known = questions.iter_mut().find(|question| key(question.first) == key(answer));
        let Some(question) = known else {
            let choices = vec![(answer.choice.as_str(), vec![answer])];
            questions.push(FigureQuestion { first: answer, choices });
            continue;
        };
        match question.choices.iter_mut().find(|(choice, _)| *choice == answer.choice) {
            Some((_, answers)) => answers.push(answer),
            None => question.choices.push((&answer.choice, vec![answer])),
        }
    }
    questions
}

/// Ratios to the baseline by cell.
fn ratios(results: &RunResults<'_>, answers: &[Answer]) -> Vec<Drawn> {
    let of_question = |question: FigureQuestion<'_>| {
        let axes = question.axes(results);
        match axes.as_slice() {
            [] => Vec::new(),
            [axis] => vec![question.lines(results, *axis)],
            axes => {
                let choices = question.choices.iter();
                choices
                    .map(|(choice, answers)| question.map(results, axes, choice, answers))
                    .collect()
            }
        }
    };
    questions(answers).into_iter().flat_map(of_question).collect()
}

impl FigureQuestion<'_> {
    /// The axes along which the cells of a choice differ.
    fn axes(&self, results: &RunResults<'_>) -> Vec<usize> {
        let points = || {
            let answers = self.choices.first().map_or(&[][..], |(_, answers)| answers);
            answers.iter().map(|answer| &results.scenario.cells[answer.cell].point)
        };
        let varies =
            |axis: &usize| points().any(|point| point[*axis] != self.first_point(results)[*axis]);
        (0..results.scenario.axes.len()).filter(varies).collect()
    }

    fn first_point<'a>(&self, results: &RunResults<'a>) -> &'a [usize] {
        &results.scenario.cells[self.first.cell].point
    }

    fn words(&self) -> String {
        format!("{}, ratio to {}", self.first.metric.replace('_', " "), self.first.baseline)
    }

    fn title(&self, choice: &str) -> String {
        let Answer { class, baseline, .. } = self.first;
        let metric = self.first.metric.split('_').next().unwrap_or_default();
        format!("{class}: {metric} with {choice} over that with {baseline}")
    }

    fn better(&self) -> &'static str {
        if self.first.less_is_better {
            "Below 1 the choice is better"
        } else {
            "Above 1 the choice is better"
        }
    }

    fn lines(&self, results: &RunResults<'_>, axis: usize) -> Drawn {
        let Places { label: x_label, at, names: x_names } = results.scenario.axes[axis].places();
        let point = |answer: &&Answer| {
            let ratio = answer.ratio.filter(|ratio| ratio.value > 0.0)?;
            let x = at[results.scenario.cells[answer.cell].point[axis]];
            let low = ratio.low.filter(|low| *low > 0.0);
            Some(EstimatePoint { x, y: ratio.value, low, high: ratio.high })
        };
        let curve = |(choice, answers): &(&str, Vec<&Answer>)| {
            let mut points: Vec<EstimatePoint> = answers.iter().filter_map(point).collect();
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
            let label = (*choice).to_owned();
            EstimateCurve { cc: label.clone(), label, published: false, points }
        };
        let curves: Vec<EstimateCurve> = self.choices.iter().map(curve).collect();
        let y_label = self.words();
        let is_empty = curves.iter().all(|curve| curve.points.is_empty());
        let lines = Lines { x_label, x_names, y_label, log_x: false, log_y: true, curves };
        Drawn {
            title: self.title("each choice"),
            caption: format!("{}. Bars are 95 % intervals.", self.better()),
            plot: (!is_empty).then_some(Plot::Lines(lines)),
        }
    }

    /// The last axis from left to right, the others from bottom to top.
    fn map(
        &self,
        results: &RunResults<'_>,
        axes: &[usize],
        choice: &str,
        answers: &[&Answer],
    ) -> Drawn {
        let scenario = results.scenario;
        let (x, up) = (axes[axes.len() - 1], &axes[..axes.len() - 1]);
        let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        for answer in answers {
            let point = &scenario.cells[answer.cell].point;
            let values = up.iter().map(|axis| scenario.axes[*axis].values[point[*axis]].as_str());
            let label = values.collect::<Vec<_>>().join(", ");
            let blank = vec![None; scenario.axes[x].values.len()];
            let row = rows.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
                rows.push((label, blank));
                rows.len() - 1
            });
            rows[row].1[point[x]] =
                answer.ratio.map(|ratio| ratio.value).filter(|ratio| *ratio > 0.0);
        }
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        let (y, values): (Vec<String>, Vec<Vec<Option<f64>>>) = rows.into_iter().unzip();
        let names = up.iter().map(|axis| scenario.axes[*axis].name.as_str());
        let is_empty = values.iter().flatten().all(Option::is_none);
        let more = match left_out {
            0 => String::new(),
            rows => format!(" {rows} more rows are in the result document."),
        };
        let map = HeatMap {
            x_label: scenario.axes[x].name.clone(),
            x: scenario.axes[x].values.clone(),
            y_label: names.collect::<Vec<_>>().join(", "),
            y,
            quantity: self.words(),
            unit: String::new(),
            values,
            scale: HeatScale::Diverging(1.0),
            log: true,
            better: Some(if self.first.less_is_better { Better::Lower } else { Better::Higher }),
        };
        Drawn {
            title: self.title(choice),
            caption: format!("{}.{more}", self.better()),
            plot: (!is_empty).then_some(Plot::HeatMap(map)),
        }
    }
}

/// The results of each controller in the only cell.
fn of_class(results: &RunResults<'_>, class: &Class) -> Vec<Drawn> {
    let of = Selection { class: Some(class.name.clone()), ..Selection::default() };
    let by = results.scenario.axes.iter().position(|axis| chosen(axis).is_some());
    let (metric, statistics) = match class.carries {
        Carries::Streams => (Metric::Goodput, vec![Statistic::Sum]),
        Carries::Audio | Carries::Video | Carries::RecordedAudio => {
            (Metric::PlaybackLatency, vec![P50, P90])
        }
        _ => (Metric::Completion, vec![P50, P90]),
    };
    let measured = [(metric, statistics), (Metric::QueueDelay, vec![P50, P95])];
    let bars = measured.into_iter().map(|(metric, statistics)| {
        let words = metric.name().replace('_', " ");
        Drawn {
            title: format!("{}: {words} by controller", class.name),
            caption: "Bars begin at zero; whiskers are 95 % intervals.".into(),
            plot: bars(results, &of, metric, &statistics, by).map(Plot::Bars),
        }
    });
    let spread = matches!(class.carries, Carries::Objects | Carries::RecordedObjects).then(|| Drawn {
        title: format!("{}: how completion times spread", class.name),
        caption: "The share of transfers that were over by a time, over all seeds. A steep curve means \
                  that all fared alike."
            .into(),
        plot: cdf(results, &of, Metric::Completion, by, false).map(Plot::Cdf),
    });
    bars.chain(spread).collect()
}
