//! One end of many connections, without clock and sockets.

mod admit;
mod host;
mod output;
mod shutdown;
mod table;
mod turn;

pub use host::Host;
pub use output::{Progress, Sent, Sink};
pub use shutdown::ShutdownOptions;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use noq_proto::{EcnCodepoint, Endpoint, EndpointConfig, FourTuple, ServerConfig};

use crate::app::{App, ConnectionKey};
use crate::stats::DriverStats;
use crate::timers::Timers;
use output::{Pending, Replies};
use shutdown::Shutdown;
use table::Table;

/// What a driver does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at the same time. Clients beyond that are refused without a question.
    pub connections: usize,
    /// Batches that a connection sends before it is the next one's turn.
    pub batches_per_turn: usize,
    /// Datagrams in a batch. The kernel takes 64 at most, and 64 KiB.
    pub datagrams_per_batch: NonZeroUsize,
    /// For how long a connection that sends much may be held back for larger batches.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            batches_per_turn: 4,
            datagrams_per_batch: NonZeroUsize::MIN.saturating_add(63),
            longest_wait: Duration::from_millis(1),
        }
    }
}

/// A datagram that arrived.
#[derive(Debug)]
pub struct Datagram {
    /// Where it came from and was sent to.
    pub path: FourTuple,
    /// How it is marked.
    pub ecn: Option<EcnCodepoint>,
    /// What is in it.
    pub data: BytesMut,
}

/// One end of many connections: an endpoint of the stack, its connections, their timers, who has
/// something to do, and the application.
pub struct Driver<A: App> {
    app: A,
    endpoint: Endpoint,
    table: Table<A::State>,
    timers: Timers,
    /// Slots that have something to do, each once.
    ready: VecDeque<usize>,
    /// What the socket did not take.
    pending: Option<Pending>,
    replies: Replies,
    buffer: Vec<u8>,
    limits: Limits,
    shutdown: Option<Shutdown>,
    stats: DriverStats,
}

impl<A: App> Driver<A> {
    /// One end, which accepts connections if there is a `server`: its cryptography also answers clients
    /// that are refused or have to retry.
    pub fn new(
        app: A,
        config: EndpointConfig,
        server: Option<Arc<ServerConfig>>,
        limits: Limits,
        may_fragment: bool,
    ) -> Self {
        Self {
            app,
            endpoint: Endpoint::new(Arc::new(config), server, !may_fragment),
            table: Table::default(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            pending: None,
            replies: Replies::default(),
            buffer: Vec::new(),
            limits,
            shutdown: None,
            stats: DriverStats::default(),
        }
    }

    /// What it did.
    pub fn stats(&self) -> DriverStats {
        DriverStats {
            connections: self.table.len() as u64,
            replies_dropped: self.replies.dropped(),
            ..self.stats
        }
    }

    /// When [`Self::expire`] has to be called, if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        let shutdown = self.shutdown.as_ref().map(|shutdown| shutdown.deadline(self.is_blocked()));
        self.timers.next().into_iter().chain(shutdown).min()
    }

    /// Whether [`Self::turn`] has something to do.
    pub fn is_ready(&self) -> bool {
        self.pending.is_some() || !self.replies.is_empty() || !self.ready.is_empty()
    }

    /// Whether a batch waits for the socket.
    pub fn is_blocked(&self) -> bool {
        self.pending.is_some()
    }

    /// The application may do something with any connection, or begin some.
    pub fn command(&mut self, now: Instant, command: A::Command) {
        let (app, mut host) = self.host(now);
        app.command(&mut host, command);
    }

    /// A connection, if it is still there, has something to do.
    pub fn wake(&mut self, connection: ConnectionKey) {
        if self.table.find(connection).is_some() {
            self.mark_ready(connection.slot);
        }
    }

    /// This end has another address from now on.
    pub fn rebound(&mut self, now: Instant) {
        for (slot, entry) in self.table.iter_mut() {
            entry.connection.handle_network_change(None, now);
            if entry.mark_ready() {
                self.ready.push_back(slot);
            }
        }
    }

    /// Time has passed.
    pub fn expire(&mut self, now: Instant) {
        while let Some(slot) = self.timers.due(now) {
            self.expire_connection(now, slot);
        }
        self.advance_shutdown(now);
    }

    fn mark_ready(&mut self, slot: usize) {
        if self.table.get_mut(slot).is_some_and(table::Entry::mark_ready) {
            self.ready.push_back(slot);
        }
    }
}
