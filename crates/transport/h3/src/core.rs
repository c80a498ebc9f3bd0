//! The state that a session shares with its tasks.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Instant;

use bytes::Bytes;
use h3::quic::ConnectionErrorIncoming;
use noq_proto::{Dir, Side, StreamId, VarInt};
use rustc_hash::FxHashMap;

use crate::priority::Priority;
use crate::session::SessionBounds;
use crate::stream::Stream;

/// The shared state. It lives until the session and all tasks end.
pub(crate) type Shared = Rc<RefCell<Core>>;

/// A task of a connection.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) struct Core {
    pub(crate) side: Side,
    pub(crate) bounds: SessionBounds,
    /// The time of the current turn.
    pub(crate) now: Instant,
    pub(crate) streams: FxHashMap<StreamId, Stream>,
    /// Streams with work to do, each at most once.
    pub(crate) changed: Vec<StreamId>,
    /// Streams opened by the peer, not yet accepted by a task.
    pub(crate) accepted: PerDir<VecDeque<StreamId>>,
    pub(crate) accepting: PerDir<Option<Waker>>,
    /// Streams opened by us, not yet taken by a task.
    pub(crate) opened: PerDir<VecDeque<StreamId>>,
    pub(crate) opening: PerDir<Vec<Waker>>,
    /// One more than the index of the peer's latest request stream.
    pub(crate) requests: u64,
    /// Priorities from PRIORITY_UPDATE frames, including those for future requests.
    pub(crate) updated: BTreeMap<StreamId, Priority>,
    /// The size of the largest head that the client accepts.
    pub(crate) largest_head: u64,
    /// Streams with a FIN that was sent but not acknowledged.
    pub(crate) unacknowledged: BTreeSet<StreamId>,
    /// Code and reason to close the connection with.
    pub(crate) closing: Option<(VarInt, Bytes)>,
    /// Why the connection ended.
    pub(crate) over: Option<ConnectionErrorIncoming>,
    /// Tasks that have not started.
    pub(crate) spawned: Vec<Task>,
    /// `h3` is parsing a request's head: if it drops the stream now, the response is complete.
    pub(crate) is_resolving: bool,
}

/// A value for bidirectional and one for unidirectional streams.
#[derive(Debug, Default)]
pub(crate) struct PerDir<T>([T; 2]);

impl<T> PerDir<T> {
    pub(crate) fn of(&mut self, dir: Dir) -> &mut T {
        let [bi, uni] = &mut self.0;
        match dir {
            Dir::Bi => bi,
            Dir::Uni => uni,
        }
    }

    pub(crate) fn both(&mut self) -> &mut [T; 2] {
        &mut self.0
    }
}

impl Core {
    pub(crate) fn new(side: Side, bounds: SessionBounds, now: Instant) -> Self {
        Self {
            side,
            bounds,
            now,
            streams: FxHashMap::default(),
            changed: Vec::new(),
            accepted: PerDir::default(),
            accepting: PerDir::default(),
            opened: PerDir::default(),
            opening: PerDir::default(),
            requests: 0,
            updated: BTreeMap::new(),
            largest_head: u64::MAX,
            unacknowledged: BTreeSet::new(),
            closing: None,
            over: None,
            spawned: Vec::new(),
            is_resolving: false,
        }
    }

    /// Adds a new stream.
    pub(crate) fn insert(&mut self, id: StreamId) {
        let (is_ours, is_bi) = (id.initiator() == self.side, id.dir() == Dir::Bi);
        let allowance = match (is_ours, is_bi) {
            (false, true) => self.bounds.request,
            (false, false) => self.bounds.control,
            _ => u64::MAX,
        };
        let mut stream = Stream::new(is_ours || is_bi, !is_ours || is_bi, allowance);
        match (is_ours, is_bi) {
            (false, true) => self.requests = self.requests.max(id.index() + 1),
            (false, false) if self.side.is_server() => stream.input.updates = Some(Box::default()),
            _ => {}
        }
        if !is_bi {
            stream.output.priority = i32::MAX;
        }
        self.streams.insert(id, stream);
    }

    /// Marks a stream as having work to do.
    pub(crate) fn change(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut stream.is_changed, true)
        {
            self.changed.push(id);
        }
    }

    /// Ends the connection and wakes all waiting tasks.
    pub(crate) fn end(&mut self, reason: ConnectionErrorIncoming) {
        self.over = Some(reason);
        for stream in self.streams.values_mut() {
            stream.output.wake();
            stream.input.wake();
        }
        let accepting = self.accepting.both().iter_mut().filter_map(Option::take);
        let opening = self.opening.both().iter_mut().flat_map(std::mem::take);
        accepting.chain(opening).for_each(Waker::wake);
    }

    /// The default error code for STOP_SENDING. A server may answer without reading the whole request
    /// (RFC 9114 §4.1).
    pub(crate) fn unread(&self) -> VarInt {
        const NO_ERROR: VarInt = VarInt::from_u32(0x100);
        if self.side.is_server() { NO_ERROR } else { REQUEST_CANCELLED }
    }
}

/// `H3_REQUEST_CANCELLED` (RFC 9114 §8.1).
pub(crate) const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// Stores the waker of `context`.
pub(crate) fn wait(waker: &mut Option<Waker>, context: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(context.waker()),
        None => *waker = Some(context.waker().clone()),
    }
}
