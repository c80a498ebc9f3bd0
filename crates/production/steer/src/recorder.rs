//! Writes a record for each steered connection that ends: its decision and its figures.
//!
//! The figures are in the kernel's event of the destroyed socket (`uncork host watch`). The program reports the decision
//! in a close event, which always comes before the socket is destroyed. The socket's cookie joins the two.

use std::collections::HashMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uncork_flow::{Arm, Choice, FlowRecord};
use uncork_policy::{Origins, bucket};
use uncork_records::{Records, RecordsSpec, RecordsSummary, Writer};
use uncork_watch::{Session, Tick, WatchSpec};
use zerocopy::FromBytes;

use crate::archive::PolicyArchive;
use crate::attached::Attached;
use crate::error::Error;
use crate::layout::CloseEvent;
use crate::networks::Networks;
use crate::pins::SteerPins;
use crate::steered::Steered;

/// Half of the maximum number of close events that wait for their sockets.
const MAX_WAITING: usize = 1 << 19;

/// Writes the records of one steered cgroup.
#[derive(Debug)]
pub struct Recorder<'a> {
    session: Session,
    events: CloseEvents<'a>,
    /// The cgroup's directory, to find it again.
    cgroup: PathBuf,
    pins: SteerPins,
    event: Option<Event>,
    /// The policy was removed, and no other was applied.
    is_removed: bool,
    records: Records,
    writer: Writer,
}

/// A change of the recorded policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was removed. The recorder waits for another one.
    Removed,
    /// A policy was applied after that. Its connections are recorded.
    Applied,
}

/// The client's properties in records.
#[derive(Clone, Copy, Debug)]
pub struct Clients<'a> {
    /// Databases of autonomous systems and countries.
    pub origins: &'a Origins,
    /// Names of networks.
    pub networks: &'a Networks,
    /// Whether records have the client's port and the time of the end, to find a connection in a log.
    pub has_ports: bool,
}

/// The counts of written records and of losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records written, and lost because the disk was full or too slow.
    pub records: RecordsSummary,
    /// Why the last records were not written.
    pub problem: Option<String>,
    /// Connections without a close event, because the ring was full.
    pub ring_dropped: u64,
    /// Connections with a close event of another version of uncork.
    pub other_version: u64,
    /// Connections of policies without a description any more.
    pub policy_unknown: u64,
    /// Connections with the program's close event, but without the kernel's event of the destroyed socket.
    pub close_event_missing: u64,
    /// How often the kernel sent events faster than they were read.
    pub lost_events: u64,
}

/// Close events that wait for the destruction of their sockets, and the policies that give them their meaning.
#[derive(Debug)]
struct CloseEvents<'a> {
    clients: Clients<'a>,
    attached: Attached,
    /// The pins before a `revert`. They have the decisions for connections that were open then.
    before: Option<Attached>,
    waiting: Waiting,
    archive: PolicyArchive,
    /// Close events that earlier rings dropped.
    ring_dropped: u64,
    policy_unknown: u64,
}

/// Close events that wait for the kernel's events of their sockets, by cookie. Such an event may never come: a program keeps the
/// socket of a dead connection open, events are lost, or the socket is in another network namespace.
#[derive(Debug, Default)]
struct Waiting {
    new: HashMap<u64, CloseEvent>,
    old: HashMap<u64, CloseEvent>,
    dropped: u64,
    other_version: u64,
}

impl Waiting {
    /// Adds an event of the ring. If another version of uncork applied the policy, its events may have another size.
    fn add(&mut self, bytes: &[u8]) {
        match CloseEvent::read_from_bytes(bytes) {
            Ok(event) => self.insert(event),
            Err(_) => self.other_version += 1,
        }
    }

