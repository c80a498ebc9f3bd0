//! The address of the admin endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The configuration of the admin endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSpec {
    /// The address to listen on.
    pub address: AdminAddress,
    /// Whether the address may be reachable from other machines.
    pub anywhere: bool,
}

/// A TCP address or a Unix socket: `127.0.0.1:9090`, `unix:/run/uncork.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// TCP; port 0 picks a free port.
    Tcp(SocketAddr),
    /// The path of a Unix socket, which only its owner may use.
    Unix(PathBuf),
}

impl FromStr for AdminAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err("a path is expected behind 'unix:': write unix:/run/uncork.sock"),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                "an address and a port, or a Unix socket are expected: write 127.0.0.1:9090 or \
                 unix:/run/uncork.sock"
            }),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AdminAddress;

    #[test]
    fn admin_addresses_round_trip_through_text() {
        for text in ["127.0.0.1:9090", "[::1]:0", "unix:/run/uncork.sock", "unix:a b"] {
            assert_eq!(text.parse::<AdminAddress>().expect(text).to_string(), text);
        }
        for wrong in ["9090", "localhost:9090", "unix:", "/run/uncork.sock"] {
            assert!(wrong.parse::<AdminAddress>().is_err(), "{wrong}");
        }
    }
}
