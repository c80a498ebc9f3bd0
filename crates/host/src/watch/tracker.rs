//! Connections from pass to pass.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uncork_flow::{Distribution, FlowRecord, TransportFigures};
use uncork_units::TimeDelta;

use super::event::{Destroyed, Event, Moment, Pass};
use super::record::record;
use super::sample::SocketSample;
use super::totals::Totals;
use super::why::Limits;

/// Follows connections from pass to pass, and makes a record of each that ends. No clock, no socket: a recorded session
/// gives the same as the live one.
#[derive(Debug)]
pub struct Tracker {
    connections: HashMap<u64, Box<Tracked>>,
    /// Whether the kernel tells which sockets it destroys. Then that alone ends a connection.
    has_notices: bool,
    passes: u64,
    at: Moment,
    /// Connections that have ended.
    ended: u32,
    /// How often notices were lost.
    lost_notices: u64,
    totals: Totals,
}

/// A connection that passes have seen.
#[derive(Debug)]
pub struct Tracked {
    /// When a pass saw it first.
    pub began: Moment,
    /// As the newest pass saw it.
    pub now: SocketSample,
    /// What changed in the last period; nothing in the first pass of a session.
    pub change: TransportFigures,
    /// The period's length.
    pub period: TimeDelta,
    /// What limited it in the last period.
    pub limits: Limits,
    /// What limited it since it was first seen.
    pub life: Limits,
    /// Smoothed round-trip times of passes in which data was in flight.
    pub(super) rtts: Option<Box<Distribution>>,
    /// The number of the newest pass that saw it.
    pass: u64,
}

impl Tracker {
    /// A tracker that has seen nothing. `has_notices` says whether it will be told which sockets are destroyed;
    /// without, a connection has ended when a pass does not see it any more.
    pub fn new(has_notices: bool) -> Self {
        Self {
            connections: HashMap::new(),
            has_notices,
            passes: 0,
            at: Moment::default(),
            ended: 0,
            lost_notices: 0,
            totals: Totals::default(),
        }
    }

    /// Takes in an event. Calls `each` with the records of connections that have ended.
    pub fn take(&mut self, event: &Event, mut each: impl FnMut(FlowRecord)) {
        match event {
            Event::Pass(pass) => self.pass(pass, each),
            Event::Destroyed(destroyed) => each(self.destroyed(destroyed)),
            Event::NoticesLost => {
                self.lost_notices += 1;
                self.end_absent(each);
            }
        }
    }

    /// Takes in all sockets at one moment.
    pub fn pass(&mut self, pass: &Pass, each: impl FnMut(FlowRecord)) {
        let period = TimeDelta::from_nanos(pass.at.session_ns.saturating_sub(self.at.session_ns));
        let is_first = self.passes == 0;
        self.passes += 1;
        self.at = pass.at;
        for socket in &pass.sockets {
            let tracked = match self.connections.entry(socket.cookie) {
                Entry::Vacant(new) => {
                    new.insert(Box::new(Tracked::new(socket, pass.at, is_first, period)))
                }
                Entry::Occupied(known) => {
                    let tracked = known.into_mut();
                    // A dump is no snapshot: it may report a socket twice.
                    if tracked.pass == self.passes {
                        continue;
                    }
                    tracked.see(socket, period);
                    tracked
                }
            };
            tracked.pass = self.passes;
            self.totals.add(socket, tracked.now.cc, &tracked.change, &tracked.limits);
        }
        if !self.has_notices {
            self.end_absent(each);
        }
    }

