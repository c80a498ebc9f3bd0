//! Thresholds and published results.

use uncork_config::{Node, Place, Result, Section, Value, wrong_type};
use uncork_units::{ByteCount, Probability, Rate, TimeDelta};

use super::super::ScenarioError;
use super::super::model::{Axis, Cell, Class};
use super::super::names::{MetricUnit, UnknownName};
use super::super::question::{
    Expectation, Metric, Published, PublishedRange, Quantity, Selection, Statistic, Threshold,
};
use super::matrix::index_of;

/// Names that evaluations may refer to.
pub(crate) struct KnownNames<'a> {
    pub(crate) axes: &'a [Axis],
    pub(crate) cells: &'a [Cell],
    /// The classes, each with its controllers from all cells.
    pub(crate) classes: &'a [Class],
    /// Whether runs are sampled over time.
    pub(crate) sampled: bool,
}

/// Selection, quantity, and divisor.
pub(crate) struct MetricQuery {
    pub(crate) of: Selection,
    pub(crate) quantity: Quantity,
    pub(crate) over: Option<Selection>,
}

impl KnownNames<'_> {
    pub(crate) fn threshold(&self, section: &Section<'_>) -> Result<Threshold> {
        let MetricQuery { of, quantity, over } = self.asked(section)?;
        let expected = bounds(section, quantity.metric, over.is_some())?;
        let expected = expected.ok_or_else(|| {
            ScenarioError::new(section.place(), "this threshold has no bound")
                .help("set max, min or both")
        })?;
        let text = |key| section.get(key).map(Node::label).unwrap_or_default();
        Ok(Threshold {
            measures: self.measures(&text("metric"), &of, over.as_ref()),
            min_text: text("min"),
            max_text: text("max"),
            of,
            quantity,
            over,
            minus: None,
            expected,
        })
    }

    pub(crate) fn published(&self, section: &Section<'_>) -> Result<Published> {
        let MetricQuery { of, quantity, over } = self.asked(section)?;
        let as_change = section.flag("change")?;
        if as_change && over.is_none() {
            let message = "a change needs something that it is a change of";
            return Err(ScenarioError::new(section.key_place("change"), message)
                .help("give over = { \"flow.main.cc\" = \"cubic\" }, or leave `change` out"));
        }
        Ok(Published {
            what: section.need("what", "\"CUBIC, 1 % loss\"")?.text()?.to_owned(),
            value: section.need("value", "\"8.6 s\"")?.text()?.to_owned(),
            source: section.need("source", "\"LiteSpeed 2019, Table 1\"")?.text()?.to_owned(),
            range: published_range(section, quantity.metric, over.is_some())?,
            of,
            quantity,
            over,
            as_change,
            note: section.text("note")?,
        })
    }

    /// The evaluation requested by a table with `metric`, `flow`, `cc`, `where` and `over`.
    pub(crate) fn asked(&self, section: &Section<'_>) -> Result<MetricQuery> {
        let of = self.selection(section)?;
        let over = section.read("over", |node| self.over(node, section, &of))?;
        let quantity = quantity(section)?;
        self.check_measured(section.value_place("metric"), quantity.metric, &of)?;
        if let Some(over) = &over {
            let class = over.class.as_ref().or(of.class.as_ref()).cloned();
            let at =
                of.at.iter().filter(|(axis, _)| over.at.iter().all(|(other, _)| other != axis));
            let at = at.chain(&over.at).copied().collect();
            let over = Selection { class, cc: over.cc.clone(), at, ..Selection::default() };
            self.check_measured(section.value_place("over"), quantity.metric, &over)?;
        }
        Ok(MetricQuery { of, quantity, over })
    }

    /// Fails if no flow of `of` has `metric` in any cell; `place` is for the error.
    pub(crate) fn check_measured(
        &self,
        place: &Place,
        metric: Metric,
        of: &Selection,
    ) -> Result<()> {
        let here = |cell: &&Cell| of.at.iter().all(|(axis, value)| cell.point[*axis] == *value);
        let has = |metric: Metric| {
            self.cells.iter().filter(here).any(|cell| {
                let mut taken = cell.classes.iter().filter(|class| of.takes(class));
                match metric {
                    // Among all selected flows.
                    Metric::Jain => {
                        let flows = |class: &Class| match &of.cc {
                            Some(_) => class.flows / class.ccs.len() as u64,
                            None => class.flows,
                        };
                        taken.map(flows).fold(0, u64::saturating_add) > 1
                    }
                    _ => taken.any(|class| class.has(metric)),
                }
            })
        };
        if has(metric) {
            return Ok(());
        }
        let class = of.class.as_deref().map_or("the traffic here", |class| class);
        let names = Metric::ALL.into_iter().filter(|metric| has(*metric)).map(Metric::name);
        let names = names.collect::<Vec<_>>().join(", ");
        let message = format!("`{}` cannot be measured of {class}", metric.name());
        Err(ScenarioError::new(place, message)
            .expected(metric.needs())
            .help(format!("available: {names}")))
    }

    pub(crate) fn selection(&self, section: &Section<'_>) -> Result<Selection> {
        let mut of = Selection::default();
        of.class = section.read("flow", |node| self.class(node))?;
        of.cc = section.read("cc", |node| self.cc(node, of.class.as_deref()))?;
        if let Some(cells) = section.get("where") {
            for entry in self.cells("where", cells)?.entries() {
                of.at.push(self.value(&entry.name, &entry.place, &entry.node)?);
            }
        }
        let bytes = |key| Ok(section.read(key, Node::parse::<ByteCount>)?.map(ByteCount::as_u64));
        (of.at_least_bytes, of.less_than_bytes) = (bytes("at_least")?, bytes("less_than")?);
        if let (Some(least), Some(less)) = (of.at_least_bytes, of.less_than_bytes)
            && least >= less
        {
            let message = "no object is that large and that small";
            return Err(ScenarioError::new(section.key_place("less_than"), message)
                .help("let less_than be more than at_least"));
        }
        Ok(of)
    }

    /// The selection in `over`: axes, `flow` and `cc`; the rest is taken from `of`.
    fn over(&self, node: &Node, section: &Section<'_>, of: &Selection) -> Result<Selection> {
        let mut over = Selection::default();
        let entries = self.cells("over", node)?.entries();
        if entries.is_empty() {
            let message = "`over` does not say what to divide by";
            return Err(ScenarioError::new(section.key_place("over"), message)
                .help("name a value of an axis, such as over = { \"flow.main.cc\" = \"cubic\" }"));
        }
        for entry in entries {
            match entry.name.as_str() {
                "flow" => over.class = Some(self.class(&entry.node)?),
                "cc" => {
                    let class = over.class.as_deref().or(of.class.as_deref());
                    over.cc = Some(self.cc(&entry.node, class)?);
                }
                axis => {
                    let (axis, value) = self.value(axis, &entry.place, &entry.node)?;
                    over.at.push((axis, value));
                }
            }
        }
        Ok(over)
    }

    fn cells<'n>(&self, key: &str, node: &'n Node) -> Result<&'n Node> {
        if matches!(node.value, Value::Table(_)) {
            return Ok(node);
        }
        let axis = self.axes.first().map_or("path.loss", |axis| axis.key.as_str());
        Err(wrong_type(node, "a table").help(format!("write {key} = {{ \"{axis}\" = … }}")))
    }

    fn class(&self, node: &Node) -> Result<String> {
        let name = node.text()?;
        if self.classes.iter().any(|class| class.name == name) {
            return Ok(name.to_owned());
        }
        let error = ScenarioError::new(&node.place, format!("unknown class `{name}`"));
        Err(error.nearest(name, self.classes.iter().map(|class| class.name.as_str())))
    }

    /// A controller of `class`, or of any class.
    fn cc(&self, node: &Node, class: Option<&str>) -> Result<String> {
        let name = node.text()?;
        let classes =
            self.classes.iter().filter(|known| class.is_none_or(|name| known.name == name));
        let ccs: Vec<&str> =
            classes.flat_map(|class| class.ccs.iter().map(String::as_str)).collect();
        if ccs.contains(&name) {
            return Ok(name.to_owned());
        }
        let of_class = class.map_or_else(String::new, |class| format!(" of {class}"));
        let error = ScenarioError::new(
            &node.place,
            format!("no flow{of_class} has the controller `{name}`"),
        );
        Err(error.nearest(name, ccs))
    }

    /// The indices of an axis and one of its values.
    fn value(&self, axis: &str, place: &Place, node: &Node) -> Result<(usize, usize)> {
        let index = index_of(axis, place, self.axes)?;
        Ok((index, value_of(node, &self.axes[index])?))
    }

    /// Description of a threshold's quantity, such as `goodput.p50 / cubic's`.
    fn measures(&self, quantity: &str, of: &Selection, over: Option<&Selection>) -> String {
        let size = |word: &str, bytes: Option<u64>| {
            let size = bytes.map(ByteCount::new)?;
            Some(format!("{word} {size}"))
        };
        let sizes = [size("at least", of.at_least_bytes), size("less than", of.less_than_bytes)];
        let sizes: Vec<String> = sizes.into_iter().flatten().collect();
        let mut text = quantity.to_owned();
        if !sizes.is_empty() {
            text = format!("{text} of objects of {}", sizes.join(" and "));
        }
        match over {
            Some(over) => format!("{text} / {}", self.divisor(over)),
            None => text,
        }
    }

    /// Description of `over`: `cubic's`, `cubic's with loss 1 %`, `that with cubic for all`.
    fn divisor(&self, over: &Selection) -> String {
        let mut names: Vec<String> = over.class.iter().chain(&over.cc).cloned().collect();
        let mut places = Vec::new();
        for (axis, value) in &over.at {
            let (axis, value) = (&self.axes[*axis], &self.axes[*axis].values[*value]);
            match axis.chooses_controllers() {
                true if value.contains(' ') => places.push(value.clone()),
                true => names.push(value.clone()),
                false => places.push(format!("{} {value}", axis.name)),
            }
        }
        let owner = match names.join(", ").as_str() {
            "" => "that".to_owned(),
            names => format!("{names}'s"),
        };
        if places.is_empty() { owner } else { format!("{owner} with {}", places.join(", ")) }
    }
}

