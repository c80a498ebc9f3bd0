//! Reporting a connection's events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use uncork_units::Time;

use crate::handle::Observation;
use crate::observed::Space;

/// An event of a connection's congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An ack-eliciting packet is sent.
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
        /// Its packet number space.
        space: Space,
        /// Inclusive ranges in descending order; only the newest if there are many.
        ranges: &'a [(u64, u64)],
        /// CE marks so far, if the frame has ECN counts.
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
    /// An acknowledgement, or a timer, is completely processed.
    Settled(&'a Observation),
}

/// Receives events. It runs while a packet is processed, so it must not block.
pub trait Watch: Send {
    /// `event` happens at `now`, counted from the epoch of the connection's handle.
    fn event(&mut self, now: Time, event: &Event<'_>);
}

/// An optional [`Watch`], shared by all clones.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Option<Arc<Mutex<Box<dyn Watch>>>>);

impl Watcher {
    pub(crate) fn new(watch: Box<dyn Watch>) -> Self {
        Self(Some(Arc::new(Mutex::new(watch))))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn notify(&self, now: Time, event: &Event<'_>) {
        if let Some(watch) = &self.0 {
            watch.lock().unwrap_or_else(PoisonError::into_inner).event(now, event);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.is_set()).finish()
    }
}