    /// Takes in a socket that the kernel destroyed.
    pub fn destroyed(&mut self, destroyed: &Destroyed) -> FlowRecord {
        let Destroyed { at, socket } = destroyed;
        let tracked = self.connections.remove(&socket.cookie);
        let (began, mut tracked) = match tracked {
            Some(tracked) => (tracked.began, Some(tracked)),
            // It was busy for so long at least.
            None => (at.before(socket.figures.busy), None),
        };
        // The end of each transfer is limited by the application, whatever limited the rest of it.
        let last = SocketSample { is_app_limited: false, ..*socket };
        let since = tracked.as_ref().map_or(began, |_| self.at);
        let elapsed = TimeDelta::from_nanos(at.session_ns.saturating_sub(since.session_ns));
        let before = tracked.as_ref().map(|tracked| &tracked.now);
        let limits = Limits::between(before, &last, elapsed);
        let change = before.map_or(last.figures, |before| last.figures.since(&before.figures));
        let cc = before.and_then(|before| before.cc);
        self.totals.add(&last, cc, &change, &limits);
        if let Some(tracked) = &mut tracked {
            tracked.life.add(&limits);
            tracked.note_rtt(&last);
        }
        self.ended(began, &last, tracked.as_deref())
    }

    /// Ends the connections that the newest pass did not see, with what the last pass saw of them. With notices, these
    /// are sockets whose connection has ended and that their program holds; or their notice was lost.
    pub fn end_absent(&mut self, mut each: impl FnMut(FlowRecord)) {
        let newest = self.passes;
        let absent = self.connections.iter().filter(|(_, tracked)| tracked.pass < newest);
        let mut absent: Vec<u64> = absent.map(|(cookie, _)| *cookie).collect();
        // In an order that does not depend on the table's.
        absent.sort_unstable();
        for cookie in absent {
            if let Some(tracked) = self.connections.remove(&cookie) {
                each(self.ended(tracked.began, &tracked.now, Some(&tracked)));
            }
        }
    }

    fn ended(&mut self, began: Moment, last: &SocketSample, seen: Option<&Tracked>) -> FlowRecord {
        let number = self.ended;
        self.ended = self.ended.wrapping_add(1);
        self.totals.end(last, last.cc.or(seen.and_then(|seen| seen.now.cc)));
        record(number, began, last, seen)
    }

    /// The connections that the newest pass saw, in no order.
    pub fn connections(&self) -> impl Iterator<Item = &Tracked> {
        let newest = self.passes;
        let all = self.connections.values().map(AsRef::as_ref);
        all.filter(move |tracked| tracked.pass == newest)
    }

    /// When the newest pass was.
    pub const fn at(&self) -> Moment {
        self.at
    }

    /// Passes so far.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// Connections that have ended.
    pub const fn ended_connections(&self) -> u32 {
        self.ended
    }

    /// How often notices were lost: more came than could wait.
    pub const fn lost_notices(&self) -> u64 {
        self.lost_notices
    }

    /// What all connections did so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}

impl Tracked {
    fn new(socket: &SocketSample, at: Moment, is_first: bool, period: TimeDelta) -> Self {
        // What a connection did before the session is not part of it.
        let (change, limits) = if is_first {
            (socket.figures.since(&socket.figures), Limits::default())
        } else {
            (socket.figures, Limits::between(None, socket, socket.figures.busy.min(period)))
        };
        let mut tracked = Self {
            began: at,
            now: *socket,
            change,
            period: if is_first { TimeDelta::default() } else { period },
            limits,
            life: limits,
            rtts: None,
            pass: 0,
        };
        tracked.note_rtt(socket);
        tracked
    }

    fn see(&mut self, socket: &SocketSample, period: TimeDelta) {
        self.change = socket.figures.since(&self.now.figures);
        self.limits = Limits::between(Some(&self.now), socket, period);
        self.period = period;
        self.life.add(&self.limits);
        self.now = *socket;
        self.note_rtt(socket);
    }

    /// A round-trip time counts when data has been sent since the last.
    fn note_rtt(&mut self, socket: &SocketSample) {
        let Some(rtt) = socket.figures.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        if socket.in_flight_bytes > 0 || self.change.bytes_acked > 0 {
            self.rtts.get_or_insert_default().record(rtt.as_nanos());
        }
    }

    /// Whether it sent something in the last period.
    pub fn is_active(&self) -> bool {
        self.change.bytes_sent > 0 || !self.change.busy.is_zero()
    }
}

impl Moment {
    fn before(self, span: TimeDelta) -> Self {
        let span = span.as_nanos();
        Self {
            session_ns: self.session_ns.saturating_sub(span),
            unix_ns: self.unix_ns.saturating_sub(span),
        }
    }
}
