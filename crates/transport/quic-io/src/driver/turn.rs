//! A connection's turn: deliver its events to the application, then send its output.

use std::num::NonZeroUsize;
use std::time::Instant;

use noq_proto::{ConnectionError, ConnectionHandle, Event, PathId, StreamEvent};

use super::output::{self, Progress, Sink};
use super::table::DriverEntry;
use super::{Driver, Limits};
use crate::app::App;

/// Largest payload of a GSO batch: an IP packet of 65,535 bytes with the longer header of IPv6.
const MAX_BATCH_BYTES: usize = 65_535 - 48;
/// A connection is delayed by at most 1/8 of its round-trip time.
const SHARE_OF_RTT: u32 = 8;

/// The state of a connection's output after its turn.
enum TurnOutcome {
    /// Nothing more to send for now.
    Done,
    /// It has more to send in its next turn.
    More,
    /// The sink is full.
    Blocked,
}

impl<A: App> Driver<A> {
    /// Runs the turn of the next ready connection.
    pub fn run_next(&mut self, now: Instant, sink: &mut impl Sink) -> Progress {
        if !self.send_waiting(sink) {
            return Progress::Blocked;
        }
        let Some(slot) = self.ready.pop_front() else { return Progress::Idle };
        if let Some(entry) = self.table.get_mut(slot) {
            entry.unmark();
        }
        if !self.process_events(now, slot) {
            return Progress::Worked; // The connection is gone.
        }
        let outcome = self.transmit(now, slot, sink);
        if matches!(outcome, TurnOutcome::More | TurnOutcome::Blocked) {
            self.mark_ready(slot);
        }
        self.arm(now, slot);
        if matches!(outcome, TurnOutcome::Blocked) { Progress::Blocked } else { Progress::Worked }
    }

    /// Sends the rest of the last batch and the endpoint's replies. Returns whether all was sent.
    fn send_waiting(&mut self, sink: &mut impl Sink) -> bool {
        if let Some(pending) = self.pending.take() {
            match pending.send(sink) {
                Ok(buffer) => self.buffer = buffer,
                Err(pending) => self.pending = Some(pending),
            }
        }
        while self.pending.is_none() {
            let Some((transmit, mut contents)) = self.replies.pop() else { return true };
            self.pending = output::send(sink, transmit, &mut contents);
        }
        false
    }

