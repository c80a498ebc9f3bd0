//! The part of a server's record.

use serde::{Deserialize, Serialize};

/// A response or a connection of a server. Whom it served is told as precisely as an analysis needs, and
/// not more: no address, no path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// A response or a connection.
    pub scope: Scope,
    /// When it began, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: u64,
    /// `h1`, `h2` or `h3`; `tls` or `tcp` of a connection that ended before its first request.
    pub protocol: String,
    /// The listener's name, which is its address if it was given none.
    pub listener: String,
    /// The host that was asked for, in lower case, without port; of a connection, with the first request.
    pub host: Option<String>,
    /// The client's network: /24 of IPv4, /48 of IPv6.
    pub client: Option<String>,
    /// The client's autonomous system.
    pub asn: Option<u32>,
    /// The client's country: two letters of ISO 3166.
    pub country: Option<String>,
    /// The response's status code.
    pub status: Option<u16>,
    /// Size of the whole file that the response is of, or of a part of.
    pub object_bytes: Option<u64>,
    /// Responses that the record is of: one, or those of the connection.
    pub responses: u64,
    /// Responses that were aborted.
    pub broken_off: u64,
    /// The connection's least round-trip time until then, as the transport knows it.
    pub min_rtt_ns: Option<u64>,
    /// The transport's newest sample of the delivery rate: the speed of the path seen last, and no
    /// measure of the whole.
    pub delivery_rate_bps: Option<u64>,
    /// Of the busy time, how long the client's receive window held the sender back.
    pub rwnd_limited_ns: Option<u64>,
    /// Of the busy time, how long too small a send buffer did.
    pub sndbuf_limited_ns: Option<u64>,
    /// Of the busy time, how long there was too little to send.
    pub app_limited_ns: Option<u64>,
}

/// The scope of a server's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A response.
    Response,
    /// A connection with all its responses, which have records of their own: never add the two up.
    Connection,
}

/// A policy's choice of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Fingerprint of the policy in force.
    pub policy: String,
    /// The rule that decided; `default` if none did.
    pub rule: String,
    /// The controller that was chosen. The record's `cc` is the one that was in force: where they differ,
    /// the choice was not complied with.
    pub cc: Option<String>,
    /// The arm, if the choice is that of an experiment.
    pub arm: Option<Arm>,
}

/// The arm of an experiment that the client was assigned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// The experiment.
    pub experiment: String,
    /// The arm.
    pub arm: String,
    /// Keyed hash of the unit that was assigned: a client network, a cookie.
    pub unit: u64,
    /// The part of all units, of 100, that this one is in whatever its arm: what a jackknife leaves out.
    pub bucket: u8,
    /// The probability with which the unit got this arm.
    pub propensity: f64,
}

impl Scope {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Connection => "connection",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Response, Self::Connection].into_iter().find(|scope| scope.name() == name)
    }
}
