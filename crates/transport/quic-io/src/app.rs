//! The application interface: callbacks for events of connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use noq_proto::{
    Connection, ConnectionError, Dir, Event, Incoming, ServerConfig, StreamId, VarInt,
};
use uncork_quic::Handle;

use crate::driver::Host;

/// The application on a worker's connections. All callbacks run on the worker's thread; while one
/// runs, every connection of this worker waits.
///
/// After the callbacks for a batch of events comes one call of [`App::settle`]; then the connection's
/// pending output is sent.
pub trait App {
    /// Per-connection state.
    type State;
    /// Commands from other threads, see [`crate::Workers::send`].
    type Command: Send + 'static;

    /// A client requests a connection.
    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<Self::State>;

    /// A command from another thread arrived.
    fn command(&mut self, host: &mut Host<'_, Self::State>, command: Self::Command) {
        let _ = (host, command);
    }

    /// The handshake is complete, or far enough along to send data.
    fn connected(&mut self, context: &mut ConnectionContext<'_, Self::State>) {
        let _ = context;
    }

    /// The peer opened streams; accept them with `Streams::accept`. They may already be readable.
    fn opened(&mut self, context: &mut ConnectionContext<'_, Self::State>, dir: Dir) {
        let _ = (context, dir);
    }

    /// The peer raised its stream limit: streams can be opened again.
    fn available(&mut self, context: &mut ConnectionContext<'_, Self::State>, dir: Dir) {
        let _ = (context, dir);
    }

    /// The stream is readable: data, its end or a reset.
    fn readable(&mut self, context: &mut ConnectionContext<'_, Self::State>, stream: StreamId) {
        let _ = (context, stream);
    }

    /// A blocked stream is writable again.
    fn writable(&mut self, context: &mut ConnectionContext<'_, Self::State>, stream: StreamId) {
        let _ = (context, stream);
    }

    /// The peer acknowledged all data of a finished stream.
    fn finished(&mut self, context: &mut ConnectionContext<'_, Self::State>, stream: StreamId) {
        let _ = (context, stream);
    }

    /// The peer asked to stop sending on the stream (STOP_SENDING).
    fn stopped(
        &mut self,
        context: &mut ConnectionContext<'_, Self::State>,
        stream: StreamId,
        code: VarInt,
    ) {
        let _ = (context, stream, code);
    }

    /// All other events of the stack: datagrams, paths.
    fn other(&mut self, context: &mut ConnectionContext<'_, Self::State>, event: Event) {
        let _ = (context, event);
    }

    /// The time set with [`ConnectionContext::wake_at`] has come.
    fn timer(&mut self, context: &mut ConnectionContext<'_, Self::State>) {
        let _ = context;
    }

    /// All events so far have been delivered.
    fn settle(&mut self, context: &mut ConnectionContext<'_, Self::State>) {
        let _ = context;
    }

    /// The driver shuts down and accepts no new connections. Finish what is in progress, then close the
    /// connection, immediately if idle. At the deadline the driver closes it.
    fn shutting_down(&mut self, context: &mut ConnectionContext<'_, Self::State>) {
        let _ = context;
    }

    /// The connection is closed, by either side. Called once per connection.
    fn closed(
        &mut self,
        context: &mut ConnectionContext<'_, Self::State>,
        reason: &ConnectionError,
    ) {
        let _ = (context, reason);
    }
}

/// Identifies a connection of a worker. Keys are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    pub(crate) slot: usize,
    pub(crate) serial: u64,
}

/// A connection during a callback.
pub struct ConnectionContext<'a, S> {
    /// The time.
    pub now: Instant,
    /// The key of the connection.
    pub key: ConnectionKey,
    /// The connection.
    pub connection: &'a mut Connection,
    /// The application's state for it.
    pub state: &'a mut S,
    /// Its congestion control.
    pub cc: &'a Handle,
    pub(crate) wake_at: &'a mut Option<Instant>,
}

impl<S> ConnectionContext<'_, S> {
    /// Schedules [`App::timer`] at this time, replacing an earlier schedule; `None` cancels it.
    pub fn wake_at(&mut self, time: Option<Instant>) {
        *self.wake_at = time;
    }
}

/// A client that requests a connection.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The time.
    pub now: Instant,
    /// The stack's view of the request.
    pub incoming: &'a Incoming,
    /// The current load of this worker.
    pub load: Load,
}

impl Arrival<'_> {
    /// The client's address; IPv4-mapped addresses become IPv4.
    pub fn remote(&self) -> SocketAddr {
        let remote = self.incoming.remote_address();
        SocketAddr::new(remote.ip().to_canonical(), remote.port())
    }

    /// The local address that the packet was sent to.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.incoming.local_ip().map(|ip| ip.to_canonical())
    }

    /// Whether the client's address is validated (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.incoming.remote_address_validated()
    }
}

/// The load of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Open connections.
    pub connections: usize,
    /// Connections still in their handshake.
    pub handshaking: usize,
}

/// How to answer a connection request.
pub enum Verdict<S> {
    /// Accept the connection.
    Accept {
        /// Its configuration, from [`crate::Server::accept`].
        config: Arc<ServerConfig>,
        /// Its congestion control.
        cc: Handle,
        /// The application's state for it.
        state: S,
    },
    /// Send a Retry to validate the client's address (RFC 9000 §8.1.2). A client that has already
    /// retried is refused.
    Retry,
    /// Refuse it (CONNECTION_REFUSED).
    Refuse,
    /// Drop the request without an answer.
    Ignore,
}
