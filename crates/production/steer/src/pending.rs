//! `apply --ttl`: a policy that is rolled back unless it is confirmed, and the process that does so, the guard.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::setsid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use uncork_kernel::{CgroupLink, Program};

use crate::error::Error;
use crate::listeners;
use crate::pins::{CgroupPins, SteerPins};
use crate::steered::Steered;

/// How often the guard looks whether the policy was confirmed.
const TURN: Duration = Duration::from_millis(500);
/// How long a guard may take to start.
const START: Duration = Duration::from_secs(5);
const START_TURN: Duration = Duration::from_millis(20);

/// A policy that is not confirmed, pinned with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PendingRecords {
    /// When it is rolled back, in seconds since the boot.
    pub(crate) deadline_boot_s: u64,
    /// The program of the policy that is active again then; `None` if none is.
    pub(crate) before: Option<u32>,
}

/// A process, pinned by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchdogProcess {
    process: u32,
    /// When it began, in the kernel's ticks since the boot: another process with this number began later.
    started: u64,
}

/// A policy that is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PendingStatus {
    /// Seconds until it is rolled back.
    pub left_s: u64,
    /// The policy that is active again then; null if none is.
    pub returns_to: Option<String>,
    /// Whether the process that rolls it back lives.
    #[serde(rename = "guarded")]
    pub is_guarded: bool,
}

impl PendingStatus {
    /// What is active after a roll-back.
    pub fn target(&self) -> &str {
        self.returns_to.as_deref().unwrap_or("no policy")
    }
}

impl PendingRecords {
    /// One that ends `ttl` from now.
    pub(crate) fn new(ttl: Duration, before: Option<u32>) -> Self {
        Self { deadline_boot_s: boot_s() + ttl.as_secs(), before }
    }
}

impl WatchdogProcess {
    fn own() -> Option<Self> {
        let process = std::process::id();
        Some(Self { process, started: started(process)? })
    }

    fn is_alive(self) -> bool {
        started(self.process) == Some(self.started)
    }
}

/// Field 22 of /proc/PID/stat (proc_pid_stat(5)); `None` if the process does not exist, or has ended.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    started_in(&stat)
}

fn started_in(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split_ascii_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| is_alive)
}

fn boot_s() -> u64 {
    clock_gettime(ClockId::Boottime).tv_sec.unsigned_abs()
}

/// Starts a guard, unless one lives: as a service of systemd, so that the end of a login session does not take it along;
/// elsewhere as a process in a session of its own. Returns when it lives.
pub(crate) fn post(own: &CgroupPins) -> Result<(), Error> {
    if is_guarded(own) {
        return Ok(());
    }
    let failed =
        |error: io::Error| Error::step("start the process that would roll the policy back")(error);
    let arguments = ["steer", "guard", own.number()];
    let program = std::env::current_exe().map_err(failed)?;
    if !(has_systemd() && start_service(&program, arguments).is_ok()) {
        let mut guard = Command::new(program);
        guard.args(arguments).current_dir("/");
        guard.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        guard.spawn().map_err(failed)?;
    }
    for _ in 0..START.as_millis() / START_TURN.as_millis() {
        // One that found its policy due has rolled it back, and has ended already.
        if is_guarded(own) || matches!(own.pending(), Ok(None)) {
            return Ok(());
        }
        thread::sleep(START_TURN);
    }
    Err(failed(io::Error::new(io::ErrorKind::TimedOut, "it does not start; nothing was changed")))
}

/// Whether systemd runs this host (sd_booted(3)), and its services see the same mounts as this process.
fn has_systemd() -> bool {
    let mounts = |process| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    Path::new("/run/systemd/system").is_dir()
        && mounts("1").is_some()
        && mounts("1") == mounts("self")
}

fn start_service(program: &Path, arguments: [&str; 3]) -> io::Result<()> {
    let mut run = Command::new("systemd-run");
    run.args(["--quiet", "--collect", "--property=Type=exec"]);
    run.arg(format!("--unit=uncork-steer-guard-{}", std::process::id()));
    run.arg("--").arg(program).args(arguments);
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if run.status()?.success() { Ok(()) } else { Err(io::Error::other("systemd-run failed")) }
}

