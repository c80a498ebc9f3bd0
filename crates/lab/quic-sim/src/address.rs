//! The addresses of a connection's ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uncork_path::Step;
use uncork_sim::Migration;
use uncork_units::Time;

pub(crate) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_HOST), PORT);
const SERVER_HOST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The first address of a client; a migration takes the next host or port.
const CLIENT_HOST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const PORT: u16 = 443;
const _: () = assert!(Migration::MAX_COUNT < (1 << 16) - PORT as usize);

/// The address of a client, which migrations change.
#[derive(Debug)]
pub(crate) struct ClientAddress {
    now: SocketAddr,
    migrations: Vec<Step<Migration>>,
    next: usize,
}

impl ClientAddress {
    pub(crate) fn new(migrations: &[Step<Migration>]) -> Self {
        let now = SocketAddr::new(IpAddr::V4(CLIENT_HOST), PORT);
        Self { now, migrations: migrations.to_vec(), next: 0 }
    }

    pub(crate) fn now(&self) -> SocketAddr {
        self.now
    }

    /// When it changes next.
    pub(crate) fn next_change(&self) -> Time {
        self.migrations.get(self.next).map_or(Time::NEVER, |step| step.at)
    }

    /// Takes the changes due at `now`. Returns whether the client knows of one.
    pub(crate) fn migrate(&mut self, now: Time) -> bool {
        let mut is_known = false;
        while let Some(step) = self.migrations.get(self.next).filter(|step| step.at <= now) {
            self.next += 1;
            match step.value {
                Migration::Address => {
                    self.now.set_ip(next_host(self.now.ip()));
                    is_known = true;
                }
                Migration::Port => self.now.set_port(self.now.port() + 1),
            }
        }
        is_known
    }
}

fn next_host(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) => Ipv4Addr::from_bits(host.to_bits() + 1).into(),
        IpAddr::V6(host) => host.into(),
    }
}