/// The index of the value of `axis` given by `node`.
pub(crate) fn value_of(node: &Node, axis: &Axis) -> Result<usize> {
    let label = node.label();
    axis.find(&label).ok_or_else(|| {
        let message = format!("the axis `{}` has no value `{label}`", axis.key);
        let error = ScenarioError::new(&node.place, message);
        error
            .expected(format!("one of {}", axis.values.join(", ")))
            .nearest(&label, axis.values.iter().map(String::as_str))
    })
}

/// `METRIC.STATISTIC` at `metric`.
pub(crate) fn quantity(section: &Section<'_>) -> Result<Quantity> {
    let node = section.need("metric", "\"completion.p50\"")?;
    let text = node.text()?;
    let found = Quantity::named(text).map_err(|unknown| match unknown {
        UnknownName::Metric(name) => unknown_metric(node, name),
        UnknownName::Statistic("") => {
            ScenarioError::new(&node.place, format!("`{text}` has no statistic"))
                .help(format!("write {text}.p50, {text}.mean or {text}.sum"))
        }
        UnknownName::Statistic(name) => unknown_statistic(node, name),
    })?;
    check_recorded(&node.place, found.metric, found.statistic)?;
    Ok(found)
}

/// Checks that records contain `statistic` of `metric`.
pub(crate) fn check_recorded(place: &Place, metric: Metric, statistic: Statistic) -> Result<()> {
    let kept: &[f64] = match metric {
        Metric::Rtt | Metric::RttTime => &[0.5, 0.95],
        Metric::QueueDelay => &[0.5, 0.95, 0.99],
        _ => return Ok(()),
    };
    if kept.iter().any(|quantile| statistic == Statistic::Quantile(*quantile)) {
        return Ok(());
    }
    let (name, statistic) = (metric.name(), statistic.name());
    let message = format!("`{statistic}` of `{name}` is not recorded");
    let known = match metric {
        Metric::QueueDelay => format!("{name}.p50, {name}.p95 or {name}.p99"),
        _ => format!("{name}.p50 or {name}.p95"),
    };
    Err(ScenarioError::new(place, message).help(format!("ask for {known}")))
}

