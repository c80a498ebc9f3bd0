//! HTTP/3 on one connection.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h3::quic::StreamId as Name;
use noq_proto::{Connection, ConnectionError, Dir, Side, StreamId, VarInt};
use uncork_quic_io::{ConnectionKey, Mailer};

use crate::connection_waker::{ConnectionWaker, TurnTracker};
use crate::core::{Core, Shared, Task};
use crate::error;
use crate::payload::{Payload, PayloadSlot};
use crate::priority::Priority;
use crate::stream::StreamSending;
use crate::transport::Transport;

/// Limits on the peer's data, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionBounds {
    /// Per bidirectional stream that the peer opens. `h3` buffers a HEADERS frame until it is complete.
    pub request: u64,
    /// Per unidirectional stream of the peer, over the connection's life.
    pub control: u64,
}

/// HTTP/3 on one connection: runs its tasks.
///
/// Forward the events of [`uncork_quic_io::App`] to the methods of the same names. End each turn with
/// [`Session::settle`].
pub struct Session {
    core: Shared,
    slot: PayloadSlot,
    tasks: FuturesUnordered<Task>,
    connection_waker: Arc<dyn TurnTracker>,
    waker: Waker,
}

/// A task's handle of its connection. Clones refer to the same connection.
#[derive(Clone)]
pub struct SessionScope {
    pub(crate) core: Shared,
    pub(crate) slot: PayloadSlot,
}

impl Session {
    /// Creates a session for a connection of the worker that `mailer` sends to.
    pub fn new<C: Send + 'static>(
        mailer: Mailer<C>,
        side: Side,
        bounds: SessionBounds,
        now: Instant,
    ) -> Self {
        let connection_waker = Arc::new(ConnectionWaker::new(mailer));
        Self {
            core: Rc::new(RefCell::new(Core::new(side, bounds, now))),
            slot: PayloadSlot::default(),
            tasks: FuturesUnordered::new(),
            waker: Arc::clone(&connection_waker).into(),
            connection_waker,
        }
    }

    /// The transport for `h3`.
    pub fn transport(&self) -> Transport {
        Transport { core: Rc::clone(&self.core), slot: Rc::clone(&self.slot) }
    }

    /// The handle for tasks.
    pub fn scope(&self) -> SessionScope {
        SessionScope { core: Rc::clone(&self.core), slot: Rc::clone(&self.slot) }
    }

    /// The peer opened streams.
    pub fn opened(&mut self, connection: &mut Connection, dir: Dir) {
        // The turn ends with `settle`, which polls the task that accepts them: it needs no message.
        self.connection_waker.begin_turn();
        self.core.borrow_mut().accept(connection, dir);
    }

    /// A stream is readable.
    pub fn readable(&mut self, id: StreamId) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&id) else { return };
        stream.input.is_readable = true;
        if stream.input.is_wanted {
            core.change(id);
        }
    }

    /// A blocked stream is writable again.
    pub fn writable(&mut self, id: StreamId) {
        self.core.borrow_mut().change(id);
    }

    /// The peer sent STOP_SENDING; resets the stream in return (RFC 9000 §3.5).
    pub fn stopped(&mut self, connection: &mut Connection, id: StreamId, code: VarInt) {
        let _gone = connection.send_stream(id).reset(code);
        let mut core = self.core.borrow_mut();
        core.unacknowledged.remove(&id);
        let Some(stream) = core.streams.get_mut(&id) else { return };
        if stream.output.state != StreamSending::Over {
            stream.output.end(StreamSending::Stopped(code));
        }
        core.change(id);
    }

    /// The peer acknowledged all data of a stream.
    pub fn finished(&mut self, id: StreamId) {
        self.core.borrow_mut().unacknowledged.remove(&id);
    }

    /// Runs tasks and passes their operations to the stack until none can make progress.
    pub fn settle(&mut self, now: Instant, key: ConnectionKey, connection: &mut Connection) {
        self.core.borrow_mut().now = now;
        self.connection_waker.attend(key);
        loop {
            self.core.borrow_mut().flush(connection);
            if !self.poll() && !self.connection_waker.leave() {
                break;
            }
        }
        let mut core = self.core.borrow_mut();
        // A clean close waits until all responses are acknowledged; a close with an error does not.
        let is_clean = core.closing.as_ref().is_some_and(|(code, _)| *code == NO_ERROR);
        if (!is_clean || core.unacknowledged.is_empty())
            && let Some((code, reason)) = core.closing.take()
        {
            connection.close(now, code, reason);
        }
    }

    /// The connection is closed. Tasks run once more to see that, then they are dropped.
    pub fn closed(&mut self, now: Instant, key: ConnectionKey, reason: &ConnectionError) {
        self.connection_waker.attend(key);
        {
            let mut core = self.core.borrow_mut();
            core.now = now;
            core.end(error::connection(reason));
        }
        while self.poll() {}
        self.tasks.clear();
        // Drop them outside the borrow: their destructors borrow the core.
        let spawned = std::mem::take(&mut self.core.borrow_mut().spawned);
        drop(spawned);
    }

    /// Runs woken and new tasks. Returns whether there were any.
    fn poll(&mut self) -> bool {
        let spawned = std::mem::take(&mut self.core.borrow_mut().spawned);
        if spawned.is_empty() && !self.connection_waker.was_woken() {
            return false;
        }
        self.tasks.extend(spawned);
        let mut context = Context::from_waker(&self.waker);
        while let Poll::Ready(Some(())) = self.tasks.poll_next_unpin(&mut context) {}
        true
    }
}

/// `H3_NO_ERROR` (RFC 9114 §8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

impl SessionScope {
    /// Starts a task on the connection's thread. It is dropped when the connection closes.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.core.borrow_mut().spawned.push(Box::pin(task));
    }

    /// The time at the start of the current turn.
    pub fn now(&self) -> Instant {
        self.core.borrow().now
    }

    /// Whether data waits because the stack does not accept it: the peer's flow control blocks it,
    /// or the stack's send buffer is full.
    pub fn is_held_back(&self) -> bool {
        self.core.borrow().streams.values().any(|stream| !stream.output.queue.is_empty())
    }

    /// Wraps bytes for `h3` to send.
    pub fn payload(&self, bytes: Bytes) -> Payload {
        Payload::new(bytes, &self.slot)
    }

    /// Sets the priority of a response. A PRIORITY_UPDATE of the client takes precedence (RFC 9218 §7).
    pub fn prioritize(&self, stream: Name, priority: Option<Priority>) {
        let mut core = self.core.borrow_mut();
        let said = core.updated.get(&id(stream)).copied().or(priority);
        if let Some(output) = core.streams.get_mut(&id(stream)).map(|stream| &mut stream.output) {
            output.priority = Priority::order(said, stream.index());
        }
    }
}

pub(crate) fn id(name: Name) -> StreamId {
    StreamId::from(VarInt::try_from(name.into_inner()).unwrap_or(VarInt::MAX))
}
