//! Asks each part of uncork what is active.

use rustix::process::geteuid;
use uncork_host::change::{State, Watchdog};
use uncork_host::connections_by_controller;
use uncork_kernel::{DIRECTORY, KernelStatus, probe};
use uncork_steer::{Error, SteerPins, SteeredCgroup};

use super::args::StatusArgs;
use super::document::StatusDocument;
use super::processes;
use crate::failure::Failure;
use crate::full::host::{HostLook, StateArgs, look_at_host};
use crate::full::unix_time::unix_s;
use crate::print;

pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let document = look(&args.state);
    print::document(args.format, &document, StatusDocument::text)?;
    if document.attention.is_empty() { Ok(()) } else { Err(Failure::Status(1)) }
}

/// Asks each part. What one of them cannot see keeps no other from being shown.
fn look(state: &StateArgs) -> StatusDocument {
    let mut document = StatusDocument::new(unix_s());
    let HostLook { status, others, holder } = look_at_host(state);
    document.changed_by = holder;
    document.host = document.noted("settings", status);
    document.journals = document.noted("journals", others).unwrap_or_default();
    let pins = uncork_kernel::Pins::in_directory(DIRECTORY);
    let users = connections_by_controller().map_err(|error| error.to_string());
    let kernel =
        users.map(|(users, _)| KernelStatus::new(&pins, &users, probe(&pins).err().as_ref()));
    document.kernel = document.noted("controllers", kernel);
    let steered = document.steered();
    document.processes = document.noted("processes", processes::all()).unwrap_or_default();
    if !geteuid().is_root() {
        document.unseen.push("processes of other users; run as root".to_owned());
    }
    let mut attention = document.host_attention();
    attention.extend(document.journals_attention());
    attention.extend(steered.iter().flat_map(SteeredCgroup::attention));
    document.attention.extend(attention);
    document.add_steered(steered);
    document
}

impl StatusDocument {
    fn steered(&mut self) -> Vec<SteeredCgroup> {
        let what = "steered cgroups";
        match SteeredCgroup::all(&SteerPins::in_directory(DIRECTORY)) {
            // Without a BPF file system here, there may be one in another mount namespace.
            Err(Error::Kernel(uncork_kernel::Error::Missing(missing))) => {
                self.unseen.push(format!("{what}: {missing}"));
                Vec::new()
            }
            looked => {
                self.noted(what, looked.map_err(|error| error.to_string())).unwrap_or_default()
            }
        }
    }

    /// The result; an error is what cannot be seen. Root can see all, so that it needs attention.
    fn noted<T>(&mut self, what: &str, result: Result<T, String>) -> Option<T> {
        result
            .map_err(|error| {
                let list = if geteuid().is_root() { &mut self.attention } else { &mut self.unseen };
                list.push(format!("{what}: {error}"));
            })
            .ok()
    }

    fn host_attention(&self) -> Vec<String> {
        let Some(status) = &self.host else { return Vec::new() };
        let mut found = Vec::new();
        match status.state {
            State::Rebooted if status.persist => {
                found.push(
                    "settings are not complete since the boot; run `uncork host apply --boot`",
                );
            }
            State::Rebooted => found.push(
                "settings ended with the last boot; apply them again, or run `uncork host revert`",
            ),
            State::Unfinished if self.changed_by.is_none() => {
                found.push("the command that changed settings has died; run `uncork host revert`");
            }
            _ => {}
        }
        if status.guard == Some(Watchdog::Dead) {
            found.push("the process that rolls settings back is dead; `uncork host status` as root starts another one");
        }
        if status.settings.iter().any(|setting| setting.changed)
            && status.state != State::Unfinished
        {
            found.push("another program has changed settings; see `uncork host status`");
        }
        found.into_iter().map(str::to_owned).collect()
    }

    fn journals_attention(&self) -> impl Iterator<Item = String> {
        self.journals.iter().filter_map(|other| {
            let name = other.journal.display();
            match (&other.unreadable, other.guard) {
                (Some(error), _) => Some(format!("{name}: {error}")),
                (None, Some(Watchdog::Dead)) => Some(format!(
                    "{name}: the process that rolls its settings back is dead; run `uncork host status` in its network namespace"
                )),
                _ => None,
            }
        })
    }
}
