//! Links and paths.

use uncork_config::{Entry, Node, Result, Section};
use uncork_path::{
    AggregationSpec, Buffer, JitterDistribution, JitterSpec, LinkSpec, LossPosition, LossSpec,
    PathSpec, PathSpecError, QueueError, QueueSpec, Step,
};
use uncork_sim::{HEADER_BYTES, PACKET_BYTES};
use uncork_units::{ByteCount, Rate, TimeDelta};

use super::super::ScenarioError;
use super::super::draw::Draw;
use super::super::keys;
use super::super::plan::{Draws, PathPlan};
use super::context::Context;
use super::drawn::{FixedOrDrawn, fixed_or_drawn};
use super::preset::{Filled, filled};
use super::rate::rate;
use super::steps::steps;

/// See [`max_packet`].
const MIN_PACKET: u32 = 1228;

/// The shared links: names and specifications.
pub(crate) fn links(tree: &Node, context: &Context<'_>) -> Result<Vec<(String, LinkSpec)>> {
    let entries = tree.get("link").map(Node::entries).unwrap_or_default();
    let link = |entry: &Entry| {
        let name = format!("[link.{}]", entry.name);
        let section = Section::new(&name, &entry.place, &entry.node, keys::LINK)?;
        let link = LinkPart::read(&section, context)?;
        link.only_fixed(&section)?;
        Ok((entry.name.clone(), link.spec))
    };
    entries.iter().map(link).collect()
}

/// The paths, in the order of the file.
pub(crate) fn paths(
    tree: &Node,
    links: &[(String, LinkSpec)],
    context: &Context<'_>,
) -> Result<Vec<PathPlan>> {
    let entry = tree.entries().iter().find(|entry| entry.name == "path");
    let Some(entry) = entry else {
        let message = "the scenario has no path";
        return Err(ScenarioError::new(&tree.place, message)
            .help("write [path] with rate = \"20mbit\" and rtt = \"50ms\""));
    };
    if keys::is_single_path(&entry.node) {
        return Ok(vec![path("path", "[path]", entry, links, context)?]);
    }
    let named = entry.node.entries().iter().map(|entry| {
        let name = format!("[path.{}]", entry.name);
        path(&entry.name, &name, entry, links, context)
    });
    named.collect()
}

fn path(
    name: &str,
    title: &str,
    entry: &Entry,
    links: &[(String, LinkSpec)],
    context: &Context<'_>,
) -> Result<PathPlan> {
    let Filled { node, sources } = filled(title, &entry.node)?;
    let section = &Section::new(title, &entry.place, &node, keys::PATH)?;
    let link = LinkPart::read(section, context)?;
    let rtt = fixed_or_drawn(section.need("rtt", "\"50ms\"")?, |node| node.within(PathSpec::RTTS))?;
    let loss = section.read("loss", |node| fixed_or_drawn(node, loss_spec))?;
    let loss = loss.unwrap_or(FixedOrDrawn::Fixed(LossSpec::EveryNth(0)));
    let draws = Draws {
        rate: link.rate.clone(),
        rtt: rtt.draw(),
        loss: loss.draw(),
        buffer: link.buffer.draw(),
    };
    if rtt.is_drawn() {
        section.forbid(&["rtt_steps"], "the RTT is drawn")?;
    }
    if loss.is_drawn() {
        section.forbid(&["loss_steps"], "the loss is drawn")?;
    }
    let own_per_flow = section.flag("own_per_flow")?;
    if !own_per_flow {
        link.only_fixed(section)?;
        let drawn = [("rtt", draws.rtt.is_some()), ("loss", draws.loss.is_some())];
        drawn.iter().filter(|(_, drawn)| *drawn).try_for_each(|(key, _)| not_own(section, key))?;
    }
    let spec = PathSpec {
        via: via(section, links)?,
        uplink: section.read("uplink", |node| uplink(section, node, context))?,
        rtt: rtt.first(),
        rtt_steps: section.read("rtt_steps", rtt_steps)?.unwrap_or_default(),
        loss: loss.first(),
        loss_steps: section.read("loss_steps", loss_steps)?.unwrap_or_default(),
        loss_position: position(section, "loss_position")?.unwrap_or(LossPosition::After),
        uplink_loss: section.read("uplink_loss", loss_spec)?.unwrap_or(LossSpec::NONE),
        uplink_loss_steps: section.read("uplink_loss_steps", loss_steps)?.unwrap_or_default(),
        ecn_change: section.read("ecn", Node::parse)?,
        ecn_position: ecn_position(section)?,
        duplicates: section.read("duplicates", Node::parse)?.unwrap_or(LossSpec::NONE),
        max_packet: section.read("max_packet", max_packet)?,
        jitter: jitter(section)?,
        aggregation: section.read("aggregation", aggregation)?,
        link: link.spec.clone(),
    };
    let plan = PathPlan { name: name.to_owned(), spec, own_per_flow, draws, sources };
    check(&plan, section)?;
    Ok(plan)
}

