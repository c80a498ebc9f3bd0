//! `uncork steer`: a policy for the connections of any server.

mod args;
mod cgroups;
mod netns;
mod record;
mod show;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use uncork_host::releases::Releases;
use uncork_host::{ActivePolicy, OtherProgram};
use uncork_kernel::DIRECTORY;
use uncork_policy::{Prefixes, UnixTime};
use uncork_steer::{
    Description, Error, MoveRequest, Other, Pins, Question, Request, Status, Steered, apply, guard,
};

use crate::clock;
use crate::failure::Failure;
use crate::policy::{origins, read};
use crate::stdout;
use crate::values::TextFormat;
pub(crate) use args::SteerArgs;
use cgroups::{at, chosen, failure};
use args::{ApplyArgs, CgroupArgs, ExplainArgs, MoveArgs, SteerCommand};
pub(crate) use show::{StatusOfCgroup, SteerDocument, steer_document};

pub(crate) fn steer(args: &SteerArgs) -> Result<(), Failure> {
    let pins = Pins::in_directory(DIRECTORY);
    match &args.command {
        SteerCommand::Apply(args) => apply_policy(&pins, args),
        SteerCommand::Confirm(args) => confirm(&pins, args),
        SteerCommand::Guard { number } => guard(&pins, *number).map_err(failure),
        SteerCommand::Revert(args) => revert(&pins, args),
        SteerCommand::Status { cgroup, format } => status(&pins, cgroup, *format),
        SteerCommand::Explain(args) => explain(&pins, args),
        SteerCommand::Move(args) => move_open(&pins, args),
        SteerCommand::Record(args) => record::record(&pins, args),
    }
}

fn apply_policy(pins: &Pins, args: &ApplyArgs) -> Result<(), Failure> {
    let policy = read(&args.file, args.policy_key.as_deref(), args.color)?;
    let origins = origins(&args.geo)?;
    let warnings = policy.warnings_by_port(&args.listener, !args.geo.is_empty());
    show_warnings(&warnings);
    let request = Request {
        policy: &policy,
        cgroup: &args.cgroup,
        listeners: &args.listener,
        origins: &origins,
        warnings: &warnings,
        unix_s: clock::unix_s(),
        ttl: args.ttl.map(Into::into),
    };
    let applied = apply(pins, &request).map_err(failure)?;
    if args.ttl.is_none() {
        accept(&applied.description);
    }
    warn_of_routes();
    warn_of_others(&at(pins, &args.cgroup)?, &args.cgroup);
    let what = if applied.exchanged { "replaces the policy before" } else { "is active" };
    let (policy, cgroup) = (&applied.description.policy, &applied.description.cgroup);
    let networks = applied.description.networks;
    let plural = if networks == 1 { "" } else { "s" };
    let text =
        format!("{policy} {what} for new connections of {cgroup}: {networks} network{plural}\n");
    stdout::write(text.as_bytes())?;
    match args.ttl {
        Some(ttl) => stdout::write(
            format!("rolled back in {ttl}, unless you run: uncork steer confirm\n").as_bytes(),
        ),
        None => Ok(()),
    }
}

fn confirm(pins: &Pins, args: &CgroupArgs) -> Result<(), Failure> {
    let mut kept = 0;
    for steered in chosen(pins, args)? {
        if steered.confirm().map_err(failure)? {
            kept += 1;
            steered.active().map_err(failure)?.iter().for_each(accept);
        }
    }
    match kept {
        0 => Err(Failure::Missed("no policy is pending".to_owned())),
        _ => stdout::write(b"the policy is kept\n"),
    }
}

/// From now on, policies of the same key that are older than this one are refused. One that is rolled back was not accepted.
fn accept(description: &Description) {
    let Some(release) = &description.release else { return };
    let noted = Releases::of_user().accept(release);
    show_warnings(noted.err().as_slice());
    show_warnings(release.warning().map(str::to_owned).as_slice());
}

