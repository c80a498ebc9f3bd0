//! The emulation's specification, from arguments or a scenario.

use uncork_emu::{BackSpec, EmuError, EmulationSpec, HostSpec};
use uncork_lab::{Class, Instance};
use uncork_path::PathSpecError;
use uncork_units::TimeDelta;

use super::args::EmuArgs;
use crate::failure::Failure;
use crate::scenario;
use crate::values::{Setting, shown};

/// An emulation and the scenario classes it represents.
pub(super) struct Specification {
    pub(super) spec: EmulationSpec,
    /// For each host, the classes of clients that it represents.
    pub(super) classes: Vec<Vec<String>>,
}

/// A host and the classes of clients that it represents.
type StandIn = (HostSpec, Vec<String>);

/// The specification from the arguments, checked.
pub(super) fn specification(args: &EmuArgs) -> Result<Specification, Failure> {
    let scenario = args.scenario();
    let (links, paths, hosts) = match scenario {
        Some((argument, given)) => {
            let (instance, classes) = instance(args, argument, given)?;
            let hosts = hosts(&instance, &classes);
            (instance.run.links, instance.run.paths, hosts)
        }
        None => (Vec::new(), vec![args.path()], vec![(HostSpec::over(0), Vec::new())]),
    };
    let hosts = match (args.hosts, hosts.as_slice()) {
        (None, _) => hosts,
        (Some(count), [host]) => vec![host.clone(); count as usize],
        (Some(count), hosts) => {
            let hosts = hosts.len();
            let reason = format!(
                "the scenario has {hosts} hosts, one for each round trip over each path: leave it out"
            );
            return Err(Failure::value(&shown::<EmuArgs>("hosts"), count, reason));
        }
    };
    let jitter = args.uplink_jitter.map(|max| args.uniform(max));
    let back = BackSpec { loss: args.uplink_loss, jitter };
    let busy_wait = args.busy_wait.unwrap_or(TimeDelta::ZERO);
    let (seed, mtu) = (args.seed, args.mtu);
    let (hosts, classes) = hosts.into_iter().unzip();
    let spec = EmulationSpec {
        links,
        paths,
        hosts,
        back,
        seed,
        mtu,
        busy_wait,
        record: false,
        report_queueing: false,
        first: true,
    };
    spec.check().map_err(|error| match (&error, scenario) {
        (EmuError::Path(_), Some((argument, given))) => Failure::value(argument, given, &error),
        (EmuError::Path(wrong), None) => refused(args, wrong),
        (EmuError::Mtu(mtu), _) => Failure::value("--mtu <BYTES>", mtu, &error),
        (EmuError::Hosts(hosts), _) => Failure::value("--hosts <N>", hosts, &error),
        (EmuError::Spec(_), _) => Failure::Usage(error.to_string()),
        _ => Failure::Environment(error.to_string()),
    })?;
    Ok(Specification { spec, classes })
}

/// The requested cell of the scenario, and its classes.
fn instance(
    args: &EmuArgs,
    argument: &str,
    given: &str,
) -> Result<(Instance, Vec<Class>), Failure> {
    let set: Vec<_> = args.set.iter().map(Setting::pair).collect();
    let (scenario, _) = scenario::read(argument, given, &set, args.color)?;
    let cells = scenario.cells.len();
    let cell = args.cell as usize;
    if cell == 0 || cell > cells {
        let reason = format!("the scenario has {cells} cells; expected 1 to {cells}");
        return Err(Failure::value(&shown::<EmuArgs>("cell"), cell, reason));
    }
    if cells > 1 && !args.quiet {
        let point = &scenario.cells[cell - 1].point;
        let values = scenario.axes.iter().zip(point);
        let values: Vec<_> =
            values.map(|(axis, value)| format!("{}={}", axis.key, axis.values[*value])).collect();
        eprintln!("note: cell {cell} of {cells}: {}; --cell takes another", values.join(", "));
    }
    let instance = scenario.instance(cell - 1, args.seed);
    if let Some((key, why)) = instance.run.only_simulated() {
        let reason = format!(
            "an emulated path cannot have `{key}`: {why}; add --set to another value, or remove it"
        );
        return Err(Failure::value(argument, given, reason));
    }
    Ok((instance, scenario.cells[cell - 1].classes.clone()))
}

/// A host for each RTT of the flows over each path, in order; one for a path without flows.
fn hosts(Instance { run, class_of_flow, .. }: &Instance, classes: &[Class]) -> Vec<StandIn> {
    let mut hosts: Vec<StandIn> = Vec::new();
    for (path, spec) in run.paths.iter().enumerate() {
        let before = hosts.len();
        let flows = run.flows.iter().zip(class_of_flow).filter(|(flow, _)| flow.path == path);
        for (flow, class) in flows {
            let rtt = flow.rtt.filter(|rtt| *rtt != spec.rtt);
            let wanted = HostSpec { rtt, ..HostSpec::over(path) };
            let known = hosts[before..].iter().position(|(host, _)| *host == wanted);
            let index = known.map_or(hosts.len(), |index| before + index);
            if index == hosts.len() {
                hosts.push((wanted, Vec::new()));
            }
            let (names, name) = (&mut hosts[index].1, &classes[*class as usize].name);
            if names.last() != Some(name) {
                names.push(name.clone());
            }
        }
        if hosts.len() == before {
            hosts.push((HostSpec::over(path), Vec::new()));
        }
    }
    hosts
}

/// The argument that caused `error`.
fn refused(args: &EmuArgs, error: &PathSpecError) -> Failure {
    let path = args.path();
    let uplink = path.uplink.as_ref().filter(|_| path.link.check(args.mtu, path.rtt).is_ok());
    let link = uplink.unwrap_or(&path.link);
    let (of_link, of_uplink, value) = match error {
        PathSpecError::Rate(rate) => ("rate", "uplink", rate.to_string()),
        PathSpecError::Rtt(rtt) => match args.delay {
            Some(delay) => ("delay", "delay", delay.to_string()),
            None => ("rtt", "rtt", rtt.to_string()),
        },
        PathSpecError::Jitter(max) => ("jitter", "jitter", max.to_string()),
        PathSpecError::Aggregation(slot) => ("aggregation", "aggregation", slot.to_string()),
        PathSpecError::LosesEverything => ("loss", "loss", path.loss.to_string()),
        PathSpecError::Queue(_) => ("queue", "uplink_queue", link.queue.to_string()),
        PathSpecError::Burst { .. } => {
            let policer = link.policer.map_or_else(String::new, |policer| policer.to_string());
            ("policer", "policer", policer)
        }
        _ => ("buffer", "uplink_buffer", link.buffer.to_string()),
    };
    Failure::value(
        &shown::<EmuArgs>(if uplink.is_some() { of_uplink } else { of_link }),
        value,
        error,
    )
}
