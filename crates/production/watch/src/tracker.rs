//! Tracks connections from pass to pass.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uncork_ecn::{EcnTotals, PolledFlow};
use uncork_flow::{Distribution, EcnEvidence, EcnUse, FlowRecord, TransportFigures};
use uncork_units::{Time, TimeDelta};

use crate::event::{Destroyed, Event, Moment, Pass};
use crate::record::record;
use crate::sample::SocketSample;
use crate::totals::Totals;
use crate::why::Limits;

/// Tracks connections from pass to pass, and creates a record of each connection that ends. It uses
/// no clock and no socket, so a recorded session gives the same results as the live session.
#[derive(Debug)]
pub struct Tracker {
    connections: HashMap<u64, Box<Tracked>>,
    /// Connections that ended since the latest pass, and in the period before it.
    ending: Vec<Tracked>,
    closed: Vec<Tracked>,
    /// Whether the kernel reports destroyed sockets. If so, only a close event ends a connection.
    has_close_events: bool,
    passes: u64,
    at: Moment,
    /// Connections that have ended.
    ended: u32,
    /// Of these, connections that no pass saw, so that their controller is not known.
    unseen: u64,
    /// How often close events were lost.
    lost_close_events: u64,
    totals: Totals,
}

/// A connection seen in at least one pass.
#[derive(Debug)]
pub struct Tracked {
    /// When a pass first saw it.
    pub began: Moment,
    /// Its sample in the latest pass.
    pub now: SocketSample,
    /// The change of its counters in the last period; zero in the first pass of a session.
    pub change: TransportFigures,
    /// The length of the last period.
    pub period: TimeDelta,
    /// Its limits in the last period.
    pub limits: Limits,
    /// Its limits since it was first seen.
    pub life: Limits,
    /// Smoothed round-trip times in passes with data in flight.
    pub(crate) rtts: Option<Box<Distribution>>,
    /// What its packets with ECT(1) met, from the pass on in which the client first reported them.
    polled: Option<Box<PolledFlow>>,
    /// The number of the latest pass that saw it.
    pass: u64,
}

impl Tracker {
    /// A tracker without connections. `has_close_events`: whether it will receive events of
    /// destroyed sockets. Without them, a connection has ended when a pass no longer sees it.
    pub fn new(has_close_events: bool) -> Self {
        Self {
            connections: HashMap::new(),
            ending: Vec::new(),
            closed: Vec::new(),
            has_close_events,
            passes: 0,
            at: Moment::default(),
            ended: 0,
            unseen: 0,
            lost_close_events: 0,
            totals: Totals::default(),
        }
    }

    /// Processes an event. Calls `each` with the sockets' cookies and the records of connections that have ended.
    pub fn take(&mut self, event: &Event, mut each: impl FnMut(u64, FlowRecord)) {
        match event {
            Event::Pass(pass) => self.pass(pass, each),
            Event::Destroyed(destroyed) => {
                each(destroyed.socket.cookie, self.destroyed(destroyed));
            }
            Event::CloseEventsLost => {
                self.lost_close_events += 1;
                self.end_absent(each);
            }
        }
    }

    /// Processes a pass.
    pub fn pass(&mut self, pass: &Pass, each: impl FnMut(u64, FlowRecord)) {
        let period = TimeDelta::from_nanos(pass.at.session_ns.saturating_sub(self.at.session_ns));
        let is_first = self.passes == 0;
        self.passes += 1;
        self.at = pass.at;
        self.closed.clear();
        std::mem::swap(&mut self.closed, &mut self.ending);
        if is_first {
            self.closed.clear();
        }
        self.closed.iter_mut().for_each(|closed| closed.period = period);
        for socket in &pass.sockets {
            let tracked = match self.connections.entry(socket.cookie) {
                Entry::Vacant(new) => {
                    new.insert(Box::new(Tracked::new(socket, pass.at, is_first, period)))
                }
                Entry::Occupied(known) => {
                    let tracked = known.into_mut();
                    // A dump is not a snapshot: it may report a socket twice.
                    if tracked.pass == self.passes {
                        continue;
                    }
                    tracked.see(socket, pass.at, period);
                    tracked
                }
            };
            tracked.pass = self.passes;
            self.totals.add(socket, tracked.now.cc, &tracked.change, &tracked.limits);
        }
        if !self.has_close_events {
            self.end_absent(each);
        }
    }

