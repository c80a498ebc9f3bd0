//! Accounting of one QUIC connection: its records, and its counters while it is open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, TransportFigures};
use uncork_units::TimeDelta;

use super::busy::{BusyTimes, LimitedBy};
use super::connection::Inner;
use super::figures::figures;
use crate::choice::ActiveSettings;
use crate::telemetry::{About, ConnectionStats};

/// How often the counters of an open connection are updated.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// The accounting of a connection, if telemetry is enabled.
#[derive(Debug, Default)]
pub(super) struct AddressAccount {
    stats: Option<ConnectionStats>,
    busy: BusyTimes,
    /// What limits the connection once the stack has sent all its data.
    awaited: LimitedBy,
    last_update: Option<Instant>,
}

impl Inner {
    /// Starts accounting after the handshake.
    pub(super) fn open_account(&self) {
        if let Some(telemetry) = &self.shared.telemetry {
            let active = self.steering.active_settings();
            let stats = ConnectionStats::new(telemetry.metrics(), &self.labels, active, "quic");
            self.account.borrow_mut().stats = Some(stats);
        }
    }

    /// The current counters of the connection.
    pub(super) fn figures(&self) -> TransportFigures {
        let busy = self.account.borrow().busy;
        let seen = self.cc.observe();
        let lent = self.steering.lent();
        let of = |seen| figures(&seen, self.packets.get(), busy, lent);
        seen.map_or(TransportFigures::default(), of)
    }

    /// The latest round-trip time sample.
    pub(super) fn latest_rtt(&self) -> Option<TimeDelta> {
        Some(self.cc.rtt()?.latest)
    }

    /// A request has arrived. Returns whether it is the connection's first.
    pub(super) fn begin(&self, about: &About, active: &Arc<ActiveSettings>) -> bool {
        let stats = &mut self.account.borrow_mut().stats;
        stats.as_mut().is_some_and(|stats| stats.begin(about, active, &self.labels))
    }

    /// A response has ended; `record` is its record.
    pub(super) fn ended(
        &self,
        now: Instant,
        figures: &TransportFigures,
        (record, first, rtts): (&FlowRecord, Option<Instant>, &Distribution),
    ) {
        if let Some(stats) = &mut self.account.borrow_mut().stats {
            stats.note(now, figures, true);
            stats.add(record, first, rtts);
        }
    }

    /// Accounts for the time since the last call, and updates the counters from time to time.
    pub(super) fn watch(&self, now: Instant) {
        if self.account.borrow().stats.is_none() {
            return;
        }
        let held = self.held();
        let is_time = {
            let account = &mut *self.account.borrow_mut();
            account.busy.passed(now, held);
            account.last_update.is_none_or(|last_update| last_update + UPDATE_INTERVAL <= now)
        };
        if is_time {
            let figures = self.figures();
            let account = &mut *self.account.borrow_mut();
            account.last_update = Some(now);
            if let Some(stats) = &mut account.stats {
                stats.note(now, &figures, held.is_some());
            }
        }
    }

    /// What limited the connection since the last turn; `None` if it has nothing to send. The last
    /// acknowledgement shows whether the stack had sent all its data. What the connection waited
    /// for in that case was determined at the end of the last turn.
    fn held(&self) -> Option<LimitedBy> {
        if !self.responses().is_sending() {
            return None;
        }
        Some(if self.cc.is_drained() { self.account.borrow().awaited } else { LimitedBy::Path })
    }

    /// Determines at the end of a turn what limits the connection once the stack has sent all its
    /// data.
    pub(super) fn settle_account(&self) {
        // This only matters while responses are being sent.
        if self.account.borrow().stats.is_none() || !self.responses().is_sending() {
            return;
        }
        let awaited = if self.scope.is_held_back() {
            LimitedBy::Client
        } else if self.responses().is_unfinished() {
            LimitedBy::Application
        } else {
            LimitedBy::Path
        };
        self.account.borrow_mut().awaited = awaited;
    }

    /// Writes the record of a closed connection.
    pub(super) fn close_account(&self, now: Instant) {
        let figures = self.figures();
        let Some(mut stats) = self.account.borrow_mut().stats.take() else { return };
        stats.note(now, &figures, false);
        self.shared.leave(stats.record(now, &self.labels));
    }
}
