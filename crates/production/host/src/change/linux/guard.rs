//! The process that undoes changes when the process that made them is dead, or when they are not confirmed in time.
//!
//! It depends on nothing that may fail meanwhile: it keeps the journal in memory, restores the host before it writes, and
//! retries until both are done.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, setsid};
use uncork_private_files as private;
use uncork_private_files::lock::Lock;

use super::super::agent::recover;
use super::super::host::{Host, HostError, Watchdog};
use super::super::journal::Journal;
use super::state::FileStamp;
use super::{LiveHost, StateDirectory, namespace};

/// How often the guard looks whether somebody has confirmed.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often the guard looks whether the process that makes the changes has ended.
const TURN: Duration = Duration::from_millis(100);
/// How often it tries again what failed.
const RETRY: Duration = Duration::from_secs(1);
/// Seconds for which that process may be stopped. Commands wait longer for the lock.
const STOPPED_S: u64 = 5;
/// Seconds for which a process that the guard cannot see may hold the lock.
const UNSEEN_S: u64 = 10;
/// The line that the guard prints when the death of its parent's process group no longer concerns it.
const READY: &str = "ready";

/// Whether systemd runs this host (sd_booted(3)).
pub(super) fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// The arguments of a guard, by which [`find`] knows it.
fn arguments(state: &StateDirectory) -> [&std::ffi::OsStr; 6] {
    let [host, guard, journal, directory] = ["host", "guard", "--journal", "--state-dir"];
    [
        host.as_ref(),
        guard.as_ref(),
        journal.as_ref(),
        state.name().as_ref(),
        directory.as_ref(),
        state.path().as_os_str(),
    ]
}

/// Whether a guard of this journal lives. Only processes of root and of this user count: others may call themselves
/// what they like.
pub(super) fn find(state: &StateDirectory) -> Watchdog {
    let Ok(processes) = fs::read_dir("/proc") else { return Watchdog::Unknown };
    let wanted = arguments(state).map(std::ffi::OsStr::as_encoded_bytes).join(&0);
    let is_guard = |process: &Path| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let arguments =
            line.iter().position(|byte| *byte == 0).map_or(&[][..], |at| &line[at + 1..]);
        let owner = fs::metadata(process).map(|found| found.uid());
        arguments.strip_prefix(&*wanted).is_some_and(|rest| rest.first() == Some(&0))
            && owner.is_ok_and(private::is_trusted)
            && !matches!(run_state(process), None | Some('T' | 'Z' | 'X'))
    };
    if processes.flatten().any(|process| is_guard(&process.path())) {
        return Watchdog::Alive;
    }
    // `hidepid` hides the processes of others (proc(5)).
    if fs::read("/proc/1/stat").is_ok() { Watchdog::Dead } else { Watchdog::Unknown }
}

/// `R`, `S`, `T`, … of a process (proc_pid_stat(5)).
fn run_state(process: &Path) -> Option<char> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

/// Starts a guard: as a service of systemd, so that the end of a login session or of another service does not
/// take it along; elsewhere as a process in a session of its own.
pub(super) fn post(state: &StateDirectory, root: &Path) -> Result<(), HostError> {
    if has_systemd() && namespace::boots() && post_service(state, root).is_ok() {
        return Ok(());
    }
    post_process(state, root).map_err(|error| {
        HostError(format!(
            "cannot start the process that guards the changes: {error}; nothing was changed"
        ))
    })
}

fn post_service(state: &StateDirectory, root: &Path) -> io::Result<()> {
    let mut run = Command::new("systemd-run");
    run.args(["--quiet", "--collect", "--property=Type=exec"]);
    run.arg(format!("--unit=uncork-host-guard-{}", std::process::id()));
    run.arg("--").arg(std::env::current_exe()?).args(arguments(state)).arg("--root").arg(root);
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if run.status()?.success() { Ok(()) } else { Err(io::Error::other("systemd-run failed")) }
}

fn post_process(state: &StateDirectory, root: &Path) -> io::Result<()> {
    let mut guard = Command::new(std::env::current_exe()?);
    guard.args(arguments(state)).arg("--root").arg(root);
    guard.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut guard = guard.spawn()?;
    let mut line = String::new();
    if let Some(stdout) = guard.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim_end() == READY { Ok(()) } else { Err(io::Error::other("it ended immediately")) }
}