/// The common part of a link and a path.
struct LinkPart {
    spec: LinkSpec,
    rate: Option<Draw<Rate>>,
    buffer: FixedOrDrawn<Buffer>,
}

impl LinkPart {
    fn read(section: &Section<'_>, context: &Context<'_>) -> Result<Self> {
        let (spec, rate) = rate(section, context)?;
        let buffer = section.read("buffer", |node| fixed_or_drawn(node, Node::parse))?;
        let buffer = buffer.unwrap_or(FixedOrDrawn::Fixed(Buffer::MilliBdp(1000)));
        let spec = LinkSpec {
            rate: spec,
            policer: section.read("policer", policer)?,
            queue: section.read("queue", queue)?.unwrap_or_default(),
            buffer: buffer.first(),
        };
        Ok(Self { spec, rate, buffer })
    }

    /// Fails if any value is drawn for each client.
    fn only_fixed(&self, section: &Section<'_>) -> Result<()> {
        let drawn = [("rate", self.rate.is_some()), ("buffer", self.buffer.is_drawn())];
        drawn.iter().filter(|(_, drawn)| *drawn).try_for_each(|(key, _)| not_own(section, key))
    }
}

fn not_own(section: &Section<'_>, key: &str) -> Result<()> {
    let message =
        format!("`{key}` is drawn for each flow, but the flows of {} share it", section.name());
    let error = ScenarioError::new(section.key_place(key), message);
    Err(error.help("write own_per_flow = true in a [path], or give one value"))
}

fn uplink(outer: &Section<'_>, node: &Node, context: &Context<'_>) -> Result<LinkSpec> {
    let section = Section::new("uplink", outer.key_place("uplink"), node, keys::LINK)?;
    let link = LinkPart::read(&section, context)?;
    link.only_fixed(&section)?;
    Ok(link.spec)
}

fn policer(node: &Node) -> Result<uncork_path::PolicerSpec> {
    let policer: uncork_path::PolicerSpec = node.parse()?;
    let (slowest, fastest) = LinkSpec::RATES;
    if policer.rate < slowest || policer.rate > fastest {
        let message = format!("a policer of {} is out of range", policer.rate);
        return Err(ScenarioError::new(&node.place, message)
            .help(format!("expected {slowest} to {fastest}")));
    }
    Ok(policer)
}

fn loss_spec(node: &Node) -> Result<LossSpec> {
    let spec: LossSpec = node.parse()?;
    if spec.mean() >= 1.0 {
        let message = "nothing arrives when every packet is lost";
        return Err(ScenarioError::new(&node.place, message).help("use less than 100%"));
    }
    Ok(spec)
}

/// The smallest packets are those of a QUIC handshake (RFC 9000 §14.1) with their IPv4 and UDP headers.
fn max_packet(node: &Node) -> Result<u32> {
    let bytes = node.parse::<ByteCount>()?.as_u64();
    u32::try_from(bytes).ok().filter(|bytes| *bytes >= MIN_PACKET).ok_or_else(|| {
        ScenarioError::new(&node.place, format!("a largest packet of {bytes} B is out of range"))
            .help(format!("expected {MIN_PACKET}B or more"))
    })
}

fn rtt_steps(node: &Node) -> Result<Vec<Step<TimeDelta>>> {
    steps(node, "[\"10s\", \"80ms\"]", |node| node.within(PathSpec::RTTS))
}

/// A loss of 100 % is an outage.
fn loss_steps(node: &Node) -> Result<Vec<Step<LossSpec>>> {
    steps(node, "[\"10s\", \"100%\"]", Node::parse)
}

fn queue(node: &Node) -> Result<QueueSpec> {
    let text = node.text()?;
    text.parse().map_err(|error| {
        let worded = ScenarioError::worded(&node.place, &error);
        match &error {
            QueueError::Parameter { word, known, .. } if !known.is_empty() => {
                worded.nearest(word, known.iter().copied())
            }
            _ => worded,
        }
    })
}

