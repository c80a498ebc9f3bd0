//! Finds the network namespaces of all processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Most processes named per namespace.
const MOST: usize = 3;

/// A network namespace and some of its processes.
pub(super) struct Found {
    /// `/proc/PID/ns/net`, or a file that `ip netns` made.
    pub(super) file: PathBuf,
    pub(super) processes: Vec<String>,
}

/// The namespaces of processes and of `ip netns`, by inode; and the number of processes whose
/// namespace the caller may not see.
pub(super) fn namespaces() -> (BTreeMap<u64, Found>, u64) {
    let (mut all, mut hidden) = (BTreeMap::<u64, Found>::new(), 0);
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let file = process.path().join("ns/net");
        let Some(inode) = linked(&file) else {
            hidden += 1;
            continue;
        };
        let found = all.entry(inode).or_insert(Found { file, processes: Vec::new() });
        if found.processes.len() < MOST {
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
            all.entry(inode).or_insert(Found { file: named.path(), processes });
        }
    }
    (all, hidden)
}

/// The inode in `net:[4026531840]`.
pub(super) fn linked(file: &std::path::Path) -> Option<u64> {
    let target = fs::read_link(file).ok()?;
    target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}