    /// Delivers the connection's events to the endpoint and the application. Returns whether the
    /// connection still exists.
    fn process_events(&mut self, now: Instant, slot: usize) -> bool {
        let mut is_drained = false;
        loop {
            let Some(entry) = self.table.get_mut(slot) else { return false };
            if let Some(event) = entry.connection.poll_endpoint_events() {
                is_drained |= event.is_drained();
                let handle = ConnectionHandle(slot);
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    entry.connection.handle_event(event);
                }
            } else if let Some(event) = entry.connection.poll() {
                self.deliver(now, slot, event);
            } else {
                break;
            }
        }
        // The endpoint may reuse the slot, but has received nothing since.
        if is_drained {
            self.remove(now, slot);
        }
        let Some(entry) = self.table.get_mut(slot) else { return false };
        if !entry.is_close_reported {
            self.app.settle(&mut entry.context(slot, now));
        }
        // The stack reports no event for a close by the application itself.
        if entry.connection.is_closed() {
            self.report_closed(now, slot, &ConnectionError::LocallyClosed);
        }
        true
    }

    fn deliver(&mut self, now: Instant, slot: usize, event: Event) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        if let Event::ConnectionLost { reason } = &event {
            self.report_closed(now, slot, reason);
            return;
        }
        if entry.is_close_reported {
            return;
        }
        if matches!(event, Event::Connected) {
            self.table.end_handshake(slot);
        }
        let Some(entry) = self.table.get_mut(slot) else { return };
        let (app, context) = (&mut self.app, &mut entry.context(slot, now));
        match event {
            Event::Connected => {
                app.connected(context);
                if self.shutdown.is_some() {
                    app.shutting_down(context);
                }
            }
            Event::Stream(StreamEvent::Opened { dir }) => app.opened(context, dir),
            Event::Stream(StreamEvent::Available { dir }) => app.available(context, dir),
            Event::Stream(StreamEvent::Readable { id }) => app.readable(context, id),
            Event::Stream(StreamEvent::Writable { id }) => app.writable(context, id),
            Event::Stream(StreamEvent::Finished { id }) => app.finished(context, id),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                app.stopped(context, id, error_code);
            }
            other => app.other(context, other),
        }
    }

    fn transmit(&mut self, now: Instant, slot: usize, sink: &mut impl Sink) -> TurnOutcome {
        let Some(entry) = self.table.get_mut(slot) else { return TurnOutcome::Done };
        if entry.connection.is_closed() {
            entry.moderation.release();
        }
        if !entry.moderation.admits(now) {
            return TurnOutcome::Done;
        }
        let (mut datagrams, mut bytes) = (0, 0);
        let mut outcome = TurnOutcome::More;
        for _ in 0..self.limits.batches_per_turn {
            let most = max_datagrams(entry.connection.current_mtu(), &self.limits);
            let Some(transmit) = entry.connection.poll_transmit(now, most, &mut self.buffer) else {
                outcome = TurnOutcome::Done;
                break;
            };
            bytes += transmit.size as u64;
            datagrams +=
                transmit.size.div_ceil(transmit.segment_size.unwrap_or(transmit.size)) as u64;
            self.pending = output::send(sink, transmit, &mut self.buffer);
            if self.pending.is_some() {
                outcome = TurnOutcome::Blocked;
                break;
            }
        }
        // Only a turn that sent everything counts; others continue in the next turn.
        if datagrams > 0 && matches!(outcome, TurnOutcome::Done) {
            let rtt = entry.connection.rtt(PathId::ZERO).unwrap_or_default();
            let longest = self.limits.longest_wait.min(rtt / SHARE_OF_RTT);
            entry.moderation.sent(now, datagrams, bytes, longest);
        }
        outcome
    }

    /// Sets the timer of the connection.
    fn arm(&mut self, now: Instant, slot: usize) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let deadline = entry.deadline(now);
        entry.armed = self.timers.arm(slot, entry.armed, deadline);
    }

    /// Handles the timer of a connection.
    pub(super) fn expire_connection(&mut self, now: Instant, slot: usize) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        entry.armed = None;
        if entry.wake_at.is_some_and(|time| time <= now) {
            entry.wake_at = None;
            if !entry.is_close_reported {
                self.app.timer(&mut entry.context(slot, now));
            }
        } else if entry.deadline(now).is_none_or(|time| time > now) {
            self.arm(now, slot); // The deadline has moved since.
            return;
        }
        if entry.connection.poll_timeout().is_some_and(|time| time <= now) {
            entry.connection.handle_timeout(now);
        }
        self.mark_ready(slot);
    }

    pub(super) fn remove(&mut self, now: Instant, slot: usize) {
        self.report_closed(now, slot, &ConnectionError::LocallyClosed);
        let Some(entry) = self.table.remove(slot) else { return };
        if let Some(armed) = entry.armed {
            self.timers.disarm(slot, armed);
        }
    }

    /// Reports to the application once that the connection is closed.
    fn report_closed(&mut self, now: Instant, slot: usize, reason: &ConnectionError) {
        if let Some(entry) = self.table.close(slot) {
            entry.wake_at = None;
            self.app.closed(&mut entry.context(slot, now), reason);
        }
        self.table.end_handshake(slot);
    }
}

impl<S> DriverEntry<S> {
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let stack = self.connection.poll_timeout();
        self.moderation.deadline(now, stack.into_iter().chain(self.wake_at).min())
    }
}

/// Maximum number of datagrams in a batch.
fn max_datagrams(mtu: u16, limits: &Limits) -> NonZeroUsize {
    let fit = NonZeroUsize::new(MAX_BATCH_BYTES / usize::from(mtu.max(1)));
    fit.unwrap_or(NonZeroUsize::MIN).min(limits.datagrams_per_batch)
}
