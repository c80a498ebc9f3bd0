//! Activates a version once the link leads to it, and says whether it is active.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// The longest time of a command: the agent does nothing else meanwhile.
const LIMIT: Duration = Duration::from_mins(1);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two looks at `stop`.
const LOOK: Duration = Duration::from_millis(200);
/// The most that a command can write to its standard error.
const MAX_SAID: u64 = 64 * 1024;

/// What follows the link.
pub trait Apply {
    /// Activates the policy in programs that do not follow the link by themselves.
    ///
    /// # Errors
    ///
    /// Why it is not active.
    fn apply(&self, policy: &Path) -> Result<(), String>;

    /// What has not followed this policy yet.
    fn behind(&self, policy: &Path) -> Vec<String>;
}

/// A command that applies, and files that say what is applied.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Run by the shell, with the policy in $POLICY. Its status says whether it is active.
    pub apply: Option<String>,
    /// Files with the path of the policy that is applied, as `uncork-steer@.service` writes them.
    pub applied: Vec<PathBuf>,
    /// Set when the agent has to end: so does the command.
    pub stop: Arc<AtomicBool>,
}

impl Apply for Commands {
    fn apply(&self, policy: &Path) -> Result<(), String> {
        let Some(command) = &self.apply else { return Ok(()) };
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("POLICY", policy);
        let why = run(&mut shell, LIMIT, &self.stop).err();
        why.map_or(Ok(()), |why| Err(format!("`{command}` {why}")))
    }

    fn behind(&self, policy: &Path) -> Vec<String> {
        let policy = fs::canonicalize(policy).unwrap_or_else(|_| policy.to_owned());
        let is_behind = |file: &&PathBuf| {
            !fs::read_to_string(file).is_ok_and(|text| Path::new(text.trim_end()) == policy)
        };
        self.applied.iter().filter(is_behind).map(|file| file.display().to_string()).collect()
    }
}

/// Runs a command to its end. What it leaves in the background goes on, and is not waited for: its output is not a pipe.
fn run(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot be run: {error}");
    let mut said = memory_file().map_err(cannot)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    command.stderr(said.try_clone().map_err(cannot)?);
    let mut child = command.spawn().map_err(cannot)?;
    let what = match wait(&mut child, limit, Some(stop)).map_err(cannot)? {
        Some(status) if status.success() => return Ok(()),
        Some(status) => format!("ended with {status}"),
        None => {
            end(&mut child).map_err(cannot)?;
            if stop.load(Ordering::Relaxed) {
                return Err("was ended with the agent".to_owned());
            }
            format!("did not end within {} s, and was killed", limit.as_secs())
        }
    };
    Err(format!("{what}: {}", first_line(&mut said).map_err(cannot)?))
}

/// A file of a fixed size in memory: neither a command nor what it leaves can fill a disk.
fn memory_file() -> io::Result<File> {
    let file = memfd_create("apply", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, MAX_SAID)?;
    fcntl_add_seals(&file, SealFlags::GROW)?;
    Ok(file.into())
}

fn first_line(said: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.trim_end_matches('\0').lines().find(|line| !line.trim().is_empty());
    Ok(line.unwrap_or("no message").to_owned())
}

/// The status of a child that ends within the time, and before `stop`.
fn wait(
    child: &mut Child,
    limit: Duration,
    stop: Option<&AtomicBool>,
) -> io::Result<Option<ExitStatus>> {
    let process = pidfd_open(pid(child), PidfdFlags::empty())?;
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    for _ in 0..limit.div_duration_f64(LOOK).ceil() as u64 {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&look)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return child.try_wait(),
            Err(error) => return Err(error.into()),
        }
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            break;
        }
    }
    Ok(None)
}

/// Ends a child that runs, with its group.
fn end(child: &mut Child) -> io::Result<()> {
    let group = pid(child);
    kill_process_group(group, Signal::TERM)?;
    if wait(child, GRACE, None)?.is_none() {
        kill_process_group(group, Signal::KILL)?;
        child.wait()?;
    }
    Ok(())
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[cfg(test)]
mod tests {
    use rustix::process::kill_process;
    use uncork_testkit::Scratch;

    use super::*;

    fn shell(command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        shell
    }

    #[test]
    fn command_that_fails_is_reported_with_its_first_line() {
        let run = |command: &str| {
            let apply = Some(command.to_owned());
            Commands { apply, ..Commands::default() }.apply(Path::new("/p/policy.toml"))
        };
        assert_eq!(run("test $POLICY = /p/policy.toml"), Ok(()));
        let error = run("echo >&2 'no such kernel'; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3: no such kernel"), "{error}");
        let error = run("exec 2>/dev/full; exit 4").unwrap_err();
        assert!(error.contains("exit status: 4: no message"), "{error}");
    }

    /// The agent would poll no more: no report, no expiry, and a stop only after the command.
    #[test]
    fn command_that_hangs_is_killed_with_its_group_and_says_what_it_said() {
        let stop = AtomicBool::new(false);
        let mut hangs = shell("echo >&2 waits; trap '' TERM; sleep 1000 & wait; sleep 1000");
        let error = run(&mut hangs, LOOK, &stop).unwrap_err();
        assert_eq!(error, "did not end within 0 s, and was killed: waits");
        stop.store(true, Ordering::Relaxed);
        let error = run(&mut shell("exec sleep 1000"), LIMIT, &stop).unwrap_err();
        assert_eq!(error, "was ended with the agent");
    }

    #[test]
    fn process_in_the_background_is_not_waited_for() {
        let scratch = Scratch::new("fleet-background");
        let id = scratch.path("id");
        let command = format!("sleep 1000 & echo $! > '{}'", id.display());
        assert_eq!(run(&mut shell(&command), LIMIT, &AtomicBool::new(false)), Ok(()));
        let id: i32 = fs::read_to_string(id).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn output_without_end_takes_no_more_than_its_file() {
        let error = run(&mut shell("yes >&2"), LIMIT, &AtomicBool::new(false)).unwrap_err();
        assert!(error.ends_with(": y"), "{error}");
    }

    #[test]
    fn file_with_another_policy_is_behind() {
        let scratch = Scratch::new("fleet-applied");
        let policy = scratch.write("v/policy.toml", "");
        let applied = scratch.write("applied", format!("{}\n", policy.display()));
        let commands = Commands { applied: vec![applied.clone()], ..Commands::default() };
        assert!(commands.behind(&policy).is_empty());
        let other = scratch.write("w/policy.toml", "");
        assert_eq!(commands.behind(&other), [applied.display().to_string()]);
    }
}