fn show_warnings(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

/// Warns about routes that lock their controller. If the routes cannot be listed, does not warn.
fn warn_of_routes() {
    for route in uncork_host::routes().unwrap_or_default().iter().filter(|route| route.is_locked) {
        let (to, cc, table) = (&route.destination, &route.congctl, route.table);
        eprintln!(
            "warning: connections to {to} keep {cc} despite the policy: a route locks it (ip route show table {table} {to})"
        );
    }
}

/// Programs of others that also see the connections.
fn warn_of_others(steered: &Steered, cgroup: &Path) {
    let others = steered.others(cgroup).unwrap_or_else(|_| {
        eprintln!("note: without CAP_NET_ADMIN the kernel does not report whether other programs choose controllers, too");
        Vec::new()
    });
    for Other { number, name, is_last } in others {
        let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
        let (order, winner) = if is_last { ("after", "its") } else { ("before", "the policy's") };
        eprintln!(
            "warning: another program{name} runs {order} the policy's for the same connections: if it chooses a controller, {winner} \
             counts (bpftool prog show id {number})"
        );
    }
}

/// The other programs of all steered cgroups, for `uncork host doctor`; none if the kernel does not report them.
pub(crate) fn other_programs() -> Vec<OtherProgram> {
    let mut found = Vec::new();
    for steered in all_steered() {
        let Ok(Some(status)) = steered.status() else { continue };
        let cgroup = status.description.cgroup;
        let others = steered.others(Path::new(&cgroup)).unwrap_or_default().into_iter();
        found.extend(others.map(|Other { number, name, is_last }| OtherProgram {
            cgroup: cgroup.clone(),
            number,
            name,
            is_last,
        }));
    }
    found
}

/// A cgroup with pins, for `uncork status`.
pub(crate) struct SteeredCgroup {
    /// What is active there; `None` if nothing is, because a command was killed or the cgroup was removed.
    pub(crate) status: Option<Status>,
    /// The process that records its connections.
    pub(crate) recorder: Option<u32>,
    directory: PathBuf,
}

impl SteeredCgroup {
    /// What needs attention.
    pub(crate) fn attention(&self) -> Vec<String> {
        let Some(status) = &self.status else {
            let left = self.directory.display();
            return vec![format!(
                "{left} is left of a killed command or a removed cgroup; run `uncork steer revert`"
            )];
        };
        let cgroup = &status.description.cgroup;
        let is_unguarded = status.pending.as_ref().is_some_and(|pending| !pending.is_guarded);
        let unguarded = is_unguarded.then(|| {
            format!(
                "{cgroup}: the process that rolls its policy back is dead; `uncork steer status` starts another one"
            )
        });
        let known = uncork_kernel::available();
        let named = status.description.decided.iter().filter_map(|decided| decided.tcp.as_ref());
        let missing: BTreeSet<&String> = named.filter(|name| !known.contains(name)).collect();
        let missing = missing.into_iter().map(|name| {
            format!("{cgroup}: its policy chooses {name}, which the kernel does not have any more")
        });
        unguarded.into_iter().chain(missing).collect()
    }
}

/// All cgroups with pins.
pub(crate) fn look_at_steered() -> Result<Vec<SteeredCgroup>, Error> {
    let all = Steered::all(&Pins::in_directory(DIRECTORY))?;
    let look = |steered: Steered| -> Result<SteeredCgroup, Error> {
        Ok(SteeredCgroup {
            status: steered.status()?,
            recorder: steered.recorder(),
            directory: steered.directory().to_owned(),
        })
    };
    all.into_iter().map(look).collect()
}

/// All cgroups that are steered; none where they cannot be read.
pub(crate) fn all_steered() -> Vec<Steered> {
    Steered::all(&Pins::in_directory(DIRECTORY)).unwrap_or_default()
}

/// The active policies of all cgroups with the controllers that they name, for `uncork host doctor`. What the kernel does not report is
/// missing.
pub(crate) fn active_policies() -> Vec<ActivePolicy> {
    let active = all_steered().into_iter().filter_map(|steered| steered.status().ok().flatten());
    let policies = active.map(|status| {
        let description = status.description;
        let controllers: BTreeSet<String> =
            description.decided.into_iter().filter_map(|decided| decided.tcp).collect();
        ActivePolicy {
            cgroup: description.cgroup,
            policy: description.policy,
            controllers: controllers.into_iter().collect(),
        }
    });
    policies.collect()
}

fn revert(pins: &Pins, args: &CgroupArgs) -> Result<(), Failure> {
    for steered in chosen(pins, args)? {
        let text = match steered.revert().map_err(failure)? {
            Some(it) => format!("{} is removed from {}\n", it.policy, it.cgroup),
            None => "what a killed process or a removed cgroup had left is removed\n".to_owned(),
        };
        stdout::write(text.as_bytes())?;
    }
    Ok(())
}

fn status(pins: &Pins, args: &CgroupArgs, format: TextFormat) -> Result<(), Failure> {
    let (mut all, mut unguarded) = (Vec::new(), false);
    for steered in chosen(pins, args)? {
        if let Some(status) = steered.status().map_err(failure)? {
            if status.pending.as_ref().is_some_and(|pending| !pending.is_guarded) {
                unguarded = true;
                guard_again(&steered);
            }
            warn_of_others(&steered, Path::new(&status.description.cgroup));
            show_warnings(&status.description.warnings);
            all.push(status);
        }
    }
    match format {
        TextFormat::Json => stdout::write(show::status_json(&all)?.as_bytes()),
        TextFormat::Human => stdout::write(show::status(&all).as_bytes()),
    }?;
    match (all.is_empty(), unguarded) {
        (true, _) => Err(Failure::Missed("no policy is active".to_owned())),
        (false, true) => Err(Failure::Status(1)),
        (false, false) => Ok(()),
    }
}

fn guard_again(steered: &Steered) {
    match steered.guard_again() {
        Ok(()) => eprintln!(
            "warning: the process that would roll the policy back had ended; another one was started"
        ),
        Err(error) => eprintln!(
            "warning: the process that would roll the policy back has ended, and no other one starts: {error}; run \
             `uncork steer confirm` or `uncork steer revert`"
        ),
    }
}

fn move_open(pins: &Pins, args: &MoveArgs) -> Result<(), Failure> {
    let clients = (!args.client.is_empty()).then(|| Prefixes::new(args.client.iter().copied()));
    let request = MoveRequest {
        clients: clients.as_ref(),
        rule: args.rule.as_deref(),
        from: args.from.as_deref(),
        unix_s: clock::unix_s(),
        is_dry_run: args.dry_run,
    };
    let mut all = Vec::new();
    netns::enter(args.netns.as_deref())?;
    for steered in chosen(pins, &args.cgroup)? {
        let moves = steered.move_open(&request).map_err(failure)?;
        netns::warn_of_others(Path::new(&moves.cgroup));
        if matches!(args.format, TextFormat::Human) {
            stdout::write(show::moves(&moves, args.dry_run).as_bytes())?;
        }
        all.push(moves);
    }
    if matches!(args.format, TextFormat::Json) {
        stdout::write(show::moves_json(&all, args.dry_run)?.as_bytes())?;
    }
    let refused: u64 = all.iter().map(|one| one.refused).sum();
    if refused > 0 {
        let problem = format!("the kernel refused to move {refused} connections");
        return Err(Failure::Missed(problem));
    }
    Ok(())
}

fn explain(pins: &Pins, args: &ExplainArgs) -> Result<(), Failure> {
    let question = Question {
        client: args.client,
        port: (!args.opened).then_some(args.port),
        unix_s: args.at.map_or_else(clock::unix_s, |UnixTime(seconds)| seconds),
    };
    let mut all = chosen(pins, &args.cgroup)?;
    if all.len() > 1 {
        // Pins of a removed cgroup have nothing to ask.
        all.retain(|steered| !matches!(steered.status(), Ok(None)));
    }
    for steered in all {
        let answer = steered.ask(&question).map_err(failure)?;
        let text = match args.format {
            TextFormat::Json => show::explanation_json(&question, &answer)?,
            TextFormat::Human => show::explanation(&question, &answer),
        };
        stdout::write(text.as_bytes())?;
    }
    Ok(())
}
