//! Converts a tree to a scenario.

mod alternative;
mod context;
mod drawn;
mod figure;
mod flow;
mod matrix;
mod path;
mod players;
mod preset;
mod question;
mod rate;
mod sampling;
mod steps;
mod workload;

use std::ops::RangeInclusive;

use uncork_config::{Node, Result, Section, Value};
use uncork_path::{HostJitter, LinkSpec};
use uncork_sim::Offload;
use uncork_units::{Time, TimeDelta};

use super::ScenarioError;
use super::model::{Axis, Cell, Class, Scenario};
use super::plan::CellPlan;
use super::{Files, keys, limits, set};
pub(super) use alternative::Alternative;
use context::Context;
use matrix::Matrix;
pub(super) use matrix::unknown_place;
use question::KnownNames;

/// Range of run durations.
const ENDS: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(1), TimeDelta::from_secs(86_400));
/// Default of `run.end`.
const END: TimeDelta = TimeDelta::from_secs(600);
/// Default of `run.seeds`.
const SEEDS: u64 = 10;
/// Maximum runs per cell.
const MAX_SEEDS: u64 = 10_000;

/// Parses the scenario `name` from `text`, with the values of `replaced`.
pub(super) fn scenario(
    name: &str,
    text: &str,
    replaced: &[(String, String)],
    files: &dyn Files,
) -> Result<Scenario> {
    let mut tree = Node::of_text(text)?;
    let text = set::apply(&mut tree, text, replaced)?;
    of_tree(name, &tree, text, files)
}

/// The scenario `name` of `tree`, the tree of `text`.
fn of_tree(name: &str, tree: &Node, text: String, files: &dyn Files) -> Result<Scenario> {
    let whole = tree.place.clone();
    let file = Section::new("a scenario", &whole, tree, keys::FILE)?;
    let context = Context::new(files);
    let matrix = matrix::axes(tree)?;
    let axes: Vec<Axis> = matrix.axes.iter().map(|plan| plan.axis.clone()).collect();
    let run = RunSection::read(tree)?;
    let cells = cells(tree, &matrix, &run, &context)?;
    limits::check(tree, &cells, run.seeds)?;
    if let Some(every) = run.sample {
        limits::check_series(tree, &cells, every, run.series_seeds.len() as u64)?;
    }
    let classes = classes(&cells);
    let sampled = run.sample.is_some();
    let known = KnownNames { axes: &axes, cells: &cells, classes: &classes, sampled };
    let scenario = Scenario {
        name: name.to_owned(),
        title: Some(file.text("title")?)
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| name.to_owned()),
        about: file.text("about")?,
        assumptions: assumptions(&file, &cells)?,
        thresholds: uncork_config::each(tree, "threshold", keys::THRESHOLD, |it| {
            known.threshold(it)
        })?,
        figures: figure::figures(tree, &known)?,
        published: uncork_config::each(tree, "published", keys::PUBLISHED, |it| {
            known.published(it)
        })?,
        text,
        axes,
        seeds: run.seeds,
        first_seed: run.first_seed,
        warmup: run.warmup,
        sample_every: run.sample,
        series_seeds: run.series_seeds,
        cells,
    };
    // The readers report invalid keys themselves; this checks combinations they cannot see.
    for cell in 0..scenario.cells.len() {
        let run = scenario.planned(cell, scenario.first_seed).run;
        run.check().map_err(|error| ScenarioError::new(&whole, error.to_string()))?;
    }
    Ok(scenario)
}

/// The assumptions listed in the file, and the sources of preset values.
fn assumptions(file: &Section<'_>, cells: &[Cell]) -> Result<Vec<String>> {
    let nodes = file.read("assumptions", Node::list)?.unwrap_or_default();
    let listed = nodes.iter().map(|node| node.text().map(str::to_owned));
    let mut lines = listed.collect::<Result<Vec<_>>>()?;
    for source in cells.iter().flat_map(|cell| &cell.plan.paths).flat_map(|path| &path.sources) {
        if !lines.contains(source) {
            lines.push(source.clone());
        }
    }
    Ok(lines)
}

/// Settings of `[run]` for all cells.
struct RunSection {
    seeds: u32,
    first_seed: u64,
    warmup: TimeDelta,
    sample: Option<TimeDelta>,
    series_seeds: Vec<u64>,
}

