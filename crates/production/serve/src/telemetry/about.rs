//! The facts about a connection and a response that records contain.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use smol_str::{SmolStr, ToSmolStr};
use uncork_flow::{ClientNetwork, FlowRecord, Scope, Service};
use uncork_policy::Origin;

use super::metrics::MetricKey;
use crate::choice::ActiveSettings;
use crate::clock;
use crate::site::without_port;

/// Longest recorded host name: no valid name is longer (RFC 1035 §2.3.4).
const NAME_CHARS: usize = 253;

/// The facts in all records of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// The connection's number.
    pub(crate) connection: u32,
    /// Time zero: when the server started.
    pub(crate) epoch: Instant,
    /// The listener's name.
    pub(crate) listener: Arc<str>,
    /// The client's network.
    pub(crate) client: SmolStr,
    /// The client's location.
    pub(crate) origin: Origin,
    /// When the connection was accepted.
    pub(crate) accepted: (Instant, SystemTime),
}

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// When the request's head was read.
    pub(crate) at: SystemTime,
    pub(crate) protocol: &'static str,
    pub(crate) host: Option<SmolStr>,
    pub(crate) status: u16,
    /// Size of the complete requested file.
    pub(crate) object_bytes: Option<u64>,
}

impl Labels {
    /// The labels of a connection that was just accepted.
    pub(crate) fn new(
        (connection, epoch): (u32, Instant),
        listener: &Arc<str>,
        client: IpAddr,
        origin: Origin,
    ) -> Self {
        let (listener, client) = (Arc::clone(listener), ClientNetwork::of(client).to_smolstr());
        let accepted = (clock::now(), clock::today());
        Self { connection, epoch, listener, client, origin, accepted }
    }

    /// The metric labels while these settings are in effect.
    pub(crate) fn key(&self, protocol: &'static str, active: &ActiveSettings) -> MetricKey {
        let arm = active.assignment();
        let named =
            |of: fn(&uncork_flow::Arm) -> &SmolStr| arm.map(of).cloned().unwrap_or_default();
        MetricKey {
            listener: Arc::clone(&self.listener),
            protocol,
            cc: active.cc().into(),
            experiment: named(|arm| &arm.experiment),
            arm: named(|arm| &arm.arm),
        }
    }

    /// A record with the settings `active` at its `start`.
    pub(crate) fn record(&self, active: &ActiveSettings, start: Instant) -> FlowRecord {
        let group = &active.chosen().group;
        FlowRecord {
            start_ns: start.saturating_duration_since(self.epoch).as_nanos() as u64,
            choice: active.choice().map(Box::new),
            ..FlowRecord::blank("serve", group, active.cc(), (0, self.connection))
        }
    }

    /// The service part of a response's record.
    pub(crate) fn response(&self, about: &About, is_broken_off: bool) -> Service {
        Service {
            host: about.host.clone(),
            status: Some(about.status),
            object_bytes: about.object_bytes,
            responses: 1,
            broken_off: u64::from(is_broken_off),
            ..self.service(Scope::Response, about.at, about.protocol)
        }
    }

    /// The service part that all records of the connection share.
    pub(crate) fn service(&self, scope: Scope, start: SystemTime, protocol: &str) -> Service {
        let since = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        Service {
            client: Some(self.client.clone()),
            asn: self.origin.asn,
            country: self.origin.country.map(|country| country.to_smolstr()),
            ..Service::blank(scope, since.as_nanos() as u64, protocol, &self.listener)
        }
    }
}

/// A host as recorded: in lower case, without port, and truncated to the length of a valid name.
pub(crate) fn host_name(host: &str) -> SmolStr {
    let name = without_port(host).chars().take(NAME_CHARS);
    name.map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_hosts_have_bounded_length() {
        for (host, name) in [
            ("WWW.Example.org", "www.example.org"),
            ("a.example:8443", "a.example"),
            ("[::1]:443", "[::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("a:b", "a:b"),
        ] {
            assert_eq!(host_name(host), name);
        }
        assert_eq!(host_name(&"ä".repeat(9000)).chars().count(), NAME_CHARS);
    }
}
