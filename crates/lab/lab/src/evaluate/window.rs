//! The time over which rates are measured.
//!
//! Rates may be added or compared only if they are of the same time: a hundred flows of 10 s each
//! that start within a second have 103 % of their link by their own times, though never more than
//! all of it. So flows that compete for a link are measured over one window.

use uncork_flow::FlowRecord;
use uncork_units::{Time, TimeDelta};

use super::outcome::RunOutcome;
use crate::scenario::{Cell, Class, Scenario};

/// A period of a run, in nanoseconds since its start. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleWindow {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl SampleWindow {
    /// From the end of the warm-up, or the start of the flow, to its end; `None` if the warm-up has
    /// all of it.
    pub(super) fn of_flow(
        scenario: &Scenario,
        run: &RunOutcome,
        flow: &FlowRecord,
    ) -> Option<Self> {
        let from = flow.start_ns.max(scenario.warmup.as_nanos());
        let end = scenario.cells[run.cell].end_of(flow);
        let to = flow.completion_ns.map_or(end, |span| flow.start_ns.saturating_add(span));
        (to > from).then_some(Self { from, to })
    }

    /// From the first start to the last end.
    fn union(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    pub(super) fn seconds(self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }
}

/// The windows of a run's classes.
pub(super) struct SampleWindows<'a> {
    cell: &'a Cell,
    /// The window of all flows of each class; `None` without flows after the warm-up.
    of_class: Vec<(&'a str, Option<SampleWindow>)>,
}

impl<'a> SampleWindows<'a> {
    pub(super) fn of(scenario: &'a Scenario, run: &RunOutcome) -> Self {
        let cell = &scenario.cells[run.cell];
        let mut of_class: Vec<(&str, Option<SampleWindow>)> =
            cell.classes.iter().map(|class| (class.name.as_str(), None)).collect();
        for flow in &run.flows {
            let Some(own) = SampleWindow::of_flow(scenario, run, flow) else { continue };
            if let Some((_, window)) = of_class.iter_mut().find(|(name, _)| flow.group == *name) {
                *window = Some(window.map_or(own, |window| window.union(own)));
            }
        }
        Self { cell, of_class }
    }

    /// The window of the flows that compete with those of `class`; `None` if each of its flows is
    /// measured over its own time.
    pub(super) fn competing(&self, class: &str) -> Option<SampleWindow> {
        let competitors = self.cell.competitors(class);
        if competitors.is_empty() { None } else { self.union_of(&competitors) }
    }

    /// The window of all flows of `classes` and of their competitors.
    pub(super) fn of_all(&self, classes: &[&str]) -> Option<SampleWindow> {
        let competitors = classes.iter().flat_map(|class| self.cell.competitors(class));
        self.union_of(&competitors.chain(classes.iter().copied()).collect::<Vec<_>>())
    }

    fn union_of(&self, classes: &[&str]) -> Option<SampleWindow> {
        let windows = self.of_class.iter().filter(|(name, _)| classes.contains(name));
        windows.filter_map(|(_, window)| *window).reduce(SampleWindow::union)
    }
}

impl Cell {
    /// The classes with flows that compete with the flows of `class` from beginning to end, itself
    /// included: streams over a common link that start together and last equally long. Empty if
    /// the flows of `class` come and go.
    fn competitors(&self, class: &str) -> Vec<&str> {
        let plans = || self.classes.iter().zip(&self.plan.flows);
        let Some((own, plan)) = plans().find(|(one, _)| one.name == *class) else {
            return Vec::new();
        };
        let span = |class: &Class| class.lasts.unwrap_or(self.end.since(Time::ZERO));
        let stays = |class: &Class, spread: Option<TimeDelta>| {
            class.is_shared_stream()
                && spread.is_none_or(|spread| spread <= span(class).divided_by(2))
        };
        if !stays(own, plan.spread) {
            return Vec::new();
        }
        let competes = plans().filter(|(other, of_other)| {
            stays(other, of_other.spread)
                && (other.lasts, of_other.start) == (own.lasts, plan.start)
                && self.plan.meet(plan, of_other)
        });
        competes.map(|(other, _)| other.name.as_str()).collect()
    }
}
