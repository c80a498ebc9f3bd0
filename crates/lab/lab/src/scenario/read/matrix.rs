//! The matrix: its axes and the tree of each cell.

use uncork_config::{Entry, Key, Node, Place, Result, Section, Value};

use super::super::ScenarioError;
use super::super::axis;
use super::super::keys;
use super::super::limits::MAX_CELLS;
use super::super::model::{Axis, AxisPart};
use super::alternative::Alternative;
use super::sampling::Sampling;

/// An axis with its values for the tree.
pub(crate) struct AxisPlan {
    pub(crate) axis: Axis,
    /// The keys it varies together.
    pub(crate) keys: Vec<Vec<String>>,
    /// For each axis value the value of each key.
    values: Vec<Vec<Node>>,
    /// For each part of a range the index of its value; empty for a list.
    parts: Vec<usize>,
}

impl AxisPlan {
    /// The value index for part `part` of `count`.
    pub(crate) fn at_part(&self, part: u64, count: u64) -> usize {
        let of_list = || (part as usize * self.values.len()) / count as usize;
        self.parts.get(part as usize).copied().unwrap_or_else(of_list)
    }
}

/// The matrix of a scenario.
pub(crate) struct Matrix {
    /// The axes, slowest first.
    pub(crate) axes: Vec<AxisPlan>,
    /// For each cell its value index on each axis.
    pub(crate) points: Vec<Vec<usize>>,
}

impl Default for Matrix {
    /// A matrix with a single cell.
    fn default() -> Self {
        Self { axes: Vec::new(), points: vec![Vec::new()] }
    }
}

/// The axes and the points of the matrix of `tree`.
pub(crate) fn axes(tree: &Node) -> Result<Matrix> {
    let Some(matrix) = tree.get("matrix") else { return Ok(Matrix::default()) };
    if !matches!(matrix.value, Value::Table(_)) {
        return Err(uncork_config::wrong_type(matrix, "a table"));
    }
    let sampling = Sampling::read(matrix)?;
    let entries = matrix.entries().iter();
    let entries = entries.filter(|entry| !Key::has(keys::MATRIX, &entry.name));
    let axes = entries.map(|entry| axis_plan(tree, entry, sampling.as_ref()));
    let mut axes = axes.collect::<Result<Vec<_>>>()?;
    check_apart(matrix, &axes)?;
    let keys: Vec<Vec<Vec<String>>> = axes.iter().map(|axis| axis.keys.clone()).collect();
    for (plan, name) in axes.iter_mut().zip(axis::names(&keys)) {
        plan.axis.name = name;
    }
    let cells = match &sampling {
        Some(sampling) => sampling.count.saturating_mul(sampling.combinations(&axes)),
        None => combinations(&axes),
    };
    if cells > MAX_CELLS {
        let message = format!("the matrix has {cells} cells");
        return Err(ScenarioError::new(&matrix.place, message)
            .help(format!("the limit is {MAX_CELLS}: use fewer values or axes")));
    }
    let points = match &sampling {
        Some(sampling) => sampling.points(&axes),
        None => points(&axes),
    };
    Ok(Matrix { axes, points })
}

fn combinations(axes: &[AxisPlan]) -> u64 {
    axes.iter().map(|axis| axis.values.len() as u64).fold(1, u64::saturating_mul)
}

fn axis_plan(tree: &Node, entry: &Entry, sampling: Option<&Sampling<'_>>) -> Result<AxisPlan> {
    let is_range = Key::names(keys::RANGE).any(|key| entry.node.get(key).is_some());
    if is_range && sampling.is_none() {
        let message = format!("the axis `{}` is a range, and its values are drawn", entry.name);
        return Err(ScenarioError::new(&entry.node.place, message)
            .help("add sample = 200 to [matrix], or give a list of values"));
    }
    if matches!(entry.node.value, Value::Table(_)) && !is_range {
        let message = format!("`{}` in [matrix] is a table", entry.name);
        return Err(ScenarioError::new(&entry.place, message).help(
            "put the place that is varied in quotes, such as \"path.loss\" = [\"0%\", \"1%\"]",
        ));
    }
    let keys = entry.name.split(',').map(|key| dotted(tree, key.trim(), &entry.place));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let range = sampling.filter(|_| is_range).map(|sampling| sampling.range(entry)).transpose()?;
    let nodes = match &range {
        Some(drawn) => drawn.as_slice(),
        None => entry.node.list()?,
    };
    if nodes.is_empty() {
        let message = format!("the axis `{}` has no values", entry.name);
        return Err(ScenarioError::new(&entry.node.place, message).help("use at least one"));
    }
    let key = entry.name.clone();
    let parts: Vec<AxisPart> =
        keys.iter().map(|key| AxisPart { key: key.join("."), values: Vec::new() }).collect();
    let mut axis =
        Axis { key, name: String::new(), values: Vec::new(), written: Vec::new(), parts };
    let (mut values, mut drawn) = (Vec::new(), Vec::new());
    for node in nodes {
        let alternative = Alternative::read(node, &keys)?;
        // In a short range, two parts may have the same value.
        let known = axis.values.iter().position(|known| *known == alternative.label);
        if range.is_some() {
            drawn.push(known.unwrap_or(values.len()));
            if known.is_some() {
                continue;
            }
        }
        alternative.check_new(&axis, &node.place)?;
        axis.values.push(alternative.label);
        axis.written.push(alternative.written);
        for (part, node) in axis.parts.iter_mut().zip(&alternative.nodes) {
            part.values.push(node.label());
        }
        values.push(alternative.nodes);
    }
    Ok(AxisPlan { axis, keys, values, parts: drawn })
}

