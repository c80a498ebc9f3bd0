//! What an emulation that was killed left behind: names of namespaces, and processes that commands had
//! started. Devices, addresses and routes go with the process by themselves.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::names;

/// The environment variable that every process started in an emulation's namespace inherits.
pub(crate) const VARIABLE: &str = "UNCORK_EMU";

/// What was found and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Names of namespaces.
    pub names: Vec<PathBuf>,
    /// Processes.
    pub processes: Vec<i32>,
}

/// What marks the processes of this emulation: who owns it, and the namespace.
pub(crate) fn mark(namespace: &OwnedFd) -> io::Result<String> {
    let owner = std::process::id();
    let born = born(owner as i32).unwrap_or_default();
    let inode = rustix::fs::fstat(namespace)?.st_ino;
    Ok(format!("{owner}:{born}:{inode}"))
}

/// Removes what emulations left whose process has ended. Those at work are not touched.
///
/// # Errors
///
/// What the system says when something cannot be removed.
pub fn clean_up() -> io::Result<Leftovers> {
    let names = names::dangling()?;
    for name in &names {
        fs::remove_file(name)?;
    }
    let mut processes = Vec::new();
    for pid in processes_of_the_system()? {
        if is_orphan(pid) {
            if let Some(pid) = Pid::from_raw(pid) {
                kill_process(pid, Signal::KILL)?;
            }
            processes.push(pid);
        }
    }
    Ok(Leftovers { names, processes })
}

fn processes_of_the_system() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

/// Whether the process was started in the namespace of an emulation that is no more, and is there still.
fn is_orphan(pid: i32) -> bool {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let Some(mark) = mark_of(&directory) else { return false };
    let inode = fs::metadata(directory.join("ns/net")).map(|namespace| namespace.ino());
    mark.inode == inode.ok() && born(mark.owner) != Some(mark.born)
}

/// What [`mark`] wrote.
struct Mark {
    owner: i32,
    born: u64,
    inode: Option<u64>,
}

fn mark_of(process: &Path) -> Option<Mark> {
    let environment = fs::read(process.join("environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables
        .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    let mut parts = OsStr::from_bytes(value).to_str()?.split(':');
    let owner = parts.next()?.parse().ok()?;
    let born = parts.next()?.parse().ok()?;
    let inode = parts.next()?.parse().ok();
    Some(Mark { owner, born, inode })
}

/// When a process was started, in the clock ticks of proc_pid_stat(5) (field 22): two processes of one
/// number are told apart by it. `None` if there is none, or it has ended and nobody has asked how.
fn born(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let born = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(born)
}