    /// Drops the older half if there are too many.
    fn insert(&mut self, end: CloseEvent) {
        if self.new.len() >= MAX_WAITING {
            self.dropped += self.old.len() as u64;
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(end.cookie, end);
    }

    fn remove(&mut self, cookie: u64) -> Option<CloseEvent> {
        self.new.remove(&cookie).or_else(|| self.old.remove(&cookie))
    }

    /// The number of close events without the kernel's event.
    fn unmatched(&self) -> u64 {
        self.dropped + self.new.len() as u64 + self.old.len() as u64
    }
}

impl<'a> Recorder<'a> {
    /// Begins with the connections that end from now on. A pass over all sockets each `period` finds what limits them.
    ///
    /// # Errors
    ///
    /// If the cgroup is not steered, has a recorder already, or the records have no place.
    pub fn start(
        steered: &Steered,
        clients: Clients<'a>,
        spec: &RecordsSpec,
        period: Duration,
    ) -> Result<Self, Error> {
        let cgroup = steered.active()?.ok_or_else(|| steered.inactive())?.cgroup.into();
        let attached = Attached::open(steered)?;
        let mut events = CloseEvents {
            clients,
            attached,
            before: None,
            waiting: Waiting::default(),
            archive: PolicyArchive::of(steered),
            ring_dropped: 0,
            policy_unknown: 0,
        };
        events.archive.read_active();
        let session = Session::start(&WatchSpec::live(period))?;
        // Their sockets were destroyed before the session.
        events.attached.read(|_| {});
        let (records, writer) = spec.open()?;
        let (pins, event) = (steered.pins().clone(), None);
        Ok(Self { session, events, cgroup, pins, event, is_removed: false, records, writer })
    }

    /// The figures that the session lacks, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.session.warning()
    }

    /// Why records are not written, once for each time that this begins.
    pub fn problem(&self) -> Option<String> {
        self.records.tally().problem()
    }

    /// The change of the policy, once for each.
    pub fn event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// The directory of the cgroup.
    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// Performs the due work, and returns the time until the next.
    ///
    /// # Errors
    ///
    /// If the kernel does not report sockets.
    pub fn tick(&mut self) -> Result<Duration, Error> {
        let Self { session, events, records, .. } = self;
        let tick = session.tick_with(&mut |cookie, record| {
            if let Some(steered) = events.steered_record(cookie, record) {
                records.leave(steered);
            }
        })?;
        events.read();
        self.follow()?;
        Ok(match tick {
            Tick::Wait(time) => time,
            Tick::Passed | Tick::Ended => Duration::ZERO,
        })
    }

    /// Switches to the pins of the next policy if the policy was removed.
    fn follow(&mut self) -> Result<(), Error> {
        if self.events.attached.are_pinned() {
            self.events.archive.read_active();
            return Ok(());
        }
        if !self.is_removed {
            (self.is_removed, self.event) = (true, Some(Event::Removed));
        }
        let Some(steered) = Steered::active_at(&self.pins, &self.cgroup)? else { return Ok(()) };
        match self.events.move_to(&steered) {
            Ok(()) => (self.is_removed, self.event) = (false, Some(Event::Applied)),
            Err(error @ Error::Recorded(..)) => return Err(error),
            // It was removed again meanwhile.
            Err(_) => {}
        }
        Ok(())
    }

    /// Ends the session, and writes all files, also after an error.
    ///
    /// # Errors
    ///
    /// If the kernel does not report the sockets or the count of losses. The records are written nevertheless.
    pub fn end(self) -> (Summary, Result<(), Error>) {
        let Self { session, events, records, writer, .. } = self;
        let lost_events = session.tracker().lost_close_events();
        let ended = session.end().map(drop).map_err(Error::from);
        let tally = Arc::clone(records.tally());
        drop(records);
        let records = writer.end();
        let lost = events.attached.lost();
        let summary = Summary {
            records,
            problem: tally.problem(),
            ring_dropped: events.ring_dropped + lost.as_ref().copied().unwrap_or(0),
            other_version: events.waiting.other_version,
            policy_unknown: events.policy_unknown,
            close_event_missing: events.waiting.unmatched(),
            lost_events,
        };
        (summary, ended.and(lost.map(drop)))
    }
}

