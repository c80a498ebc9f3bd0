//! A comparison for a terminal: answers, ratios by cell, and a row per controller.

use uncork_terminal::{Align, Column, Table, Terminal, printable, push_line, wrap};

use super::answer::{Answer, AnswerKind};
use super::document::{Cell, ClassResult, LabDocument};
use super::priority::fitting;
use super::table::{fits, push_answers, push_doubts};
use super::verdict::{decimal, groups, spelled};
use crate::number::decimals;
use crate::words;

/// A column of figures: heading, second heading, metric, factor, and fixed number of decimals, if
/// any.
type CompactColumn = (&'static str, &'static str, &'static str, f64, Option<usize>);

const FIGURES: [CompactColumn; 18] = [
    ("completion s", "p50", "completion_p50", 1.0, None),
    ("completion s", "p90", "completion_p90", 1.0, None),
    ("bandwidth", "Mbit/s", "bandwidth_p50", 1e-6, None),
    ("goodput", "Mbit/s", "goodput_sum", 1e-6, None),
    ("per flow", "Mbit/s", "goodput_mean", 1e-6, None),
    ("link", "%", "utilisation_mean", 1.0, Some(1)),
    ("RTT ms", "p50", "rtt_p50", 1e3, None),
    ("RTT ms", "p95", "rtt_p95", 1e3, None),
    ("RTT in time ms", "p50", "rtt_time_p50", 1e3, None),
    ("RTT in time ms", "p95", "rtt_time_p95", 1e3, None),
    ("queue ms", "p50", "queue_delay_p50", 1e3, None),
    ("queue ms", "p95", "queue_delay_p95", 1e3, None),
    ("resent", "%", "retransmitted_mean", 1.0, Some(2)),
    ("RTOs", "mean", "timeouts_mean", 1.0, Some(1)),
    ("Jain", "mean", "jain_mean", 1.0, Some(3)),
    ("share", "%", "share_mean", 1.0, Some(1)),
    ("by order %", "min", "share_min", 1.0, Some(1)),
    ("by order %", "max", "share_max", 1.0, Some(1)),
];

impl LabDocument {
    /// The title, the answers, the ratios if there are several cells, and the results of each
    /// controller. For mixes the controllers are listed below their row.
    pub fn short_text(&self, terminal: impl Into<Terminal>) -> String {
        let terminal = terminal.into();
        let mut out = String::new();
        let seeds = words::counted(self.seeds, "seed");
        for line in wrap(&printable(&format!("{}; {seeds}", self.title)), terminal.width) {
            push_line(&mut out, &terminal.style.dim(&line));
        }
        push_line(&mut out, "");
        push_doubts(&mut out, self, terminal);
        push_answers(&mut out, self, terminal);
        if let Some(ratios) = ratios(&self.answers) {
            out.push_str(&ratios.fit(terminal));
            push_line(&mut out, "");
        }
        out.push_str(&fitting_figures(self, terminal));
        for line in unfinished(self) {
            push_line(&mut out, &line);
        }
        out
    }
}

/// A row per cell with each choice's ratio to the baseline and its meaning; `None` with a single
/// cell.
fn ratios(answers: &[Answer]) -> Option<Table> {
    let groups: Vec<Vec<&Answer>> = groups(answers).into_iter().filter(|g| g.len() > 1).collect();
    let first = groups.first()?;
    let head = |group: &Vec<&Answer>| {
        let Answer { metric, choice, baseline, .. } = group[0];
        let title = format!("{}, {choice} / {baseline}", spelled(metric));
        ["ratio", "95 % CI", ""].map(|name| column(&title, name, Align::Right))
    };
    let rows = first.iter().map(|row| {
        let cells = groups.iter().flat_map(|group| {
            let same = group.iter().find(|one| one.place == row.place);
            same.map_or_else(Default::default, |answer| ratio(answer))
        });
        std::iter::once(printable(&row.place)).chain(cells).collect()
    });
    let columns = groups.iter().flat_map(head);
    Some(Table {
        rows: rows.collect(),
        columns: std::iter::once(column("", "", Align::Left)).chain(columns).collect(),
    })
}

fn ratio(answer: &Answer) -> [String; 3] {
    let word = match answer.kind {
        AnswerKind::Better => "better",
        AnswerKind::Worse => "worse",
        AnswerKind::Alike => "alike",
        AnswerKind::Open => "open",
        AnswerKind::ByOrder => "by order",
        AnswerKind::Unknown => "?",
    };
    let span = |low: f64, high: f64| format!("{}–{}", decimal(low), decimal(high));
    let interval = answer.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let (value, interval) = match answer.ratios() {
        None => ("-".to_owned(), None),
        Some([low, high]) if answer.shares_by_order().is_some() => (span(low, high), None),
        Some([value, _]) => (decimal(value), interval),
    };
    let interval = interval.map_or_else(String::new, |(low, high)| span(low, high));
    [value, interval, word.to_owned()]
}

/// The table of figures, without the least important columns if it is too wide.
fn fitting_figures(document: &LabDocument, terminal: Terminal) -> String {
    let known = known(document);
    let metrics: Vec<&str> = known.iter().map(|figure| figure.2).collect();
    let with = |kept: &[usize]| {
        let kept: Vec<&CompactColumn> = kept.iter().map(|at| known[*at]).collect();
        figures(document, &kept)
    };
    // With whole labels.
    let kept = fitting(&metrics, |kept| fits(&with(kept), terminal.width));
    let mut out = with(&kept).fit(terminal);
    if kept.len() < known.len() {
        let more = words::counted((known.len() - kept.len()) as u64, "column");
        push_line(&mut out, &format!("{more} left out: see --format csv, or a wider terminal."));
    }
    out
}

/// The figures that at least one row has.
fn known(document: &LabDocument) -> Vec<&'static CompactColumn> {
    let classes = || document.cells.iter().flat_map(|cell| &cell.classes);
    let has = |figure: &&CompactColumn| classes().any(|class| metric(class, figure.2).is_some());
    FIGURES.iter().filter(has).collect()
}

