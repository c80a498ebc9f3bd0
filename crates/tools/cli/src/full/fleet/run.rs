//! The commands of `uncork fleet`.

use std::fmt::Write as _;
use std::path::PathBuf;

use uncork_fleet::{
    Fleet, FleetStatus, HostStatus, Next, Planned, PublishError, Rollout, SigningKey, Stage,
    first_hosts,
};
use uncork_policy::PublicKey;
use uncork_records::rfc3339;
use uncork_store::{Store, Tag};
use uncork_units::TimeDelta;

use super::args::{FleetArgs, FleetCommand, LeaseArgs, PublishArgs, ReadArgs, StopArgs, WriteArgs};
use super::files::{gates, packed, public_keys, signing_key, write_keys};
use crate::failure::Failure;
use crate::full::unix_time::unix_s;
use crate::full::{file, store};
use crate::values::TextFormat;
use crate::{print, stdout};

/// Less would end while a store is away.
const MIN_LIFE_S: u64 = 3600;

pub(crate) fn run(args: &FleetArgs) -> Result<(), Failure> {
    match &args.command {
        FleetCommand::Keygen { file } => {
            let public = write_keys(file)?;
            let (file, public) = (file.display(), public.display());
            say(&format!(
                "{file}: keep it where only publishers can read it\n{public}: for the hosts\n"
            ))
        }
        FleetCommand::Plan { store, stages, stop } => {
            plan(&StoreHandle::read(store)?, stages, stop)
        }
        FleetCommand::Publish(args) => publish(args),
        FleetCommand::Lease(args) => lease(args),
        FleetCommand::Status { store, format, metrics } => {
            status(&StoreHandle::read(store)?, *format, metrics.as_ref())
        }
        FleetCommand::Rollback { store, version } => {
            let (opened, key) = StoreHandle::write(store)?;
            let fleet = opened.fleet();
            let current = fleet.current().map_err(failure)?;
            let rollout = fleet.roll_back(&key, current, *version, now()).map_err(failure)?;
            shown(&fleet, &rollout)
        }
        FleetCommand::Freeze { store, off } => {
            let (opened, key) = StoreHandle::write(store)?;
            let fleet = opened.fleet();
            shown(&fleet, &fleet.freeze(&key, !off, now()).map_err(failure)?)
        }
    }
}

/// A store with the keys that count.
struct StoreHandle {
    store: Box<dyn Store>,
    keys: Vec<PublicKey>,
}

impl StoreHandle {
    fn read(args: &ReadArgs) -> Result<Self, Failure> {
        Ok(Self {
            store: store::open(&args.store)?,
            keys: public_keys("--public-key <FILE>", &args.public_key)?,
        })
    }

    fn write(args: &WriteArgs) -> Result<(Self, SigningKey), Failure> {
        let key = signing_key(&args.key)?;
        let mut keys = public_keys("--public-key <FILE>", &args.public_key)?;
        keys.push(key.public());
        Ok((Self { store: store::open(&args.store)?, keys }, key))
    }

    fn fleet(&self) -> Fleet<'_> {
        Fleet::new(&*self.store, &self.keys)
    }

    fn status(&self) -> Result<((Rollout, Tag), FleetStatus), Failure> {
        let fleet = self.fleet();
        let current = fleet.current().map_err(failure)?;
        let status = FleetStatus::new(&current.0, fleet.reports().map_err(failure)?, now());
        Ok((current, status))
    }
}

fn failure(error: PublishError) -> Failure {
    match error {
        PublishError::Policy(_)
        | PublishError::Pack(_)
        | PublishError::Stages(_)
        | PublishError::Order(..) => Failure::Usage(error.to_string()),
        PublishError::Held(_)
        | PublishError::Running(..)
        | PublishError::Frozen
        | PublishError::NoLease(_)
        | PublishError::NothingToRollBack
        | PublishError::RolledBack(_)
        | PublishError::TakenBack(_) => Failure::Missed(error.to_string()),
        PublishError::Store(error) => store::failure(&error),
        error => Failure::Environment(error.to_string()),
    }
}

