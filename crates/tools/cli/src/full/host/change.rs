//! `uncork host plan`, `apply`, `confirm`, `revert` and `status`.

use std::fs;
use std::path::Path;

use uncork_host::change::{
    self, ChangeError, DesiredState, Host, Journal, LiveHost, OtherJournal, PlanDocument,
    PlanError, Report, Source, StateDirectory, Watchdog,
};
use uncork_private_files::lock::Lock;

use super::change_args::{ApplyArgs, ChangeCommand, HostStatusArgs, PlanArgs, StateArgs};
use crate::failure::Failure;
use crate::values::Color;
use crate::{color, print, stdout};

pub(super) fn run(command: &ChangeCommand) -> Result<(), Failure> {
    match command {
        ChangeCommand::Plan(args) => plan(args),
        ChangeCommand::Apply(args) => apply(args),
        ChangeCommand::Confirm(args) => changing(args, "All changes are kept.", change::confirm),
        ChangeCommand::Revert(args) if args.forget => forget(&args.state),
        ChangeCommand::Revert(args) => changing(&args.state, "Nothing to restore.", change::revert),
        ChangeCommand::Status(args) => status(args),
        ChangeCommand::Guard(args) => {
            change::watch(&directory(&args.state), &args.state.root);
            Ok(())
        }
    }
}

fn plan(args: &PlanArgs) -> Result<(), Failure> {
    let (name, text) = read(&args.desired.file)?;
    let desired = parse(&name, &text, args.desired.color)?;
    let mut host = host(&args.state);
    let journal = host.load().map_err(failure)?;
    let journal = journal.unwrap_or_else(|| Journal::new(&host.now().boot));
    let plan = change::plan(&mut host, &desired, &journal).map_err(failure)?;
    let document = plan.document(&name);
    print::document(args.format, &document, PlanDocument::text)?;
    if document.changes.is_empty() { Ok(()) } else { Err(Failure::Status(1)) }
}

fn apply(args: &ApplyArgs) -> Result<(), Failure> {
    let ttl_s = args.ttl.map(|ttl| ttl.as_nanos().div_ceil(1_000_000_000));
    let Some(file) = &args.file else {
        return changing(&args.state, "Nothing to apply again.", change::apply_again);
    };
    let (name, text) = read(file)?;
    let desired = parse(&name, &text, args.color)?;
    let source = Source { file: &name, text: &text, desired: &desired };
    let nothing = format!("This host matches {name}. Nothing was changed.");
    changing(&args.state, &nothing, |host| change::apply(host, source, ttl_s))
}

fn status(args: &HostStatusArgs) -> Result<(), Failure> {
    let mut host = host(&args.state);
    let status = change::status(&mut host).map_err(failure)?;
    let holder = directory(&args.state).holder();
    print::document(args.format, &status, |status| status.text(host.now().unix_s, holder))?;
    let is_dead = status.guard == Some(Watchdog::Dead);
    if is_dead && directory(&args.state).is_own() {
        host.post_guard().map_err(failure)?;
        eprintln!("note: another process that undoes the changes was started");
    } else if is_dead {
        eprintln!("help: run `uncork host status` as root, which starts another one");
    }
    if status.needs_action(holder) { Err(Failure::Status(1)) } else { Ok(()) }
}

/// What `uncork status` shows of the settings.
pub(crate) struct HostLook {
    pub(crate) status: Result<change::Status, String>,
    /// Of other network namespaces and earlier boots.
    pub(crate) others: Result<Vec<OtherJournal>, String>,
    /// The process that changes or tests them.
    pub(crate) holder: Option<u32>,
}

pub(crate) fn look_at_host(args: &StateArgs) -> HostLook {
    let directory = directory(args);
    HostLook {
        status: change::status(&mut host(args)).map_err(|error| error.to_string()),
        others: directory
            .others()
            .map_err(|error| format!("{}: {error}", directory.path().display())),
        holder: directory.holder(),
    }
}

/// Begins a new journal, and shows what the old one knew.
fn forget(args: &StateArgs) -> Result<(), Failure> {
    let _lock = lock(args)?;
    let directory = directory(args);
    let known = host(args).load().ok().flatten();
    let text = match directory.forget().map_err(failure)? {
        Some(moved) => format!(
            "All settings stay as they are; nothing of them will be restored. The old journal is {}.\n",
            moved.display()
        ),
        None => "The host has no journal.\n".to_owned(),
    };
    let forgotten = known.as_ref().map(Journal::forgotten).unwrap_or_default();
    stdout::write((text + &forgotten).as_bytes())
}

/// Runs a command that changes the host, alone, and prints what it did, or `nothing`.
fn changing(
    args: &StateArgs,
    nothing: &str,
    command: impl FnOnce(&mut LiveHost) -> Result<Report, ChangeError>,
) -> Result<(), Failure> {
    let _lock = lock(args)?;
    let mut host = host(args);
    let done = command(&mut host);
    if let Some(reason) = host.unwritten() {
        eprintln!(
            "warning: the journal does not say what was done: {reason}\nhelp: when it can be written again, run \
             `uncork host revert` once more"
        );
    }
    let report = done.map_err(failure)?;
    if report.remaining_s.is_some() && host.guard() == Watchdog::Dead {
        host.post_guard().map_err(failure)?;
    }
    stdout::write(report.text(nothing).as_bytes())?;
    if report.has_left() || report.refused.is_some() { Err(Failure::Status(1)) } else { Ok(()) }
}

fn directory(args: &StateArgs) -> StateDirectory {
    StateDirectory::new(&args.state_dir)
}

/// Waits until no other command changes this host. The guard ends a command that is stopped (SIGSTOP), so a guard must run.
pub(super) fn lock(args: &StateArgs) -> Result<Lock, Failure> {
    let on_wait = |holder: Option<u32>| {
        let holder = holder.map_or_else(String::new, |process| format!(" (process {process})"));
        eprintln!(
            "note: another uncork command{holder} changes this host; waiting until it has ended"
        );
        let mut host = host(args);
        if host.guard() == Watchdog::Dead {
            // Then waiting ends with an error.
            let _ = host.post_guard();
        }
    };
    directory(args).lock(on_wait).map_err(failure)
}

pub(super) fn host(args: &StateArgs) -> LiveHost {
    LiveHost::new(directory(args), &args.root)
}

fn read(file: &Path) -> Result<(String, String), Failure> {
    let text =
        fs::read_to_string(file).map_err(|error| Failure::unreadable("<FILE>", file, &error))?;
    Ok((file.display().to_string(), text))
}

fn parse(name: &str, text: &str, color: Color) -> Result<DesiredState, Failure> {
    DesiredState::parse(text)
        .map_err(|error| Failure::Shown(error.render(name, color::on_stderr(color))))
}

pub(super) fn failure(error: impl Into<ChangeError>) -> Failure {
    let error = error.into();
    match error {
        ChangeError::Waiting { .. } | ChangeError::NothingToConfirm(_) => {
            Failure::Missed(error.to_string())
        }
        ChangeError::Plan(PlanError::Impossible(_)) => Failure::Environment(format!(
            "this host cannot reach the desired state; nothing was changed\n{error}"
        )),
        ChangeError::Plan(PlanError::Policy(_)) => {
            Failure::Usage(format!("nothing was changed\n{error}"))
        }
        _ => Failure::Environment(error.to_string()),
    }
}