    /// Processes a close event of a destroyed socket.
    pub fn destroyed(&mut self, destroyed: &Destroyed) -> FlowRecord {
        let Destroyed { at, socket } = destroyed;
        let tracked = self.connections.remove(&socket.cookie);
        self.unseen += u64::from(tracked.is_none());
        let (began, mut tracked) = match tracked {
            Some(tracked) => (tracked.began, Some(tracked)),
            // It existed at least for the time that it was busy.
            None => (at.before(socket.figures.busy), None),
        };
        // The end of every transfer is application-limited. The flag says nothing about the rest.
        let given = tracked.as_ref().and_then(|tracked| tracked.now.given);
        let last = SocketSample { is_app_limited: false, given, ..*socket };
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
            tracked.note_ecn(&last, *at);
        }
        let record = self.ended((began, *at), &last, tracked.as_deref());
        let mut ending =
            tracked.map_or_else(|| Tracked::new(&last, began, true, elapsed), |tracked| *tracked);
        (ending.now, ending.change, ending.limits) = (SocketSample { cc, ..last }, change, limits);
        self.ending.push(ending);
        record
    }

    /// Ends the connections that the latest pass did not see, with their last sample. With close events,
    /// these are sockets that a program keeps open although the connection has ended, or their
    /// events were lost.
    pub fn end_absent(&mut self, each: impl FnMut(u64, FlowRecord)) {
        let newest = self.passes;
        self.end_where(|tracked| tracked.pass < newest, each);
    }

    /// Ends all connections, with what passes saw of them.
    pub fn end_all(&mut self, each: impl FnMut(u64, FlowRecord)) {
        self.end_where(|_| true, each);
    }

    fn end_where(&mut self, is: impl Fn(&Tracked) -> bool, mut each: impl FnMut(u64, FlowRecord)) {
        let ending = self.connections.iter().filter(|(_, tracked)| is(tracked));
        let mut ending: Vec<u64> = ending.map(|(cookie, _)| *cookie).collect();
        // In an order that does not depend on the table's.
        ending.sort_unstable();
        for cookie in ending {
            if let Some(tracked) = self.connections.remove(&cookie) {
                each(cookie, self.ended((tracked.began, self.at), &tracked.now, Some(&tracked)));
            }
        }
    }

    fn ended(
        &mut self,
        times: (Moment, Moment),
        last: &SocketSample,
        seen: Option<&Tracked>,
    ) -> FlowRecord {
        let number = self.ended;
        self.ended = self.ended.wrapping_add(1);
        self.totals.end(last, last.cc.or(seen.and_then(|seen| seen.now.cc)));
        record(number, times, last, seen)
    }

    /// The connections in the latest pass, in no particular order.
    pub fn connections(&self) -> impl Iterator<Item = &Tracked> {
        let newest = self.passes;
        let all = self.connections.values().map(AsRef::as_ref);
        all.filter(move |tracked| tracked.pass == newest)
    }

    /// The connections that ended in the last period, with what changed since the pass before. The kernel reports no congestion
    /// window of them.
    pub fn closed_connections(&self) -> impl Iterator<Item = &Tracked> {
        self.closed.iter()
    }

    /// When the latest pass was.
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

    /// Connections that have ended and that no pass saw: a close event does not name the controller.
    pub const fn unseen_connections(&self) -> u64 {
        self.unseen
    }

    /// How often close events were lost: the receive buffer overflowed.
    pub const fn lost_close_events(&self) -> u64 {
        self.lost_close_events
    }

    /// The totals of all connections so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}

impl Tracked {
    fn new(socket: &SocketSample, at: Moment, is_first: bool, period: TimeDelta) -> Self {
        // Exclude data sent before the session.
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
            polled: None,
            pass: 0,
        };
        tracked.note_rtt(socket);
        tracked.note_ecn(socket, at);
        tracked
    }

    fn see(&mut self, socket: &SocketSample, at: Moment, period: TimeDelta) {
        self.change = socket.figures.since(&self.now.figures);
        self.limits = Limits::between(Some(&self.now), socket, period);
        self.period = period;
        self.life.add(&self.limits);
        self.now = *socket;
        self.note_rtt(socket);
        self.note_ecn(socket, at);
    }

    /// Takes in what marks and round-trip times show, while the client reports ECT(1).
    fn note_ecn(&mut self, socket: &SocketSample, at: Moment) {
        let (Some(packets), Some(rtt)) = (socket.delivered_packets, socket.figures.rtt) else {
            return;
        };
        if socket.figures.ecn != Some(EcnUse::L4s) {
            return;
        }
        let min_rtt = socket.figures.min_rtt.unwrap_or(rtt);
        let marked = socket.figures.packets_marked;
        let totals = EcnTotals { packets: packets.into(), marked, rtt, min_rtt };
        let now = Time::from_nanos(at.session_ns);
        match &mut self.polled {
            Some(polled) => {
                polled.on_poll(now, totals);
            }
            None => self.polled = Some(Box::new(PolledFlow::new(now, totals))),
        }
    }

    /// What its packets with ECT(1) have shown about the queue of the client's network.
    pub(crate) fn ecn_evidence(&self) -> Option<EcnEvidence> {
        self.polled.as_ref().map(|polled| EcnEvidence::from(&polled.evidence()))
    }

    /// Adds a round-trip sample if data was sent since the last one.
    fn note_rtt(&mut self, socket: &SocketSample) {
        let Some(rtt) = socket.figures.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        if socket.in_flight_bytes > 0 || self.change.bytes_acked > 0 {
            self.rtts.get_or_insert_default().record(rtt.as_nanos());
        }
    }

    /// Whether it sent data in the last period.
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
