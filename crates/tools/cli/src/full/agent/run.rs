//! Polls the store until a signal comes.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uncork_fleet::{
    Agent, AgentMetrics, AgentSpec, Commands, Disk, HostName, HostState, METRICS_TEXT_TYPE, Report,
    Steps,
};
use uncork_policy::Policy;
use uncork_store::{Store, StoreError};
use uncork_watch::Exporter;

use super::args::AgentArgs;
use crate::failure::Failure;
use crate::full::fleet::public_keys;
use crate::full::nap::sleep;
use crate::full::store;
use crate::full::unix_time::unix_s;
use crate::interrupt::flag_on_signal;

const DEFAULT: &str = "# No version is valid: connections have the defaults of this host.\n";

pub(crate) fn run(args: &AgentArgs) -> Result<(), Failure> {
    let spec = spec(args)?;
    let store = store::open(&args.store)?;
    let disk = Disk::new(&args.output, Steps::default());
    let _lock = disk.lock().map_err(|error| Failure::Environment(error.to_string()))?;
    let exporter = args.metrics.map(exporter).transpose()?;
    let mut metrics = AgentMetrics::default();
    let stop = flag_on_signal()?;
    let (apply, applied) = (args.apply.clone(), args.applied.clone());
    let commands = Commands { apply, applied, stop: Arc::clone(&stop) };
    let pause = pause(args.every.into(), &spec.host);
    let kernel = spec.kernel.clone();
    let mut agent = Agent::new(spec, store, disk, commands);
    let mut printed = PrintedLines::default();
    while !stop.load(Ordering::Relaxed) {
        let report = poll(&mut agent, &kernel)?;
        for line in printed.new_lines(&report, agent.undelivered()) {
            eprintln!("{line}");
        }
        metrics.record(&report, !is_lost(agent.undelivered()));
        if let Some(exporter) = &exporter {
            exporter.show(metrics.text());
        }
        if args.once {
            let is_there = report.state == HostState::Active;
            return if is_there { Ok(()) } else { Err(Failure::Status(1)) };
        }
        sleep(pause, &stop);
    }
    Ok(())
}

fn exporter(address: SocketAddr) -> Result<Exporter, Failure> {
    let exporter = Exporter::start(address, METRICS_TEXT_TYPE).map_err(|error| {
        Failure::Environment(format!(
            "cannot listen on '{address}' of '--metrics <ADDR:PORT>': {error}; choose another port"
        ))
    })?;
    eprintln!("note: metrics on http://{}/metrics", exporter.address());
    Ok(exporter)
}

fn poll(agent: &mut Agent<Box<dyn Store>, Commands>, kernel: &str) -> Result<Report, Failure> {
    let now = unix_s().max(0).unsigned_abs();
    agent.poll(now, &controllers(kernel)).map_err(|error| {
        Failure::Environment(format!("cannot write to the directory of '--output <DIR>': {error}"))
    })
}

fn spec(args: &AgentArgs) -> Result<AgentSpec, Failure> {
    let default = match &args.default {
        None => DEFAULT.as_bytes().to_vec(),
        Some(file) => default_policy(file)?,
    };
    let host = host(args)?;
    let report_every = Duration::from(args.report_every).max(pause(args.every.into(), &host));
    Ok(AgentSpec {
        host,
        place: args.place.clone(),
        keys: public_keys("--public-key <FILE>", &args.public_key)?,
        default,
        patience_s: Duration::from(args.patience).as_secs(),
        report_every_s: report_every.as_secs(),
        kernel: line_of("/proc/sys/kernel/osrelease"),
    })
}

/// The policy of `--default`, which needs no other file: a host falls back to it when nothing else is valid.
fn default_policy(file: &Path) -> Result<Vec<u8>, Failure> {
    let argument = "--default <FILE>";
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| Failure::unreadable(argument, file, &error))?;
    let name = file.display().to_string();
    let policy = Policy::parse(&name, &text);
    let policy = policy.map_err(|error| Failure::Shown(error.render(&name, false)))?;
    match policy.table_file() {
        Some(table) => {
            let reason = format!("it needs the table '{table}'; choose a policy without one");
            Err(Failure::value(argument, name, reason))
        }
        None => Ok(text.into_bytes()),
    }
}

fn host(args: &AgentArgs) -> Result<HostName, Failure> {
    if let Some(host) = &args.host {
        return Ok(host.clone());
    }
    let name = line_of("/proc/sys/kernel/hostname");
    name.parse().map_err(|error| Failure::value("--host <NAME>", &name, error))
}

