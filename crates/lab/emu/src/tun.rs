//! The TUN device of a namespace.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;

use crate::error::{EmuError, OPEN_TUN};
use crate::sys;

/// The name of the device in every namespace.
pub(crate) const NAME: &str = "uncork0";

/// A TUN device, removed on drop.
#[derive(Debug)]
pub(crate) struct Tun(File);

impl Tun {
    /// Creates a device in the namespace of the calling thread.
    pub(crate) fn open() -> Result<Self, EmuError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open("/dev/net/tun");
        let file = file.map_err(|error| EmuError::system(OPEN_TUN, error))?;
        sys::make_tun(&file, NAME).map_err(|error| EmuError::system("make a TUN device", error))?;
        Ok(Self(file))
    }

    /// Reads a packet; `None` if none is waiting.
    pub(crate) fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, into) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Delivers a packet to the namespace.
    pub(crate) fn deliver(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
