//! Workloads of flows.

use std::str::FromStr;

use uncork_apps::{
    ArrivalTrace, CbrSpec, ClientSpec, FetchSpec, ObjectSizes, ObjectSizesError, Think,
};
use uncork_config::{Key, Node, Result, Section, Value};
use uncork_sim::{CommandRecords, CommandSpec};
use uncork_units::{ByteCount, Probability, Rate, Time, TimeDelta};

use super::super::ScenarioError;
use super::super::keys;
use super::super::plan::{ArrivalPlan, ClientActivity, SingleActivity};
use super::context::{Context, table};
use super::players;

/// The workload of a class.
pub(crate) fn work(
    class: &Section<'_>,
    name: &str,
    context: &Context<'_>,
) -> Result<ClientActivity> {
    let (key, node) = class.exactly_one(Key::names(keys::WORKLOADS), "workload")?;
    let one = match key {
        "arrivals" => return arrivals(class, node, context).map(ClientActivity::Arrivals),
        "transfer" => some_bytes(node).map(SingleActivity::Transfer),
        "bulk" => bulk(node),
        "requests" => requests(class, node, context),
        "media" => media(class, node).map(SingleActivity::Media),
        "audio" => players::audio(class, node),
        "command" => command(class, name, node).map(SingleActivity::Command),
        _ => players::video(class, node),
    };
    one.map(ClientActivity::One)
}

fn some_bytes(node: &Node) -> Result<u64> {
    let size: ByteCount = node.parse()?;
    if size.as_u64() == 0 {
        return Err(ScenarioError::new(&node.place, "nothing to transfer").help("use at least 1B"));
    }
    Ok(size.as_u64())
}

/// A non-empty time span.
pub(crate) fn some_time(node: &Node) -> Result<TimeDelta> {
    let span: TimeDelta = node.parse()?;
    if span.is_zero() {
        return Err(
            ScenarioError::new(&node.place, "the duration is zero").help("use more than 0s")
        );
    }
    Ok(span)
}

/// `"60s"`, or `"end"`.
fn bulk(node: &Node) -> Result<SingleActivity> {
    match &node.value {
        Value::Text(text) if text == "end" => Ok(SingleActivity::Bulk(None)),
        _ => some_time(node).map(|span| SingleActivity::Bulk(Some(span))),
    }
}

fn requests(class: &Section<'_>, node: &Node, context: &Context<'_>) -> Result<SingleActivity> {
    let section = Section::new("requests", class.key_place("requests"), node, keys::REQUESTS)?;
    let think = section.parse_or("think", TimeDelta::ZERO)?;
    let think = if section.flag("think_exponential")? {
        Think::Exponential(think)
    } else {
        Think::Fixed(think)
    };
    let spec = FetchSpec {
        sizes: sizes(&section, context)?,
        requests: section.read("count", |node| node.whole(1..=1_000_000))?,
        until: Time::NEVER,
        think,
    };
    let span = section.read("for", some_time)?;
    Ok(SingleActivity::Client(ClientSpec::Fetch(spec), span))
}

fn arrivals(class: &Section<'_>, node: &Node, context: &Context<'_>) -> Result<ArrivalPlan> {
    let section = Section::new("arrivals", class.key_place("arrivals"), node, keys::ARRIVALS)?;
    let (key, given) = section.exactly_one(["rate", "trace"], "rate")?;
    if key == "trace" {
        section.forbid(&["size", "sizes", "for"], "a trace has sizes and times of its own")?;
        let (name, text) = context.file(given)?;
        return table(given, name, &text, ArrivalTrace::from_str).map(ArrivalPlan::Trace);
    }
    Ok(ArrivalPlan::Poisson {
        mean_gap: per_second(given)?,
        sizes: sizes(&section, context)?,
        length: some_time(section.need("for", "\"60s\"")?)?,
    })
}

/// The mean interval for `"10/s"` or `"0.5/s"`.
fn per_second(node: &Node) -> Result<TimeDelta> {
    let help = "write how many arrive in a second, such as \"10/s\" or \"0.5/s\"";
    let text = match &node.value {
        Value::Text(text) => text.as_str(),
        Value::Number(text) => {
            let message = format!("a rate of arrivals needs its unit, and {text} has none");
            return Err(
                ScenarioError::new(&node.place, message).help(format!("write \"{text}/s\""))
            );
        }
        _ => return Err(uncork_config::wrong_type(node, "a string").help(help)),
    };
    let number = text.strip_suffix("/s").and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(rate) if (1e-6..=1e6).contains(&rate) => {
            Ok(TimeDelta::from_nanos((1e9 / rate).round() as u64))
        }
        _ => {
            let message = format!("`{text}` is not a rate of arrivals");
            Err(ScenarioError::new(&node.place, message).help(help))
        }
    }
}

