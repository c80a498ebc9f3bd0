//! Sampling of the parameter space: a Latin hypercube instead of all combinations.
//!
//! With `n` points, each axis has one point in each of `n` equal parts of its range (McKay, Beckman
//! and Conover, Technometrics 1979).

use uncork_config::{Entry, Key, Node, Result, Section, Value};
use uncork_units::Rng;

use super::super::ScenarioError;
use super::super::axis::{Unit, number};
use super::super::instance::stream;
use super::super::keys;
use super::super::limits::MAX_CELLS;
use super::matrix::AxisPlan;

/// How the matrix is sampled.
pub(crate) struct Sampling<'a> {
    /// Number of points.
    pub(crate) count: u64,
    seed: u64,
    /// Axes that are fully crossed with each point.
    crossed: Vec<&'a str>,
}

impl<'a> Sampling<'a> {
    /// The sampling settings of `matrix`; `None` if all combinations are cells.
    pub(crate) fn read(matrix: &'a Node) -> Result<Option<Self>> {
        let need = |key: &str| -> Result<()> {
            let entry = matrix.entries().iter().find(|entry| entry.name == key);
            entry.map_or(Ok(()), |entry| {
                let message = format!("`{key}` in [matrix] belongs to a sample");
                Err(ScenarioError::new(&entry.place, message).help("add sample = 200"))
            })
        };
        let Some(count) = matrix.get("sample") else {
            need("sample_seed")?;
            need("cross")?;
            return Ok(None);
        };
        let seed = matrix.get("sample_seed").map(|node| node.whole(0..=u64::MAX)).transpose()?;
        let crossed = matrix.get("cross").map_or(Ok(&[][..]), Node::list)?;
        let crossed: Vec<&str> = crossed.iter().map(Node::text).collect::<Result<_>>()?;
        if let Some(nth) = crossed.iter().position(|key| matrix.get(key).is_none()) {
            let place = &matrix.get("cross").unwrap_or(matrix).place;
            let message = format!("the matrix has no axis `{}`", crossed[nth]);
            let axes = matrix.entries().iter().map(|entry| entry.name.as_str());
            let axes = axes.filter(|name| !Key::has(keys::MATRIX, name));
            return Err(ScenarioError::new(place, message).nearest(crossed[nth], axes));
        }
        Ok(Some(Self { count: count.whole(1..=MAX_CELLS)?, seed: seed.unwrap_or(1), crossed }))
    }

    fn crosses(&self, key: &str) -> bool {
        self.crossed.contains(&key)
    }

    /// The values of the range at `entry`, one per part, with as many parts as points.
    pub(crate) fn range(&self, entry: &Entry) -> Result<Vec<Node>> {
        let (name, node) = (&entry.name, &entry.node);
        if self.crosses(name) {
            let message = format!("`{name}` is crossed with the sample, and has no list of values");
            return Err(ScenarioError::new(&node.place, message).help("use a list"));
        }
        let section = Section::new("a range", &entry.place, node, keys::RANGE)?;
        let end = |key| {
            let node = section.need(key, "\"1%\"")?;
            number(&node.label()).ok_or_else(|| {
                ScenarioError::new(&node.place, "an end of a range is a number with its unit")
                    .help("write { from = \"0.01%\", to = \"3%\" }")
            })
        };
        let ((from, unit), (to, other)) = (end("from")?, end("to")?);
        let scales = [("linear", false), ("log", true)];
        let log = section.read("scale", |node| node.choice("scale", &scales))?.unwrap_or(false);
        let wrong = if unit != other {
            Some(("the ends of this range have different units", "use both in one unit"))
        } else if from >= to {
            Some(("this range is empty", "let `to` be larger than `from`"))
        } else if log && from <= 0.0 {
            let help = "begin above 0, or leave scale out";
            Some(("a logarithmic range begins above 0", help))
        } else {
            None
        };
        if let Some((message, help)) = wrong {
            return Err(ScenarioError::new(&node.place, message).help(help));
        }
        let mut rng = stream(self.seed, name, "sample", 0);
        let value = |part: u64| {
            let within = (part as f64 + uniform(&mut rng)) / self.count as f64;
            let value = if log {
                from * libm::exp(within * libm::log(to / from))
            } else {
                from + within * (to - from)
            };
            let text = unit.text(value.clamp(from, to));
            let value = if unit == Unit::Plain { Value::Number(text) } else { Value::Text(text) };
            Node { place: node.place.clone(), value }
        };
        Ok((0..self.count).map(value).collect())
    }

    /// Number of cells per point.
    pub(crate) fn combinations(&self, axes: &[AxisPlan]) -> u64 {
        let crossed = axes.iter().filter(|axis| self.crosses(&axis.axis.key));
        crossed.map(|axis| axis.axis.values.len() as u64).fold(1, u64::saturating_mul)
    }

    /// The cells: for each point all values of the crossed axes, the last of them varying fastest.
    pub(crate) fn points(&self, axes: &[AxisPlan]) -> Vec<Vec<usize>> {
        let orders: Vec<Vec<u64>> = axes.iter().map(|axis| self.order(&axis.axis.key)).collect();
        let mut points = Vec::new();
        for nth in 0..self.count as usize {
            let mut these = vec![Vec::new()];
            for (axis, order) in axes.iter().zip(&orders) {
                let count = axis.axis.values.len();
                let values = if self.crosses(&axis.axis.key) {
                    0..count
                } else {
                    let value = axis.at_part(order[nth], self.count);
                    value..value + 1
                };
                let extended = these.iter().flat_map(|point: &Vec<usize>| {
                    values.clone().map(|value| [point.as_slice(), &[value]].concat())
                });
                these = extended.collect();
            }
            points.append(&mut these);
        }
        points
    }

    /// The part of the axis `key` for each point (Fisher and Yates 1938). Independent of other
    /// axes.
    fn order(&self, key: &str) -> Vec<u64> {
        let mut rng = stream(self.seed, key, "order", 0);
        let mut order: Vec<u64> = (0..self.count).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// A number from 0 to 1.
fn uniform(rng: &mut Rng) -> f64 {
    rng.below(1 << 53) as f64 / (1_u64 << 53) as f64
}
