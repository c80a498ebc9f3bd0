//! A QUIC endpoint and its connections, without clock and sockets.

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
use output::{PendingOutput, QueuedReplies};
use shutdown::Shutdown;
use table::Table;

/// Limits of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Concurrent connections. Requests beyond that are refused without calling [`App::incoming`].
    pub connections: usize,
    /// Batches that a connection sends per turn.
    pub batches_per_turn: usize,
    /// Datagrams per batch. The kernel takes at most 64, and at most 64 KiB.
    pub datagrams_per_batch: NonZeroUsize,
    /// The longest delay of a busy connection for larger batches.
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

/// A received datagram.
#[derive(Debug)]
pub struct Datagram {
    /// Its source and destination.
    pub path: FourTuple,
    /// Its ECN mark.
    pub ecn: Option<EcnCodepoint>,
    /// Its payload.
    pub data: BytesMut,
}

/// A QUIC endpoint: the stack's endpoint, its connections, their timers, the queue of connections
/// that are ready, and the application.
pub struct Driver<A: App> {
    app: A,
    endpoint: Endpoint,
    table: Table<A::State>,
    timers: Timers,
    /// Slots of connections with work to do, each at most once.
    ready: VecDeque<usize>,
    /// The rest of a batch that the socket did not take.
    pending: Option<PendingOutput>,
    replies: QueuedReplies,
    buffer: Vec<u8>,
    limits: Limits,
    shutdown: Option<Shutdown>,
    /// Whether another process accepts new connections.
    has_given_way: bool,
    stats: DriverStats,
}

impl<A: App> Driver<A> {
    /// Creates a driver. It accepts connections if `server` is given; its cryptography also answers
    /// clients that are refused or must retry.
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
            replies: QueuedReplies::default(),
            buffer: Vec::new(),
            limits,
            shutdown: None,
            has_given_way: false,
            stats: DriverStats::default(),
        }
    }

    /// The counters.
    pub fn stats(&self) -> DriverStats {
        DriverStats {
            connections: self.table.len() as u64,
            replies_dropped: self.replies.dropped(),
            ..self.stats
        }
    }

    /// When to call [`Self::expire`], unless an event comes first.
    pub fn deadline(&self) -> Option<Instant> {
        let shutdown = self.shutdown.as_ref().map(|shutdown| shutdown.deadline(self.is_blocked()));
        self.timers.next().into_iter().chain(shutdown).min()
    }

    /// Whether [`Self::run_next`] has work to do.
    pub fn is_ready(&self) -> bool {
        self.pending.is_some() || !self.replies.is_empty() || !self.ready.is_empty()
    }

    /// Whether a batch waits for room in the socket's buffer.
    pub fn is_blocked(&self) -> bool {
        self.pending.is_some()
    }

    /// Passes a command to the application, which may use any connection or open new ones.
    pub fn command(&mut self, now: Instant, command: A::Command) {
        let (app, mut host) = self.host(now);
        app.command(&mut host, command);
    }

    /// Schedules a turn of a connection, if it still exists.
    pub fn wake(&mut self, connection: ConnectionKey) {
        if self.table.find(connection).is_some() {
            self.mark_ready(connection.slot);
        }
    }

    /// Reports to all connections that the local address has changed.
    pub fn rebound(&mut self, now: Instant) {
        for (slot, entry) in self.table.iter_mut() {
            entry.connection.handle_network_change(None, now);
            if entry.mark_ready() {
                self.ready.push_back(slot);
            }
        }
    }

    /// Another process receives from now on, and passes on datagrams for this process. Returns the
    /// connection IDs that clients chose for their handshakes. A client uses such an ID until it
    /// has received an answer.
    pub(crate) fn give_way(&mut self) -> Vec<Vec<u8>> {
        self.has_given_way = true;
        let handshaking = self.table.iter_mut().filter(|(_, entry)| entry.handshaking);
        handshaking.filter_map(|(_, entry)| Some(entry.first_id?.to_vec())).collect()
    }

    /// The other process did not take over.
    pub(crate) fn resume(&mut self) {
        self.has_given_way = false;
    }

    /// Fires all timers that are due at `now`.
    pub fn expire(&mut self, now: Instant) {
        while let Some(slot) = self.timers.pop_due(now) {
            self.expire_connection(now, slot);
        }
        self.advance_shutdown(now);
    }

    fn mark_ready(&mut self, slot: usize) {
        if self.table.get_mut(slot).is_some_and(table::DriverEntry::mark_ready) {
            self.ready.push_back(slot);
        }
    }
}
