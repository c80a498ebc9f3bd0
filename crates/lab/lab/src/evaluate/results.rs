//! The runs of a scenario, and estimates from them.

use std::cell::OnceCell;

use uncork_flow::{jain_index, mean};
use uncork_report::lab::{Estimate, axis_title};
use uncork_units::Time;

use super::comparisons::chosen;
use super::estimate::{Range, Samples};
use super::outcome::RunOutcome;
use super::samples::{CellRuns, Sample};
use super::starts::{self, Dependence};
use crate::scenario::{Metric, MetricUnit, Quantity, Scenario, Selection, Statistic};

/// The runs of a scenario, grouped by cell and ordered by seed.
pub(crate) struct RunResults<'a> {
    pub(crate) scenario: &'a Scenario,
    runs: Vec<&'a [RunOutcome]>,
    /// By cell, found when first asked for: all pairs of classes ask.
    dependences: Vec<OnceCell<Vec<Dependence>>>,
}

impl<'a> RunResults<'a> {
    /// `runs` must be sorted by cell and seed; cells may be missing.
    pub(crate) fn new(scenario: &'a Scenario, runs: &'a [RunOutcome]) -> Self {
        let of_cell = |cell| {
            let from = runs.partition_point(|run| run.cell < cell);
            let to = runs.partition_point(|run| run.cell <= cell);
            &runs[from..to]
        };
        let cells = scenario.cells.len();
        let dependences = vec![OnceCell::new(); cells];
        Self { scenario, runs: (0..cells).map(of_cell).collect(), dependences }
    }

    /// The groups of a cell with a share that depends on their starts.
    pub(super) fn dependences(&self, cell: usize) -> &[Dependence] {
        self.dependences[cell].get_or_init(|| starts::dependences(self, cell))
    }

