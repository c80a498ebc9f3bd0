//! Shares that depend on who starts first.

use super::outcome::RunOutcome;
use super::results::RunResults;
use super::samples::CellRuns;
use crate::scenario::{Carries, Metric, Selection};
use crate::sweep::cell_name;

/// Minimum difference of shares that is worth a warning.
const MIN_DIFFERENCE: f64 = 0.05;
/// Minimum number of runs in which a group starts first, and of the others.
const MIN_RUNS: usize = 3;
/// How many standard errors the difference must have. By chance, one share in about 60 has them.
const MIN_ERRORS: f64 = 3.0;

/// A group of flows. Its share differs between runs in which it starts first and other runs.
#[derive(Clone, Debug)]
pub(crate) struct Dependence {
    cell: usize,
    class: String,
    cc: String,
    /// Its mean share in the runs in which it starts first, and in the others.
    first: f64,
    later: f64,
    /// Its minimum and its maximum share in a run.
    range: [f64; 2],
}

impl Dependence {
    fn size(&self) -> f64 {
        (self.first - self.later).abs()
    }
}

/// The group with the share that depends most on its start.
fn largest<'a>(found: impl IntoIterator<Item = &'a Dependence>) -> Option<&'a Dependence> {
    found.into_iter().max_by(|one, other| one.size().total_cmp(&other.size()))
}

/// A warning if shares depend on the order in which flows of different controllers start, as far as
/// the runs' seeds have varied that order.
pub(crate) fn warning(results: &RunResults<'_>) -> Option<String> {
    let cells = 0..results.scenario.cells.len();
    let shared: Vec<usize> = cells.filter(|cell| groups(results, *cell).len() > 1).collect();
    let of_cell = |cell: &usize| largest(results.dependences(*cell));
    let found: Vec<&Dependence> = shared.iter().filter_map(of_cell).collect();
    let count = found.len();
    let Dependence { cell, cc, first, later, range: [low, high], .. } = largest(found)?;
    let place = match cell_name(results.scenario, *cell) {
        name if name.is_empty() => String::new(),
        name => format!("; most with {name}"),
    };
    Some(format!(
        "In {} of {} cells a share depends on who starts first{place}: {cc} has {:.0} to {:.0} % over the \
         orders of starts, a range and not a mean; {:.0} % on average if it starts first, {:.0} % if not.",
        count,
        shared.len(),
        100.0 * low,
        100.0 * high,
        100.0 * first,
        100.0 * later
    ))
}

/// The minimum and the maximum share, in a run, of a controller's flows of a class, if the share depends on who starts first.
pub(crate) fn range(found: &[Dependence], class: &str, cc: &str) -> Option<[f64; 2]> {
    found.iter().find(|one| one.class == class && one.cc == cc).map(|one| one.range)
}

/// The controllers of the cell's long flows, each with its class.
fn groups(results: &RunResults<'_>, cell: usize) -> Vec<(String, String)> {
    let classes = &results.scenario.cells[cell].classes;
    let long = classes.iter().filter(|class| class.carries == Carries::Streams && !class.own_links);
    long.flat_map(|class| class.ccs.iter().map(|cc| (class.name.clone(), cc.clone()))).collect()
}

/// The groups of a cell with a share that depends on their starts.
pub(super) fn dependences(results: &RunResults<'_>, cell: usize) -> Vec<Dependence> {
    let groups = groups(results, cell);
    if groups.len() < 2 {
        return Vec::new();
    }
    let first = |run: &RunOutcome| {
        let start = |group: &&(String, String)| mean_start(run, group).unwrap_or(f64::INFINITY);
        groups.iter().min_by(|one, other| start(one).total_cmp(&start(other))).cloned()
    };
    let firsts: Vec<_> = results.of_cell(cell).iter().map(first).collect();
    let dependences = groups.iter().filter_map(|group| {
        let (class, cc) = group;
        let of =
            Selection { class: Some(class.clone()), cc: Some(cc.clone()), ..Selection::default() };
        let (mut when_first, mut when_later) = (Vec::new(), Vec::new());
        for (run, first) in results.of_cell(cell).iter().zip(&firsts) {
            let view = CellRuns::new(results.scenario, std::slice::from_ref(run), &of);
            let shares = view.samples(Metric::Share).into_iter().map(|sample| sample.value);
            let is_first = first.as_ref() == Some(group);
            if is_first { &mut when_first } else { &mut when_later }.extend(shares);
        }
        let (first, later) = apart(&when_first, &when_later)?;
        let all = || when_first.iter().chain(&when_later).copied();
        let range = [all().fold(1.0, f64::min), all().fold(0.0, f64::max)];
        let (class, cc) = group.clone();
        Some(Dependence { cell, class, cc, first, later, range })
    });
    dependences.collect()
}

/// When the flows of a group start on average, in nanoseconds.
fn mean_start(run: &RunOutcome, (class, cc): &(String, String)) -> Option<f64> {
    let flows = run.flows.iter().filter(|flow| flow.group == *class && flow.cc == *cc);
    let starts: Vec<f64> = flows.map(|flow| flow.start_ns as f64).collect();
    uncork_flow::mean(&starts)
}

