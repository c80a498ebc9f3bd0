//! Rows of the table: one connection each, or a group of connections.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use uncork_diag::{BbrState, CcName};
use uncork_flow::ClientNetwork;
use uncork_units::{Rate, TimeDelta};

use crate::policy_choice::{PolicyChoice, ShortName};
use crate::service_port::service_port;
use crate::tracker::Tracked;
use crate::why::Limits;

/// What each row of the table represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// A connection.
    #[default]
    Socket,
    /// All connections that use a controller.
    Controller,
    /// All connections to a network: /24 of IPv4, /48 of IPv6.
    Client,
    /// All connections of a service.
    Port,
    /// All connections that an experiment of `uncork steer` gave an arm.
    Arm,
    /// All connections that a rule of a policy of `uncork steer` decided.
    Rule,
}

/// The name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A connection: local and remote address.
    Socket(SocketAddr, SocketAddr),
    /// A controller.
    Controller(Option<CcName>),
    /// A client network.
    Client(ClientNetwork),
    /// A service port.
    Port(u16),
    /// An arm; `None` of connections without.
    Arm(Option<ShortName>),
    /// A rule; `None` of connections without.
    Rule(Option<ShortName>),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: Name,
    /// The controller; for a group, the controller of its first connection.
    pub cc: Option<CcName>,
    client: ClientNetwork,
    port: u16,
    given: Option<PolicyChoice>,
    /// Connections.
    pub connections: u32,
    /// Connections that sent data in the last period.
    pub active: u32,
    /// Payload acknowledged per second in the last period.
    pub rate: Rate,
    /// Bytes sent in the last period.
    pub sent: u64,
    /// Of these, bytes retransmitted.
    pub resent: u64,
    /// The sum of smoothed round-trip times of `measured` connections.
    rtt_sum: TimeDelta,
    measured: u32,
    /// The minimum round-trip time.
    pub min_rtt: Option<TimeDelta>,
    /// Sum of the congestion windows.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Limits of the active connections in the last period.
    pub limits: Limits,
    /// BBR's state; only for rows of one connection.
    pub bbr: Option<BbrState>,
}

impl GroupBy {
    /// All groupings, in the order in which the key cycles through them.
    pub const ALL: [Self; 6] =
        [Self::Socket, Self::Controller, Self::Client, Self::Port, Self::Arm, Self::Rule];

    /// Its name on the command line, and the heading of the first column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Controller => "controller",
            Self::Client => "client",
            Self::Port => "port",
            Self::Arm => "arm",
            Self::Rule => "rule",
        }
    }
}

impl GroupBy {
    /// The heading of the first column where there is little room.
    pub(crate) const fn short_name(self) -> &'static str {
        match self {
            Self::Socket => "remote",
            other => other.name(),
        }
    }
}

impl Name {
    /// The name where there is little room: of a connection its remote address.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::Socket(_, remote) => remote.to_string(),
            other => other.to_string(),
        }
    }
}

impl Row {
    /// The row of a connection.
    pub fn of(tracked: &Tracked) -> Self {
        let now = &tracked.now;
        let is_active = tracked.is_active();
        let rtt = now.figures.rtt.filter(|rtt| !rtt.is_zero());
        Self {
            name: Name::Socket(now.local, now.remote),
            cc: now.cc,
            client: ClientNetwork::of(now.remote.ip()),
            port: service_port(now),
            given: now.given,
            connections: 1,
            active: u32::from(is_active),
            rate: Rate::of(tracked.change.bytes_acked, tracked.period),
            sent: tracked.change.bytes_sent,
            resent: tracked.change.bytes_retransmitted,
            rtt_sum: rtt.unwrap_or_default(),
            measured: u32::from(rtt.is_some()),
            min_rtt: now.min_rtt(),
            cwnd_bytes: now.cwnd_bytes,
            in_flight_bytes: now.in_flight_bytes,
            limits: if is_active { tracked.limits } else { Limits::default() },
            bbr: now.bbr.map(|bbr| bbr.state),
        }
    }

    /// The row of a connection that ended in the last period: it counts for rates, but not as a connection.
    pub fn of_closed(tracked: &Tracked) -> Self {
        let row = Self::of(tracked);
        let limits = tracked.limits;
        Self {
            connections: 0,
            active: 0,
            cwnd_bytes: 0,
            in_flight_bytes: 0,
            limits,
            bbr: None,
            ..row
        }
    }

