//! The pins of a steered cgroup that a recorder has open, and whether they still are what is pinned.

use std::fs::File;

use uncork_kernel::{Map, Ring};

use crate::error::Error;
use crate::layout::Decision;
use crate::sockets::SteeredSockets;
use crate::steered::Steered;

/// Open pins. They outlive the pins themselves, but the next `apply` after a `revert` makes others.
#[derive(Debug)]
pub(crate) struct Attached {
    steered: Steered,
    ring: Ring,
    /// The decisions for open connections.
    sockets: SteeredSockets,
    lost: Map,
    lost_before: u64,
    /// The number of the ring's pin, which no other pin has.
    inode: Option<u64>,
    /// Held while this is the ring's reader.
    _only: File,
}

impl Attached {
    /// Opens those of a cgroup. The ring's earlier entries belong to connections without a recorder.
    pub(crate) fn open(steered: &Steered) -> Result<Self, Error> {
        let only = steered.only_recorder()?;
        // First, so that pins which are exchanged meanwhile are noticed.
        let inode = steered.ring_inode();
        let (ring, lost) = steered.ring()?;
        let lost_before = count(&lost)?;
        let sockets = steered.sockets()?;
        let steered = steered.clone();
        Ok(Self { steered, ring, sockets, lost, lost_before, inode, _only: only })
    }

    /// Whether `revert` has not removed them.
    pub(crate) fn are_pinned(&self) -> bool {
        self.inode.is_some() && self.inode == self.steered.ring_inode()
    }

    /// Calls `each` with the bytes of each close event since the last call.
    pub(crate) fn read(&mut self, each: impl FnMut(&[u8])) {
        self.ring.read(each);
    }

    /// The decision for a connection that has ended. Its entry is free from now on.
    pub(crate) fn take(&self, cookie: u64) -> Option<Decision> {
        self.sockets.take(cookie).ok().flatten()
    }

    /// The close events that the ring dropped since it was opened.
    pub(crate) fn lost(&self) -> Result<u64, Error> {
        Ok(count(&self.lost)?.saturating_sub(self.lost_before))
    }
}

fn count(lost: &Map) -> Result<u64, Error> {
    lost.value(0).map_err(Error::step("read the count of dropped events"))
}
