//! The process that undoes changes when the one that made them is dead, or when nobody confirms them.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, setsid};

use super::super::agent::{ChangeError, recover};
use super::super::host::{Host, HostError};
use super::{LiveHost, Lock, StateDirectory, state};

/// How often the guard looks whether somebody has confirmed.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often the guard looks whether the process that makes the changes has ended.
const TURN: Duration = Duration::from_millis(100);
/// Seconds for which that process may be stopped.
const PATIENCE_S: u64 = 10;
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
        let lock = wait_for_end(state, &host)?;
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

/// Waits for the lock: the process that makes the changes holds it until it ends. One that is stopped neither ends nor looks at
/// what it changed, so it is killed after a while. Nothing else can undo its changes safely, because it may go on at any time.
fn wait_for_end(state: &StateDirectory, host: &LiveHost) -> Result<Lock, HostError> {
    let mut stopped: Option<(u32, u64)> = None;
    loop {
        if let Some(lock) = state.try_lock()? {
            return Ok(lock);
        }
        let now_s = host.now().boot_s;
        stopped = state.holder().filter(|process| is_stopped(*process)).map(|process| {
            let same = stopped.filter(|(before, _)| *before == process);
            (process, same.map_or(now_s, |(_, since_s)| since_s))
        });
        if let Some((process, since_s)) = stopped
            && now_s.saturating_sub(since_s) >= PATIENCE_S
            && let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw)
        {
            // It may have gone on, or ended.
            let _ = kill_process(process, Signal::KILL);
        }
        thread::sleep(TURN);
    }
}

/// Whether a process that runs this program is stopped, by Ctrl-Z or SIGSTOP.
fn is_stopped(process: u32) -> bool {
    let directory = Path::new("/proc").join(process.to_string());
    let is_this_program = || {
        let (theirs, own) = (fs::read_link(directory.join("exe")), std::env::current_exe());
        matches!((theirs, own), (Ok(theirs), Ok(own)) if theirs == own)
    };
    let stat = fs::read_to_string(directory.join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state == Some('T') && is_this_program()
}

fn is_open(state: &StateDirectory) -> Result<bool, HostError> {
    Ok(state.load()?.is_some_and(|journal| journal.open.is_some()))
}