/// The parts of a dotted key that a matrix may vary.
fn dotted(tree: &Node, key: &str, place: &Place) -> Result<Vec<String>> {
    let parts = toml_edit::Key::parse(key).unwrap_or_default();
    let parts: Vec<String> = parts.iter().map(|part| part.get().to_owned()).collect();
    let fixed = match parts.first().map(String::as_str) {
        Some("run") => parts.get(1).is_some_and(|key| key != "end" && Key::has(keys::RUN, key)),
        Some("title" | "about" | "assumptions") => true,
        _ => false,
    };
    if fixed {
        let message = format!("`{key}` is the same in all cells");
        return Err(ScenarioError::new(place, message)
            .help("vary a place in [path], [link], [flow], or run.end"));
    }
    keys::check(tree, &parts).map_err(|unknown| unknown_place(key, &parts, unknown, place))?;
    Ok(parts)
}

/// Error: unknown key, with the known ones.
pub(crate) fn unknown_place(
    key: &str,
    parts: &[String],
    unknown: keys::Unknown,
    place: &Place,
) -> ScenarioError {
    let keys::Unknown { part, known } = unknown;
    let error = ScenarioError::new(place, format!("there is no `{key}` in a scenario"));
    let Some(word) = parts.get(part) else {
        return error.help(format!("say which: {}", known.join(", ")));
    };
    let with = |name: &str| {
        let mut parts = parts.to_vec();
        name.clone_into(&mut parts[part]);
        parts.join(".")
    };
    if let Some(near) = uncork_config::nearest(word, known.iter().map(String::as_str)) {
        return error.help(format!("did you mean `{}`?", with(near)));
    }
    let section = [("path", keys::PATH), ("run", keys::RUN), ("flow.NAME", keys::FLOW)];
    let owner = section.iter().find(|(_, keys)| part == 0 && Key::has(keys, word));
    match owner {
        Some((section, _)) => error.help(format!("did you mean `{section}.{key}`?")),
        None => error.help(format!("available: {}", known.join(", "))),
    }
}

/// Checks that no axis overwrites another.
fn check_apart(matrix: &Node, axes: &[AxisPlan]) -> Result<()> {
    let places =
        || axes.iter().enumerate().flat_map(|(nth, axis)| axis.keys.iter().map(move |k| (nth, k)));
    for (index, (nth, key)) in places().enumerate() {
        let clash = places()
            .take(index)
            .find(|(_, other)| key.starts_with(other) || other.starts_with(key));
        if let Some((_, other)) = clash {
            let message =
                format!("`{}` and `{}` vary the same place", other.join("."), key.join("."));
            let place = matrix.entries().get(nth).map_or(&matrix.place, |entry| &entry.place);
            return Err(ScenarioError::new(place, message).help("vary it in one axis"));
        }
    }
    Ok(())
}

/// All points of the matrix; the last axis varies fastest.
fn points(axes: &[AxisPlan]) -> Vec<Vec<usize>> {
    let mut points = vec![Vec::new()];
    for axis in axes {
        let extended = points.iter().flat_map(|point: &Vec<usize>| {
            (0..axis.values.len()).map(|value| [point.as_slice(), &[value]].concat())
        });
        points = extended.collect();
    }
    points
}

/// The tree of the cell at `point`.
pub(crate) fn substitute(tree: &Node, axes: &[AxisPlan], point: &[usize]) -> Result<Node> {
    let mut tree = tree.clone();
    for (axis, value) in axes.iter().zip(point) {
        for (keys, node) in axis.keys.iter().zip(&axis.values[*value]) {
            tree.put(keys, &node.place, node.clone())?;
        }
    }
    Ok(tree)
}

/// The location of an error in the cell at `point`: the values of those axes for which other values
/// avoid the `same` error.
pub(crate) fn cell_note(
    axes: &[AxisPlan],
    point: &[usize],
    same: impl Fn(&Vec<usize>) -> bool,
) -> Option<String> {
    let matters = |nth: usize| {
        (0..axes[nth].values.len()).filter(|value| *value != point[nth]).any(|value| {
            let mut other = point.to_vec();
            other[nth] = value;
            !same(&other)
        })
    };
    let value = |nth: usize| {
        let Axis { key, values, .. } = &axes[nth].axis;
        format!("{key} = {}", values[point[nth]])
    };
    let values: Vec<String> = (0..axes.len()).filter(|nth| matters(*nth)).map(value).collect();
    (!values.is_empty()).then(|| format!("where {}", values.join(", ")))
}

/// The axis given at `key` of `section`, a table of thresholds or figures.
pub(crate) fn axis_named(section: &Section<'_>, key: &str, axes: &[Axis]) -> Result<Option<usize>> {
    section.read(key, |node| index_of(node.text()?, &node.place, axes))
}

/// The index of the axis `key`.
pub(crate) fn index_of(key: &str, place: &Place, axes: &[Axis]) -> Result<usize> {
    axes.iter().position(|axis| axis.key == key).ok_or_else(|| {
        let error = ScenarioError::new(place, format!("the matrix has no axis `{key}`"));
        let names = || axes.iter().map(|axis| axis.key.as_str());
        // An axis is named by its whole key: `flow.main.cc`, not `cc`.
        match names().find(|name| name.rsplit('.').next() == Some(key)) {
            Some(whole) => error.help(format!("did you mean `{whole}`?")),
            None if axes.is_empty() || !key.contains('.') => {
                let example = "an axis is a place that [matrix] varies, such as \"flow.main.cc\" = \
                               [\"cubic\", \"bbr3\"]";
                let known: Vec<_> = names().map(|name| format!("`{name}`")).collect();
                match known.as_slice() {
                    [] => error.help(example),
                    known => error.help(format!("{example}; available: {}", known.join(", "))),
                }
            }
            None => error.nearest(key, names()),
        }
    })
}
