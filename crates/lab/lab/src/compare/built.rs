//! The scenario of a comparison, made without reading its text. A test compares it with what the text means.

use std::fmt::Display;

use uncork_cc::CcSpec;
use uncork_path::PathSpec;
use uncork_units::{Time, TimeDelta};

use super::{CompareSpec, Start, Workload};
use crate::Column;
use crate::scenario::{
    Axis, AxisPart, Cell, CellPlan, Class, ClientActivity, Connect, Draws, FlowPlan, PathPlan,
    Scenario, SingleActivity, axis_names,
};

/// The class of all flows.
const CLASS: &str = "main";

impl CompareSpec {
    /// The scenario that [`CompareSpec::text`] describes.
    pub(super) fn build(&self, text: String, sample: Option<TimeDelta>) -> Scenario {
        let axes = self.axes();
        let paths = self.paths();
        let columns = self.columns.len();
        let cell = |index: usize| {
            let path = self.path_plan(paths[index / columns].clone());
            self.cell(point(&axes, index), path, &self.columns[index % columns])
        };
        Scenario {
            name: "compare".to_owned(),
            title: self.title(),
            about: String::new(),
            assumptions: self.assumptions(),
            text,
            cells: (0..paths.len() * columns).map(cell).collect(),
            axes,
            seeds: self.seeds,
            first_seed: self.first_seed,
            warmup: TimeDelta::ZERO,
            sample_every: sample,
            series_seeds: vec![self.first_seed],
            thresholds: Vec::new(),
            figures: Vec::new(),
            published: Vec::new(),
        }
    }

    /// The axes, slowest first: of each list of several values, and of the columns.
    fn axes(&self) -> Vec<Axis> {
        let of_path = [
            of_values("path.rate", &self.rates),
            of_values("path.rtt", &self.rtts),
            of_values("path.loss", &self.losses),
            of_values("path.buffer", &self.buffers),
        ];
        let mut axes: Vec<Axis> =
            of_path.into_iter().flatten().chain([self.axis_of_columns()]).collect();
        let keys: Vec<Vec<Vec<String>>> = axes.iter().map(keys).collect();
        for (axis, name) in axes.iter_mut().zip(axis_names(&keys)) {
            axis.name = name;
        }
        axes
    }

    fn axis_of_columns(&self) -> Axis {
        let members = |column: &Column| {
            let members: Vec<String> = column.members().iter().map(CcSpec::to_string).collect();
            members.join(", ")
        };
        let values = self.columns.iter().map(Column::to_string).collect();
        let of_members: Vec<String> = self.columns.iter().map(members).collect();
        let cc = AxisPart { key: "flow.main.cc".to_owned(), values: of_members.clone() };
        if self.is_even() {
            let (key, parts) = (cc.key.clone(), vec![cc]);
            return Axis { key, name: String::new(), values, written: of_members, parts };
        }
        let counts: Vec<String> =
            self.columns.iter().map(|column| self.flows_of(column).to_string()).collect();
        let both = of_members.iter().zip(&counts);
        let written = both.map(|(members, count)| format!("{members}, {count}")).collect();
        let count = AxisPart { key: "flow.main.count".to_owned(), values: counts };
        let key = format!("{},{}", cc.key, count.key);
        Axis { key, name: String::new(), values, written, parts: vec![cc, count] }
    }

    fn path_plan(&self, spec: PathSpec) -> PathPlan {
        PathPlan {
            name: "path".to_owned(),
            spec,
            own_per_flow: false,
            draws: Draws::default(),
            sources: self.assumptions(),
        }
    }

    /// The sources of what comes from the preset.
    fn assumptions(&self) -> Vec<String> {
        let own = [
            ("rate", self.rates.is_empty()),
            ("lte", self.rates.is_empty()),
            ("rtt", self.rtts.is_empty()),
            ("loss", self.losses.is_empty()),
            ("buffer", self.buffers.is_empty()),
            ("queue", self.queue.is_none()),
            ("jitter", self.jitter.is_none()),
        ];
        let is_of_preset = |key: &str| own.iter().all(|(own, is_absent)| *own != key || *is_absent);
        let Some(preset) = &self.preset else { return Vec::new() };
        let values = preset.values.iter().filter(|value| is_of_preset(value.key));
        let source = |value: &crate::PresetValue| {
            preset.assumption("[path]", value.key, &value.value(), value.source)
        };
        values.map(source).collect()
    }

    fn cell(&self, point: Vec<usize>, path: PathPlan, column: &Column) -> Cell {
        let work = match self.workload {
            Workload::Transfer(size) => SingleActivity::Transfer(size.as_u64()),
            Workload::Duration(span) => SingleActivity::Bulk(Some(span)),
        };
        let ccs = column.members().to_vec();
        let mut flow = FlowPlan::new(CLASS, ccs, self.flows_of(column), ClientActivity::One(work));
        match self.start() {
            Start::InTurn => flow.connect = Some(Connect::InTurn),
            Start::Iperf3 => flow.connect = Some(Connect::Iperf3),
            Start::Together => flow.spread = Some(TimeDelta::ZERO),
            Start::Random => {}
        }
        flow.initial_window = self.initial_window;
        let end = Time::ZERO + self.end();
        let classes = vec![Class::of(&flow, &path, false)];
        let plan = CellPlan { links: Vec::new(), paths: vec![path], flows: vec![flow] };
        Cell {
            point,
            classes,
            end,
            host_jitter: self.host_jitter,
            offload: None,
            card: None,
            plan: plan.with_spreads(end),
        }
    }
}

/// The axis of these values; none if there is only one.
fn of_values<T: Display>(key: &str, values: &[T]) -> Option<Axis> {
    let values: Vec<String> = values.iter().map(T::to_string).collect();
    (values.len() > 1).then(|| Axis {
        key: key.to_owned(),
        name: String::new(),
        written: values.clone(),
        parts: vec![AxisPart { key: key.to_owned(), values: values.clone() }],
        values,
    })
}

/// The words of the keys that an axis varies.
fn keys(axis: &Axis) -> Vec<Vec<String>> {
    let words = |part: &AxisPart| part.key.split('.').map(str::to_owned).collect();
    axis.parts.iter().map(words).collect()
}

/// The value of each axis in the cell with this index: the last axis varies fastest.
fn point(axes: &[Axis], mut index: usize) -> Vec<usize> {
    let digit = |axis: &Axis| {
        let digit = index % axis.values.len();
        index /= axis.values.len();
        digit
    };
    let mut point: Vec<usize> = axes.iter().rev().map(digit).collect();
    point.reverse();
    point
}