fn now() -> u64 {
    unix_s().max(0).unsigned_abs()
}

fn seconds(span: TimeDelta) -> u64 {
    std::time::Duration::from(span).as_secs()
}

fn say(text: &str) -> Result<(), Failure> {
    stdout::write(text.as_bytes())
}

fn publish(args: &PublishArgs) -> Result<(), Failure> {
    let (opened, key) = StoreHandle::write(&args.store)?;
    let Some(policy) = &args.policy else { return go_on(&opened, &key, args) };
    let life = seconds(args.expires);
    if life < MIN_LIFE_S {
        return Err(Failure::value("--expires <TIME>", args.expires, "hosts need at least 1h"));
    }
    let stages = (args.stages.clone(), seconds(args.hold));
    let times = (now(), now().saturating_add(life));
    let (fleet, files) = (opened.fleet(), packed(policy)?);
    note_empty_places(&fleet, args)?;
    let Some(holder) = &args.holder else {
        let begun = if args.at_once {
            fleet.begin_at_once(&key, &files, times)
        } else {
            fleet.begin(&key, &files, stages, times)
        };
        return shown(&fleet, &begun.map_err(failure)?);
    };
    let planned = if args.at_once {
        fleet.switch_planned((&key, holder), &files, times)
    } else {
        fleet.publish_planned((&key, holder), &files, stages, times)
    };
    match planned.map_err(failure)? {
        Planned::Published(rollout) => shown(&fleet, &rollout),
        Planned::Unchanged(rollout) => {
            say("the fleet has this policy\n")?;
            shown(&fleet, &rollout)
        }
    }
}

/// A stage of a place without hosts shows nothing, and a name that is mistyped is one.
fn note_empty_places(fleet: &Fleet<'_>, args: &PublishArgs) -> Result<(), Failure> {
    let places = args.stages.iter().filter(|stage| matches!(stage, Stage::Place(_)));
    let places: Vec<&Stage> = places.filter(|_| !args.at_once).collect();
    if places.is_empty() {
        return Ok(());
    }
    let reports = fleet.reports().map_err(failure)?;
    let reports: Vec<_> = reports.into_iter().filter_map(|it| Some(it.report.ok()?.0)).collect();
    for place in places {
        if !reports.iter().any(|it| place.has(&it.host, it.place.as_ref())) {
            eprintln!("note: no host has reported from {place}: its stage has no evidence");
        }
    }
    Ok(())
}

fn lease(args: &LeaseArgs) -> Result<(), Failure> {
    let store = store::open(&args.store)?;
    let fleet = Fleet::new(&*store, &[]);
    let held = match &args.holder {
        None => fleet.lease().map_err(failure)?.map(|(lease, _)| lease),
        Some(_) if seconds(args.time) == 0 => {
            return Err(Failure::value(
                "--for <TIME>",
                args.time,
                "it would end at once; --release ends a lease",
            ));
        }
        Some(holder) if args.release => {
            fleet.release_lease(holder, now()).map_err(failure)?;
            return say(&format!("{holder} does not hold the lease\n"));
        }
        Some(holder) => Some(fleet.take_lease(holder, now(), seconds(args.time)).map_err(failure)?),
    };
    say(&match held.filter(|lease| !lease.is_expired(now())) {
        Some(lease) => {
            format!("{} holds the lease until {}\n", lease.holder, rfc3339(lease.expires_unix_s))
        }
        None => "no planner holds the lease\n".to_owned(),
    })
}

/// The next step of the version that goes out.
fn go_on(opened: &StoreHandle, key: &SigningKey, args: &PublishArgs) -> Result<(), Failure> {
    let (current, status) = opened.status()?;
    let gates = gates(&args.stop.stop_if);
    let step = current.0.next_step(&status.hosts, &gates, args.stop.tolerance(), now());
    let fleet = opened.fleet();
    match step {
        Next::Nothing => say("no version goes out\n"),
        Next::Hold(reasons) => say(&format!("not yet: {}\n", reasons.join("; "))),
        Next::Stop(reasons) if args.rollback => {
            let back = fleet.roll_back(key, current, None, now()).map_err(failure)?;
            shown(&fleet, &back)?;
            Err(Failure::Missed(format!("rolled back: {}", reasons.join("; "))))
        }
        Next::Stop(reasons) => Err(Failure::Missed(format!(
            "it must not go on: {}\nhelp: uncork fleet rollback",
            reasons.join("; ")
        ))),
        step => shown(&fleet, &fleet.go_on(key, current, &step, now()).map_err(failure)?),
    }
}

