//! The commands of `uncork kernel`.

use std::io;

use uncork_host::{Others, connections_by_controller, in_other_namespaces};
use uncork_kernel::{
    Algorithm, DIRECTORY, Error, KernelStatus, LoadOptions, Loaded, Missing, Pins, Removed,
    ResumeNetworks, default, is_registered, probe, set_default,
};

use super::args::{KernelArgs, KernelCommand};
use crate::failure::Failure;
use crate::values::TextFormat;
use crate::{print, stdout};

pub(crate) fn run(args: &KernelArgs) -> Result<(), Failure> {
    let pins = Pins::in_directory(DIRECTORY);
    match &args.command {
        KernelCommand::List => list(),
        KernelCommand::Load { names, default, resume } => load(&pins, names, *default, *resume),
        KernelCommand::Upgrade { names } => upgrade(&pins, names),
        KernelCommand::Unload { names } => unload(&pins, names),
        KernelCommand::Status { format } => status(&pins, *format),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Loaded(_) | Error::NotLoaded(_) => Failure::Missed(error.to_string()),
        error => Failure::Environment(error.to_string()),
    }
}

fn list() -> Result<(), Failure> {
    let lines = Algorithm::ALL.map(|one| format!("{:<14}{}\n", one.name(), one.title()));
    stdout::write(lines.concat().as_bytes())
}

fn load(
    pins: &Pins,
    names: &[Algorithm],
    first_is_default: bool,
    resume: Option<ResumeNetworks>,
) -> Result<(), Failure> {
    let options = LoadOptions { resume, ..LoadOptions::default() };
    let load = |algorithm| {
        if pins.add_devices(algorithm)? > 0 {
            return Ok(());
        }
        pins.check_free(algorithm)?;
        pins.add(&Loaded::with(algorithm, options)?)
    };
    // A namespace that has one as its default already has an old copy.
    let line = |algorithm: Algorithm| {
        let name = algorithm.resuming_name();
        let resumes = resume.map(|_| format!("; connections with {name} resume"));
        format!("{algorithm} is loaded{}\n", resumes.unwrap_or_default())
    };
    each_then_renew(names, load, line)?;
    if let (true, Some(first)) = (first_is_default, names.first()) {
        let name = pins.make_default(*first).map_err(failure)?;
        stdout::write(format!("the default is {name}\n").as_bytes())?;
    }
    Ok(())
}

/// The controllers named, or all that are there.
fn chosen(
    names: &[Algorithm],
    is_there: impl Fn(Algorithm) -> bool,
) -> Result<Vec<Algorithm>, Failure> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    let there: Vec<_> = Algorithm::ALL.into_iter().filter(|one| is_there(*one)).collect();
    if there.is_empty() { Err(Failure::Missed("none is loaded".to_owned())) } else { Ok(there) }
}

/// For how many networks a loaded controller resumes.
fn resumed(pins: &Pins, algorithm: Algorithm) -> Result<Option<ResumeNetworks>, Error> {
    if !pins.resumes(algorithm) {
        return Ok(None);
    }
    match pins.resume_status(algorithm) {
        Ok(status) => Ok(status.and_then(|status| ResumeNetworks::new(status.networks_max))),
        Err(Error::Missing(Missing::Privilege { .. })) => {
            let networks = ResumeNetworks::DEFAULT;
            eprintln!(
                "note: without CAP_SYS_ADMIN it is unknown for how many networks {algorithm} resumes; it is upgraded with {networks}"
            );
            Ok(Some(networks))
        }
        Err(error) => Err(error),
    }
}

fn upgrade(pins: &Pins, names: &[Algorithm]) -> Result<(), Failure> {
    let names = chosen(names, |one| pins.has(one))?;
    let upgrade = |algorithm| {
        let resume = resumed(pins, algorithm)?;
        pins.replace(&Loaded::with(algorithm, LoadOptions { resume, ..LoadOptions::default() })?)
    };
    let line = |algorithm| format!("new connections get this program's {algorithm}\n");
    let Others { results, hidden_processes } = each_then_renew(&names, upgrade, line)?;
    let names = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let consequence = format!(
        "where {names} is the default, new connections get the old copy until it is set again; run `uncork kernel upgrade` as the host's root"
    );
    for (processes, result) in results {
        if let Err(error) = result {
            let processes = processes.join(", ");
            eprintln!("warning: the network namespace of {processes}: {error}: {consequence}");
        }
    }
    if hidden_processes > 0 {
        eprintln!(
            "warning: the network namespaces of {hidden_processes} processes of other users cannot be seen: {consequence}"
        );
    }
    Ok(())
}

