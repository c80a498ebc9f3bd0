//! What is known of a connection and its request so far.

use std::fmt;
use std::net::IpAddr;

use uncork_units::ByteCount;

use crate::{Country, Headers, Origin, UnixTime, Verdict};

/// Something that may become known. Once it is known, or known not to be, it stays so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fact<T> {
    /// It may become known.
    #[default]
    Unknown,
    /// There is no such thing: a client that sent no name, an address in no database.
    Absent,
    /// It is this.
    Known(T),
}

/// What is known of a connection, and of the request that it is decided by.
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
    /// When the connection was accepted: its one time, also for decisions made later.
    pub accepted: Fact<UnixTime>,
    /// The server's name in the client's TLS handshake; absent without TLS.
    pub sni: Fact<&'a str>,
    /// `Host` or `:authority` of the request, with or without port.
    pub host: Fact<&'a str>,
    /// The path of the request, decoded and normalised, from `/` on.
    pub path: Fact<&'a str>,
    /// What follows `?` in the request, as it was sent.
    pub query: Fact<&'a str>,
    /// The header fields of the request.
    pub headers: Fact<&'a dyn Headers>,
    /// The size of the object that is asked for, whatever ranges of it.
    pub size: Fact<ByteCount>,
}

impl<T> Fact<T> {
    /// Known if there is one, else absent.
    pub fn known_or_absent(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }

    /// The same, but absent if it is unknown.
    #[must_use]
    pub fn or_absent(self) -> Self {
        if matches!(self, Self::Unknown) { Self::Absent } else { self }
    }

    /// What `map` makes of it, if it is known.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(map(value)))
    }

    /// The fact that follows from it, if it is known.
    pub fn and_then<U>(self, then: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Unknown => Fact::Unknown,
            Self::Absent => Fact::Absent,
            Self::Known(value) => then(value),
        }
    }

    /// Whether `test` holds of it. Nothing holds of what is absent.
    pub(crate) fn test(self, test: impl FnOnce(T) -> bool) -> Verdict {
        match self {
            Self::Unknown => Verdict::Unknown,
            Self::Absent => Verdict::No,
            Self::Known(value) => test(value).into(),
        }
    }
}

impl<'a> Facts<'a> {
    /// What is known when a connection is accepted. `origin` is where the client is, if anything
    /// can tell.
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

    /// The same once databases were asked: what they did not tell is absent.
    #[must_use]
    pub fn with_whole_origin(self) -> Self {
        Self { asn: self.asn.or_absent(), country: self.country.or_absent(), ..self }
    }

    /// The same once the request is there: what the handshake and the request did not tell is
    /// absent.
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