/// A metric without a statistic.
pub(crate) fn metric(section: &Section<'_>) -> Result<Metric> {
    let node = section.need("metric", "\"completion\"")?;
    let text = node.text()?;
    if let Some((name, _)) = text.split_once('.') {
        let message = format!("`{text}` is one number, and this needs all of the metric's values");
        return Err(ScenarioError::new(&node.place, message).help(format!("write \"{name}\"")));
    }
    Metric::named(text).ok_or_else(|| unknown_metric(node, text))
}

/// A statistic that stands alone.
pub(crate) fn statistic(node: &Node) -> Result<Statistic> {
    let text = node.text()?;
    Statistic::named(text).ok_or_else(|| unknown_statistic(node, text))
}

fn unknown_metric(node: &Node, name: &str) -> ScenarioError {
    let error = ScenarioError::new(&node.place, format!("unknown metric `{name}`"));
    error.nearest(name, Metric::ALL.map(Metric::name))
}

fn unknown_statistic(node: &Node, name: &str) -> ScenarioError {
    ScenarioError::new(&node.place, format!("unknown statistic `{name}`"))
        .help("write p50 (or another percentile), mean or sum")
}

/// The range of agreement, if the file gives one: bounds, and where they come from.
fn published_range(
    section: &Section<'_>,
    metric: Metric,
    quotient: bool,
) -> Result<Option<PublishedRange>> {
    let bounds = bounds(section, metric, quotient)?;
    let from = section.text("range_from")?;
    match bounds {
        None if section.get("range_from").is_some() => {
            let message = "`range_from` explains a range that is missing";
            Err(ScenarioError::new(section.key_place("range_from"), message)
                .help("set min, max or both, or leave `range_from` out"))
        }
        Some(_) if from.is_empty() => {
            let message = "missing `range_from`: where the range of agreement comes from";
            Err(ScenarioError::new(section.place(), message)
                .help("write range_from = \"a tenth either way, as repeated runs vary\""))
        }
        bounds => Ok(bounds.map(|bounds| PublishedRange { bounds, from })),
    }
}

/// The bounds `min` and `max`, if any: in the metric's unit, or plain numbers for a quotient.
fn bounds(section: &Section<'_>, metric: Metric, quotient: bool) -> Result<Option<Expectation>> {
    let unit = if quotient { MetricUnit::Number } else { metric.written_in() };
    let bound = |key| section.read(key, |node| bound(node, unit));
    let (min, max) = (bound("min")?, bound("max")?);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        return Err(ScenarioError::new(section.key_place("max"), "`max` is less than `min`")
            .help("exchange them"));
    }
    Ok((min.is_some() || max.is_some()).then_some(Expectation { min, max }))
}

/// A value of a metric, in the unit of [`Expectation`].
pub(crate) fn bound(node: &Node, unit: MetricUnit) -> Result<f64> {
    match unit {
        MetricUnit::Seconds => node.parse().map(TimeDelta::as_secs_f64),
        MetricUnit::BitsPerSecond => node.parse().map(|rate: Rate| rate.bits_per_sec() as f64),
        MetricUnit::Share => node.parse().map(Probability::as_f64),
        MetricUnit::Number => node.number(),
    }
}
