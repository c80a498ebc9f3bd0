//! The turn of a connection: it tells what happened, the application acts, and it sends.

use std::num::NonZeroUsize;
use std::time::Instant;

use noq_proto::{ConnectionError, ConnectionHandle, Event, PathId, StreamEvent};

use super::output::{self, Progress, Sink};
use super::table::Entry;
use super::{Driver, Limits};
use crate::app::App;

/// What the kernel takes at once: an IP packet of 65,535 bytes with the longer header of IPv6.
const MOST_BYTES: usize = 65_535 - 48;
/// Of the round-trip time, what a connection may be held back for.
const SHARE_OF_RTT: u32 = 8;

/// How a connection left its turn.
enum Outcome {
    /// It has nothing more to send for now.
    Done,
    /// It has more to send, and others are next.
    More,
    /// The sink takes no more.
    Blocked,
}

impl<A: App> Driver<A> {
    /// Lets the next one that has something to do act and send.
    pub fn turn(&mut self, now: Instant, sink: &mut impl Sink) -> Progress {
        if !self.send_waiting(sink) {
            return Progress::Blocked;
        }
        let Some(slot) = self.ready.pop_front() else { return Progress::Idle };
        if let Some(entry) = self.table.get_mut(slot) {
            entry.unmark();
        }
        if !self.digest(now, slot) {
            return Progress::Worked; // It is gone.
        }
        let outcome = self.transmit(now, slot, sink);
        if matches!(outcome, Outcome::More | Outcome::Blocked) {
            self.mark_ready(slot);
        }
        self.arm(now, slot);
        if matches!(outcome, Outcome::Blocked) { Progress::Blocked } else { Progress::Worked }
    }

    /// Sends what was left over and what the endpoint answers; whether that is all gone.
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

    /// Passes on what the connection tells, to the endpoint and to the application; whether it is
    /// still there.
    fn digest(&mut self, now: Instant, slot: usize) -> bool {
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
                self.tell(now, slot, event);
            } else {
                break;
            }
        }
        // Its slot is the endpoint's to give away again, but nothing has arrived meanwhile.
        if is_drained {
            self.remove(now, slot);
        }
        let Some(entry) = self.table.get_mut(slot) else { return false };
        if !entry.is_told_closed {
            self.app.settle(&mut entry.turn(slot, now));
        }
        // The stack does not tell what the application did itself.
        if entry.connection.is_closed() {
            tell_closed(&mut self.app, entry, slot, now, &ConnectionError::LocallyClosed);
            self.table.handshaken(slot);
        }
        true
    }

    fn tell(&mut self, now: Instant, slot: usize, event: Event) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        if let Event::ConnectionLost { reason } = &event {
            tell_closed(&mut self.app, entry, slot, now, reason);
            self.table.handshaken(slot);
            return;
        }
        if entry.is_told_closed {
            return;
        }
        if matches!(event, Event::Connected) {
            self.table.handshaken(slot);
        }
        let Some(entry) = self.table.get_mut(slot) else { return };
        let (app, turn) = (&mut self.app, &mut entry.turn(slot, now));
        match event {
            Event::Connected => app.connected(turn),
            Event::Stream(StreamEvent::Opened { dir }) => app.opened(turn, dir),
            Event::Stream(StreamEvent::Available { dir }) => app.available(turn, dir),
            Event::Stream(StreamEvent::Readable { id }) => app.readable(turn, id),
            Event::Stream(StreamEvent::Writable { id }) => app.writable(turn, id),
            Event::Stream(StreamEvent::Finished { id }) => app.finished(turn, id),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                app.stopped(turn, id, error_code);
            }
            other => app.other(turn, other),
        }
    }

    fn transmit(&mut self, now: Instant, slot: usize, sink: &mut impl Sink) -> Outcome {
        let Some(entry) = self.table.get_mut(slot) else { return Outcome::Done };
        if entry.connection.is_closed() {
            entry.moderation.release();
        }
        if !entry.moderation.admits(now) {
            return Outcome::Done;
        }
        let (mut datagrams, mut bytes) = (0, 0);
        let mut outcome = Outcome::More;
        for _ in 0..self.limits.batches_per_turn {
            let most = datagrams_at_once(entry.connection.current_mtu(), &self.limits);
            let Some(transmit) = entry.connection.poll_transmit(now, most, &mut self.buffer) else {
                outcome = Outcome::Done;
                break;
            };
            bytes += transmit.size as u64;
            datagrams +=
                transmit.size.div_ceil(transmit.segment_size.unwrap_or(transmit.size)) as u64;
            self.pending = output::send(sink, transmit, &mut self.buffer);
            if self.pending.is_some() {
                outcome = Outcome::Blocked;
                break;
            }
        }
        // One that was interrupted goes on where it was.
        if datagrams > 0 && matches!(outcome, Outcome::Done) {
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

    /// The timer of the connection went off.
    pub(super) fn expire_connection(&mut self, now: Instant, slot: usize) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        entry.armed = None;
        if entry.wake_at.is_some_and(|time| time <= now) {
            entry.wake_at = None;
            if !entry.is_told_closed {
                self.app.timer(&mut entry.turn(slot, now));
            }
        } else if entry.deadline(now).is_none_or(|time| time > now) {
            self.arm(now, slot); // It has moved away since.
            return;
        }
        if entry.connection.poll_timeout().is_some_and(|time| time <= now) {
            entry.connection.handle_timeout(now);
        }
        self.mark_ready(slot);
    }

    pub(super) fn remove(&mut self, now: Instant, slot: usize) {
        let Some(mut entry) = self.table.remove(slot) else { return };
        if let Some(armed) = entry.armed {
            self.timers.disarm(slot, armed);
        }
        tell_closed(&mut self.app, &mut entry, slot, now, &ConnectionError::LocallyClosed);
    }
}

impl<S> Entry<S> {
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let stack = self.connection.poll_timeout();
        self.moderation.deadline(now, stack.into_iter().chain(self.wake_at).min())
    }
}

fn datagrams_at_once(mtu: u16, limits: &Limits) -> NonZeroUsize {
    let fit = NonZeroUsize::new(MOST_BYTES / usize::from(mtu.max(1)));
    fit.unwrap_or(NonZeroUsize::MIN).min(limits.datagrams_per_batch)
}

fn tell_closed<A: App>(
    app: &mut A,
    entry: &mut Entry<A::State>,
    slot: usize,
    now: Instant,
    reason: &ConnectionError,
) {
    if !std::mem::replace(&mut entry.is_told_closed, true) {
        entry.wake_at = None;
        app.closed(&mut entry.turn(slot, now), reason);
    }
}
