//! What the two sides of a session share: the events of the connection, and the futures.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Instant;

use bytes::Bytes;
use h3::quic::ConnectionErrorIncoming;
use noq_proto::{Dir, Side, StreamId, VarInt};

use crate::priority::Priority;
use crate::session::Bounds;
use crate::stream::Stream;

/// All that is there for as long as one of both sides is.
pub(crate) type Shared = Rc<RefCell<Core>>;

/// A future of a connection.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) struct Core {
    pub(crate) side: Side,
    pub(crate) bounds: Bounds,
    /// The time of the turn.
    pub(crate) now: Instant,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    /// Streams that something is to be done for, each once.
    pub(crate) changed: Vec<StreamId>,
    /// Streams of the peer that nobody has taken yet.
    pub(crate) accepted: PerDir<VecDeque<StreamId>>,
    pub(crate) accepting: PerDir<Option<Waker>>,
    /// Streams of ours that nobody has taken yet.
    pub(crate) opened: PerDir<VecDeque<StreamId>>,
    pub(crate) opening: PerDir<Vec<Waker>>,
    /// The index behind that of the peer's last request.
    pub(crate) requests: u64,
    /// What the peer has said of requests' priorities later than, or before, with them.
    pub(crate) updated: BTreeMap<StreamId, Priority>,
    /// Streams whose end has been sent and not been acknowledged.
    pub(crate) unacknowledged: BTreeSet<StreamId>,
    /// What the connection is to be closed with.
    pub(crate) closing: Option<(VarInt, Bytes)>,
    /// Why the connection is over.
    pub(crate) over: Option<ConnectionErrorIncoming>,
    /// Futures that have not been begun.
    pub(crate) spawned: Vec<Task>,
    /// `h3` looks at a request's head: a stream that it drops now has all of its answer.
    pub(crate) is_resolving: bool,
}

/// One for streams of two directions, one for those of one direction.
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
    pub(crate) fn new(side: Side, bounds: Bounds, now: Instant) -> Self {
        Self {
            side,
            bounds,
            now,
            streams: BTreeMap::new(),
            changed: Vec::new(),
            accepted: PerDir::default(),
            accepting: PerDir::default(),
            opened: PerDir::default(),
            opening: PerDir::default(),
            requests: 0,
            updated: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            closing: None,
            over: None,
            spawned: Vec::new(),
            is_resolving: false,
        }
    }

    /// A stream that there is from now on.
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

    /// Has something done for a stream at the end of the turn.
    pub(crate) fn change(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut stream.is_changed, true)
        {
            self.changed.push(id);
        }
    }

    /// The connection is over: everybody is told.
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

    /// Why a stream is not read to its end, if nobody says. A server need not read what it answers
    /// (RFC 9114 §4.1).
    pub(crate) fn unread(&self) -> VarInt {
        const NO_ERROR: VarInt = VarInt::from_u32(0x100);
        if self.side.is_server() { NO_ERROR } else { REQUEST_CANCELLED }
    }
}

/// `H3_REQUEST_CANCELLED` (RFC 9114 §8.1).
pub(crate) const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// Has `waker` wake the future of `context`.
pub(crate) fn wait(waker: &mut Option<Waker>, context: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(context.waker()),
        None => *waker = Some(context.waker().clone()),
    }
}
