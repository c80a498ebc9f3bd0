//! What connections are for.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use noq_proto::{
    Connection, ConnectionError, Dir, Event, Incoming, ServerConfig, StreamId, VarInt,
};
use uncork_quic::Handle;

use crate::driver::Host;

/// What is done with connections. All of it is called on the thread of the worker that has the
/// connection; while a call lasts, all connections of this worker wait.
///
/// After the calls that come of one or more datagrams there is one of [`App::settle`]. Then whatever the
/// connection has to send is sent.
pub trait App {
    /// What is kept beside each connection.
    type State;
    /// What other threads can tell it, see [`crate::Workers::tell`].
    type Command: Send + 'static;

    /// A client asks for a connection.
    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<Self::State>;

    /// Another thread tells something.
    fn command(&mut self, host: &mut Host<'_, Self::State>, command: Self::Command) {
        let _ = (host, command);
    }

    /// The handshake is over, or so far that data can be sent.
    fn connected(&mut self, turn: &mut Turn<'_, Self::State>) {
        let _ = turn;
    }

    /// The peer opened streams: `Streams::accept` gives them. They may be readable.
    fn opened(&mut self, turn: &mut Turn<'_, Self::State>, dir: Dir) {
        let _ = (turn, dir);
    }

    /// Streams that could not be opened for want of credit can be.
    fn available(&mut self, turn: &mut Turn<'_, Self::State>, dir: Dir) {
        let _ = (turn, dir);
    }

    /// There is something to read, an end or a reset included.
    fn readable(&mut self, turn: &mut Turn<'_, Self::State>, stream: StreamId) {
        let _ = (turn, stream);
    }

    /// A stream that took no more takes something again.
    fn writable(&mut self, turn: &mut Turn<'_, Self::State>, stream: StreamId) {
        let _ = (turn, stream);
    }

    /// All of a stream that was finished has been acknowledged.
    fn finished(&mut self, turn: &mut Turn<'_, Self::State>, stream: StreamId) {
        let _ = (turn, stream);
    }

    /// The peer does not want more of a stream.
    fn stopped(&mut self, turn: &mut Turn<'_, Self::State>, stream: StreamId, code: VarInt) {
        let _ = (turn, stream, code);
    }

    /// Anything else that the stack tells: datagrams, paths.
    fn other(&mut self, turn: &mut Turn<'_, Self::State>, event: Event) {
        let _ = (turn, event);
    }

    /// The time that was asked for by [`Turn::wake_at`] has come.
    fn timer(&mut self, turn: &mut Turn<'_, Self::State>) {
        let _ = turn;
    }

    /// Everything that has happened so far has been told.
    fn settle(&mut self, turn: &mut Turn<'_, Self::State>) {
        let _ = turn;
    }

    /// No new connections are accepted. What is under way should be finished, and the connection
    /// closed then, at once if nothing is; otherwise it will be when the time is over.
    fn shutting_down(&mut self, turn: &mut Turn<'_, Self::State>) {
        let _ = turn;
    }

    /// The connection is over. This is told once of each, whoever closed it.
    fn closed(&mut self, turn: &mut Turn<'_, Self::State>, reason: &ConnectionError) {
        let _ = (turn, reason);
    }
}

/// Names a connection of a worker. No two have the same, even after one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    pub(crate) slot: usize,
    pub(crate) serial: u64,
}

/// A connection while something happens to it.
pub struct Turn<'a, S> {
    /// The time.
    pub now: Instant,
    /// Which connection it is.
    pub key: ConnectionKey,
    /// The connection.
    pub connection: &'a mut Connection,
    /// What the application keeps beside it.
    pub state: &'a mut S,
    /// Its congestion control.
    pub cc: &'a Handle,
    pub(crate) wake_at: &'a mut Option<Instant>,
}

impl<S> Turn<'_, S> {
    /// Asks for a call of [`App::timer`] at this time, instead of any asked for before.
    pub fn wake_at(&mut self, time: Option<Instant>) {
        *self.wake_at = time;
    }
}

/// A client that asks for a connection.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The time.
    pub now: Instant,
    /// What the stack knows.
    pub incoming: &'a Incoming,
    /// What this worker has to do already.
    pub load: Load,
}

impl Arrival<'_> {
    /// The client's address, of IPv4 if it came so.
    pub fn remote(&self) -> SocketAddr {
        let remote = self.incoming.remote_address();
        SocketAddr::new(remote.ip().to_canonical(), remote.port())
    }

    /// The address that it was sent to.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.incoming.local_ip().map(|ip| ip.to_canonical())
    }

    /// Whether the client has shown that it receives what is sent to its address (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.incoming.remote_address_validated()
    }
}

/// How much a worker has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections that are there.
    pub connections: usize,
    /// Of these, in their handshake.
    pub handshaking: usize,
}

/// What becomes of a client that asks for a connection.
pub enum Verdict<S> {
    /// It gets one.
    Accept {
        /// How; [`crate::Server::accept`] makes it.
        config: Arc<ServerConfig>,
        /// Its congestion control.
        cc: Handle,
        /// What the application keeps beside it.
        state: S,
    },
    /// It has to show first that it receives what is sent to its address (RFC 9000 §8.1.2). One that
    /// has done so before is refused.
    Retry,
    /// It is told that it gets none.
    Refuse,
    /// It is told nothing.
    Ignore,
}