fn is_guarded(own: &CgroupPins) -> bool {
    own.guard().ok().flatten().is_some_and(WatchdogProcess::is_alive)
}

/// Rolls back the policy of the cgroup with this number when it is due. Returns when no policy there is pending any more. What
/// fails is tried again.
///
/// # Errors
///
/// If this process cannot be pinned as the guard.
pub fn guard(pins: &SteerPins, number: u64) -> Result<(), Error> {
    // Fails for the leader of a process group, such as a service. Such a leader needs no new session.
    let _ = setsid();
    let own = pins.of(number);
    if let Some(guard) = WatchdogProcess::own() {
        own.set_guard(guard)?;
    }
    loop {
        match own.pending() {
            Ok(None) => return Ok(()),
            Ok(Some(pending)) if boot_s() >= pending.deadline_boot_s => {
                // A process that holds the lock for too long does not keep a policy that is due.
                let _lock = pins.lock().ok().flatten();
                if roll_back(pins, &own).is_ok() {
                    return Ok(());
                }
            }
            // What cannot be read now may be read later.
            _ => {}
        }
        thread::sleep(TURN);
    }
}

/// Makes the policy before the active one again, if one is pending.
fn roll_back(pins: &SteerPins, own: &CgroupPins) -> Result<(), Error> {
    let Some(PendingRecords { before, .. }) = own.pending()? else { return Ok(()) };
    let program =
        before.map(|id| Program::open(&own.policy(id).join("program"))).transpose()?.flatten();
    let (link, steered) = (CgroupLink::open(&own.link())?, Steered::new(pins.clone(), own.clone()));
    if let (Some(program), Some(link)) = (program, link) {
        link.exchange(&program).map_err(Error::step("roll back the policy"))?;
        // Still pending: what fails is tried again.
        if let Some(former) = steered.active()? {
            listeners::set(own, Path::new(&former.cgroup), former.listener_controller())?;
        }
        own.remove_policies_but(&[before])?;
        return own.clear_pending();
    }
    steered.remove().map(drop)
}

impl Steered {
    /// Keeps a policy that `apply` made pending. `false` if none is.
    ///
    /// # Errors
    ///
    /// If a pin cannot be removed.
    pub fn confirm(&self) -> Result<bool, Error> {
        let _lock = self.pins().lock()?;
        if self.own().pending()?.is_none() {
            return Ok(false);
        }
        self.own().clear_pending()?;
        self.own().remove_policies_but(&[self.program()?])?;
        Ok(true)
    }

    /// Starts another guard where the one of a pending policy has ended. The result is whether the policy still is pending: a
    /// guard rolls one back that is due.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn guard_again(&self) -> Result<bool, Error> {
        post(self.own())?;
        for _ in 0..START.as_millis() / START_TURN.as_millis() {
            match self.own().pending()? {
                None => return Ok(false),
                Some(pending) if boot_s() < pending.deadline_boot_s => return Ok(true),
                Some(_) => thread::sleep(START_TURN),
            }
        }
        Ok(true)
    }

    pub(crate) fn pending(&self) -> Result<Option<PendingStatus>, Error> {
        let Some(PendingRecords { deadline_boot_s, before }) = self.own().pending()? else {
            return Ok(None);
        };
        let before = before.map(|id| self.description(&self.own().policy(id))).transpose()?;
        Ok(Some(PendingStatus {
            left_s: deadline_boot_s.saturating_sub(boot_s()),
            returns_to: before.map(|description| description.policy),
            is_guarded: is_guarded(self.own()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = WatchdogProcess::own().expect("this process is seen");
        assert!(own.is_alive());
        assert!(!WatchdogProcess { started: own.started + 1, ..own }.is_alive());
        let fields = "1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0";
        let stat = |state: &str| started_in(&format!("7 (a) b) {state} {fields}"));
        assert_eq!((stat("S"), stat("Z")), (Some(4711), None));
    }
}
