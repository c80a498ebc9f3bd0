//! What a connection's socket has taken, and for which responses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::exchange::Exchange;
use crate::clock;

/// How long a connection may do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// From accepting it to the end of its first request's head.
    pub(crate) head: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
    /// While the client takes nothing of a response.
    pub(crate) stall: Duration,
}

impl Timeouts {
    /// How long nothing may happen on a connection that is answering a request, or has done so.
    pub(crate) fn span(&self, is_answering: bool, has_served: bool) -> Duration {
        match (is_answering, has_served) {
            (false, false) => self.head,
            (false, true) => self.idle,
            (true, _) => self.stall,
        }
    }
}

/// A connection as those see it who write to it, who wait for it, and who tell of it.
#[derive(Debug)]
pub(crate) struct ConnectionProgress {
    state: Mutex<ProgressState>,
    /// A response's body has come to its end, or the connection has.
    pub(super) changed: Notify,
}

#[derive(Debug)]
pub(super) struct ProgressState {
    /// Bytes that the socket has taken.
    pub(super) written: u64,
    /// Requests whose response's body has not come to its end.
    open: usize,
    has_served: bool,
    last_progress: Instant,
    next: u64,
    /// Responses that somebody wants to know of, in the order of their requests.
    pub(super) exchanges: BTreeMap<u64, Exchange>,
    pub(super) is_closed: bool,
}

impl ConnectionProgress {
    pub(crate) fn new() -> Self {
        let state = ProgressState {
            written: 0,
            open: 0,
            has_served: false,
            last_progress: clock::now(),
            next: 0,
            exchanges: BTreeMap::new(),
            is_closed: false,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came, which is answered from now on. Gives a number to end it with.
    pub(crate) fn begin(&self, began: Instant) -> u64 {
        self.begin_with(began, |_| None)
    }

    /// The same for somebody who wants to know of it: `exchange` is made of the bytes that the socket has
    /// taken before.
    pub(super) fn begin_with(
        &self,
        began: Instant,
        exchange: impl FnOnce(&mut ProgressState) -> Option<Exchange>,
    ) -> u64 {
        let mut state = self.state();
        state.open += 1;
        state.has_served = true;
        state.last_progress = began;
        state.next += 1;
        let id = state.next;
        if let Some(exchange) = exchange(&mut state) {
            state.exchanges.insert(id, exchange);
            // Who watches asks the kernel from now on, while the response is written.
            self.changed.notify_one();
        }
        id
    }

    /// The protocol will take no more than `taken` bytes of the body.
    pub(crate) fn end(&self, id: u64, taken: u64) {
        let mut state = self.state();
        state.open -= 1;
        state.last_progress = clock::now();
        if let Some(exchange) = state.exchanges.get_mut(&id) {
            exchange.taken = Some(taken);
            self.changed.notify_one();
        }
    }

    /// The socket has taken `bytes`.
    pub(crate) fn wrote(&self, bytes: usize) {
        let now = clock::now();
        let mut state = self.state();
        state.written += bytes as u64;
        state.last_progress = now;
        for exchange in state.exchanges.values_mut() {
            exchange.first.get_or_insert(now);
        }
    }

    /// The socket has taken all that was there for it. HTTP/2 keeps bodies back for its own flow control;
    /// what is longer than all that was written has not left.
    pub(crate) fn flushed(&self) {
        let mut state = self.state();
        let written = state.written;
        for exchange in state.exchanges.values_mut() {
            let Some(taken) = exchange.taken.filter(|_| exchange.end.is_none()) else { continue };
            if written - exchange.from >= taken {
                exchange.end = Some(written);
            }
        }
    }

    /// Whether all of some response was written that somebody wants to know the end of.
    pub(crate) fn settles(&self) -> bool {
        self.state().exchanges.values().any(|exchange| exchange.end.is_some())
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        self.flushed();
        let now = clock::now();
        let mut state = self.state();
        (state.is_closed, state.last_progress) = (true, now);
        drop(state);
        self.changed.notify_one();
    }

    /// When it was closed, or did something at last.
    pub(super) fn closed(&self) -> Instant {
        self.state().last_progress
    }

    /// When it has done nothing for too long, unless it does something before.
    pub(crate) fn deadline(&self, timeouts: &Timeouts) -> Instant {
        let state = self.state();
        state.last_progress + timeouts.span(state.open > 0, state.has_served)
    }

    /// Whether a request is being answered.
    pub(crate) fn is_answering(&self) -> bool {
        self.state().open > 0
    }
}
