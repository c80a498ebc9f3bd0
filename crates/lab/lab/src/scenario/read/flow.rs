//! Classes of traffic.

use uncork_cc::{Algorithm, CcSpec, InitialWindow, ResumeHint};
use uncork_config::{Entry, Node, Result, Section, Value};
use uncork_path::{Ecn, PathSpec, Step};
use uncork_sim::{AccEcn, AckPolicy, FlowSpec, Migration, PACKET_BYTES};
use uncork_units::{ByteCount, TimeDelta};

use super::super::ScenarioError;
use super::super::instance::FIRST_HOST;
use super::super::keys;
use super::super::limits::MAX_FLOWS;
use super::super::plan::{ClientActivity, Connect, FlowPlan, PathPlan, SingleActivity};
use super::steps::steps;
use super::{Context, workload};

/// A class and whether it is background traffic.
pub(crate) type Class = (FlowPlan, bool);

/// The classes, in the order of the file.
pub(crate) fn flows(tree: &Node, paths: &[PathPlan], context: &Context<'_>) -> Result<Vec<Class>> {
    let entries = tree.get("flow").map(Node::entries).unwrap_or_default();
    if entries.is_empty() {
        return Err(ScenarioError::new(&tree.place, "the scenario has no traffic")
            .help("write [flow.main] with cc = \"bbr3\" and transfer = \"10MB\""));
    }
    if let Some(entry) = entries.iter().find(|entry| !matches!(entry.node.value, Value::Table(_))) {
        let message = format!("`{}` stands in [flow], which holds classes of traffic", entry.name);
        return Err(
            ScenarioError::new(&entry.place, message).help("name the class, such as [flow.main]")
        );
    }
    entries.iter().map(|entry| flow(entry, paths, context)).collect()
}

fn flow(entry: &Entry, paths: &[PathPlan], context: &Context<'_>) -> Result<Class> {
    let name = format!("[flow.{}]", entry.name);
    let section = &Section::new(&name, &entry.place, &entry.node, keys::FLOW)?;
    let ccs = controllers(section.need("cc", "\"bbr3\"")?)?;
    let count = section.read("count", |node| node.whole(1..=MAX_FLOWS))?.unwrap_or(1);
    let paired = paired(section, ccs.len() as u64, count)?;
    let host = section.read("host", |node| node.whole(0..=HOSTS))?;
    let work = workload::work(section, &entry.name, context)?;
    if !matches!(work, ClientActivity::Arrivals(_)) {
        each_has_a_flow(section, &ccs, count)?;
    }
    let plan = FlowPlan {
        name: entry.name.clone(),
        path: path(section, paths)?,
        ccs,
        count,
        paired,
        start: section.parse_or("start", TimeDelta::ZERO)?,
        connect: connect(section, &work)?,
        spread: section.read("spread", Node::parse)?,
        rtt: section.read("rtt", |node| node.within(PathSpec::RTTS))?,
        ecn: ecn(section)?,
        accecn: accecn(section)?,
        initial_window: section.read("initial_window", Node::parse::<InitialWindow>)?,
        resume: section.read("resume", |node| resume(section, node))?,
        receive_window: section
            .read("receive_window", receive_window)?
            .unwrap_or(FlowSpec::WIDE_OPEN),
        receive_window_steps: section
            .read("receive_window_steps", receive_window_steps)?
            .unwrap_or_default(),
        migrations: section.read("migrations", migrations)?.unwrap_or_default(),
        acks: acks(section)?,
        host: host.map(|host| host as u32),
        work,
    };
    Ok((plan, section.flag("background")?))
}

/// The highest host number a file can use; other clients are numbered above it.
const HOSTS: u64 = FIRST_HOST as u64 - 1;

fn controller(node: &Node) -> Result<CcSpec> {
    node.named("controller", &Algorithm::ALL.map(|it| (it.name(), it.options())))
}

/// One controller, or several among which flows alternate. One that is listed twice gets two turns.
fn controllers(node: &Node) -> Result<Vec<CcSpec>> {
    let Value::List(nodes) = &node.value else { return Ok(vec![controller(node)?]) };
    if nodes.is_empty() {
        return Err(ScenarioError::new(&node.place, "no controller").help("write cc = \"bbr3\""));
    }
    nodes.iter().map(controller).collect()
}

/// Refuses a controller that gets no turn: it would have a row without values, and be compared.
fn each_has_a_flow(section: &Section<'_>, ccs: &[CcSpec], count: u64) -> Result<()> {
    let (taken, left) = ccs.split_at(ccs.len().min(count as usize));
    let Some(first) = left.iter().find(|cc| !taken.contains(cc)) else { return Ok(()) };
    let message = format!("no flow has `{first}`: {} controllers, count {count}", ccs.len());
    let class = section.name().trim_matches(['[', ']']);
    Err(ScenarioError::new(section.value_place("cc"), message).help(format!(
        "write count = {}; for runs of each controller alone, move the list to [matrix], as \"{class}.cc\"",
        ccs.len()
    )))
}

