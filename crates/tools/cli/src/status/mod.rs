//! `uncork status`: what of uncork is active on this host. It asks what `host`, `kernel` and `steer` know, and changes nothing.

mod document;
mod processes;
mod text;

use clap::Args;
use rustix::process::geteuid;
use uncork_host::change::{State, Watchdog};
use uncork_steer::Error;

use crate::clock;
use crate::failure::Failure;
use crate::host::{HostLook, StateArgs, look_at_host};
use crate::json::pretty;
use crate::kernel::look_at_kernel;
use crate::stdout;
use crate::steer::{SteeredCgroup, look_at_steered};
use crate::values::TextFormat;
use document::StatusDocument;

const EXAMPLES: &str = "\
Examples:
  sudo uncork status
  sudo uncork status --format json | jq .attention
  sudo nsenter --net=/run/netns/web uncork status  # of another network namespace";

const AFTER: &str = "\
It changes nothing. Settings are those of the current network namespace; the journals of others are listed. Without root, parts \
may not be visible: the output names them. `uncork host status`, `uncork kernel status` and `uncork steer status` have the details.

Exit status: 0 as it should be, 1 something needs attention (such as a dead guard, or a setting that another program changed), 2 wrong \
usage, 5 a bug.";

/// Show what of uncork is active on this host: settings, controllers, policies, tests, servers
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct StatusArgs {
    /// Output format
    #[arg(long, default_value = "human")]
    format: TextFormat,
    #[command(flatten)]
    state: StateArgs,
}

pub(crate) fn status(args: &StatusArgs) -> Result<(), Failure> {
    let document = look(&args.state);
    let text = match args.format {
        TextFormat::Json => pretty(&document)?,
        TextFormat::Human => text::of(&document),
    };
    stdout::write(text.as_bytes())?;
    if document.attention.is_empty() { Ok(()) } else { Err(Failure::Status(1)) }
}

/// Asks each part. What one of them cannot see keeps no other from being shown.
fn look(state: &StateArgs) -> StatusDocument {
    let mut document = StatusDocument::new(clock::unix_s());
    let HostLook { status, others, holder } = look_at_host(state);
    document.changed_by = holder;
    document.host = document.noted("settings", status);
    document.journals = document.noted("journals", others).unwrap_or_default();
    document.kernel = document.noted("controllers", look_at_kernel());
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
        match look_at_steered() {
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
