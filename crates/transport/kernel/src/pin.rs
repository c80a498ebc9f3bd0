//! What is loaded stays registered by a pin in the BPF file system, also after the loader has ended.

use std::path::{Path, PathBuf};

use crate::algorithm::Algorithm;
use crate::directory::{has_pin_directory, make_pin_directory};
use crate::egress;
use crate::error::Error;
use crate::host;
use crate::load::{self, Loaded};
use crate::registered::unregister_all;
use crate::registration::unregister;
use crate::resume::ResumeStatus;

/// Where the pins are.
pub const DIRECTORY: &str = "/sys/fs/bpf/uncork";

/// What [`Pins::remove`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A controller that sockets could choose.
    Controller,
    /// A controller that was registered without a pin here: the pin was moved or is in another mount namespace, or a process
    /// holds it.
    Unpinned,
    /// A pin without a registration, of a command that was killed before Linux 6.4. It only took memory.
    Leftover,
}

/// The pins below a directory of a BPF file system.
#[derive(Clone, Debug)]
pub struct Pins(PathBuf);

impl Pins {
    /// Those below `directory`.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    fn path(&self, algorithm: Algorithm) -> PathBuf {
        self.0.join(algorithm.name())
    }

    /// The names of a controller that are pinned.
    fn pinned_names(&self, algorithm: Algorithm) -> impl Iterator<Item = &'static str> {
        algorithm.names().into_iter().filter(|name| self.0.join(name).exists())
    }

    /// Whether there is a pin: of a controller that is loaded, or what a killed command has left of one.
    pub fn is_pinned(&self, algorithm: Algorithm) -> bool {
        self.pinned_names(algorithm).next().is_some() || self.has_devices(algorithm)
    }

    /// Whether programs at devices are pinned for it.
    fn has_devices(&self, algorithm: Algorithm) -> bool {
        algorithm.sends_ect1() && !egress::pins(&self.0).is_empty()
    }

    /// Whether the controller is loaded.
    pub fn has(&self, algorithm: Algorithm) -> bool {
        self.is_pinned(algorithm) && is_registered(algorithm)
    }

    /// Whether sockets can choose a controller with Careful Resume: [`Algorithm::resuming_name`].
    pub fn resumes(&self, algorithm: Algorithm) -> bool {
        let name = algorithm.resuming_name();
        self.pinned_names(algorithm).any(|pinned| pinned == name) && is_available(name)
    }

    /// Registers a controller until [`Self::remove`]. A failure, or the end of the process, before the
    /// pin exists leaves nothing behind.
    pub fn add(&self, loaded: &Loaded) -> Result<(), Error> {
        let algorithm = loaded.algorithm();
        self.check_free(algorithm)?;
        // What a killed command has left: `check_free` says that it has no effect.
        for name in self.pinned_names(algorithm) {
            self.remove_pin(name)?;
        }
        make_pin_directory(&self.0)?;
        loaded.register_at(&self.0)
    }

    /// Whether the name is free, and no other user may write to the directory of the pins.
    ///
    /// # Errors
    ///
    /// If not.
    pub fn check_free(&self, algorithm: Algorithm) -> Result<(), Error> {
        self.check_directory()?;
        if self.has(algorithm) {
            return Err(Error::Loaded(algorithm.name()));
        }
        if is_registered(algorithm) {
            return Err(Error::Foreign(algorithm.name(), self.0.display().to_string()));
        }
        Ok(())
    }

    /// Has the packets of a loaded controller leave as ECT(1), where it does that, through devices of the calling thread's network
    /// namespace that were added later. The result is the number of these devices.
    ///
    /// # Errors
    ///
    /// If the directory of the pins is not safe, or the kernel refuses it.
    pub fn add_devices(&self, algorithm: Algorithm) -> Result<usize, Error> {
        if !algorithm.sends_ect1() || !self.has(algorithm) {
            return Ok(0);
        }
        self.check_directory()?;
        egress::attach_to_others(&self.0)
    }

    /// Replaces a loaded controller with another build: new connections get it, open
    /// ones keep theirs.
    pub fn replace(&self, loaded: &Loaded) -> Result<(), Error> {
        let algorithm = loaded.algorithm();
        self.check_directory()?;
        if !self.has(algorithm) {
            return Err(Error::NotLoaded(algorithm.name()));
        }
        loaded.replace_at(&self.0)
    }

    /// Unregisters a controller, also one without a pin, or removes what a killed command has left of one. Connections that
    /// use it keep it until they end.
    ///
    /// # Errors
    ///
    /// If there is none, its directory is not safe, or the kernel refuses it.
    pub fn remove(&self, algorithm: Algorithm) -> Result<Removed, Error> {
        self.check_directory()?;
        let had_devices = self.has_devices(algorithm);
        if had_devices {
            egress::detach(&self.0)?;
        }
        let is_last =
            !Algorithm::ALL.into_iter().any(|one| one != algorithm && self.is_pinned(one));
        if is_last && self.is_pinned(algorithm) {
            // Before the last pin, so that a command that is killed leaves something to unload.
            self.forget_defaults()?;
        }
        let was_registered = is_registered(algorithm);
        let mut removed = had_devices.then_some(Removed::Leftover);
        // The name for Careful Resume first: it never exists alone.
        for name in algorithm.names().into_iter().rev() {
            if self.0.join(name).exists() {
                self.remove_pin(name)?;
                let what = if was_registered { Removed::Controller } else { Removed::Leftover };
                removed = removed.filter(|it| *it == Removed::Unpinned).or(Some(what));
            } else if is_available(name) {
                unregister_all(name)?;
                removed = Some(Removed::Unpinned);
            }
        }
        self.remove_directory();
        removed.ok_or(Error::NotLoaded(algorithm.name()))
    }

    fn remove_pin(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        unregister(&path).map_err(|error| Error::step(format!("remove {}", path.display()), error))
    }

    fn remove_directory(&self) {
        // Only empty directories can be removed; with other pins it stays.
        let _ = std::fs::remove_dir(&self.0);
    }

    /// The most instructions that the verifier has looked at for one of the programs of a loaded controller.
    ///
    /// # Errors
    ///
    /// Without `CAP_SYS_ADMIN`.
    pub fn verified_instructions(&self, algorithm: Algorithm) -> Result<u32, Error> {
        if !self.has(algorithm) {
            return Err(Error::NotLoaded(algorithm.name()));
        }
        load::verified_instructions(&self.path(algorithm))
    }

    /// Careful Resume of a loaded controller; `None` if it was loaded without.
    ///
    /// # Errors
    ///
    /// Without `CAP_SYS_ADMIN`.
    pub fn resume_status(&self, algorithm: Algorithm) -> Result<Option<ResumeStatus>, Error> {
        if !self.has(algorithm) {
            return Err(Error::NotLoaded(algorithm.name()));
        }
        if !self.resumes(algorithm) {
            return Ok(None);
        }
        load::resume_status(&self.path(algorithm))
    }

    /// Whether there is a file system for the pins, and no other user may write to their directory.
    pub(crate) fn check_directory(&self) -> Result<(), Error> {
        has_pin_directory(&self.0).map(drop)
    }
}

/// Whether sockets can choose a controller, by a pin here or not.
pub fn is_registered(algorithm: Algorithm) -> bool {
    algorithm.names().into_iter().any(is_available)
}

fn is_available(name: &str) -> bool {
    host::available().iter().any(|one| one == name)
}
