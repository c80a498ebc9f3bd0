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

    /// Whether there is a pin: of a controller that is loaded, or what a killed command has left of one.
    pub fn is_pinned(&self, algorithm: Algorithm) -> bool {
        self.path(algorithm).exists() || self.has_devices(algorithm)
    }

    /// Whether programs at devices are pinned for it.
    fn has_devices(&self, algorithm: Algorithm) -> bool {
        algorithm.sends_ect1() && !egress::pins(&self.0).is_empty()
    }

    /// Whether the controller is loaded.
    pub fn has(&self, algorithm: Algorithm) -> bool {
        self.is_pinned(algorithm) && is_registered(algorithm)
    }

    /// Registers a controller until [`Self::remove`]. A failure, or the end of the process, before the
    /// pin exists leaves nothing behind.
    pub fn add(&self, loaded: &Loaded) -> Result<(), Error> {
        let algorithm = loaded.algorithm();
        self.check_free(algorithm)?;
        // What a killed command has left: `check_free` says that it has no effect.
        if self.path(algorithm).exists() {
            self.remove_pin(algorithm)?;
        }
        make_pin_directory(&self.0)?;
        loaded.register_at(&self.0, &self.path(algorithm))
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
        loaded.replace_at(&self.0, &self.path(algorithm))
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
        if !self.path(algorithm).exists() {
            return match is_registered(algorithm) {
                true => unregister_all(algorithm).map(|()| Removed::Unpinned),
                false if had_devices => {
                    self.remove_directory();
                    Ok(Removed::Leftover)
                }
                false => Err(Error::NotLoaded(algorithm.name())),
            };
        }
        if !Algorithm::ALL.into_iter().any(|one| one != algorithm && self.is_pinned(one)) {
            // Before the last pin, so that a command that is killed leaves something to unload.
            self.forget_defaults()?;
        }
        let removed =
            if is_registered(algorithm) { Removed::Controller } else { Removed::Leftover };
        self.remove_pin(algorithm)?;
        Ok(removed)
    }

    fn remove_pin(&self, algorithm: Algorithm) -> Result<(), Error> {
        let path = self.path(algorithm);
        unregister(&path)
            .map_err(|error| Error::step(format!("remove {}", path.display()), error))?;
        self.remove_directory();
        Ok(())
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
        load::resume_status(&self.path(algorithm))
    }

    /// Whether there is a file system for the pins, and no other user may write to their directory.
    pub(crate) fn check_directory(&self) -> Result<(), Error> {
        has_pin_directory(&self.0).map(drop)
    }
}

/// Whether sockets can choose a controller, by a pin here or not.
pub fn is_registered(algorithm: Algorithm) -> bool {
    host::available().iter().any(|name| name == algorithm.name())
}