    /// The runs of a cell.
    pub(crate) fn of_cell(&self, cell: usize) -> &'a [RunOutcome] {
        self.runs[cell]
    }

    /// The cells with axis values that match the selection.
    pub(crate) fn cells(&self, of: &Selection, also: &[(usize, usize)]) -> Vec<usize> {
        let fits = |cell: &usize| {
            let point = &self.scenario.cells[*cell].point;
            of.at.iter().chain(also).all(|(axis, value)| point[*axis] == *value)
        };
        (0..self.scenario.cells.len()).filter(fits).collect()
    }

    /// The samples of a number over several cells.
    pub(crate) fn samples(
        &self,
        cells: &[usize],
        of: &Selection,
        Quantity { metric, statistic }: Quantity,
    ) -> Samples {
        let mut samples = Vec::new();
        for (place, cell) in (0_u64..).zip(cells) {
            let view = CellRuns::new(self.scenario, self.runs[*cell], of);
            let of_cell = match (metric, statistic) {
                (
                    Metric::Rtt | Metric::RttTime | Metric::QueueDelay,
                    Statistic::Quantile(quantile),
                ) => view.samples_at(metric, quantile),
                (Metric::Goodput, Statistic::Sum) => view.goodputs_to_add(),
                _ => view.samples(metric),
            };
            // The same seed in different cells is not the same cluster.
            let apart = |sample: Sample| Sample { cluster: sample.cluster ^ place << 48, ..sample };
            samples.extend(of_cell.into_iter().map(apart));
        }
        let statistic = match metric {
            // Each flow reports its own quantile; these are summarised by their median.
            Metric::Rtt | Metric::RttTime | Metric::QueueDelay => Statistic::Quantile(0.5),
            _ => statistic,
        };
        let range = match metric.written_in() {
            MetricUnit::Share => Range::Unit,
            _ if metric == Metric::Jain => Range::Unit,
            _ => Range::Positive,
        };
        Samples::new(&samples, statistic, range)
    }

    /// A number over cells with its interval. If `over` is given, divided by the same number of its
    /// cells and flows.
    pub(crate) fn estimate(
        &self,
        cells: &[usize],
        of: &Selection,
        quantity: Quantity,
        over: Option<&Selection>,
    ) -> Option<Estimate> {
        let samples = self.samples(cells, of, quantity);
        match over {
            None => samples.estimate(),
            Some(over) => samples.ratio(&self.divisor(cells, of, quantity, over)?),
        }
    }

    /// Jain's index of the flows of `classes` in a cell, the mean over its runs.
    pub(crate) fn jain(&self, cell: usize, classes: &[&str]) -> Option<f64> {
        let of_class =
            |class: &&str| Selection { class: Some((*class).to_owned()), ..Selection::default() };
        let selections: Vec<Selection> = classes.iter().map(of_class).collect();
        let of_run = |run: &RunOutcome| {
            let goodputs = selections.iter().flat_map(|of| {
                CellRuns::new(self.scenario, std::slice::from_ref(run), of).samples(Metric::Goodput)
            });
            jain_index(&goodputs.map(|sample| sample.value).collect::<Vec<_>>())
        };
        mean(&self.runs[cell].iter().filter_map(of_run).collect::<Vec<_>>())
    }

    /// A number of a cell less the same number of the cell and flows of `minus`, without an interval.
    pub(crate) fn difference(
        &self,
        cell: usize,
        of: &Selection,
        quantity: Quantity,
        minus: &Selection,
    ) -> Option<Estimate> {
        let one = self.samples(&[cell], of, quantity).estimate()?;
        let other = self.divisor(&[cell], of, quantity, minus)?.estimate()?;
        let (value, n) = (one.value - other.value, one.n.min(other.n));
        Some(Estimate { value, low: None, high: None, n })
    }

    /// Why [`Self::estimate`] returns nothing.
    pub(crate) fn absence(
        &self,
        cells: &[usize],
        of: &Selection,
        quantity: Quantity,
        over: Option<&Selection>,
    ) -> String {
        let samples = self.samples(cells, of, quantity);
        let divisor = over.and_then(|over| self.divisor(cells, of, quantity, over));
        let all = || std::iter::once(&samples).chain(&divisor);
        if let Some(needed) = all().find_map(Samples::needed) {
            return format!("{} needs {needed} samples", quantity.statistic.name());
        }
        match all().map(Samples::finished).find(|(finished, all)| finished < all) {
            Some((finished, all)) => {
                let ends = cells.iter().map(|cell| self.scenario.cells[*cell].end);
                let end = ends.max().unwrap_or(Time::ZERO).since(Time::ZERO);
                format!("{finished} of {all} finished by run.end = {end}")
            }
            None => "nothing to measure".to_owned(),
        }
    }

    /// The samples of the cells and flows that `over` selects, starting from those of `of`.
    fn divisor(
        &self,
        cells: &[usize],
        of: &Selection,
        quantity: Quantity,
        over: &Selection,
    ) -> Option<Samples> {
        let others: Option<Vec<usize>> =
            cells.iter().map(|cell| self.counterpart(*cell, over)).collect();
        let others = others?;
        let classes = others.iter().flat_map(|cell| &self.scenario.cells[*cell].classes);
        let ccs: Vec<&String> = classes.flat_map(|class| &class.ccs).collect();
        let over = merged(of, over, |cc| ccs.iter().any(|there| *there == cc));
        Some(self.samples(&others, &over, quantity))
    }

    /// The cell that differs from `cell` only in the values `over` sets.
    fn counterpart(&self, cell: usize, over: &Selection) -> Option<usize> {
        let mut point = self.scenario.cells[cell].point.clone();
        for (axis, value) in &over.at {
            point[*axis] = *value;
        }
        self.scenario.cells.iter().position(|cell| cell.point == point)
    }

    /// The values of `cell` on the axes that `of` does not set. An axis that selects the controller
    /// `cc` of one of `classes` is omitted.
    pub(crate) fn label(
        &self,
        cell: usize,
        of: &Selection,
        (classes, cc): (&[&str], &str),
    ) -> String {
        let axes = self.scenario.axes.iter().enumerate().filter(|(_, axis)| axis.values.len() > 1);
        let open = axes.filter(|(axis, _)| of.at.iter().all(|(fixed, _)| fixed != axis));
        let point = &self.scenario.cells[cell].point;
        let value = |(axis, with): (usize, &crate::scenario::Axis)| {
            let value = &with.values[point[axis]];
            // A mix is its own title.
            let is_mix = with.key.contains(".count") && chosen(with).is_some();
            if is_mix {
                return value.clone();
            }
            format!("{} {value}", axis_title(&with.key, &with.name))
        };
        let is_named = |(axis, with): &(usize, &crate::scenario::Axis)| {
            with.values[point[*axis]] == cc
                && classes.iter().any(|class| !with.is_cc_of_others(class))
        };
        let open = open.filter(|axis| !is_named(axis));
        open.map(value).collect::<Vec<_>>().join(", ")
    }
}

/// The selection `over`, completed by that of `of`. A controller that does not occur, because an
/// axis selects it, is not a condition.
fn merged(of: &Selection, over: &Selection, is_there: impl Fn(&str) -> bool) -> Selection {
    Selection {
        class: over.class.clone().or_else(|| of.class.clone()),
        cc: over.cc.clone().or_else(|| of.cc.clone().filter(|cc| is_there(cc))),
        at: Vec::new(),
        at_least_bytes: over.at_least_bytes.or(of.at_least_bytes),
        less_than_bytes: over.less_than_bytes.or(of.less_than_bytes),
    }
}
