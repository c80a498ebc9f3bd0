//! A program that the kernel has verified, and its place at a cgroup.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::error::Error;
use crate::sys;

/// A verified program.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
    name: String,
}

/// A program's link to a cgroup. The program is active while the link is open or pinned.
#[derive(Debug)]
pub struct CgroupLink(OwnedFd);

impl Program {
    pub(crate) fn new(fd: OwnedFd, name: &str) -> Self {
        Self { fd, name: name.to_owned() }
    }

    /// Opens a pinned program; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Without the privilege.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let fd = sys::open_pin_if_there(path)?;
        Ok(fd.map(|fd| Self::new(fd, &path.display().to_string())))
    }

    /// Keeps the program under a path of the BPF file system.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        sys::pin(self.as_fd(), path)
            .map_err(|error| Error::step(format!("pin {}", path.display()), error))
    }

    /// How many instructions the verifier has looked at.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn verified_instructions(&self) -> Result<u32, Error> {
        sys::program_info(self.as_fd())
            .map(|info| info.verified_instructions)
            .map_err(|error| self.asked(error))
    }

    /// The number that the kernel has given it.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn id(&self) -> Result<u32, Error> {
        sys::program_info(self.as_fd()).map(|info| info.id).map_err(|error| self.asked(error))
    }

    /// How long it has run in all, in nanoseconds, and how often, if the kernel counts
    /// (`sysctl kernel.bpf_stats_enabled`).
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn cost(&self) -> Result<(u64, u64), Error> {
        let info = sys::program_info(self.as_fd()).map_err(|error| self.asked(error))?;
        Ok((info.run_ns, info.runs))
    }

    fn asked(&self, error: io::Error) -> Error {
        Error::step(format!("ask about the program {}", self.name), error)
    }

    /// Runs an iterator over all that there is in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn iterate(&self) -> io::Result<()> {
        // What it prints is nothing, but it runs only when it is read.
        io::copy(&mut File::from(sys::open_iterator(self.as_fd())?), &mut io::sink()).map(drop)
    }

    /// Runs an XDP program once on `packet`, which it may change.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn run(&self, packet: &mut [u8]) -> io::Result<()> {
        sys::run(self.as_fd(), packet)
    }
}

/// The `SockOps` programs that run for a cgroup, an open directory: its own and those of the cgroups above it, in the order in which
/// they run. Their numbers, and their names if the kernel reports them (CAP_SYS_ADMIN).
///
/// # Errors
///
/// If the kernel does not report them.
pub fn programs_at(cgroup: BorrowedFd<'_>) -> io::Result<Vec<(u32, Option<String>)>> {
    let all = sys::programs_at(cgroup)?.into_iter();
    Ok(all.map(|id| (id, sys::program_name(id).ok())).collect())
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Program> for OwnedFd {
    fn from(program: Program) -> Self {
        program.fd
    }
}

impl CgroupLink {
    /// Attaches a `SockOps` program to a cgroup, an open directory.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn attach(program: &Program, cgroup: BorrowedFd<'_>) -> io::Result<Self> {
        sys::link_cgroup(program.as_fd(), cgroup).map(Self)
    }

    /// Opens a pinned link; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Without the privilege.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        sys::open_pin_if_there(path).map(|fd| fd.map(Self))
    }

    /// Keeps the link under a path of the BPF file system.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        sys::pin(self.0.as_fd(), path)
            .map_err(|error| Error::step(format!("pin {}", path.display()), error))
    }

    /// Replaces the active program with another one, without a moment in between.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it: then nothing has changed.
    pub fn exchange(&self, program: &Program) -> io::Result<()> {
        sys::update_link(self.0.as_fd(), program.as_fd())
    }

    /// Detaches the program.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn detach(&self) -> io::Result<()> {
        sys::detach_link(self.0.as_fd())
    }

    /// The numbers of the program and the cgroup; the cgroup's is 0 once it was removed.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn info(&self) -> io::Result<(u32, u64)> {
        sys::link_info(self.0.as_fd())
    }
}
