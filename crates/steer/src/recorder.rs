//! A record for each steered connection that ends: what it was given, and how it went.
//!
//! How it went is in the kernel's notice of the destroyed socket (`uncork host watch`). What it was given the program
//! tells when the connection is closed, which is always before its socket is destroyed. The socket's cookie joins the two.

use std::collections::HashMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uncork_flow::{Arm, Choice, FlowRecord};
use uncork_host::watch::{Session, Tick, WatchSpec};
use uncork_policy::{Origins, bucket};
use uncork_records::{Records, RecordsSpec, RecordsSummary, Writer};

use crate::attached::Attached;
use crate::error::Error;
use crate::layout::End;
use crate::names::Names;
use crate::networks::Networks;
use crate::pins::Pins;
use crate::steered::Steered;

/// Half of the ends that wait for their sockets at most.
const MAX_WAITING: usize = 1 << 19;

/// Writes the records of one steered cgroup.
#[derive(Debug)]
pub struct Recorder<'a> {
    session: Session,
    ends: Ends<'a>,
    /// The cgroup's directory, to find it again.
    cgroup: PathBuf,
    pins: Pins,
    event: Option<Event>,
    /// The policy was removed, and no other was applied.
    is_removed: bool,
    records: Records,
    writer: Writer,
}

/// What has happened to the policy that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was removed. The recorder waits for another one.
    Removed,
    /// A policy was applied after that. Its connections are recorded.
    Applied,
}

/// What records say of clients.
#[derive(Clone, Copy, Debug)]
pub struct Clients<'a> {
    /// Databases of autonomous systems and countries.
    pub origins: &'a Origins,
    /// Names of networks.
    pub networks: &'a Networks,
    /// Whether records have the client's port and the time of the end, to find a connection in a log.
    pub has_ports: bool,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records written, and lost because the disk was full or too slow.
    pub records: RecordsSummary,
    /// Why the last records were not written.
    pub problem: Option<String>,
    /// Connections of which the program could not tell: the ring was full.
    pub untold: u64,
    /// Connections of policies whose description is gone.
    pub unnamed: u64,
    /// Connections whose end the program has told, and the kernel has not told of their sockets.
    pub unnoticed: u64,
    /// How often the kernel's notices came faster than they were read.
    pub lost_notices: u64,
}

/// Ends of connections whose sockets are not destroyed yet, and the meaning of what they were given.
#[derive(Debug)]
struct Ends<'a> {
    clients: Clients<'a>,
    attached: Attached,
    /// The pins before a `revert`: connections that were open then have their decisions there.
    before: Option<Attached>,
    waiting: Waiting,
    names: Names,
    /// Ends that found no room in rings of before.
    untold: u64,
    unnamed: u64,
}

/// Ends that wait for the kernel's notices of their sockets, by cookie. It may never come: a program may keep the socket of a
/// dead connection open, notices are lost, or the socket is in another network namespace.
#[derive(Debug, Default)]
struct Waiting {
    new: HashMap<u64, End>,
    old: HashMap<u64, End>,
    given_up: u64,
}

impl Waiting {
    /// Where there are too many, the older half is given up.
    fn insert(&mut self, end: End) {
        if self.new.len() >= MAX_WAITING {
            self.given_up += self.old.len() as u64;
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(end.cookie, end);
    }

    fn remove(&mut self, cookie: u64) -> Option<End> {
        self.new.remove(&cookie).or_else(|| self.old.remove(&cookie))
    }

    /// All that came to nothing.
    fn unnoticed(&self) -> u64 {
        self.given_up + self.new.len() as u64 + self.old.len() as u64
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
        let mut ends = Ends {
            clients,
            attached,
            before: None,
            waiting: Waiting::default(),
            names: Names::of(steered),
            untold: 0,
            unnamed: 0,
        };
        ends.names.read_active();
        let session = Session::start(&WatchSpec::live(period))?;
        // Their sockets were destroyed before the session.
        ends.attached.read(|_| {});
        let (records, writer) = spec.open()?;
        let (pins, event) = (steered.pins().clone(), None);
        Ok(Self { session, ends, cgroup, pins, event, is_removed: false, records, writer })
    }

    /// What is missing, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.session.warning()
    }

    /// Why records are not written, once for each time that this begins.
    pub fn problem(&self) -> Option<String> {
        self.records.tally().problem()
    }

