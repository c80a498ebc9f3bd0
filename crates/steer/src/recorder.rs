//! A record for each steered connection that ends: what it was given, and how it went.
//!
//! How it went is in the kernel's notice of the destroyed socket (`uncork host watch`). What it was given the program
//! tells when the connection is closed, which is always before its socket is destroyed. The socket's cookie joins the two.

use std::collections::HashMap;
use std::fs::File;
use std::mem;
use std::time::Duration;

use uncork_flow::{Arm, Choice, FlowRecord};
use uncork_host::watch::{Session, Turn, WatchSpec};
use uncork_kernel::{Map, Ring};
use uncork_policy::{Origins, bucket};
use uncork_records::{Records, RecordsSpec, RecordsSummary, Writer};

use crate::error::Error;
use crate::layout::End;
use crate::names::Names;
use crate::networks::Networks;
use crate::sockets::Sockets;
use crate::steered::Steered;

/// Half of the ends that wait for their sockets at most.
const MOST_WAITING: usize = 1 << 19;

/// Writes the records of one steered cgroup.
#[derive(Debug)]
pub struct Recorder<'a> {
    session: Session,
    ends: Ends<'a>,
    lost: Map,
    lost_before: u64,
    records: Records,
    writer: Writer,
    /// Held as long as this is the ring's reader.
    _only: File,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records written, and lost because the disk was full or too slow.
    pub records: RecordsSummary,
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
    ring: Ring,
    /// Those that are open.
    sockets: Sockets,
    waiting: Waiting,
    names: Names<'a>,
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
        if self.new.len() >= MOST_WAITING {
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
        steered: &'a Steered,
        clients: Clients<'a>,
        spec: &RecordsSpec,
        period: Duration,
    ) -> Result<Self, Error> {
        let only = steered.only_recorder()?;
        let (ring, lost) = steered.ring()?;
        let sockets = steered.sockets()?;
        let lost_before = count(&lost)?;
        let mut ends = Ends {
            clients,
            ring,
            sockets,
            waiting: Waiting::default(),
            names: Names::of(steered),
            unnamed: 0,
        };
        let session = Session::start(&WatchSpec::live(period))?;
        // Their sockets were destroyed before the session.
        ends.ring.read(|_| {});
        let (records, writer) = spec.open()?;
        Ok(Self { session, ends, lost, lost_before, records, writer, _only: only })
    }

    /// What is missing, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.session.warning()
    }

    /// Why records are not written, once for each time that this begins.
    pub fn problem(&self) -> Option<String> {
        self.records.tally().problem()
    }

    /// Does what is due; the result is how long there is nothing to do.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn turn(&mut self) -> Result<Duration, Error> {
        let Self { session, ends, records, .. } = self;
        let turn = session.turn_with(&mut |cookie, record| {
            if let Some(told) = ends.told(cookie, record) {
                records.leave(told);
            }
        })?;
        ends.read();
        Ok(match turn {
            Turn::Wait(time) => time,
            Turn::Passed | Turn::Ended => Duration::ZERO,
        })
    }

    /// Ends the session, and writes all files.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn end(self) -> Result<Summary, Error> {
        let Self { session, ends, lost, lost_before, records, writer, .. } = self;
        let lost_notices = session.tracker().lost_notices();
        session.end()?;
        drop(records);
        let untold = count(&lost)?.saturating_sub(lost_before);
        let (unnamed, unnoticed) = (ends.unnamed, ends.waiting.unnoticed());
        Ok(Summary { records: writer.end(), untold, unnamed, unnoticed, lost_notices })
    }
}

impl Ends<'_> {
    /// Takes what has come, so that the ring has room.
    fn read(&mut self) {
        let waiting = &mut self.waiting;
        self.ring.read(|bytes| {
            waiting.insert(End::read(bytes));
        });
    }

    /// The end of a connection of which the program has not told, because another program of the cgroup has changed which events
    /// the socket tells.
    fn untold(&self, cookie: u64, record: &FlowRecord) -> Option<End> {
        let decision = self.sockets.take(cookie).ok().flatten()?;
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

fn count(lost: &Map) -> Result<u64, Error> {
    lost.count(0).map_err(Error::step("read the count of lost ends"))
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
        for cookie in 0..3 * MOST_WAITING as u64 + 7 {
            waiting.insert(end(cookie));
        }
        assert_eq!(waiting.new.len() + waiting.old.len(), MOST_WAITING + 7);
        assert_eq!(waiting.unnoticed(), 3 * MOST_WAITING as u64 + 7);
        let newest = 3 * MOST_WAITING as u64;
        assert!(waiting.remove(0).is_none());
        assert!(waiting.remove(newest).is_some(), "of the new ones");
        assert!(waiting.remove(newest - 1).is_some(), "of the old ones");
        assert_eq!(waiting.unnoticed(), 3 * MOST_WAITING as u64 + 5);
    }
}
