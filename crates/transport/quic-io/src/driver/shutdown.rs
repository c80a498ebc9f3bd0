//! Shutting a driver down.

use std::time::{Duration, Instant};

use bytes::Bytes;
use noq_proto::VarInt;

use super::Driver;
use crate::app::App;

/// How a worker shuts down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// How long connections may finish; then the remaining ones are closed.
    pub finish: Duration,
    /// The error code of that close.
    pub code: VarInt,
    /// The reason phrase of that close.
    pub reason: Bytes,
    /// The longest time that closed connections answer late packets (RFC 9000 §10.2).
    pub drain: Duration,
}

impl ShutdownOptions {
    /// Closes immediately, without answers to late packets.
    pub fn at_once(code: VarInt) -> Self {
        let none = Duration::ZERO;
        Self { finish: none, code, reason: Bytes::new(), drain: none }
    }
}

pub(crate) struct Shutdown {
    options: ShutdownOptions,
    /// When to close the remaining connections.
    close_at: Instant,
    is_closed: bool,
    /// When all connections were closed, if they are.
    quiet_since: Option<Instant>,
}

impl Shutdown {
    /// The time of the next action.
    pub(crate) fn deadline(&self, is_blocked: bool) -> Instant {
        match (self.quiet_since.is_some() || self.is_closed, is_blocked) {
            (false, _) => self.close_at,
            (true, false) => self.end(),
            (true, true) => self.end() + PATIENCE,
        }
    }

    /// When closed connections no longer need to answer.
    fn end(&self) -> Instant {
        self.quiet_since.unwrap_or(self.close_at).min(self.close_at) + self.options.drain
    }
}

impl<A: App> Driver<A> {
    /// Stops accepting connections and shuts down the open ones. A second call can only shorten the
    /// times.
    pub fn shut_down(&mut self, now: Instant, options: ShutdownOptions) {
        let close_at = now + options.finish;
        let begun = match &mut self.shutdown {
            None => {
                self.shutdown =
                    Some(Shutdown { options, close_at, is_closed: false, quiet_since: None });
                true
            }
            Some(shutdown) => {
                shutdown.options.drain = shutdown.options.drain.min(options.drain);
                if !shutdown.is_closed {
                    shutdown.close_at = shutdown.close_at.min(close_at);
                }
                false
            }
        };
        for slot in self.table.slots().into_iter().filter(|_| begun) {
            if let Some(entry) = self.table.get_mut(slot)
                && !entry.is_close_reported
            {
                self.app.shutting_down(&mut entry.context(slot, now));
            }
            self.mark_ready(slot);
        }
        self.advance_shutdown(now);
    }

    /// Whether the shutdown is complete.
    pub fn is_over(&self, now: Instant) -> bool {
        let is_sent = !self.is_ready();
        self.shutdown.as_ref().is_some_and(|shutdown| {
            (self.table.len() == 0 && is_sent)
                || (self.table.open() == 0 && now >= shutdown.end() && is_sent)
                || (self.table.open() == 0 || shutdown.is_closed)
                    && now >= shutdown.end() + PATIENCE
        })
    }

    /// Reports all open connections to the application as closed.
    pub fn abandon(&mut self, now: Instant) {
        for slot in self.table.slots() {
            self.remove(now, slot);
        }
    }

    pub(super) fn advance_shutdown(&mut self, now: Instant) {
        let Some(shutdown) = &mut self.shutdown else { return };
        shutdown.quiet_since =
            (self.table.open() == 0).then(|| shutdown.quiet_since.unwrap_or(now));
        if shutdown.is_closed || now < shutdown.close_at {
            return;
        }
        shutdown.is_closed = true;
        let ShutdownOptions { code, reason, .. } = shutdown.options.clone();
        for (slot, entry) in self.table.iter_mut() {
            entry.connection.close(now, code, reason.clone());
            if entry.mark_ready() {
                self.ready.push_back(slot);
            }
        }
    }
}

/// How long to wait for a blocked socket after the drain period.
const PATIENCE: Duration = Duration::from_millis(500);
