//! Finds the network namespaces of all processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Most processes named per namespace.
const MAX_PROCESSES: usize = 3;

/// Init is in the namespace in which the others of its PID namespace began.
const INIT: u32 = 1;

/// A network namespace and some of its processes.
pub(super) struct NamespaceProcesses {
    /// `/proc/PID/ns/net`, or a file that `ip netns` made.
    pub(super) file: PathBuf,
    pub(super) processes: Vec<String>,
}

/// The namespaces of processes and of `ip netns`, by inode; and the number of processes in
/// namespaces that the caller may not see.
pub(super) fn namespaces() -> (BTreeMap<u64, NamespaceProcesses>, u64) {
    let (mut all, mut hidden) = (BTreeMap::<u64, NamespaceProcesses>::new(), 0);
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let file = process.path().join("ns/net");
        let Some(inode) = linked(&file) else {
            let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            hidden += u64::from(pid != INIT && may_have_namespace(&stat));
            continue;
        };
        let found = all.entry(inode).or_insert(NamespaceProcesses { file, processes: Vec::new() });
        if found.processes.len() < MAX_PROCESSES {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.processes.push(format!("{} ({pid})", command.trim()));
        }
    }
    // What `ip netns` mounted in another mount namespace is an empty file here.
    let of_namespaces = fs::metadata("/proc/self/ns/net").ok().map(|own| own.dev());
    for named in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let metadata = fs::metadata(named.path()).ok();
        if let Some(metadata) = metadata.filter(|it| Some(it.dev()) == of_namespaces) {
            let inode = metadata.ino();
            let processes = vec![format!("netns {}", named.file_name().to_string_lossy())];
            all.entry(inode).or_insert(NamespaceProcesses { file: named.path(), processes });
        }
    }
    (all, hidden)
}

/// Whether a process with this `/proc/PID/stat` (proc(5)) can have a network namespace of its own: not a zombie, which has left its own, not
/// a kernel thread, and not one that is gone.
fn may_have_namespace(stat: &str) -> bool {
    /// `PF_KTHREAD` (linux/sched.h).
    const KERNEL_THREAD: u64 = 0x0020_0000;
    // A name may contain spaces and parentheses.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.next(), None | Some("Z" | "X" | "x"));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).unwrap_or(0);
    !is_dead && flags & KERNEL_THREAD == 0
}

/// The inode in `net:[4026531840]`.
pub(super) fn linked(file: &std::path::Path) -> Option<u64> {
    let target = fs::read_link(file).ok()?;
    target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombies_and_kernel_threads_have_no_namespace_of_their_own() {
        let cases = [
            ("812 (nginx) S 1 812 812 0 -1 4194624 190 0 0 0", true),
            ("812 (a) b (c) R 1 812 812 0 -1 4194624 190 0 0 0", true),
            ("900 (sh <defunct>) Z 812 900 812 0 -1 4228172 0 0 0 0", false),
            ("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0", false),
            ("", false),
        ];
        for (stat, expected) in cases {
            assert_eq!(may_have_namespace(stat), expected, "{stat}");
        }
    }
}