/// What was published. It is active without its copy for later readers, too.
fn shown(fleet: &Fleet<'_>, rollout: &Rollout) -> Result<(), Failure> {
    if let Some(error) = fleet.uncopied() {
        let serial = rollout.serial;
        eprintln!("note: rollout {serial} is active, and has no copy in rollouts/: {error}");
    }
    let stable = rollout.stable.as_ref();
    let stable =
        stable.map_or_else(|| "their default".to_owned(), |it| format!("version {}", it.version));
    let mut text = format!("rollout {}: ", rollout.serial);
    // Writing into a string cannot fail.
    let _ = match (&rollout.next, &rollout.stable) {
        (Some(next), _) => {
            let stage = next.stages.get(next.stage).map(ToString::to_string).unwrap_or_default();
            let version = next.target.version;
            writeln!(text, "version {version} at stage {stage}, other hosts run {stable}")
        }
        (None, Some(again))
            if rollout.rolled_back.is_some_and(|highest| again.version > highest) =>
        {
            let until = rfc3339(again.expires_unix_s);
            writeln!(
                text,
                "from the next poll on, all hosts run {stable}: the files of an earlier version that they would refuse, signed again until {until}"
            )
        }
        (None, _) => writeln!(text, "from the next poll on, all hosts run {stable}"),
    };
    if rollout.frozen {
        text.push_str("frozen: hosts stay where they are\n");
    }
    say(&text)
}

fn plan(opened: &StoreHandle, stages: &[Stage], stop: &StopArgs) -> Result<(), Failure> {
    let ((rollout, _), status) = opened.status()?;
    let (stages, at) = match &rollout.next {
        Some(next) => (&*next.stages, Some(next.stage)),
        None => (stages, None),
    };
    let mut text = status.text();
    for (place, stage) in stages.iter().enumerate() {
        let is_in =
            |host: &&HostStatus| Stage::any_has(&stages[..=place], &host.host, host.place.as_ref());
        let hosts: Vec<&str> =
            status.hosts.iter().filter(is_in).map(|host| host.host.as_str()).collect();
        let mark = if at == Some(place) { " (now)" } else { "" };
        let count = if hosts.len() == 1 { "1 host" } else { &format!("{} hosts", hosts.len()) };
        let _ = writeln!(text, "stage {stage}{mark}: {count}: {}", first_hosts(&hosts));
    }
    let step = rollout.next_step(&status.hosts, &gates(&stop.stop_if), stop.tolerance(), now());
    let line = match step {
        Next::Nothing => "no version goes out".to_owned(),
        Next::Stage(stage) => format!("next: stage {}", stages[stage]),
        Next::Widen(stage) => {
            format!("next: no host of the stage has reported; it begins again as {stage}")
        }
        Next::Finish => "next: all hosts have it".to_owned(),
        Next::Hold(reasons) => format!("not yet: {}", reasons.join("; ")),
        Next::Stop(reasons) => format!("it must not go on: {}", reasons.join("; ")),
    };
    let _ = writeln!(text, "{line}");
    say(&text)
}

fn status(
    opened: &StoreHandle,
    format: TextFormat,
    metrics: Option<&PathBuf>,
) -> Result<(), Failure> {
    let (_, status) = opened.status()?;
    if let Some(metrics) = metrics {
        file::replace_metrics(metrics, &status.metrics())?;
    }
    print::document(format, &status, FleetStatus::text)?;
    if status.attention.is_empty() { Ok(()) } else { Err(Failure::Status(1)) }
}
