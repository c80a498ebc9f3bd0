//! The process that undoes changes when the one that made them is dead, or when nobody confirms them.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::setsid;

use super::super::agent::{ChangeError, recover};
use super::super::host::{Host, HostError};
use super::{LiveHost, StateDirectory, state};

/// How often the guard looks whether somebody has confirmed.
const INTERVAL: Duration = Duration::from_millis(500);
/// The line that the guard prints when the death of its parent's process group no longer concerns it.
const READY: &str = "ready";

/// Whether systemd runs this host (sd_booted(3)).
pub(super) fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Starts a guard: as a service of systemd, so that the end of a login session or of another service does not
/// take it along; elsewhere as a process in a session of its own.
pub(super) fn post(state: &Path, root: &Path) -> Result<(), HostError> {
    if has_systemd() && state::is_boot_namespace() && post_service(state, root).is_ok() {
        return Ok(());
    }
    post_process(state, root).map_err(|error| {
        HostError(format!(
            "cannot start the process that guards the changes: {error}; nothing was changed"
        ))
    })
}

fn post_service(state: &Path, root: &Path) -> io::Result<()> {
    let mut run = Command::new("systemd-run");
    run.args(["--quiet", "--collect", "--property=Type=exec"]);
    run.arg(format!("--unit=uncork-host-guard-{}", std::process::id()));
    run.arg("--").arg(std::env::current_exe()?).args(["host", "guard", "--state-dir"]);
    run.arg(state).arg("--root").arg(root);
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if run.status()?.success() { Ok(()) } else { Err(io::Error::other("systemd-run failed")) }
}

fn post_process(state: &Path, root: &Path) -> io::Result<()> {
    let mut guard = Command::new(std::env::current_exe()?);
    guard.args(["host", "guard", "--state-dir"]).arg(state).arg("--root").arg(root);
    guard.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut guard = guard.spawn()?;
    let mut line = String::new();
    if let Some(stdout) = guard.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim_end() == READY { Ok(()) } else { Err(io::Error::other("it ended immediately")) }
}

/// Undoes the open changes when the process that makes them is dead, or when they expire. Returns when nothing
/// is open any more.
///
/// # Errors
///
/// The host cannot be read or changed.
pub fn watch(state: &StateDirectory, root: &Path) -> Result<(), ChangeError> {
    // Fails for the leader of a process group, such as a service: then there is no session to leave.
    let _ = setsid();
    // Nobody may listen.
    let _ = writeln!(io::stdout(), "{READY}");
    let mut host = LiveHost::new(state.clone(), root);
    loop {
        // Held by the process that makes the changes, until it ends.
        let lock = state.lock()?;
        let (journal, _) = recover(&mut host)?;
        let Some(deadline) = journal.open.and_then(|open| open.deadline_boot_s) else {
            return Ok(());
        };
        drop(lock);
        while host.now().boot_s < deadline && is_open(state)? {
            thread::sleep(INTERVAL);
        }
    }
}

fn is_open(state: &StateDirectory) -> Result<bool, HostError> {
    Ok(state.load()?.is_some_and(|journal| journal.open.is_some()))
}
