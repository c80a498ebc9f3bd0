//! Telling somebody what happens to a connection.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use uncork_units::Time;

use crate::handle::Observation;
use crate::observed::Space;

/// What happens on a connection, as its congestion control sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A packet that wants to be acknowledged leaves.
    Sent {
        /// Its packet number space.
        space: Space,
        /// Its number.
        packet: u64,
        /// Its size in bytes.
        bytes: u32,
    },
    /// An acknowledgement arrives.
    Acknowledged {
        /// The packet number space that it is of.
        space: Space,
        /// From and to, both inclusive, from the largest downwards; the newest ones of many.
        ranges: &'a [(u64, u64)],
        /// Packets so far that arrived marked as Congestion Experienced, if it tells.
        ce_total: Option<u64>,
    },
    /// A packet is declared lost.
    Lost {
        /// Its packet number space.
        space: Space,
        /// Its number.
        packet: u64,
        /// Its size in bytes.
        bytes: u32,
    },
    /// All of an acknowledgement, or of a timer, has been worked through.
    Settled(&'a Observation),
}

/// Somebody who is told. It is called while a packet is worked on, so it must not wait for anything.
pub trait Watch: Send {
    /// This happens at the time `now`, since the epoch of the connection's handle.
    fn event(&mut self, now: Time, event: &Event<'_>);
}

/// The one who watches, if somebody does. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Option<Arc<Mutex<Box<dyn Watch>>>>);

impl Watcher {
    pub(crate) fn new(watch: Box<dyn Watch>) -> Self {
        Self(Some(Arc::new(Mutex::new(watch))))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn tell(&self, now: Time, event: &Event<'_>) {
        if let Some(watch) = &self.0 {
            watch.lock().unwrap_or_else(PoisonError::into_inner).event(now, event);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.is_there()).finish()
    }
}