    /// Groups the rows of connections.
    pub fn grouped(connections: &[Self], by: GroupBy) -> Vec<Self> {
        let mut groups: BTreeMap<Name, Self> = BTreeMap::new();
        for row in connections {
            let name = row.name_by(by);
            let group = groups.entry(name).and_modify(|group| group.add(row));
            group.or_insert(Self { name, bbr: None, ..*row });
        }
        groups.into_values().collect()
    }

    fn name_by(&self, by: GroupBy) -> Name {
        match by {
            GroupBy::Socket => self.name,
            GroupBy::Controller => Name::Controller(self.cc),
            GroupBy::Client => Name::Client(self.client),
            GroupBy::Port => Name::Port(self.port),
            GroupBy::Arm => Name::Arm(self.given.and_then(|given| given.arm)),
            GroupBy::Rule => Name::Rule(self.given.map(|given| given.rule)),
        }
    }

    fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.active += other.active;
        let rate = self.rate.bytes_per_sec().saturating_add(other.rate.bytes_per_sec());
        self.rate = Rate::from_bytes_per_sec(rate);
        self.sent = self.sent.saturating_add(other.sent);
        self.resent = self.resent.saturating_add(other.resent);
        self.rtt_sum += other.rtt_sum;
        self.measured += other.measured;
        self.min_rtt = self.min_rtt.into_iter().chain(other.min_rtt).min();
        self.cwnd_bytes = self.cwnd_bytes.saturating_add(other.cwnd_bytes);
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(other.in_flight_bytes);
        self.limits.add(&other.limits);
    }

    /// The smoothed round-trip time; for groups the mean.
    pub fn rtt(&self) -> Option<TimeDelta> {
        (self.measured > 0).then(|| self.rtt_sum.divided_by(self.measured.into()))
    }

    /// Retransmitted bytes as a share of the bytes sent.
    pub fn resent_share(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.resent as f64 / self.sent as f64)
    }

    /// Whether the text of the row contains `filter`: addresses, controller, limit.
    pub fn matches(&self, filter: &str) -> bool {
        let cc = self.cc.as_ref().map_or("", CcName::as_str);
        let limit = self.limits.main().map_or("", |(limit, _)| limit.name());
        filter.is_empty()
            || cc.contains(filter)
            || limit.contains(filter)
            || self.name.to_string().contains(filter)
    }

    /// Compares rows by `column`: largest first, except for names.
    pub fn order(&self, other: &Self, column: SortBy) -> Ordering {
        let key = |row: &Self| match column {
            SortBy::Name => 0.0,
            SortBy::Rate => row.rate.bytes_per_sec() as f64,
            SortBy::Rtt => row.rtt().map_or(-1.0, TimeDelta::as_millis_f64),
            SortBy::Resent => row.resent_share().unwrap_or(-1.0),
            SortBy::Cwnd => row.cwnd_bytes as f64,
        };
        key(other).total_cmp(&key(self)).then_with(|| self.name.cmp(&other.name))
    }
}

/// The column by which the table is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Acknowledged payload per second.
    #[default]
    Rate,
    /// Round-trip time.
    Rtt,
    /// Share of retransmitted bytes.
    Resent,
    /// Congestion window.
    Cwnd,
    /// The name.
    Name,
}

impl SortBy {
    /// All columns, in the order in which the key cycles through them.
    pub const ALL: [Self; 5] = [Self::Rate, Self::Rtt, Self::Resent, Self::Cwnd, Self::Name];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Rtt => "rtt",
            Self::Resent => "resent",
            Self::Cwnd => "cwnd",
            Self::Name => "name",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(local, remote) => write!(f, "{local} > {remote}"),
            Self::Controller(Some(cc)) => cc.fmt(f),
            Self::Controller(None) => f.write_str("unknown"),
            Self::Client(network) => network.fmt(f),
            Self::Port(port) => port.fmt(f),
            Self::Arm(Some(name)) | Self::Rule(Some(name)) => name.fmt(f),
            Self::Arm(None) | Self::Rule(None) => f.write_str("none"),
        }
    }
}
