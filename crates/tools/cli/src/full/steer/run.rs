//! The commands of `uncork steer`.

use std::collections::BTreeSet;
use std::path::Path;

use uncork_kernel::DIRECTORY;
use uncork_policy::{InitialRate, OtherProgram, Policy, Prefixes, UnixTime};
use uncork_private_files::releases::Releases;
use uncork_steer::{
    Description, ExplanationDocument, MoveDocument, MoveRequest, Question, Request, StatusDocument,
    SteerPins, Steered, apply, guard, steered_below,
};

use super::args::{
    CgroupArgs, MoveArgs, SteerApplyArgs, SteerArgs, SteerCommand, SteerExplainArgs,
};
use super::cgroups::{at, chosen, failure};
use super::{netns, record};
use crate::failure::Failure;
use crate::full::policy::{origins, read};
use crate::full::unix_time::unix_s;
use crate::values::TextFormat;
use crate::{print, stdout};

pub(crate) fn run(args: &SteerArgs) -> Result<(), Failure> {
    let pins = SteerPins::in_directory(DIRECTORY);
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

fn apply_policy(pins: &SteerPins, args: &SteerApplyArgs) -> Result<(), Failure> {
    let policy = read(&args.file, args.policy_key.as_deref(), args.color)?;
    let origins = origins(&args.geo)?;
    let mut warnings = policy.warnings_by_port(&args.listener, !args.geo.is_empty());
    warnings.extend(paced_bursts(&policy));
    show_warnings(&warnings);
    let request = Request {
        policy: &policy,
        cgroup: &args.cgroup,
        listeners: &args.listener,
        origins: &origins,
        warnings: &warnings,
        unix_s: unix_s(),
        ttl: args.ttl.map(Into::into),
    };
    let applied = apply(pins, &request).map_err(failure)?;
    if args.ttl.is_none() {
        accept(&applied.description);
    }
    warn_of_routes();
    warn_of_others(&at(pins, &args.cgroup)?, &args.cgroup);
    let replaces = |below: String| {
        format!(
            "this policy replaces the one of {below}, which lies below: of several the outermost counts; `uncork steer revert` \
             removes one"
        )
    };
    let below = steered_below(pins, &args.cgroup).map_err(failure)?;
    show_warnings(&below.into_iter().map(replaces).collect::<Vec<_>>());
    stdout::write(applied.text().as_bytes())?;
    match args.ttl {
        Some(ttl) => stdout::write(
            format!("rolled back in {ttl}, unless you run: uncork steer confirm\n").as_bytes(),
        ),
        None => Ok(()),
    }
}

/// Settings that ask BBR for a burst: it paces by itself from the first packet.
fn paced_bursts(policy: &Policy) -> Vec<String> {
    let bursts = policy.settings().filter(|it| it.initial_rate == Some(InitialRate::Burst));
    let names: BTreeSet<&str> = bursts.filter_map(|it| it.tcp.as_deref()).collect();
    let paced = names.into_iter().filter(|name| name.contains("bbr"));
    paced
        .map(|name| {
            format!(
                "{}: initial_rate = \"burst\" has no effect with {name}, which paces itself",
                policy.name()
            )
        })
        .collect()
}

fn confirm(pins: &SteerPins, args: &CgroupArgs) -> Result<(), Failure> {
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
    show_warnings(&others.iter().map(OtherProgram::warning).collect::<Vec<_>>());
}

fn revert(pins: &SteerPins, args: &CgroupArgs) -> Result<(), Failure> {
    for steered in chosen(pins, args)? {
        let text = match steered.revert().map_err(failure)? {
            Some(it) => format!("{} is removed from {}\n", it.policy, it.cgroup),
            None => "what a killed process or a removed cgroup had left is removed\n".to_owned(),
        };
        stdout::write(text.as_bytes())?;
    }
    Ok(())
}

fn status(pins: &SteerPins, args: &CgroupArgs, format: TextFormat) -> Result<(), Failure> {
    let (mut all, mut unguarded) = (Vec::new(), false);
    let steered = match chosen(pins, args) {
        // A document also says that nothing is steered.
        Err(missed @ Failure::Missed(_)) if format == TextFormat::Json => {
            print::document(format, &StatusDocument::new(&all), StatusDocument::text)?;
            return Err(missed);
        }
        steered => steered?,
    };
    for steered in steered {
        if steered.status().map_err(failure)?.is_some_and(|status| status.is_unguarded()) {
            unguarded = true;
            guard_again(&steered);
        }
        // Another watchdog may have rolled the policy back.
        if let Some(status) = steered.status().map_err(failure)? {
            warn_of_others(&steered, Path::new(&status.description.cgroup));
            show_warnings(&status.description.warnings);
            all.push(status);
        }
    }
    print::document(format, &StatusDocument::new(&all), StatusDocument::text)?;
    match (all.is_empty(), unguarded) {
        (true, _) => Err(Failure::Missed("no policy is active".to_owned())),
        (false, true) => Err(Failure::Status(1)),
        (false, false) => Ok(()),
    }
}

fn guard_again(steered: &Steered) {
    match steered.guard_again() {
        Ok(true) => eprintln!(
            "warning: the process that would roll the policy back had ended; another one was started"
        ),
        Ok(false) => eprintln!(
            "warning: the process that would roll the policy back had ended; another one has rolled it back, because its time \
             had passed"
        ),
        Err(error) => eprintln!(
            "warning: the process that would roll the policy back has ended, and no other one starts: {error}; run \
             `uncork steer confirm` or `uncork steer revert`"
        ),
    }
}

fn move_open(pins: &SteerPins, args: &MoveArgs) -> Result<(), Failure> {
    let clients = (!args.client.is_empty()).then(|| Prefixes::new(args.client.iter().copied()));
    let request = MoveRequest {
        clients: clients.as_ref(),
        rule: args.rule.as_deref(),
        from: args.from.as_deref(),
        unix_s: unix_s(),
        is_dry_run: args.dry_run,
    };
    let mut all = Vec::new();
    netns::enter(args.netns.as_deref())?;
    for steered in chosen(pins, &args.cgroup)? {
        let moves = steered.move_open(&request).map_err(failure)?;
        netns::warn_of_others(Path::new(&moves.cgroup));
        if args.format == TextFormat::Human {
            stdout::write(moves.text().as_bytes())?;
        }
        all.push(moves);
    }
    let refused: u64 = all.iter().filter_map(|moves| moves.refused).sum();
    if args.format == TextFormat::Json {
        let document = MoveDocument::new(all, args.dry_run);
        stdout::write(print::json(&document)?.as_bytes())?;
    }
    if refused > 0 {
        let problem = format!("the kernel refused to move {refused} connections");
        return Err(Failure::Missed(problem));
    }
    Ok(())
}

fn explain(pins: &SteerPins, args: &SteerExplainArgs) -> Result<(), Failure> {
    let question = Question {
        client: args.client,
        port: (!args.opened).then_some(args.port),
        unix_s: args.at.map_or_else(unix_s, |UnixTime(seconds)| seconds),
    };
    let mut all = chosen(pins, &args.cgroup)?;
    if all.len() > 1 {
        // Pins of a removed cgroup have nothing to ask.
        all.retain(|steered| !matches!(steered.status(), Ok(None)));
    }
    for steered in all {
        let explanation = steered.ask(&question).map_err(failure)?;
        if let Some(active) = steered.active().map_err(failure)? {
            warn_of_others(&steered, Path::new(&active.cgroup));
        }
        print::document(args.format, &explanation, ExplanationDocument::text)?;
    }
    Ok(())
}
