//! The application's access to all connections of a worker, and to new ones.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::{ClientConfig, ConnectError, Endpoint};
use uncork_quic::Handle;

use super::Driver;
use super::table::Table;
use crate::app::{App, ConnectionContext, ConnectionKey};
use crate::stats::DriverStats;

/// Access to all connections of a worker.
pub struct Host<'a, S> {
    /// The time.
    pub now: Instant,
    endpoint: &'a mut Endpoint,
    table: &'a mut Table<S>,
    ready: &'a mut VecDeque<usize>,
    stats: &'a mut DriverStats,
}

impl<A: App> Driver<A> {
    pub(super) fn host(&mut self, now: Instant) -> (&mut A, Host<'_, A::State>) {
        let host = Host {
            now,
            endpoint: &mut self.endpoint,
            table: &mut self.table,
            ready: &mut self.ready,
            stats: &mut self.stats,
        };
        (&mut self.app, host)
    }
}

impl<S> Host<'_, S> {
    /// Opens a connection to `remote`. Its certificate must match `server_name`. The configuration
    /// comes from [`crate::Client::begin`].
    ///
    /// # Errors
    ///
    /// If the address or the server name is invalid.
    pub fn connect(
        &mut self,
        (cc, config): (Handle, ClientConfig),
        remote: SocketAddr,
        server_name: &str,
        state: S,
    ) -> Result<ConnectionKey, ConnectError> {
        let (handle, connection) = self.endpoint.connect(self.now, config, remote, server_name)?;
        self.stats.begun += 1;
        self.table.insert(handle.0, connection, cc, state);
        self.touch(handle.0);
        self.table.key(handle.0).ok_or(ConnectError::EndpointStopping)
    }

    /// A connection by its key, or `None` if it no longer exists. It gets a turn afterwards.
    pub fn context(&mut self, key: ConnectionKey) -> Option<ConnectionContext<'_, S>> {
        self.table.find(key)?;
        self.touch(key.slot);
        let entry = self.table.find(key)?;
        Some(entry.context(key.slot, self.now))
    }

    /// The keys of all connections, including closed ones that still drain.
    pub fn keys(&mut self) -> Vec<ConnectionKey> {
        let slots = self.table.slots();
        slots.into_iter().filter_map(|slot| self.table.key(slot)).collect()
    }

    fn touch(&mut self, slot: usize) {
        if self.table.get_mut(slot).is_some_and(super::table::DriverEntry::mark_ready) {
            self.ready.push_back(slot);
        }
    }
}