impl RunSection {
    fn read(tree: &Node) -> Result<Self> {
        let empty = Node { place: tree.place.clone(), value: Value::Table(Vec::new()) };
        let section = run_section(tree, &empty)?;
        let seeds = section.read("seeds", |node| node.whole(1..=MAX_SEEDS))?.unwrap_or(SEEDS);
        let first = |node: &Node| node.whole(0..=u64::MAX - MAX_SEEDS);
        let first_seed = section.read("first_seed", first)?.unwrap_or(1);
        let sample = section.read("sample", |node| node.within(ENDS))?;
        if sample.is_none() && section.get("series").is_some() {
            let message = "nothing is written down over time";
            return Err(ScenarioError::new(section.key_place("series"), message)
                .help("add sample = \"100ms\" to [run]"));
        }
        let of_series = |node: &Node| series_seeds(node, first_seed..=first_seed + seeds - 1);
        Ok(Self {
            seeds: seeds as u32,
            first_seed,
            warmup: section.parse_or("warmup", TimeDelta::ZERO)?,
            sample,
            series_seeds: section.read("series", of_series)?.unwrap_or_else(|| vec![first_seed]),
        })
    }
}

/// The seeds of the runs that are sampled over time.
fn series_seeds(node: &Node, seeds: RangeInclusive<u64>) -> Result<Vec<u64>> {
    let section = Section::new("series", &node.place, node, keys::SERIES)?;
    let given = section.need("seeds", "[1, 7]")?;
    let read: Vec<u64> =
        given.list()?.iter().map(|node| node.whole(seeds.clone())).collect::<Result<_>>()?;
    if read.is_empty() {
        return Err(ScenarioError::new(&given.place, "there are no seeds in this list")
            .help("use at least one"));
    }
    Ok(read)
}

fn run_section<'a>(tree: &'a Node, empty: &'a Node) -> Result<Section<'a>> {
    let entry = tree.entries().iter().find(|entry| entry.name == "run");
    match entry {
        Some(entry) => Section::new("[run]", &entry.place, &entry.node, keys::RUN),
        None => Section::new("[run]", &tree.place, empty, keys::RUN),
    }
}

/// The end of a run, which must be after its warm-up.
fn end(section: &Section<'_>, warmup: TimeDelta) -> Result<Time> {
    let end = section.read("end", |node| node.within(ENDS))?.unwrap_or(END);
    if warmup >= end {
        let message = format!("the warm-up of {warmup} is not shorter than the run of {end}");
        return Err(ScenarioError::new(section.key_place("warmup"), message)
            .help("end the runs later, or give a shorter warm-up"));
    }
    Ok(Time::ZERO + end)
}

fn cells(
    tree: &Node,
    Matrix { axes, points }: &Matrix,
    run: &RunSection,
    context: &Context<'_>,
) -> Result<Vec<Cell>> {
    let read = |point: &Vec<usize>| {
        let tree = matrix::substitute(tree, axes, point)?;
        cell(&tree, run, point.clone(), context)
    };
    let cell = |point: &Vec<usize>| {
        read(point).map_err(|error| {
            let same = |other: &Vec<usize>| read(other).err().as_ref() == Some(&error);
            match matrix::cell_note(axes, point, same) {
                Some(note) => error.note(note),
                None => error,
            }
        })
    };
    points.iter().map(cell).collect()
}

const OFFLOADS: [(&str, Offload); 3] =
    [("none", Offload::None), ("host", Offload::Host), ("card", Offload::Card)];

/// The cell defined by `tree`.
fn cell(tree: &Node, run: &RunSection, point: Vec<usize>, context: &Context<'_>) -> Result<Cell> {
    let links = path::links(tree, context)?;
    let paths = path::paths(tree, &links, context)?;
    path::check_shared(tree, &links, &paths)?;
    let flows = flow::flows(tree, &paths, context)?;
    let empty = Node { place: tree.place.clone(), value: Value::Table(Vec::new()) };
    let section = run_section(tree, &empty)?;
    let end = end(&section, run.warmup)?;
    let host_jitter = section.parse_or("host_jitter", HostJitter::default())?;
    let offload = section.read("offload", |node| node.choice("offload", &OFFLOADS))?;
    let card = section.read("card", |node| node.within(LinkSpec::RATES))?;
    let class = |(flow, background): &flow::Class| Class::of(flow, &paths[flow.path], *background);
    let classes = flows.iter().map(class).collect();
    let links = links.into_iter().map(|(_, link)| link).collect();
    let flows = flows.into_iter().map(|(flow, _)| flow).collect();
    let plan = CellPlan { links, paths, flows }.with_spreads(end);
    Ok(Cell { point, classes, end, host_jitter, offload, card, plan })
}

/// The classes, each with its controllers from all cells.
fn classes(cells: &[Cell]) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for class in cells.iter().flat_map(|cell| &cell.classes) {
        match classes.iter_mut().find(|known| known.name == class.name) {
            None => classes.push(class.clone()),
            Some(known) => {
                let new = class.ccs.iter().filter(|cc| !known.ccs.contains(cc)).cloned();
                let new: Vec<String> = new.collect();
                known.ccs.extend(new);
            }
        }
    }
    classes
}