/// The kernel's TCP controllers now: `uncork kernel load` adds some while the agent runs.
fn controllers(kernel: &str) -> Vec<String> {
    let available = line_of("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let modules = fs::read_to_string(format!("/lib/modules/{kernel}/modules.dep"));
    let loads_modules = Path::new("/proc/modules").exists();
    known_controllers(&available, modules.ok().as_deref(), loads_modules)
}

/// The controllers that the kernel has, and those with a module. Empty if they are not known: a kernel that loads modules loads
/// `tcp_NAME` when a controller is set, so without the list of modules none can be called missing.
fn known_controllers(available: &str, modules: Option<&str>, loads_modules: bool) -> Vec<String> {
    let mut names: BTreeSet<String> =
        available.split_ascii_whitespace().map(str::to_owned).collect();
    if names.is_empty() || (modules.is_none() && loads_modules) {
        return Vec::new();
    }
    for line in modules.unwrap_or_default().lines() {
        let file = line.split(':').next().and_then(|path| path.rsplit('/').next());
        let name = file.and_then(|file| file.strip_prefix("tcp_")?.split('.').next());
        names.extend(name.map(str::to_owned));
    }
    names.into_iter().collect()
}

fn line_of(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

/// What was printed, so that nothing is printed twice in a row.
#[derive(Default)]
struct PrintedLines {
    line: Option<String>,
    is_read_only: bool,
}

impl PrintedLines {
    /// The lines for a poll: its outcome if that is new, and once that the store takes no reports.
    fn new_lines(&mut self, report: &Report, undelivered: Option<&StoreError>) -> Vec<String> {
        let mut lines = Vec::new();
        let line = line(report, undelivered);
        if self.line.as_ref() != Some(&line) {
            self.line = Some(line.clone());
            lines.push(line);
        }
        if matches!(undelivered, Some(StoreError::ReadOnly(..))) && !self.is_read_only {
            self.is_read_only = true;
            lines.push("note: this store takes no reports; stages have no evidence".to_owned());
        }
        lines
    }
}

/// Whether a store that takes reports did not take this one.
fn is_lost(undelivered: Option<&StoreError>) -> bool {
    undelivered.is_some_and(|error| !matches!(error, StoreError::ReadOnly(..)))
}

fn line(report: &Report, undelivered: Option<&StoreError>) -> String {
    let version = |version: Option<u64>| {
        version.map_or_else(|| "the default".to_owned(), |it| format!("version {it}"))
    };
    let active = report.active.as_ref().map(|there| there.version);
    let there = version(active);
    let error = report.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    // Before this process has read a rollout, what the host shall run is not known.
    let is_another = report.wanted.is_some() && report.wanted != active;
    let line = if is_another {
        format!("{there} is active instead of {}{error}", version(report.wanted))
    } else {
        let is = if report.state == HostState::Waiting { "is waiting" } else { "is active" };
        format!("{there} {is}{error}")
    };
    let lost = undelivered.filter(|_| is_lost(undelivered));
    let lost = lost.map(|error| format!("; report not written: {error}")).unwrap_or_default();
    uncork_config::visible(&(line + &lost)).into_owned()
}

/// The time between polls: a tenth more or less, so that a fleet does not ask at the same moments.
fn pause(every: Duration, host: &HostName) -> Duration {
    let mut hasher = DefaultHasher::new();
    host.as_str().hash(&mut hasher);
    every * 9 / 10 + every / 500 * (hasher.finish() % 100) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_a_policy_without_rules() {
        assert_eq!(Policy::parse("default", DEFAULT).unwrap().rules(), 0);
    }

    #[test]
    fn controllers_without_the_list_of_modules_are_not_known() {
        let modules =
            "kernel/net/ipv4/tcp_bbr.ko.xz: kernel/x.ko\nkernel/net/ipv4/udp_tunnel.ko:\n";
        assert_eq!(known_controllers("reno cubic", Some(modules), true), ["bbr", "cubic", "reno"]);
        assert!(known_controllers("reno cubic", None, true).is_empty());
        assert_eq!(known_controllers("reno cubic", None, false), ["cubic", "reno"]);
        assert!(known_controllers("", Some(modules), true).is_empty());
    }

    #[test]
    fn pause_of_any_host_is_a_tenth_more_or_less() {
        for number in 0..100 {
            let host = format!("edge{number}").parse().unwrap();
            let pause = pause(Duration::from_mins(1), &host);
            assert!((54..=66).contains(&pause.as_secs()), "{pause:?}");
        }
    }
}