/// Undoes the open changes when the process that makes them is dead, or when they expire. Returns when nothing
/// is open any more; until then it tries again after each error.
pub fn watch(state: &StateDirectory, root: &Path) {
    // Fails for the leader of a process group, such as a service. Such a leader needs no new session.
    let _ = setsid();
    let mut watched = WatchedHost { host: LiveHost::new(state.clone(), root), stamp: None };
    watched.refresh();
    // The reader may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    loop {
        let lock = watched.wait_for_lock();
        let recovered = recover(&mut watched.host);
        drop(lock);
        match recovered {
            Ok((journal, _)) if watched.host.unwritten().is_some() => {
                return watched.write(&journal);
            }
            Ok((journal, _)) if journal.open.is_none() => return,
            Ok(_) => watched.wait_for_deadline(),
            Err(_) => thread::sleep(RETRY),
        }
    }
}

/// A host, and the journal as it was when the guard last looked.
struct WatchedHost {
    host: LiveHost,
    stamp: Option<FileStamp>,
}

impl WatchedHost {
    /// Reads the journal again if it was replaced. One that cannot be read, or is gone, is remembered.
    fn refresh(&mut self) {
        let stamp = self.host.state.stamp();
        if stamp.is_some() && stamp != self.stamp {
            self.host.remember();
            self.stamp = stamp;
        }
    }

    /// Waits for the lock: the process that makes the changes holds it until it ends. One that is stopped neither ends nor looks
    /// at what it changed, so it is killed after a while. Nothing else can undo its changes safely, because it may go on at any
    /// time. Nothing is waited for if the lock cannot be opened, or if the holder is another program: it changes nothing.
    fn wait_for_lock(&mut self) -> Option<Lock> {
        let mut unable: Option<(Option<u32>, u64)> = None;
        loop {
            let free = self.host.state.try_lock();
            self.refresh();
            match free {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) => {}
                Err(_) => return None,
            }
            let (now_s, holder) = (self.host.now().boot_s, self.host.state.holder());
            let since_s = match unable {
                Some((before, since_s)) if before == holder => since_s,
                _ => now_s,
            };
            let waited_s = now_s.saturating_sub(since_s);
            match holder {
                Some(process) if exists(process) && !is_this_program(process) => return None,
                Some(process) if run_state(&directory(process)) == Some('T') => {
                    unable = Some((holder, since_s));
                    if waited_s >= STOPPED_S {
                        kill(process);
                    }
                }
                Some(_) => unable = None,
                None if waited_s >= UNSEEN_S => return None,
                None => unable = Some((holder, since_s)),
            }
            thread::sleep(TURN);
        }
    }

    /// Returns at the deadline, or when nothing is open any more.
    fn wait_for_deadline(&mut self) {
        loop {
            self.refresh();
            let open = self.host.remembered.as_ref().and_then(|journal| journal.open.as_ref());
            let is_due = match open.filter(|open| open.complete).map(|open| open.deadline_boot_s) {
                Some(Some(deadline)) => self.host.now().boot_s >= deadline,
                _ => true,
            };
            if is_due {
                return;
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Writes the journal of the restored host when that becomes possible, unless another command does.
    fn write(&mut self, journal: &Journal) {
        let before = self.host.state.stamp();
        loop {
            thread::sleep(RETRY);
            let _lock = self.wait_for_lock();
            let now = self.host.state.stamp();
            if (now.is_some() && now != before) || self.host.store(journal).is_ok() {
                return;
            }
        }
    }
}

/// Kills a process, which may have gone on or ended.
fn kill(process: u32) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, Signal::KILL);
    }
}

fn directory(process: u32) -> std::path::PathBuf {
    Path::new("/proc").join(process.to_string())
}

fn exists(process: u32) -> bool {
    fs::read_link(directory(process).join("exe")).is_ok()
}

/// Whether a process runs this program, of this version or of one before it.
fn is_this_program(process: u32) -> bool {
    let name = |path: io::Result<std::path::PathBuf>| {
        let path = path.ok()?;
        let name = path.file_name()?.to_str()?;
        Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
    };
    let (theirs, own) = (fs::read_link(directory(process).join("exe")), std::env::current_exe());
    name(theirs).is_some_and(|theirs| Some(theirs) == name(own))
}