/// Does a step for each, as far as it goes, and sets the defaults again that are one of those done.
fn each_then_renew(
    names: &[Algorithm],
    step: impl Fn(Algorithm) -> Result<(), Error>,
    line: impl Fn(Algorithm) -> String,
) -> Result<Others<Option<&'static str>>, Failure> {
    let mut done = Vec::new();
    // One that is loaded already, or is not there, keeps none of the others back.
    let mut missed = Ok(());
    let all = names.iter().try_for_each(|&algorithm| {
        match step(algorithm).map_err(failure) {
            Err(Failure::Missed(reason)) => {
                missed = Err(Failure::Missed(reason));
                return Ok(());
            }
            made => made?,
        }
        done.push(algorithm);
        stdout::write(line(algorithm).as_bytes())
    });
    let others = renew(done)?;
    all.and(missed).map(|()| others)
}

/// Sets the default again in all namespaces where it is one of these: they keep the copy that was there when it was set.
fn renew(names: Vec<Algorithm>) -> Result<Others<Option<&'static str>>, Failure> {
    set_again(&names).map_err(failure)?;
    let again = move || set_again(&names).map_err(io::Error::other);
    let others = in_other_namespaces(again);
    for (processes, result) in &others.results {
        if let Ok(Some(name)) = result {
            let processes = processes.join(", ");
            let text = format!("the network namespace of {processes} has {name} as its default\n");
            stdout::write(text.as_bytes())?;
        }
    }
    Ok(others)
}

/// The name of one of these that is the default of the calling thread's namespace; it is set again.
fn set_again(names: &[Algorithm]) -> Result<Option<&'static str>, Error> {
    let default = default();
    let found = names.iter().flat_map(|one| one.names()).find(|name| *name == default);
    if let Some(name) = found {
        set_default(name)?;
    }
    Ok(found)
}

fn unload(pins: &Pins, names: &[Algorithm]) -> Result<(), Failure> {
    if names.is_empty() {
        note_unpinned(pins);
    }
    for algorithm in chosen(names, |one| pins.is_pinned(one))? {
        // The default first: new connections are never without a controller.
        let earlier = default();
        if is_registered(algorithm) && Algorithm::named(&earlier) == Some(algorithm) {
            let other = pins.restore_default().map_err(failure)?;
            stdout::write(format!("the default is {other}, no longer {earlier}\n").as_bytes())?;
        }
        let users = connections_by_controller().map(|(users, _)| users).unwrap_or_default();
        let removed = pins.remove(algorithm).map_err(failure)?;
        let connections: u64 = algorithm.names().iter().filter_map(|name| users.get(*name)).sum();
        let text = match (removed, connections) {
            (Removed::Leftover, _) => {
                format!("{algorithm} was not loaded; what a killed command had left is removed\n")
            }
            (Removed::Controller | Removed::Unpinned, 0) => {
                format!("{algorithm} is unloaded\n")
            }
            (Removed::Controller | Removed::Unpinned, 1) => {
                format!("{algorithm} is unloaded; 1 connection keeps it until its end\n")
            }
            (Removed::Controller | Removed::Unpinned, n) => {
                format!("{algorithm} is unloaded; {n} connections keep it until they end\n")
            }
        };
        stdout::write(text.as_bytes())?;
        if removed == Removed::Unpinned {
            eprintln!(
                "warning: {algorithm} had no pin in {DIRECTORY}: another user, or a program, may have moved it"
            );
        }
    }
    Ok(())
}

/// Without names only what this program has pinned is unloaded: the rest of this host may be in use by others.
fn note_unpinned(pins: &Pins) {
    let is_unpinned = |one: &Algorithm| is_registered(*one) && !pins.is_pinned(*one);
    for algorithm in Algorithm::ALL.into_iter().filter(is_unpinned) {
        eprintln!(
            "note: {algorithm} is registered, but not by a pin in {DIRECTORY}; unregister it: uncork kernel unload {algorithm}"
        );
    }
}

fn status(pins: &Pins, format: TextFormat) -> Result<(), Failure> {
    let (users, hidden) = connections_by_controller()
        .map_err(|error| Failure::Environment(format!("connections cannot be listed: {error}")))?;
    let missing = probe(pins).err();
    print::document(
        format,
        &KernelStatus::new(pins, &users, missing.as_ref()),
        KernelStatus::text,
    )?;
    // Root sees all but what has just ended.
    if hidden > 0 && !rustix::process::geteuid().is_root() {
        eprintln!(
            "note: connections in the network namespaces of other users are not counted; run as root"
        );
    }
    match missing {
        None => Ok(()),
        // `status` loads nothing, and has reported what is loaded.
        Some(Error::Missing(missing @ Missing::Privilege { .. })) => {
            eprintln!("note: it is not known whether more can be loaded: {missing}");
            Ok(())
        }
        Some(missing) => Err(failure(missing)),
    }
}
