//! Link rates: constant, in steps, recorded, or a mobile link.

use uncork_config::{Node, Result, Section, Value};
use uncork_path::{LinkSpec, LteSpec, RateSpec, Trace, TraceSpec, TraceStart};
use uncork_units::{Rate, Ratio, TimeDelta};

use super::super::ScenarioError;
use super::super::draw::Draw;
use super::super::keys;
use super::context::Context;
use super::drawn::{FixedOrDrawn, fixed_or_drawn};
use super::steps::steps;

/// The rate of a link, and its distribution if it is drawn.
pub(crate) fn rate(
    section: &Section<'_>,
    context: &Context<'_>,
) -> Result<(RateSpec, Option<Draw<Rate>>)> {
    let (key, node) = section.exactly_one(["rate", "trace", "lte"], "rate")?;
    if key != "rate" {
        section.forbid(&["rate_steps"], "the rate varies already")?;
    }
    if key != "trace" {
        section.forbid(&["trace_scale", "trace_start"], "the path has no trace")?;
    }
    match key {
        "trace" => Ok((RateSpec::Trace(trace(section, node, context)?), None)),
        "lte" => Ok((RateSpec::Lte(lte(section, node)?), None)),
        _ => constant(section, node),
    }
}

fn constant(section: &Section<'_>, node: &Node) -> Result<(RateSpec, Option<Draw<Rate>>)> {
    let rate = fixed_or_drawn(node, |node| node.within(LinkSpec::RATES))?;
    if rate.is_drawn() {
        section.forbid(&["rate_steps"], "the rate is drawn")?;
    }
    let (first, draw) = match rate {
        FixedOrDrawn::Fixed(rate) => (rate, None),
        FixedOrDrawn::Drawn(first, draw) => (first, Some(draw)),
    };
    let steps =
        section.read("rate_steps", |node| steps(node, "[\"10s\", \"5mbit\"]", later_rate))?;
    let steps = steps.unwrap_or_default();
    if steps.is_empty() {
        return Ok((RateSpec::Constant(first), draw));
    }
    Ok((RateSpec::Steps { first, steps: steps.into() }, draw))
}

/// A rate of zero is an outage.
fn later_rate(node: &Node) -> Result<Rate> {
    match node.parse()? {
        Rate::ZERO => Ok(Rate::ZERO),
        _ => node.within(LinkSpec::RATES),
    }
}

fn trace(section: &Section<'_>, node: &Node, context: &Context<'_>) -> Result<TraceSpec> {
    let trace: Trace = context.trace(node)?;
    let trace = match section.read("trace_scale", scale)? {
        Some(factor) => trace.scaled(factor),
        None => trace,
    };
    let start = section.read("trace_start", |node| start(node, trace.length()))?;
    Ok(TraceSpec { start: start.unwrap_or(TraceStart::At(TimeDelta::ZERO)), trace, repeat: true })
}

/// `"200%"`, in tenths of a percent.
fn scale(node: &Node) -> Result<Ratio> {
    let text = node.label();
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if (0.1..=100_000.0).contains(&percent) => {
            Ok(Ratio::new((percent * 10.0).round() as u32, 1000))
        }
        _ => Err(ScenarioError::new(&node.place, format!("`{text}` is not a scale of a trace"))
            .help("expected 0.1% to 100000%; 200% is twice as fast")),
    }
}

/// `"random"` (a different position for each seed) or a time within the trace.
fn start(node: &Node, length: TimeDelta) -> Result<TraceStart> {
    if matches!(&node.value, Value::Text(text) if text == "random") {
        return Ok(TraceStart::Seeded);
    }
    let at: TimeDelta = node.parse()?;
    if at >= length {
        let message = format!("the trace ends after {length}");
        return Err(ScenarioError::new(&node.place, message)
            .help("start before, or write trace_start = \"random\""));
    }
    Ok(TraceStart::At(at))
}

fn lte(outer: &Section<'_>, node: &Node) -> Result<LteSpec> {
    let section = Section::new("lte", outer.key_place("lte"), node, keys::LTE)?;
    let usual = LteSpec::usual(section.need("mean", "\"12mbit\"")?.within(LinkSpec::RATES)?);
    let spec = LteSpec {
        mean: usual.mean,
        variation: section.read("variation", variation)?.unwrap_or(usual.variation),
        correlation: section.parse_or("correlation", usual.correlation)?,
        outage_every: section.parse_or("outage_every", usual.outage_every)?,
        outage: section.parse_or("outage", usual.outage)?,
        length: section.parse_or("length", usual.length)?,
    };
    spec.check().map_err(|error| ScenarioError::worded(&node.place, error))?;
    Ok(spec)
}

/// Standard deviation over mean, as a plain number.
fn variation(node: &Node) -> Result<Ratio> {
    let number = node.number()?;
    if number > LteSpec::MAX_VARIATION.as_f64() {
        return Err(ScenarioError::new(&node.place, "variation is out of range")
            .help("expected the standard deviation divided by the mean, 0 to 3"));
    }
    Ok(Ratio::new((number * 1000.0).round() as u32, 1000))
}
