//! The connections of commands, which open any number on ports of their choice.
//!
//! A host that runs a command has no other connections. They are queried at both ends, because the
//! sender is not known in advance and only the sender's end has RTTs and retransmissions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uncork_diag::{CloseEvents, Connection, Diag, DiagError, Query};
use uncork_emu::{Addresses, Emulation, Namespace};
use uncork_flow::SeriesPoint;
use uncork_sim::RunSpec;
use uncork_units::{Time, TimeDelta};

use crate::error::KernelTcpError;
use crate::watch::{Sent, point};

/// Minimum interval between queries per host.
const EACH: TimeDelta = TimeDelta::from_millis(4);

/// The connections of all commands of a run.
pub(crate) struct CommandTraffic {
    server: SocketObserver,
    server_addresses: Addresses,
    hosts: Vec<TrafficHost>,
    /// Half of the shortest RTT: a closing connection remains visible for that long.
    every: TimeDelta,
}

/// A host that runs a command.
struct TrafficHost {
    flow: usize,
    addresses: Addresses,
    client: SocketObserver,
    ends: Ends,
}

/// Reads the open connections of a namespace, and the last figures of connections that ended since the last query.
struct SocketObserver {
    diag: Diag,
    close_events: CloseEvents,
}

/// The ends of a host's connections.
#[derive(Default)]
struct Ends {
    /// By side (server or not) and the kernel's connection number.
    all: BTreeMap<(bool, u64), TrafficEnd>,
    received: u64,
    received_early: u64,
    /// The end that has sent the most among those seen at the last query.
    main: Option<(u64, SeriesPoint)>,
}

#[derive(Default)]
struct TrafficEnd {
    sent: Sent,
    received: u64,
}

impl CommandTraffic {
    /// The traffic of the flows of `run` that are commands, with their hosts from `host_of`; `None`
    /// if there are none.
    pub(crate) fn open(
        emulation: &Emulation,
        run: &RunSpec,
        host_of: &[usize],
    ) -> Result<Option<Self>, KernelTcpError> {
        let mut hosts = Vec::new();
        let mut every = TimeDelta::MAX;
        for (flow, (spec, host)) in run.flows.iter().zip(host_of).enumerate() {
            if run.command_of(spec).is_none() {
                continue;
            }
            let namespace = &emulation.hosts()[*host];
            let (client, addresses) = (SocketObserver::open(namespace)?, namespace.addresses());
            hosts.push(TrafficHost { flow, addresses, client, ends: Ends::default() });
            let rtt = spec.rtt.unwrap_or(run.paths[spec.path].rtt);
            every = every.min(TimeDelta::from_nanos(rtt.as_nanos() / 2));
        }
        if hosts.is_empty() {
            return Ok(None);
        }
        let (server, server_addresses) =
            (SocketObserver::open(emulation.server())?, emulation.server().addresses());
        Ok(Some(Self { server, server_addresses, hosts, every }))
    }

    /// The query interval.
    pub(crate) fn every(&self) -> TimeDelta {
        self.every
    }

    /// The minimum query interval: for each host the kernel scans its whole table twice.
    pub(crate) fn shortest(&self) -> TimeDelta {
        EACH.times(self.hosts.len() as u64)
    }

    /// Whether `flow` is a command.
    pub(crate) fn has(&self, flow: usize) -> bool {
        self.hosts.iter().any(|host| host.flow == flow)
    }

    /// Queries all connections. `is_early` means before the end of the warm-up.
    pub(crate) fn look(
        &mut self,
        now: Time,
        is_early: bool,
        series: Option<&mut Vec<SeriesPoint>>,
    ) -> Result<(), DiagError> {
        let Self { server, server_addresses, hosts, .. } = self;
        let samples = series.is_some();
        server.look(|connection| {
            let peer = connection.remote.ip();
            if let Some(host) = hosts.iter_mut().find(|host| is_of(host.addresses, peer)) {
                host.ends.take_in(true, connection, samples.then_some((now, host.flow)));
            }
        })?;
        for TrafficHost { flow, client, ends, .. } in &mut *hosts {
            client.look(|connection| {
                if is_of(*server_addresses, connection.remote.ip()) {
                    ends.take_in(false, connection, samples.then_some((now, *flow)));
                }
            })?;
            if is_early {
                ends.received_early = ends.received;
            }
        }
        let main = hosts.iter_mut().filter_map(|host| host.ends.main.take());
        if let Some(series) = series {
            series.extend(main.map(|(_, point)| point));
        }
        Ok(())
    }

    /// Stores the results of each flow in `sent`.
    pub(crate) fn store(self, sent: &mut [Sent]) {
        for TrafficHost { flow, ends, .. } in self.hosts {
            if let Some(sent) = sent.get_mut(flow) {
                *sent = ends.together();
            }
        }
    }
}

impl SocketObserver {
    fn open(namespace: &Namespace) -> Result<Self, KernelTcpError> {
        let opened = namespace.run(|| Ok::<_, DiagError>((Diag::open()?, CloseEvents::open()?)));
        let opened = opened.map_err(KernelTcpError::system("enter a network namespace"))?;
        let (diag, close_events) = opened?;
        Ok(Self { diag, close_events })
    }

    /// Calls `each` for all connections. The close events come last: they have the final figures.
    fn look(&mut self, mut each: impl FnMut(&Connection)) -> Result<(), DiagError> {
        self.diag.dump(&Query::default(), &mut each)?;
        self.close_events.read(each).map(|_| ())
    }
}

impl Ends {
    /// Processes the kernel's statistics of one end. With `sample`, a time and the flow, it is a
    /// candidate for the main one.
    fn take_in(&mut self, server: bool, connection: &Connection, sample: Option<(Time, usize)>) {
        let end = self.all.entry((server, connection.cookie)).or_default();
        if !end.sent.take_in(connection) {
            return;
        }
        let received = connection.info.as_ref().and_then(|info| info.bytes_received);
        let more = received.unwrap_or(0).saturating_sub(end.received);
        end.received += more;
        self.received += more;
        let Some((now, flow)) = sample else { return };
        let out = end.sent.figures.bytes_sent;
        if self.main.as_ref().is_none_or(|(most, _)| out > *most) {
            self.main = point(now, flow as u32, connection).map(|point| (out, point));
        }
    }

    /// All ends combined.
    fn together(self) -> Sent {
        let mut sum = Sent {
            received: self.received,
            received_early: self.received_early,
            ..Sent::default()
        };
        for TrafficEnd { sent, .. } in self.all.into_values() {
            sum.add(&sent);
        }
        sum
    }
}

fn is_of(addresses: Addresses, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => addresses.v4 == address,
        IpAddr::V6(address) => addresses.v6 == Some(address),
    }
}