/// A position relative to the links.
fn position(section: &Section<'_>, key: &str) -> Result<Option<LossPosition>> {
    let known = [("after", LossPosition::After), ("before", LossPosition::Before)];
    section.read(key, |node| node.choice("position", &known))
}

fn ecn_position(section: &Section<'_>) -> Result<LossPosition> {
    if section.get("ecn").is_none() {
        section.forbid(&["ecn_position"], "the path does not change the ECN field")?;
    }
    Ok(position(section, "ecn_position")?.unwrap_or(LossPosition::Before))
}

fn jitter(section: &Section<'_>) -> Result<Option<JitterSpec>> {
    let known = [("uniform", JitterDistribution::Uniform), ("bell", JitterDistribution::Bell)];
    let Some(node) = section.get("jitter") else {
        section.forbid(&["reorder", "jitter_distribution"], "the path has no jitter")?;
        return Ok(None);
    };
    let given = section.read("jitter_distribution", |node| node.choice("distribution", &known))?;
    Ok(Some(JitterSpec {
        distribution: given.unwrap_or(JitterDistribution::Uniform),
        max: node.within((TimeDelta::ZERO, PathSpec::RTTS.1))?,
        reorder: section.flag("reorder")?,
    }))
}

fn aggregation(node: &Node) -> Result<AggregationSpec> {
    node.within((TimeDelta::ZERO, PathSpec::RTTS.1)).map(AggregationSpec::from)
}

/// The indices of the links in `via`.
fn via(section: &Section<'_>, links: &[(String, LinkSpec)]) -> Result<Vec<usize>> {
    let mut via: Vec<usize> = Vec::new();
    for node in section.read("via", Node::list)?.unwrap_or_default() {
        let name = node.text()?;
        let index = links.iter().position(|(known, _)| known == name).ok_or_else(|| {
            ScenarioError::new(&node.place, format!("unknown link `{name}`"))
                .nearest(name, links.iter().map(|(known, _)| known.as_str()))
                .note("links that paths share are described in [link.NAME]")
        })?;
        if via.contains(&index) {
            let message = format!("the path crosses `{name}` twice");
            return Err(ScenarioError::new(&node.place, message).help("name each link once"));
        }
        via.push(index);
    }
    Ok(via)
}

/// Checks that the links can be built; for a population, for all possible draws.
fn check(plan: &PathPlan, section: &Section<'_>) -> Result<()> {
    for spec in plan.corners() {
        if let Err(error) = spec.check(PACKET_BYTES, HEADER_BYTES) {
            let key = match error {
                PathSpecError::Burst { .. } => "policer",
                PathSpecError::Rtt(_) | PathSpecError::Steps(_) => "rtt",
                PathSpecError::Jitter(_) => "jitter",
                PathSpecError::Aggregation(_) => "aggregation",
                PathSpecError::LosesEverything => "loss",
                PathSpecError::Queue(_) => "queue",
                PathSpecError::Rate(_) | PathSpecError::Lte(_) => "rate",
                _ if spec.link.check(PACKET_BYTES, spec.rtt).is_ok() => "uplink",
                _ if section.get("buffer").is_some() => "buffer",
                _ => "rate",
            };
            let at = section.get(key).map_or(section.place(), |node| &node.place);
            let error = ScenarioError::worded(at, error);
            return Err(match section.get("buffer") {
                None => error.note("without the key `buffer`, it is 1bdp of rate and rtt"),
                Some(_) => error,
            });
        }
    }
    Ok(())
}

/// Checks the buffers of shared links, which use the longest RTT of their paths: for drawn paths,
/// both the shortest and the longest.
pub(crate) fn check_shared(
    tree: &Node,
    links: &[(String, LinkSpec)],
    paths: &[PathPlan],
) -> Result<()> {
    for (index, (name, link)) in links.iter().enumerate() {
        let crossing = || paths.iter().filter(|path| path.spec.via.contains(&index));
        let rtts = |path: &PathPlan| path.corners().into_iter().map(|corner| corner.rtt);
        let least = crossing().filter_map(|path| rtts(path).min()).max();
        let most = crossing().filter_map(|path| rtts(path).max()).max();
        let mut rtts = least.into_iter().chain(most);
        if let Err(error) = rtts.try_for_each(|rtt| link.check(PACKET_BYTES, rtt)) {
            let entry = tree.get("link").and_then(|links| links.get(name));
            let node = entry.and_then(|link| link.get("buffer").or(Some(link)));
            let place = node.map_or(&tree.place, |node| &node.place);
            return Err(ScenarioError::worded(place, error));
        }
    }
    Ok(())
}