fn paired(section: &Section<'_>, controllers: u64, count: u64) -> Result<bool> {
    let paired = section.flag("paired")?;
    if paired && !count.is_multiple_of(controllers) {
        let message = format!("{count} flows cannot be paired among {controllers} controllers");
        let key = if section.get("count").is_some() { "count" } else { "paired" };
        return Err(ScenarioError::new(section.key_place(key), message)
            .help(format!("use a count that is a multiple of {controllers}")));
    }
    Ok(paired)
}

/// The index of the class's path.
fn path(section: &Section<'_>, paths: &[PathPlan]) -> Result<usize> {
    let names = || paths.iter().map(|path| path.name.as_str());
    let Some(node) = section.get("path") else {
        if paths.len() == 1 {
            return Ok(0);
        }
        let message = format!("{} does not say which path it takes", section.name());
        let names: Vec<&str> = names().collect();
        return Err(ScenarioError::new(section.place(), message)
            .help(format!("write path = \"{}\"", names.join("\" or path = \""))));
    };
    let name = node.text()?;
    names().position(|known| known == name).ok_or_else(|| {
        ScenarioError::new(&node.place, format!("unknown path `{name}`"))
            .nearest(name, names().collect::<Vec<_>>())
    })
}

/// How connections are opened. Of bulk flows only: other traffic does not wait for all connections.
fn connect(section: &Section<'_>, work: &ClientActivity) -> Result<Option<Connect>> {
    let known = [("iperf3", Connect::Iperf3), ("in-turn", Connect::InTurn)];
    let connect = section.read("connect", |node| node.choice("way to connect", &known))?;
    let is_bulk = matches!(work, ClientActivity::One(SingleActivity::Bulk(_)));
    if let (Some(node), false) = (section.get("connect"), is_bulk) {
        let message = format!("`connect` is of bulk flows, and {} has others", section.name());
        return Err(ScenarioError::new(&node.place, message)
            .help("remove `connect`, or write bulk = \"30s\""));
    }
    Ok(connect)
}

fn ecn(section: &Section<'_>) -> Result<Option<Ecn>> {
    let known = [("none", Ecn::NotEct), ("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1)];
    section.read("ecn", |node| node.choice("codepoint of ECN", &known))
}

fn accecn(section: &Section<'_>) -> Result<Option<AccEcn>> {
    let known = [("option", AccEcn::Option), ("counter", AccEcn::Counter), ("none", AccEcn::None)];
    section.read("accecn", |node| node.choice("part of AccECN", &known))
}

fn acks(section: &Section<'_>) -> Result<AckPolicy> {
    let (fewest, most) = AckPolicy::EVERY;
    let every = section.read("ack_every", |node| node.whole(fewest.into()..=most.into()))?;
    let every = every.map_or(AckPolicy::USUAL.every, |every| every as u32);
    let delay = section.read("ack_delay", |node| node.within(AckPolicy::DELAYS))?;
    Ok(AckPolicy { every, delay })
}

fn receive_window_steps(node: &Node) -> Result<Vec<Step<u64>>> {
    steps(node, "[\"10s\", \"2MB\"]", receive_window)
}

fn migrations(node: &Node) -> Result<Vec<Step<Migration>>> {
    let known = [("address", Migration::Address), ("port", Migration::Port)];
    let migrations =
        steps(node, "[\"10s\", \"address\"]", |node| node.choice("migration", &known))?;
    if migrations.len() > Migration::MAX_COUNT {
        let message = format!("{} migrations of a connection", migrations.len());
        let help = format!("use at most {}", Migration::MAX_COUNT);
        return Err(ScenarioError::new(&node.place, message).help(help));
    }
    Ok(migrations)
}

/// What an earlier connection measured of the path (RFC 9959).
fn resume(class: &Section<'_>, node: &Node) -> Result<ResumeHint> {
    let section = Section::new("resume", class.key_place("resume"), node, keys::RESUME)?;
    Ok(ResumeHint {
        saved_cwnd: section.need("window", "\"2MB\"")?.parse::<ByteCount>()?.as_u64(),
        saved_rtt: section.need("rtt", "\"600ms\"")?.within(PathSpec::RTTS)?,
    })
}

fn receive_window(node: &Node) -> Result<u64> {
    let window = node.parse::<ByteCount>()?;
    if window.as_u64() < u64::from(PACKET_BYTES) {
        let message = format!("a receive window of {window} holds no packet");
        return Err(
            ScenarioError::new(&node.place, message).help(format!("use at least {PACKET_BYTES}B"))
        );
    }
    Ok(window.as_u64().min(FlowSpec::WIDE_OPEN))
}
