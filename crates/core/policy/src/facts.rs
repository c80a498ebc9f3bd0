//! The facts known about a connection and its request.

use std::fmt;
use std::net::IpAddr;

use uncork_units::ByteCount;

use crate::{Country, Headers, Origin, UnixTime, Verdict};

/// A fact that may become known. Once known or absent, it does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fact<T> {
    /// Not known yet.
    #[default]
    Unknown,
    /// Does not exist: no server name was sent, the address is in no database.
    Absent,
    /// Known to be this.
    Known(T),
}

/// The facts about a connection, and about the request that decides.
#[derive(Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The name of the listener that accepted it.
    pub listener: Fact<&'a str>,
    /// The client's address.
    pub client: Fact<IpAddr>,
    /// The number of the client's autonomous system.
    pub asn: Fact<u32>,
    /// The client's country.
    pub country: Fact<Country>,
    /// When the connection was accepted; later decisions use the same time.
    pub accepted: Fact<UnixTime>,
    /// The server name of the TLS handshake (SNI); absent without TLS.
    pub sni: Fact<&'a str>,
    /// `Host` or `:authority` of the request, with or without port.
    pub host: Fact<&'a str>,
    /// The path of the request, starting with `/`, decoded and normalised.
    pub path: Fact<&'a str>,
    /// The query of the request after `?`, not decoded.
    pub query: Fact<&'a str>,
    /// The header fields of the request.
    pub headers: Fact<&'a dyn Headers>,
    /// The size of the whole requested object, even for a range request.
    pub size: Fact<ByteCount>,
}

impl<T> Fact<T> {
    /// `Known` for `Some`, `Absent` for `None`.
    pub fn known_or_absent(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }

    /// Turns `Unknown` into `Absent`.
    #[must_use]
    pub fn or_absent(self) -> Self {
        if matches!(self, Self::Unknown) { Self::Absent } else { self }
    }

    /// Applies `map` to a known value.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(map(value)))
    }

    /// Applies `then`, which returns a fact, to a known value.
    pub fn and_then<U>(self, then: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Unknown => Fact::Unknown,
            Self::Absent => Fact::Absent,
            Self::Known(value) => then(value),
        }
    }

    /// Whether `test` accepts the value. An absent value fails every test.
    pub(crate) fn test(self, test: impl FnOnce(T) -> bool) -> Verdict {
        match self {
            Self::Unknown => Verdict::Unknown,
            Self::Absent => Verdict::No,
            Self::Known(value) => test(value).into(),
        }
    }
}

impl<'a> Facts<'a> {
    /// The facts known when a connection is accepted. `origin` is the client's origin from databases.
    pub fn at_accept(
        listener: &'a str,
        client: IpAddr,
        accepted: UnixTime,
        origin: Origin,
    ) -> Self {
        Self {
            listener: Fact::Known(listener),
            client: Fact::Known(client),
            asn: Fact::known_or_absent(origin.asn),
            country: Fact::known_or_absent(origin.country),
            accepted: Fact::Known(accepted),
            ..Self::default()
        }
    }

    /// Marks unknown origin facts as absent, once the databases were queried.
    #[must_use]
    pub fn with_whole_origin(self) -> Self {
        Self { asn: self.asn.or_absent(), country: self.country.or_absent(), ..self }
    }

    /// Marks unknown facts of handshake and request as absent, once the request has arrived.
    #[must_use]
    pub fn with_whole_request(self) -> Self {
        Self {
            sni: self.sni.or_absent(),
            host: self.host.or_absent(),
            path: self.path.or_absent(),
            query: self.query.or_absent(),
            headers: self.headers.or_absent(),
            size: self.size.or_absent(),
            ..self
        }
    }
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("listener", &self.listener)
            .field("client", &self.client)
            .field("sni", &self.sni)
            .field("host", &self.host)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
