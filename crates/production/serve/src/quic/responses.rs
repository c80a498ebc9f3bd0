//! The responses in progress on a connection.

use std::collections::BTreeMap;
use std::time::Instant;

use super::exchange::Exchange;
use crate::telemetry::Timeouts;

/// How often per stall timeout the client's progress is checked.
const LOOKS: u32 = 8;

/// The responses in progress, and the time of the last progress.
pub(super) struct ResponseTable {
    /// By stream ID.
    exchanges: BTreeMap<u64, Exchange>,
    has_served: bool,
    last_progress: Instant,
    acked: u64,
}

impl ResponseTable {
    pub(super) fn new(now: Instant) -> Self {
        Self { exchanges: BTreeMap::new(), has_served: false, last_progress: now, acked: 0 }
    }

    pub(super) fn begin(&mut self, now: Instant, stream: u64, exchange: Exchange) {
        self.exchanges.insert(stream, exchange);
        self.has_served = true;
        self.last_progress = now;
    }

    pub(super) fn get_mut(&mut self, stream: u64) -> Option<&mut Exchange> {
        self.exchanges.get_mut(&stream)
    }

    pub(super) fn remove(&mut self, now: Instant, stream: u64) -> Option<Exchange> {
        self.last_progress = now;
        self.exchanges.remove(&stream)
    }

    /// Whether responses are being sent.
    pub(super) fn is_sending(&self) -> bool {
        self.exchanges.values().any(|exchange| exchange.first().is_some())
    }

    /// Whether a response in progress needs more data from the application.
    pub(super) fn is_unfinished(&self) -> bool {
        self.exchanges.values().any(Exchange::is_unfinished)
    }

    pub(super) fn take(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges).into_values().collect()
    }

    /// When the connection last made progress.
    pub(super) fn last_progress(&self) -> Instant {
        self.last_progress
    }

    pub(super) fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Records the number of bytes that the client has acknowledged so far.
    pub(super) fn note_progress(&mut self, now: Instant, acked: u64) {
        if acked > self.acked && !self.is_idle() {
            self.last_progress = now;
        }
        self.acked = acked;
    }

    /// When the connection times out, unless it makes progress before.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> Instant {
        self.last_progress + timeouts.span(!self.is_idle(), self.has_served)
    }

    /// When to check next.
    pub(super) fn next_look(&self, now: Instant, timeouts: &Timeouts) -> Instant {
        let deadline = self.deadline(timeouts);
        if self.is_idle() { deadline } else { deadline.min(now + timeouts.stall / LOOKS) }
    }
}