/// The sizes of objects: a single one, a named distribution, a file, or inline points.
fn sizes(section: &Section<'_>, context: &Context<'_>) -> Result<ObjectSizes> {
    let (key, node) = section.exactly_one(["size", "sizes"], "size of objects")?;
    if key == "size" {
        return some_bytes(node).map(ObjectSizes::fixed);
    }
    match &node.value {
        Value::Text(name) => match name.parse() {
            Ok(sizes) => Ok(sizes),
            Err(unknown) => named_file(node, name, context, unknown),
        },
        _ => points(node),
    }
}

fn named_file(
    node: &Node,
    name: &str,
    context: &Context<'_>,
    unknown: ObjectSizesError,
) -> Result<ObjectSizes> {
    let Ok((name, text)) = context.file(node) else {
        let message = format!("`{name}` is neither a name of sizes nor a file");
        return Err(ScenarioError::new(&node.place, message).help(unknown.to_string()));
    };
    table(node, name, &text, ObjectSizes::from_table)
}

/// `[["10kB", "50%"], ["1MB", "100%"]]`: half of all objects have at most 10 kB.
fn points(node: &Node) -> Result<ObjectSizes> {
    let pairs = node.pairs("[\"10kB\", \"50%\"]")?;
    let line = |[size, share]: [&Node; 2]| {
        let bytes = size.parse::<ByteCount>()?.as_u64();
        share.parse::<Probability>()?;
        let percent = share.text()?.trim().trim_end_matches('%').trim_end().to_owned();
        Ok(format!("{bytes} {percent}\n"))
    };
    let table = pairs.iter().map(|pair| line(*pair)).collect::<Result<String>>()?;
    ObjectSizes::from_table(&table).map_err(|error| {
        // The table created from the points has one line per point.
        let at = error.line().and_then(|line| pairs.get(line.checked_sub(1)?));
        let place = at.map_or(&node.place, |[size, _]| &size.place);
        ScenarioError::worded(place, error.problem())
    })
}

fn media(class: &Section<'_>, node: &Node) -> Result<CbrSpec> {
    let section = Section::new("media", class.key_place("media"), node, keys::MEDIA)?;
    let spec = CbrSpec {
        rate: section.need("rate", "\"2mbit\"")?.parse::<Rate>()?,
        interval: section.parse_or("frame", TimeDelta::from_millis(20))?,
        duration: section.read("for", some_time)?.unwrap_or(TimeDelta::MAX),
    };
    spec.check().map_err(|error| ScenarioError::worded(&node.place, error))?;
    Ok(spec)
}

/// Programs of the class `name`, which open their own sockets on their own hosts.
fn command(class: &Section<'_>, name: &str, node: &Node) -> Result<CommandSpec> {
    let section = Section::new("command", class.key_place("command"), node, keys::COMMAND)?;
    class.forbid(&["host"], "each client that is a command has a host of its own")?;
    class.forbid(
        &["initial_window", "resume", "receive_window", "receive_window_steps"],
        "a command sets its sockets up itself",
    )?;
    Ok(CommandSpec {
        name: name.to_owned(),
        server: section.read("server", script)?,
        client: script(section.need("client", "\"iperf3 -R -c $UNCORK_FAR\"")?)?,
        limit: section.read("for", some_time)?,
        records: section.read("records", |node| {
            let known = [("objects", CommandRecords::Objects), ("audio", CommandRecords::Audio)];
            node.choice("kind of records", &known)
        })?,
        own_cc: section.flag("own_cc")?,
    })
}

/// A shell command.
fn script(node: &Node) -> Result<String> {
    let text = node.text()?;
    if text.trim().is_empty() {
        return Err(ScenarioError::new(&node.place, "the command is empty")
            .help("write what a shell shall run, such as \"iperf3 -s -1\""));
    }
    if text.contains('\0') {
        return Err(ScenarioError::new(&node.place, "a command cannot hold a zero byte")
            .help("leave it out"));
    }
    Ok(text.to_owned())
}
