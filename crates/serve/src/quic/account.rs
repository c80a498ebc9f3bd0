//! What is told of a connection: its records, and what it counts for while it is open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, TransportFigures};
use uncork_units::TimeDelta;

use super::busy::{Busy, LimitedBy};
use super::connection::Inner;
use super::figures::figures;
use crate::choice::InForce;
use crate::telemetry::{About, ConnectionStats};

/// How often it is told what an open connection has moved.
const TELLING: Duration = Duration::from_millis(100);

/// The account of a connection, if anybody wants to know.
#[derive(Debug, Default)]
pub(super) struct Account {
    stats: Option<ConnectionStats>,
    busy: Busy,
    /// What a stack that has sent all that it has waits for.
    awaited: LimitedBy,
    told: Option<Instant>,
}

impl Inner {
    /// The handshake is over: there is a connection.
    pub(super) fn open_account(&self) {
        if let Some(telemetry) = &self.shared.telemetry {
            let in_force = self.steering.in_force();
            let stats = ConnectionStats::new(telemetry.metrics(), &self.labels, in_force, "quic");
            self.account.borrow_mut().stats = Some(stats);
        }
    }

    /// What is known of the connection now.
    pub(super) fn figures(&self) -> TransportFigures {
        let busy = self.account.borrow().busy;
        let seen = self.cc.observe();
        seen.map_or(TransportFigures::default(), |seen| figures(&seen, self.packets.get(), busy))
    }

    /// The round-trip time measured last.
    pub(super) fn latest_rtt(&self) -> Option<TimeDelta> {
        Some(self.cc.observe()?.rtt?.latest)
    }

    /// A request has come.
    pub(super) fn begin(&self, about: &About, in_force: &Arc<InForce>) {
        if let Some(stats) = &mut self.account.borrow_mut().stats {
            stats.begin(about, in_force, &self.labels);
        }
    }

    /// A response has come to the end that its record tells of.
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

    /// Looks what the connection has waited for up to now, and tells at times what it has moved.
    pub(super) fn watch(&self, now: Instant) {
        if self.account.borrow().stats.is_none() {
            return;
        }
        let held = self.held();
        let is_time = {
            let account = &mut *self.account.borrow_mut();
            account.busy.passed(now, held);
            account.told.is_none_or(|told| told + TELLING <= now)
        };
        if is_time {
            let figures = self.figures();
            let account = &mut *self.account.borrow_mut();
            account.told = Some(now);
            if let Some(stats) = &mut account.stats {
                stats.note(now, &figures, held.is_some());
            }
        }
    }

    /// What it has waited for, if it has something to send. The last acknowledgement tells whether the stack had sent all
    /// that it could; what it waited for then was settled at the end of the turn before.
    fn held(&self) -> Option<LimitedBy> {
        if !self.responses().is_sending() {
            return None;
        }
        let is_drained = self.cc.observe().is_some_and(|seen| seen.is_drained);
        Some(if is_drained { self.account.borrow().awaited } else { LimitedBy::Path })
    }

    /// The turn ends: what a stack that has sent all that it has waits for from now on.
    pub(super) fn settle_account(&self) {
        // It only counts while responses are being sent.
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

    /// The connection is over.
    pub(super) fn close_account(&self, now: Instant) {
        let figures = self.figures();
        let Some(mut stats) = self.account.borrow_mut().stats.take() else { return };
        stats.note(now, &figures, false);
        self.shared.leave(stats.record(now, &self.labels));
    }
}
