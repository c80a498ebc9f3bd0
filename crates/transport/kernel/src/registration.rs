//! How a filled structure becomes a congestion control that sockets can choose, and stays one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::sys;

/// A structure of programs that the kernel has accepted.
#[derive(Debug)]
pub(crate) enum Structure {
    /// A link registers it, while the link or a pin of it exists.
    Linked(OwnedFd),
    /// Before Linux 6.4: writing the content into the map registers it, until the element is deleted.
    Written {
        /// The map.
        map: OwnedFd,
        /// Its content.
        content: Vec<u8>,
    },
}

/// Registrations that end when this is dropped.
#[derive(Debug)]
pub struct Registration(#[expect(dead_code, reason = "they end with it")] Vec<Registered>);

#[derive(Debug)]
pub(crate) enum Registered {
    Link(#[expect(dead_code, reason = "open while the registration lasts")] OwnedFd),
    Map(OwnedFd),
}

impl Registration {
    pub(crate) const fn new(all: Vec<Registered>) -> Self {
        Self(all)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Self::Map(map) = self {
            // It cannot fail but for what was unregistered already.
            let _ = sys::delete_element(map.as_fd());
        }
    }
}

impl Structure {
    /// Registers it for this process.
    pub(crate) fn register(&self) -> io::Result<Registered> {
        Ok(match self {
            Self::Linked(map) => Registered::Link(sys::link(map.as_fd())?),
            Self::Written { map, content } => {
                sys::set_element(map.as_fd(), content)?;
                Registered::Map(map.try_clone()?)
            }
        })
    }

    /// Registers it until [`unregister`]. A failure, or the end of the process, on the way leaves no
    /// registration without a pin.
    pub(crate) fn register_at(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Linked(map) => sys::pin(sys::link(map.as_fd())?.as_fd(), path),
            Self::Written { map, content } => {
                sys::pin(map.as_fd(), path)?;
                sys::set_element(map.as_fd(), content).inspect_err(|_| {
                    // The pin of what is not registered has no effect.
                    let _ = std::fs::remove_file(path);
                })
            }
        }
    }

    /// Takes the place of what is registered at `path`: with links in one step, without them there is a
    /// moment without either.
    pub(crate) fn replace_at(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Linked(map) => sys::update_link(sys::open_pin(path)?.as_fd(), map.as_fd()),
            Self::Written { .. } => {
                unregister(path)?;
                self.register_at(path)
            }
        }
    }
}

/// Ends a registration that a pin keeps. Connections that have it keep it.
pub(crate) fn unregister(path: &Path) -> io::Result<()> {
    let pinned = sys::open_pin(path)?;
    if let Err(error) = sys::delete_element(pinned.as_fd()) {
        // A link has no elements: it ends with its last pin. A map may have none, or none any more.
        let is_done = [libc::EINVAL, libc::ENOENT, libc::EINPROGRESS].map(Some);
        if !is_done.contains(&error.raw_os_error()) {
            return Err(error);
        }
    }
    std::fs::remove_file(path)
}
