//! Whom a connection serves, and what one of its responses is.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use uncork_flow::{ClientNetwork, FlowRecord, Scope, Service};
use uncork_policy::Origin;

use super::metrics::Key;
use crate::choice::InForce;
use crate::clock;

/// What is kept of a host's name: no name in use is longer (RFC 1035 §2.3.4).
const NAME_CHARS: usize = 253;

/// What all records of a connection say.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// The connection's number.
    pub(crate) connection: u32,
    /// The beginning of time: when the server started.
    pub(crate) epoch: Instant,
    /// The listener's name.
    pub(crate) listener: Arc<str>,
    /// The client's network.
    pub(crate) client: String,
    /// Where it is.
    pub(crate) origin: Origin,
    /// When it was accepted.
    pub(crate) accepted: (Instant, SystemTime),
}

/// A request, and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// When its head was read.
    pub(crate) at: SystemTime,
    pub(crate) protocol: &'static str,
    pub(crate) host: Option<String>,
    pub(crate) status: u16,
    /// Size of the whole file that was asked for.
    pub(crate) object_bytes: Option<u64>,
}

impl Labels {
    /// Of a connection that has just been accepted.
    pub(crate) fn new(
        (connection, epoch): (u32, Instant),
        listener: &Arc<str>,
        client: IpAddr,
        origin: Origin,
    ) -> Self {
        let (listener, client) = (Arc::clone(listener), ClientNetwork::of(client).to_string());
        let accepted = (clock::now(), clock::today());
        Self { connection, epoch, listener, client, origin, accepted }
    }

    /// What counts it while this is in force.
    pub(crate) fn key(&self, protocol: &'static str, in_force: &InForce) -> Key {
        let arm = in_force.assignment();
        let named = |of: fn(&uncork_flow::Arm) -> &String| arm.map(of).cloned().unwrap_or_default();
        Key {
            listener: Arc::clone(&self.listener),
            protocol,
            cc: in_force.cc().to_owned(),
            experiment: named(|arm| &arm.experiment),
            arm: named(|arm| &arm.arm),
        }
    }

    /// What a record says of the connection, of something that was `in_force` from its `start`.
    pub(crate) fn record(&self, in_force: &InForce, start: Instant) -> FlowRecord {
        let group = &in_force.chosen().group;
        FlowRecord {
            start_ns: start.saturating_duration_since(self.epoch).as_nanos() as u64,
            choice: in_force.choice(),
            ..FlowRecord::blank("serve", group, in_force.cc(), (0, self.connection))
        }
    }

    /// What the record of a response says of the service.
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

    /// What all records of the connection say of the service.
    pub(crate) fn service(&self, scope: Scope, start: SystemTime, protocol: &str) -> Service {
        let since = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        Service {
            client: Some(self.client.clone()),
            asn: self.origin.asn,
            country: self.origin.country.map(|country| country.to_string()),
            ..Service::blank(scope, since.as_nanos() as u64, protocol, &self.listener)
        }
    }
}

/// A host as records have it: in lower case, without port, and no longer than names are.
pub(crate) fn host_name(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    name.chars().take(NAME_CHARS).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_of_bounded_length() {
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
