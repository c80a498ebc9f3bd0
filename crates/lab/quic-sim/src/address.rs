//! The addresses of a connection's ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uncork_path::Step;
use uncork_sim::Migration;
use uncork_units::Time;

pub(crate) const SERVER: SocketAddr = address(Ipv4Addr::new(198, 18, 0, 2), PORT);
/// The first address of a client; a migration takes the next host or port.
const CLIENT_HOST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const PORT: u16 = 443;
const _: () = assert!(Migration::MAX_COUNT < (1 << 16) - PORT as usize);

const fn address(host: Ipv4Addr, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(host), port)
}

/// The address of a client, which migrations change.
#[derive(Debug)]
pub(crate) struct ClientAddress<'a> {
    host: Ipv4Addr,
    port: u16,
    migrations: &'a [Step<Migration>],
    next: usize,
}

impl<'a> ClientAddress<'a> {
    pub(crate) fn new(migrations: &'a [Step<Migration>]) -> Self {
        Self { host: CLIENT_HOST, port: PORT, migrations, next: 0 }
    }

    pub(crate) fn now(&self) -> SocketAddr {
        address(self.host, self.port)
    }

    /// When it changes next.
    pub(crate) fn next_change(&self) -> Time {
        self.migrations.get(self.next).map_or(Time::NEVER, |step| step.at)
    }

    /// Takes the migration due at `now`: the last of several, if the connection began after them. Returns whether the client
    /// knows of it.
    pub(crate) fn migrate(&mut self, now: Time) -> bool {
        let migration = Step::take_due(self.migrations, &mut self.next, now);
        match migration {
            Some(Migration::Address) => self.host = Ipv4Addr::from_bits(self.host.to_bits() + 1),
            Some(Migration::Port) => self.port += 1,
            None => {}
        }
        migration == Some(Migration::Address)
    }
}