impl CloseEvents<'_> {
    /// Reads the events in the ring, so that it has room.
    fn read(&mut self) {
        let waiting = &mut self.waiting;
        self.attached.read(|bytes| waiting.add(bytes));
    }

    /// Switches to the pins of another policy.
    fn move_to(&mut self, steered: &Steered) -> Result<(), Error> {
        let attached = Attached::open(steered)?;
        self.ring_dropped += self.attached.lost()?;
        self.archive.move_to(steered);
        self.before = Some(mem::replace(&mut self.attached, attached));
        Ok(())
    }

    /// The close event of a connection that the program has not reported, because another program of the cgroup has changed
    /// the socket's subscription to events.
    fn unreported(&self, cookie: u64, record: &FlowRecord) -> Option<CloseEvent> {
        let mut attached = std::iter::once(&self.attached).chain(&self.before);
        let decision = attached.find_map(|it| it.take(cookie))?;
        Some(CloseEvent::new(cookie, decision, &record.cc))
    }

    /// The record of a steered connection with its decision; `None` for others.
    fn steered_record(&mut self, cookie: u64, record: &FlowRecord) -> Option<FlowRecord> {
        // The program's event is in the ring before the kernel's event comes.
        self.read();
        let end = self.waiting.remove(cookie).or_else(|| self.unreported(cookie, record))?;
        let decision = end.decision;
        let Some(description) = self.archive.description(decision.policy) else {
            self.policy_unknown += 1;
            return None;
        };
        let decided = description.decided.get(decision.outcome as usize)?;
        // A moved connection had more than one arm, or none for a while: it is not evidence for any.
        let arm = decided.experiment.as_ref().zip(decided.arm.as_ref());
        let arm = arm.filter(|_| !decision.is_moved());
        let choice = Choice {
            policy: description.fingerprint.as_str().into(),
            rule: decided.by().rule_name().into(),
            cc: decided.kernel_name().map(Into::into),
            arm: arm.map(|(experiment, arm)| Arm {
                experiment: experiment.into(),
                arm: arm.into(),
                unit: decision.unit,
                bucket: bucket(decision.unit),
                propensity: decided.propensity.unwrap_or(0.0),
            }),
        };
        let mut record = FlowRecord {
            choice: Some(Box::new(choice)),
            cc: end.controller().into(),
            ..record.clone()
        };
        end.start.add_to(&mut record, decision.window);
        if let Some(service) = &mut record.service {
            if let Some(name) = name_of(&service.listener, &description.listeners) {
                service.listener = name.into();
            }
            let network = service.client.as_deref().and_then(|client| client.split('/').next());
            if let Some(client) = network.and_then(|network| network.parse().ok()) {
                let origin = self.clients.origins.of(client);
                service.asn = origin.asn;
                service.country = origin.country.map(|country| country.to_string().into());
            }
            service.region = service
                .client
                .as_deref()
                .and_then(|it| self.clients.networks.name(it))
                .map(Into::into);
            if !self.clients.has_ports {
                (service.client_port, service.end_unix_ns) = (None, None);
            }
        }
        Some(record)
    }
}

/// The name of the listener with this address, if its port has one.
fn name_of<'a>(listener: &str, names: &'a [(String, u16)]) -> Option<&'a str> {
    let port = listener.rsplit(':').next().and_then(|port| port.parse::<u16>().ok())?;
    names.iter().find(|(_, named)| *named == port).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Decision;

    #[test]
    fn waiting_close_events_are_bounded_and_counted() {
        let mut waiting = Waiting::default();
        let end = |cookie| CloseEvent::new(cookie, Decision::default(), "");
        for cookie in 0..3 * MAX_WAITING as u64 + 7 {
            waiting.insert(end(cookie));
        }
        assert_eq!(waiting.new.len() + waiting.old.len(), MAX_WAITING + 7);
        assert_eq!(waiting.unmatched(), 3 * MAX_WAITING as u64 + 7);
        let newest = 3 * MAX_WAITING as u64;
        assert!(waiting.remove(0).is_none());
        assert!(waiting.remove(newest).is_some(), "of the new ones");
        assert!(waiting.remove(newest - 1).is_some(), "of the old ones");
        assert_eq!(waiting.unmatched(), 3 * MAX_WAITING as u64 + 5);
    }

    #[test]
    fn close_events_of_another_version_are_counted_and_reported() {
        let mut waiting = Waiting::default();
        let event = [7; size_of::<CloseEvent>()];
        for length in [0, event.len() - 8, event.len()] {
            waiting.add(&event[..length]);
        }
        waiting.add(&[7; size_of::<CloseEvent>() + 8]);
        assert_eq!((waiting.unmatched(), waiting.other_version), (1, 3));
        let summary = Summary { other_version: waiting.other_version, ..Summary::default() };
        assert_eq!(
            summary.warnings(),
            ["lost 3 connections: another version of uncork applied their policy; apply it again"]
        );
    }
}
