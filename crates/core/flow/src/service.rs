//! The part of a server's record.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::ecn::{EcnEvidence, EcnUse};

/// A response or a connection of a server. The client is recorded only as precisely as an analysis
/// needs: no address and no path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Service {
    /// A response, or a connection with all its responses: never add the two up.
    pub scope: Scope,
    /// Begin, since 1970 (UTC).
    pub start_unix_ns: u64,
    /// `h1`, `h2` or `h3`; `tcp` or `tls` of a connection that ended before its first request.
    pub protocol: SmolStr,
    /// Name of the listener; its address if it has none.
    pub listener: SmolStr,
    /// Requested host, in lower case, without port; of a connection, that of the first request.
    pub host: Option<SmolStr>,
    /// The client's network: /24 of IPv4, /48 of IPv6.
    pub client: Option<SmolStr>,
    /// The client's port: only of `uncork steer record --client-ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_port: Option<u16>,
    /// End of the connection, since 1970 (UTC): only of `uncork steer record --client-ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_unix_ns: Option<u64>,
    /// Packets of the initial window, as the kernel had it: only under a policy of `uncork steer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Name of the client's network: only of `uncork steer record --networks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SmolStr>,
    /// The client's autonomous system.
    pub asn: Option<u32>,
    /// The client's country: two letters of ISO 3166.
    pub country: Option<SmolStr>,
    /// Status code of the response.
    pub status: Option<u16>,
    /// Size of the whole file; a response may be a part of it.
    pub object_bytes: Option<u64>,
    /// Number of responses: one, or those of the connection.
    pub responses: u64,
    /// Aborted responses among them.
    pub broken_off: u64,
    /// The connection's minimum round-trip time until then, as the transport reports it.
    pub min_rtt_ns: Option<u64>,
    /// The transport's latest sample of the delivery rate, not an average.
    pub delivery_rate_bps: Option<u64>,
    /// How the connection used ECN: `none`, `classic` (ECT(0)), `l4s` (ECT(1)), or `failed`, where QUIC found marks missing or wrong. Of TCP by
    /// what was negotiated and what the client reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnUse>,
    /// What packets with ECT(1) met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_evidence: Option<Box<EcnEvidence>>,
    /// Part of `busy_ns` in which the client's receive window limited the sender.
    pub rwnd_limited_ns: Option<u64>,
    /// Part of `busy_ns` in which the send buffer was too small.
    pub sndbuf_limited_ns: Option<u64>,
    /// Part of `busy_ns` in which there was too little to send.
    pub app_limited_ns: Option<u64>,
}

/// The scope of a server's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A response.
    Response,
    /// A connection including all its responses, which also have their own records: never add the
    /// two.
    Connection,
}

/// A policy's choice of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Choice {
    /// Fingerprint of the policy that chose the controller.
    pub policy: SmolStr,
    /// The rule that decided; `default` if none did.
    pub rule: SmolStr,
    /// The chosen controller. The record's `cc` is the actual one: if they differ, the choice was
    /// not applied.
    pub cc: Option<SmolStr>,
    /// The arm, if an experiment made the choice.
    pub arm: Option<Arm>,
}

impl Choice {
    /// Its policy, unless the record does not have it: records of others often have an arm alone.
    pub fn known_policy(&self) -> Option<&SmolStr> {
        Some(&self.policy).filter(|policy| !policy.is_empty())
    }
}

/// The arm of an experiment that the client was assigned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Arm {
    /// The experiment, if one decided.
    pub experiment: SmolStr,
    /// The arm that the client was assigned to.
    pub arm: SmolStr,
    /// Keyed hash of the assigned unit: a client network, a cookie; of `host prove` the window.
    pub unit: u64,
    /// One of 100 parts of all units, independent of the arm: a jackknife omits one at a time; of
    /// `host prove` the pair of windows.
    pub bucket: u8,
    /// Probability with which the unit got this arm.
    pub propensity: f64,
}

impl Service {
    /// A record of this scope, start, protocol and listener. All other fields are empty.
    pub fn blank(scope: Scope, start_unix_ns: u64, protocol: &str, listener: &str) -> Self {
        Self {
            scope,
            start_unix_ns,
            protocol: protocol.into(),
            listener: listener.into(),
            host: None,
            client: None,
            client_port: None,
            end_unix_ns: None,
            initial_window: None,
            region: None,
            asn: None,
            country: None,
            status: None,
            object_bytes: None,
            responses: 0,
            broken_off: 0,
            min_rtt_ns: None,
            delivery_rate_bps: None,
            ecn: None,
            ecn_evidence: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            app_limited_ns: None,
        }
    }
}

/// The part of a client's address that records contain: a network that many clients share, /24 of
/// IPv4 or /48 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The network of an address.
    pub fn of(client: IpAddr) -> Self {
        Self(match client.to_canonical() {
            IpAddr::V4(v4) => {
                let [one, two, three, _] = v4.octets();
                Ipv4Addr::new(one, two, three, 0).into()
            }
            IpAddr::V6(v6) => {
                let [one, two, three, ..] = v6.segments();
                Ipv6Addr::new(one, two, three, 0, 0, 0, 0, 0).into()
            }
        })
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, if self.0.is_ipv4() { 24 } else { 48 })
    }
}

impl Scope {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Connection => "connection",
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Response, Self::Connection].into_iter().find(|scope| scope.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_recorded_by_its_network() {
        for (address, network) in [
            ("203.0.113.77", "203.0.113.0/24"),
            ("::ffff:203.0.113.77", "203.0.113.0/24"),
            ("2001:db8:7:8:9::1", "2001:db8:7::/48"),
            ("::1", "::/48"),
        ] {
            let client = ClientNetwork::of(address.parse().expect("an address"));
            assert_eq!(client.to_string(), network);
        }
    }
}