/// The means of two samples if they differ by more than chance.
fn apart(one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    if one.len().min(other.len()) < MIN_RUNS {
        return None;
    }
    // The mean and the squared standard error.
    let of = |values: &[f64]| {
        let mean = uncork_flow::mean(values)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let count = values.len() as f64;
        Some((mean, squares / (count - 1.0) / count))
    };
    let ((first, first_error), (later, later_error)) = (of(one)?, of(other)?);
    let least = MIN_DIFFERENCE.max(MIN_ERRORS * libm::sqrt(first_error + later_error));
    ((first - later).abs() >= least).then_some((first, later))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::testing::record;
    use uncork_flow::FlowRecord;
    use uncork_report::lab::{Answer, AnswerKind, Cell, Metric as Measured};

    const TEXT: &str = "title = \"t\"\n[run]\nend = \"10s\"\nseeds = 8\n\
                        [path]\nrate = \"20mbit\"\nrtt = \"20ms\"\n\
                        [flow.main]\ncc = [\"cubic\", \"bbr1\"]\ncount = 2\nbulk = \"8s\"\n\
                        [matrix]\n\"path.buffer\" = [\"1bdp\", \"8bdp\"]\n";

    /// Eight runs of two cells. CUBIC starts first in half of them. In the second cell it then has
    /// the share `first`, else `later`, with some noise.
    fn runs(first: f64, later: f64) -> Vec<RunOutcome> {
        let of = |cell: usize, seed: u64| {
            let is_first = seed.is_multiple_of(2);
            let noise = 0.004 * (seed as f64 - 4.5);
            let share = match (cell, is_first) {
                (0, _) => 0.5,
                (_, true) => first,
                (_, false) => later,
            } + noise;
            let flow = |cc: &str, start_ms, share: f64, flow| FlowRecord {
                group: "main".into(),
                cc: cc.into(),
                flow,
                ..record(start_ms, None, (share * 1e7) as u64)
            };
            let starts = if is_first { (0, 900) } else { (900, 0) };
            RunOutcome {
                cell,
                seed,
                flows: vec![
                    flow("cubic", starts.0, share, 0),
                    flow("bbr1", starts.1, 1.0 - share, 1),
                ],
                requests: Vec::new(),
                clients: vec![0, 1],
                packets: 0,
                doubts: Vec::new(),
                commands: Vec::new(),
            }
        };
        (0..2).flat_map(|cell| (1..=8).map(move |seed| of(cell, seed))).collect()
    }

    fn scenario() -> Scenario {
        Scenario::parse("t", TEXT, &[], &crate::builtin::NoFiles).expect("valid")
    }

    fn warned(first: f64, later: f64) -> Option<String> {
        warning(&RunResults::new(&scenario(), &runs(first, later)))
    }

    /// The second cell has a range, the first has none.
    #[test]
    fn table_has_the_range_where_the_order_decides() {
        let scenario = scenario();
        let runs = runs(0.62, 0.41);
        let cells = super::super::tables::cells(&RunResults::new(&scenario, &runs));
        let names = |cell: &Cell, cc: &str| {
            let class = cell.classes.iter().find(|class| class.cc == cc).expect("the controller");
            let shares = class.metrics.iter().filter(|metric| metric.name.starts_with("share"));
            let of = |metric: &Measured| (metric.name.clone(), metric.estimate.value.round());
            shares.map(of).collect::<Vec<_>>()
        };
        let shares = |pairs: &[(&str, f64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Vec<_>>()
        };
        assert_eq!(names(&cells[0], "cubic"), shares(&[("share_mean", 50.0)]));
        let ranges = [("share_mean", 51.0), ("share_min", 40.0), ("share_max", 63.0)];
        assert_eq!(names(&cells[1], "cubic"), shares(&ranges));
        assert_eq!(names(&cells[1], "bbr1").len(), 3);
        assert!(names(&cells[1], "cubic+bbr1").is_empty(), "no group of its own");
    }

    /// The answer about the second cell.
    fn answer(first: f64, later: f64) -> Answer {
        let (scenario, runs) = (scenario(), runs(first, later));
        let answers = super::super::comparisons::answers(&RunResults::new(&scenario, &runs)).0;
        answers.into_iter().find(|answer| answer.cell == 1).expect("an answer")
    }

    /// In the runs CUBIC has 40 to 63 %, then 56 to 88 %, then 61 to 63 %.
    #[test]
    fn no_side_is_named_against_the_order_of_starts() {
        let either = answer(0.62, 0.41);
        assert_eq!(either.kind, AnswerKind::ByOrder);
        let range = either.baseline_share_range.expect("a range").map(f64::round);
        assert_eq!((either.baseline.as_str(), range), ("cubic", [40.0, 63.0]));
        assert!(either.prices.iter().all(|price| price.payer.is_none()), "{either:?}");
        let larger = answer(0.87, 0.57);
        assert_eq!(larger.kind, AnswerKind::Worse, "bbr1 has less in each run: {larger:?}");
        assert!(larger.share_range.is_some_and(|[_, high]| high < 50.0), "{larger:?}");
        assert_eq!(answer(0.62, 0.62).share_range, None, "the order does not matter");
    }

    #[test]
    fn warning_names_a_share_that_follows_the_starts() {
        let warning = warned(0.62, 0.41).expect("a warning");
        let expected = "In 1 of 2 cells a share depends on who starts first; most with \
                        path.buffer=8bdp: ";
        assert!(warning.starts_with(expected), "{warning}");
        let either = ["cubic has 40 to 63 %", "bbr1 has 37 to 60 %"];
        assert!(either.iter().any(|text| warning.contains(text)), "{warning}");
        assert!(warning.contains("if it starts first"), "{warning}");
    }

    #[test]
    fn share_that_does_not_is_not() {
        assert_eq!(warned(0.5, 0.5), None);
        assert_eq!(warned(0.52, 0.48), None);
    }

    /// Too few runs, or differences within the noise.
    #[test]
    fn warning_ignores_chance() {
        assert_eq!(apart(&[0.9, 0.9], &[0.1, 0.1, 0.1]), None);
        assert_eq!(apart(&[0.9, 0.3, 0.6], &[0.2, 0.5, 0.4]), None);
        assert!(apart(&[0.9, 0.8, 0.85], &[0.2, 0.25, 0.3]).is_some());
    }
}
