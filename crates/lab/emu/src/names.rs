//! Names for namespaces, so that other programs can find them: `ip netns exec NAME …`, `nsenter
//! --net=/run/netns/NAME …`.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Emulation;

/// Where iproute2 looks for names.
const DIRECTORY: &str = "/run/netns";
/// Prefix of every name.
const PREFIX: &str = "uncork-";
/// `NSFS_MAGIC` of linux/magic.h.
const NSFS: rustix::fs::FsWord = 0x6e73_6673;

/// Names that are removed on drop. If the process is killed they remain as dangling links until
/// [`crate::clean_up`] removes them: they link to the process's file descriptors, so the namespaces
/// end with the process.
#[derive(Debug)]
pub struct Names(Vec<PathBuf>);

impl Names {
    /// Gives the namespaces of `emulation` the names `uncork-PID-far`, `uncork-PID-near` and, for
    /// further hosts, `uncork-PID-near2` and so on; `label` distinguishes emulations of one
    /// process.
    ///
    /// # Errors
    ///
    /// The system's error if a name cannot be created. In that case none is.
    pub fn give(emulation: &Emulation, label: &str) -> io::Result<Self> {
        fs::create_dir_all(DIRECTORY)?;
        let pid = std::process::id();
        let mut names = Self(Vec::new());
        let clients = emulation.hosts().iter().enumerate().map(|(index, host)| {
            (if index == 0 { "near".to_owned() } else { format!("near{}", index + 1) }, host)
        });
        for (side, namespace) in [("far".to_owned(), emulation.server())].into_iter().chain(clients)
        {
            let name = Path::new(DIRECTORY).join(format!("{PREFIX}{pid}{label}-{side}"));
            let target = format!("/proc/{pid}/fd/{}", namespace.as_fd().as_raw_fd());
            symlink(target, &name)?;
            names.0.push(name);
        }
        Ok(names)
    }

    /// The names: the server side, then the client hosts.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|path| path.file_name()?.to_str())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for name in &self.0 {
            // If it cannot be removed, it is a dangling link from now on.
            let _ = fs::remove_file(name);
        }
    }
}

/// Names without a namespace.
pub(crate) fn dangling() -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_ours =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
                && path.is_symlink();
        if is_ours && !is_namespace(&path) {
            names.push(path);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether it links to a namespace. The PID may have been reused by another process with another
/// open file.
fn is_namespace(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|system| system.f_type == NSFS)
}
