//! What a connection's socket has taken, and for which responses.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::exchange::Exchange;
use crate::clock;

/// How long a connection may do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// From accepting it to the end of its first request's head.
    pub(crate) head: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
    /// While the client takes nothing of a response.
    pub(crate) stall: Duration,
}

impl Patience {
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
pub(crate) struct Wire {
    ledger: Mutex<Ledger>,
    /// A response's body has come to its end, or the connection has.
    pub(super) changed: Notify,
}

#[derive(Debug)]
pub(super) struct Ledger {
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

impl Wire {
    pub(crate) fn new() -> Self {
        let ledger = Ledger {
            written: 0,
            open: 0,
            has_served: false,
            last_progress: clock::now(),
            next: 0,
            exchanges: BTreeMap::new(),
            is_closed: false,
        };
        Self { ledger: Mutex::new(ledger), changed: Notify::new() }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
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
        exchange: impl FnOnce(&mut Ledger) -> Option<Exchange>,
    ) -> u64 {
        let mut ledger = self.ledger();
        ledger.open += 1;
        ledger.has_served = true;
        ledger.last_progress = began;
        ledger.next += 1;
        let id = ledger.next;
        if let Some(exchange) = exchange(&mut ledger) {
            ledger.exchanges.insert(id, exchange);
            // Who watches asks the kernel from now on, while the response is written.
            self.changed.notify_one();
        }
        id
    }

    /// The protocol will take no more than `taken` bytes of the body.
    pub(crate) fn end(&self, id: u64, taken: u64) {
        let mut ledger = self.ledger();
        ledger.open -= 1;
        ledger.last_progress = clock::now();
        if let Some(exchange) = ledger.exchanges.get_mut(&id) {
            exchange.taken = Some(taken);
            self.changed.notify_one();
        }
    }

    /// The socket has taken `bytes`.
    pub(crate) fn wrote(&self, bytes: usize) {
        let now = clock::now();
        let mut ledger = self.ledger();
        ledger.written += bytes as u64;
        ledger.last_progress = now;
        for exchange in ledger.exchanges.values_mut() {
            exchange.first.get_or_insert(now);
        }
    }

    /// The socket has taken all that was there for it. HTTP/2 keeps bodies back for its own flow control;
    /// what is longer than all that was written has not left.
    pub(crate) fn flushed(&self) {
        let mut ledger = self.ledger();
        let written = ledger.written;
        for exchange in ledger.exchanges.values_mut() {
            let Some(taken) = exchange.taken.filter(|_| exchange.end.is_none()) else { continue };
            if written - exchange.from >= taken {
                exchange.end = Some(written);
            }
        }
    }

    /// Whether all of some response was written that somebody wants to know the end of.
    pub(crate) fn settles(&self) -> bool {
        self.ledger().exchanges.values().any(|exchange| exchange.end.is_some())
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        self.flushed();
        let now = clock::now();
        let mut ledger = self.ledger();
        (ledger.is_closed, ledger.last_progress) = (true, now);
        drop(ledger);
        self.changed.notify_one();
    }

    /// When it was closed, or did something at last.
    pub(super) fn closed(&self) -> Instant {
        self.ledger().last_progress
    }

    /// When it has done nothing for too long, unless it does something before.
    pub(crate) fn deadline(&self, patience: &Patience) -> Instant {
        let ledger = self.ledger();
        ledger.last_progress + patience.span(ledger.open > 0, ledger.has_served)
    }

    /// Whether a request is being answered.
    pub(crate) fn is_answering(&self) -> bool {
        self.ledger().open > 0
    }
}
