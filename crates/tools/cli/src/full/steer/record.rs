//! `uncork steer record`: a record of each steered connection that ends.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use uncork_steer::{Clients, Event, Networks, Recorder, RecordsSpec, SteerPins, Steered};

use super::args::RecordArgs;
use super::cgroups::{at, failure};
use super::netns;
use crate::clock;
use crate::failure::Failure;
use crate::full::policy::origins;
use crate::interrupt::flag_on_signal;

pub(super) fn record(pins: &SteerPins, args: &RecordArgs) -> Result<(), Failure> {
    if args.every.is_zero() {
        return Err(Failure::value("--every <TIME>", args.every, "expected a period, such as 1s"));
    }
    let origins = origins(&args.geo)?;
    let networks = args.networks.as_deref().map(networks).transpose()?.unwrap_or_default();
    netns::enter(args.netns.as_deref())?;
    let steered = the_one(pins, args.cgroup.as_deref())?;
    let stop = flag_on_signal()?;
    let spec = args.rollup.apply(RecordsSpec::new(&args.records));
    let spec = RecordsSpec { every: args.records_every.into(), ..spec };
    let clients = Clients { origins: &origins, networks: &networks, has_ports: args.client_ports };
    let mut recorder =
        Recorder::start(&steered, clients, &spec, args.every.into()).map_err(failure)?;
    netns::warn_of_others(recorder.cgroup());
    if let Some(warning) = recorder.warning() {
        eprintln!("note: {warning}");
    }
    let until = args.duration.map(|span| clock::now() + Duration::from(span));
    let is_due = || !stop.load(Ordering::Relaxed) && until.is_none_or(|end| clock::now() < end);
    let recorded = follow(&mut recorder, is_due);
    // Also after an error, all records are written.
    let (summary, ended) = recorder.end();
    eprintln!("note: {} records written to {}", summary.records.written, args.records.display());
    for warning in summary.warnings() {
        eprintln!("warning: {warning}");
    }
    recorded?;
    ended.map_err(failure)?;
    match summary.records.lost {
        0 => Ok(()),
        lost => Err(Failure::Environment(format!(
            "{lost} records are not in {}",
            args.records.display()
        ))),
    }
}

/// Records while it `is_due`.
fn follow(recorder: &mut Recorder<'_>, is_due: impl Fn() -> bool) -> Result<(), Failure> {
    loop {
        let idle = recorder.tick().map_err(failure)?;
        if let Some(problem) = recorder.problem() {
            eprintln!("warning: {problem}; the recording goes on");
        }
        let cgroup = recorder.cgroup().display().to_string();
        match recorder.event() {
            Some(Event::Removed) => eprintln!(
                "warning: no policy is active for {cgroup} any more; recording goes on when one is applied (uncork steer apply)"
            ),
            Some(Event::Applied) => {
                eprintln!("note: a policy is active for {cgroup} again; recording goes on");
            }
            None => {}
        }
        if !is_due() {
            return Ok(());
        }
        thread::sleep(idle);
    }
}

fn networks(file: &Path) -> Result<Networks, Failure> {
    const ARGUMENT: &str = "--networks <FILE.csv>";
    let text =
        fs::read_to_string(file).map_err(|error| Failure::unreadable(ARGUMENT, file, &error))?;
    Networks::parse(&text).map_err(|error| Failure::value(ARGUMENT, file.display(), error))
}

/// The cgroup that is named, or the only one that is steered.
fn the_one(pins: &SteerPins, cgroup: Option<&Path>) -> Result<Steered, Failure> {
    if let Some(cgroup) = cgroup {
        return at(pins, cgroup);
    }
    let mut all = Steered::all(pins).map_err(failure)?;
    match (all.pop(), all.is_empty()) {
        (None, _) => Err(Failure::Missed("nothing is steered".to_owned())),
        (Some(one), true) => Ok(one),
        (Some(_), false) => {
            Err(Failure::Usage("several cgroups are steered; name one with --cgroup".to_owned()))
        }
    }
}
