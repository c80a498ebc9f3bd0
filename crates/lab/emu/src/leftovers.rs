//! Leftovers of a killed emulation: names of namespaces, and processes started by commands.
//! Devices, addresses and routes disappear with the process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::names;

/// An environment variable inherited by all processes started in an emulation's namespace.
pub(crate) const VARIABLE: &str = "UNCORK_EMU";

/// Leftovers found and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Names of namespaces.
    pub names: Vec<PathBuf>,
    /// Processes.
    pub processes: Vec<i32>,
}

/// The mark of this emulation's processes: its owner and the namespace.
pub(crate) fn mark(namespace: &OwnedFd) -> io::Result<String> {
    let owner = std::process::id();
    let born = born(owner as i32).unwrap_or_default();
    Ok(format!("{owner}:{born}:{}", inode(namespace)?))
}

/// The unique number of a namespace.
pub(crate) fn inode(namespace: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(namespace)?.st_ino)
}

/// Removes leftovers of emulations if their process has ended. Running emulations are not affected.
///
/// # Errors
///
/// The system's error if something cannot be removed.
pub fn clean_up() -> io::Result<Leftovers> {
    let names = names::dangling()?;
    for name in &names {
        fs::remove_file(name)?;
    }
    let processes = kill(|mark| born(mark.owner) != Some(mark.born))?;
    Ok(Leftovers { names, processes })
}

/// Kills the remaining processes that were started in the namespaces with these numbers.
pub(crate) fn kill_within(inodes: &[u64]) -> io::Result<Vec<i32>> {
    kill(|mark| inodes.contains(&mark.inode))
}

/// Maximum rounds until no more processes are found, because a process may start others before it
/// is killed.
const ROUNDS: usize = 10;

/// Kills all processes that are still in the namespace where they were started, if their mark
/// `is_over`.
fn kill(is_over: impl Fn(&OwnerMark) -> bool) -> io::Result<Vec<i32>> {
    let mut killed = Vec::new();
    for _ in 0..ROUNDS {
        let before = killed.len();
        for pid in processes_of_the_system()? {
            let is_over = mark_of(pid).is_some_and(|mark| is_over(&mark));
            let Some(process) = Pid::from_raw(pid).filter(|_| is_over) else { continue };
            match kill_process(process, Signal::KILL) {
                Ok(()) if !killed.contains(&pid) => killed.push(pid),
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if killed.len() == before {
            break;
        }
    }
    Ok(killed)
}

fn processes_of_the_system() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

/// A parsed [`mark`].
struct OwnerMark {
    owner: i32,
    born: u64,
    inode: u64,
}

/// The mark of a process that is still in the namespace where it was started.
fn mark_of(pid: i32) -> Option<OwnerMark> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let environment = fs::read(directory.join("environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables
        .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    let mut parts = OsStr::from_bytes(value).to_str()?.split(':');
    let owner = parts.next()?.parse().ok()?;
    let born = parts.next()?.parse().ok()?;
    let inode = parts.next()?.parse().ok()?;
    let namespace = fs::metadata(directory.join("ns/net")).ok()?.ino();
    (namespace == inode).then_some(OwnerMark { owner, born, inode })
}

/// Start time of a process in clock ticks, see proc_pid_stat(5) (field 22). Distinguishes processes
/// with the same PID. `None` if the process does not exist, or is a zombie.
fn born(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses with arbitrary content.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let born = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(born)
}