fn metric(class: &ClassResult, name: &str) -> Option<f64> {
    class.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.estimate.value)
}

fn figures(document: &LabDocument, known: &[&CompactColumn]) -> Table {
    let all = || document.cells.iter().flat_map(|cell| &cell.classes);
    let of_group = |group: &str| {
        let kin: Vec<&&CompactColumn> = known.iter().filter(|figure| figure.0 == group).collect();
        decimals(all().flat_map(|class| {
            kin.iter()
                .filter_map(|figure| Some(metric(class, figure.2)? * figure.3))
                .collect::<Vec<_>>()
        }))
    };
    let digits: Vec<usize> =
        known.iter().map(|figure| figure.4.unwrap_or_else(|| of_group(figure.0))).collect();
    let row = |(cell, class): (&Cell, &ClassResult)| {
        let cells = known.iter().zip(&digits).map(|(figure, digits)| {
            let value = metric(class, figure.2).map(|value| value * figure.3);
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        });
        labels(document, cell, class).into_iter().chain(cells).collect()
    };
    let axes = places(document).map(|at| column("", &document.axes[at].name, Align::Left));
    let heads = known.iter().map(|figure| column(figure.0, figure.1, Align::Right));
    let label = std::iter::once(column("", "", Align::Left));
    Table {
        columns: axes.chain(label).chain(heads).collect(),
        rows: document
            .cells
            .iter()
            .flat_map(|cell| cell.classes.iter().map(move |class| (cell, class)))
            .map(row)
            .collect(),
    }
}

/// Axes other than that of the controllers.
fn places(document: &LabDocument) -> impl Iterator<Item = usize> {
    let axes = document.axes.iter().enumerate();
    axes.filter(|(_, axis)| axis.values.len() > 1 && !axis.key.contains(".cc")).map(|(at, _)| at)
}

/// The cell and the controller; the controllers of a mix are indented below it.
fn labels(document: &LabDocument, cell: &Cell, class: &ClassResult) -> Vec<String> {
    let value = |at: usize| printable(&document.axes[at].values[cell.point[at]]);
    let is_part = cell.classes.len() > 1 && !class.cc.contains('+');
    // Two flows of one controller are `cubic+cubic` there.
    let mix = document.axes.iter().zip(&cell.point).find(|(axis, _)| axis.key.contains(".cc"));
    let name = match mix {
        _ if is_part => format!("  {}", class.cc),
        Some((axis, at)) => axis.values[*at].clone(),
        None => class.cc.clone(),
    };
    places(document).map(value).chain([printable(&name)]).collect()
}

/// One line per row with unfinished transfers.
fn unfinished(document: &LabDocument) -> Vec<String> {
    let rows =
        document.cells.iter().flat_map(|cell| cell.classes.iter().map(move |one| (cell, one)));
    let lacking = rows.filter(|(_, class)| {
        let is_object = |metric: &super::Metric| metric.name.starts_with("bandwidth");
        class.finished < class.flows && class.metrics.iter().any(is_object)
    });
    let line = |(cell, class): (&Cell, &ClassResult)| {
        let labels = labels(document, cell, class).join(" ");
        let transfers = words::counted(class.flows, "transfer");
        format!(
            "{}: {} of {transfers} did not finish.",
            labels.trim(),
            class.flows - class.finished
        )
    };
    lacking.map(line).collect()
}

fn column(group: &str, name: &str, align: Align) -> Column {
    Column { group: printable(group), name: printable(name), align }
}
