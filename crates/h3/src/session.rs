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

use crate::connection_waker::{Attend, ConnectionWaker};
use crate::core::{Core, Shared, Task};
use crate::error;
use crate::payload::{Payload, Slot};
use crate::priority::Priority;
use crate::stream::Sending;
use crate::transport::Transport;

/// What a peer may have us hold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of what it sends on a stream of two directions that it has opened. `h3` holds a frame of headers
    /// until all of it is there.
    pub request: u64,
    /// Of what it sends on one of its streams of one direction, over the connection's life.
    pub control: u64,
}

/// The futures of a connection, and what they see of it.
///
/// What happens to the connection is told by the methods that have the names of
/// [`uncork_quic_io::App`]'s. Each turn ends with [`Session::settle`].
pub struct Session {
    core: Shared,
    slot: Slot,
    tasks: FuturesUnordered<Task>,
    connection_waker: Arc<dyn Attend>,
    waker: Waker,
}

/// What the futures of a connection know of it. Clones are of the same.
#[derive(Clone)]
pub struct Scope {
    pub(crate) core: Shared,
    slot: Slot,
}

impl Session {
    /// One for a connection of the worker that `mailer` reaches.
    pub fn new<C: Send + 'static>(
        mailer: Mailer<C>,
        side: Side,
        bounds: Bounds,
        now: Instant,
    ) -> Self {
        let connection_waker = Arc::new(ConnectionWaker::new(mailer));
        Self {
            core: Rc::new(RefCell::new(Core::new(side, bounds, now))),
            slot: Slot::default(),
            tasks: FuturesUnordered::new(),
            waker: Arc::clone(&connection_waker).into(),
            connection_waker,
        }
    }

    /// What `h3` is built on.
    pub fn transport(&self) -> Transport {
        Transport { core: Rc::clone(&self.core), slot: Rc::clone(&self.slot) }
    }

    /// What futures are given.
    pub fn scope(&self) -> Scope {
        Scope { core: Rc::clone(&self.core), slot: Rc::clone(&self.slot) }
    }

    /// The peer opened streams.
    pub fn opened(&mut self, connection: &mut Connection, dir: Dir) {
        self.core.borrow_mut().accept(connection, dir);
    }

    /// There is something to read.
    pub fn readable(&mut self, id: StreamId) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&id) else { return };
        stream.input.is_readable = true;
        if stream.input.is_wanted {
            core.change(id);
        }
    }

    /// A stream that took no more takes something again.
    pub fn writable(&mut self, id: StreamId) {
        self.core.borrow_mut().change(id);
    }

    /// The peer does not want more of a stream; it is told where it ends (RFC 9000 §3.5).
    pub fn stopped(&mut self, connection: &mut Connection, id: StreamId, code: VarInt) {
        let _gone = connection.send_stream(id).reset(code);
        let mut core = self.core.borrow_mut();
        core.unacknowledged.remove(&id);
        let Some(stream) = core.streams.get_mut(&id) else { return };
        if stream.output.state != Sending::Over {
            stream.output.end(Sending::Stopped(code));
        }
        core.change(id);
    }

    /// All of a stream has been acknowledged.
    pub fn finished(&mut self, id: StreamId) {
        self.core.borrow_mut().unacknowledged.remove(&id);
    }

    /// Lets futures go on, and has done what they ask for, until there is nothing left.
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
        // What was answered must arrive before the connection goes, but nothing waits for a broken one.
        let is_clean = core.closing.as_ref().is_some_and(|(code, _)| *code == NO_ERROR);
        if (!is_clean || core.unacknowledged.is_empty())
            && let Some((code, reason)) = core.closing.take()
        {
            connection.close(now, code, reason);
        }
    }

    /// The connection is over. Futures see that, once; after that there are none.
    pub fn closed(&mut self, now: Instant, key: ConnectionKey, reason: &ConnectionError) {
        self.connection_waker.attend(key);
        {
            let mut core = self.core.borrow_mut();
            core.now = now;
            core.end(error::connection(reason));
        }
        while self.poll() {}
        self.tasks.clear();
        // Dropped, they look at what is borrowed here.
        let spawned = std::mem::take(&mut self.core.borrow_mut().spawned);
        drop(spawned);
    }

    /// Lets futures go on that can; whether there were any.
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

impl Scope {
    /// Has the connection run a future. It is dropped when the connection is over.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.core.borrow_mut().spawned.push(Box::pin(task));
    }

    /// The time at the beginning of the connection's turn.
    pub fn now(&self) -> Instant {
        self.core.borrow().now
    }

    /// Whether something was given to be sent that the stack does not take: the peer's flow control holds
    /// it back, or all that the stack may hold is there already.
    pub fn is_held_back(&self) -> bool {
        self.core.borrow().streams.values().any(|stream| !stream.output.queue.is_empty())
    }

    /// Bytes for `h3` to send.
    pub fn payload(&self, bytes: Bytes) -> Payload {
        Payload::new(bytes, &self.slot)
    }

    /// In which order what is sent on a stream goes out, unless the client has said otherwise after its
    /// request (RFC 9218 §7).
    pub fn prioritize(&self, stream: Name, priority: Option<Priority>) {
        let mut core = self.core.borrow_mut();
        let said = core.updated.get(&id(stream)).copied().or(priority);
        if let Some(output) = core.streams.get_mut(&id(stream)).map(|stream| &mut stream.output) {
            output.priority = Priority::order(said, stream.index());
        }
    }
}

fn id(name: Name) -> StreamId {
    StreamId::from(VarInt::try_from(name.into_inner()).unwrap_or(VarInt::MAX))
}