    /// What has happened to the policy, once for each time.
    pub fn event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// The directory of the cgroup.
    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// Does what is due; the result is how long there is nothing to do.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn tick(&mut self) -> Result<Duration, Error> {
        let Self { session, ends, records, .. } = self;
        let tick = session.tick_with(&mut |cookie, record| {
            if let Some(told) = ends.told(cookie, record) {
                records.leave(told);
            }
        })?;
        ends.read();
        self.follow()?;
        Ok(match tick {
            Tick::Wait(time) => time,
            Tick::Passed | Tick::Ended => Duration::ZERO,
        })
    }

    /// Goes on with the pins of the next policy where the policy was removed.
    fn follow(&mut self) -> Result<(), Error> {
        if self.ends.attached.are_pinned() {
            self.ends.names.read_active();
            return Ok(());
        }
        if !self.is_removed {
            (self.is_removed, self.event) = (true, Some(Event::Removed));
        }
        let Some(steered) = Steered::active_at(&self.pins, &self.cgroup)? else { return Ok(()) };
        match self.ends.move_to(&steered) {
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
        let Self { session, ends, records, writer, .. } = self;
        let lost_notices = session.tracker().lost_notices();
        let ended = session.end().map(drop).map_err(Error::from);
        let tally = Arc::clone(records.tally());
        drop(records);
        let records = writer.end();
        let lost = ends.attached.lost();
        let summary = Summary {
            records,
            problem: tally.problem(),
            untold: ends.untold + lost.as_ref().copied().unwrap_or(0),
            unnamed: ends.unnamed,
            unnoticed: ends.waiting.unnoticed(),
            lost_notices,
        };
        (summary, ended.and(lost.map(drop)))
    }
}

impl Ends<'_> {
    /// Takes what has come, so that the ring has room.
    fn read(&mut self) {
        let waiting = &mut self.waiting;
        self.attached.read(|end| waiting.insert(end));
    }

    /// Goes on with the pins of another policy.
    fn move_to(&mut self, steered: &Steered) -> Result<(), Error> {
        let attached = Attached::open(steered)?;
        self.untold += self.attached.lost()?;
        self.names.move_to(steered);
        self.before = Some(mem::replace(&mut self.attached, attached));
        Ok(())
    }

    /// The end of a connection of which the program has not told, because another program of the cgroup has changed which events
    /// the socket tells.
    fn untold(&self, cookie: u64, record: &FlowRecord) -> Option<End> {
        let mut attached = std::iter::once(&self.attached).chain(&self.before);
        let decision = attached.find_map(|it| it.take(cookie))?;
        Some(End { cookie, decision, in_force: record.cc.to_string() })
    }

    /// The record of a steered connection with what it was given; `None` for others.
    fn told(&mut self, cookie: u64, record: &FlowRecord) -> Option<FlowRecord> {
        // The program has told before the kernel's notice came.
        self.read();
        let end = self.waiting.remove(cookie).or_else(|| self.untold(cookie, record))?;
        let decision = end.decision;
        let Some(description) = self.names.description(decision.policy) else {
            self.unnamed += 1;
            return None;
        };
        let decided = description.decided.get(decision.outcome as usize)?;
        // A connection that was moved had more than one arm, or none for a while: it is nobody's evidence.
        let arm = decided.experiment.as_ref().zip(decided.arm.as_ref());
        let arm = arm.filter(|_| !decision.is_moved);
        let choice = Choice {
            policy: description.fingerprint.as_str().into(),
            rule: decided.by().rule_name().into(),
            cc: decided.tcp.as_deref().map(Into::into),
            arm: arm.map(|(experiment, arm)| Arm {
                experiment: experiment.into(),
                arm: arm.into(),
                unit: decision.unit,
                bucket: bucket(decision.unit),
                propensity: decided.propensity.unwrap_or(0.0),
            }),
        };
        let mut record =
            FlowRecord { choice: Some(choice), cc: end.in_force.into(), ..record.clone() };
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
    fn ends_that_wait_are_bounded_and_counted() {
        let mut waiting = Waiting::default();
        let decision = Decision { policy: 0, unit: 0, outcome: 0, is_moved: false };
        let end = |cookie| End { cookie, decision, in_force: String::new() };
        for cookie in 0..3 * MAX_WAITING as u64 + 7 {
            waiting.insert(end(cookie));
        }
        assert_eq!(waiting.new.len() + waiting.old.len(), MAX_WAITING + 7);
        assert_eq!(waiting.unnoticed(), 3 * MAX_WAITING as u64 + 7);
        let newest = 3 * MAX_WAITING as u64;
        assert!(waiting.remove(0).is_none());
        assert!(waiting.remove(newest).is_some(), "of the new ones");
        assert!(waiting.remove(newest - 1).is_some(), "of the old ones");
        assert_eq!(waiting.unnoticed(), 3 * MAX_WAITING as u64 + 5);
    }
}
