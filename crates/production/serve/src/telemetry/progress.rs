//! The bytes that a connection's socket has accepted, and the responses that they belong to.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::exchange::Exchange;
use super::position::StreamPosition;
use crate::admission::Claim;
use crate::clock;
use crate::tcp::{FrameEvent, FrameScanner};

/// Timeouts for connections without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// From acceptance to the end of the first request's head.
    pub(crate) head: Duration,
    /// Between requests.
    pub(crate) idle: Duration,
    /// While the client accepts nothing of a response.
    pub(crate) stall: Duration,
}

impl Timeouts {
    /// The timeout in effect.
    pub(crate) fn span(&self, is_answering: bool, has_served: bool) -> Duration {
        match (is_answering, has_served) {
            (false, false) => self.head,
            (false, true) => self.idle,
            (true, _) => self.stall,
        }
    }
}

/// The progress of a connection: shared by the writer, the timeouts and the observer.
#[derive(Debug)]
pub(crate) struct ConnectionProgress {
    claim: Arc<Claim>,
    state: Mutex<ProgressState>,
}

#[derive(Debug)]
pub(super) struct ProgressState {
    /// Bytes that the socket has accepted.
    pub(super) written: u64,
    /// Where the HTTP library writes next.
    position: Option<StreamPosition>,
    /// Bytes of bodies that have arrived, by the records so far.
    pub(super) delivered: u64,
    /// Responses with an unfinished body.
    open: usize,
    has_served: bool,
    /// Whether response data was passed on since the socket last accepted everything.
    is_pending: bool,
    last_progress: Instant,
    next: u64,
    /// Observed responses, in the order of their requests. Boxed: a node of the map has room for eleven.
    pub(super) exchanges: BTreeMap<u64, Box<Exchange>>,
    pub(super) is_closed: bool,
}

impl ProgressState {
    fn is_answering(&self) -> bool {
        self.open > 0 || self.is_pending
    }

    /// Whether responses follow each other in the stream (HTTP/1.1).
    pub(super) fn is_in_order(&self) -> bool {
        self.position.is_some_and(StreamPosition::is_in_order)
    }

    fn on_stream(&mut self, stream: u32) -> Option<&mut Exchange> {
        self.exchanges.values_mut().map(|it| &mut **it).find(|it| it.stream == Some(stream))
    }

    /// Where the next response begins: the socket may not have accepted the earlier ones.
    pub(super) fn position(&self) -> Option<u64> {
        self.position.map(StreamPosition::get)
    }

    /// Finds the ends of responses in what the socket has accepted, which is everything up to `flushed`.
    fn find_ends(&mut self, flushed: Option<u64>) {
        self.is_pending = false;
        let (written, now) = (self.written, clock::now());
        for exchange in self.exchanges.values_mut() {
            exchange.find_end(written, flushed, now);
        }
    }
}

impl ConnectionProgress {
    pub(crate) fn new(claim: Arc<Claim>) -> Self {
        let state = ProgressState {
            written: 0,
            position: None,
            delivered: 0,
            open: 0,
            has_served: false,
            is_pending: false,
            last_progress: clock::now(),
            next: 0,
            exchanges: BTreeMap::new(),
            is_closed: false,
        };
        Self { claim, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a response. The result is the argument for [`Self::end`].
    pub(crate) fn begin(&self, began: Instant) -> u64 {
        self.begin_with(began, |_| None)
    }

    /// Like [`Self::begin`], for an observed response created by `exchange`.
    pub(super) fn begin_with(
        &self,
        began: Instant,
        exchange: impl FnOnce(&mut ProgressState) -> Option<Exchange>,
    ) -> u64 {
        let mut state = self.state();
        state.open += 1;
        state.has_served = true;
        state.is_pending = true;
        self.progressed(&mut state, began);
        state.next += 1;
        let id = state.next;
        if let Some(exchange) = exchange(&mut state) {
            state.exchanges.insert(id, Box::new(exchange));
        }
        id
    }

    /// More of a body was passed on, as far as the client's windows allow.
    pub(crate) fn took(&self) {
        let now = clock::now();
        let mut state = self.state();
        state.is_pending = true;
        self.progressed(&mut state, now);
    }

    /// Ends a response: the protocol has taken `taken` bytes of the body and takes no more.
    pub(crate) fn end(&self, id: u64, taken: u64) {
        let mut state = self.state();
        state.open -= 1;
        self.progressed(&mut state, clock::now());
        if let Some(exchange) = state.exchanges.get_mut(&id) {
            exchange.taken = Some(taken);
        }
    }

    /// The socket has accepted `bytes`. This is progress only if response data is among them: a
    /// client that blocks its responses may keep sending PINGs, which are answered.
    pub(crate) fn wrote(&self, bytes: usize) {
        let now = clock::now();
        let mut state = self.state();
        state.written += bytes as u64;
        if state.is_pending {
            self.progressed(&mut state, now);
        }
        let (written, position) = (state.written, state.position());
        for exchange in state.exchanges.values_mut() {
            exchange.wrote(written, position, now);
        }
    }

    /// The connection is HTTP/1.1. From here on, [`Self::passed`] and [`Self::passed_all`] report its output.
    pub(crate) fn becomes_http1(&self, is_tls: bool) {
        let mut state = self.state();
        state.position = Some(StreamPosition::new(state.written, is_tls).in_order());
    }

    /// The connection is HTTP/2. From here on, [`Self::passed_frames`] reports its output, and [`Self::received_frames`] its input.
    pub(crate) fn becomes_http2(&self, is_tls: bool) {
        let mut state = self.state();
        state.position = Some(StreamPosition::new(state.written, is_tls));
    }

    /// The response is on this stream of HTTP/2.
    pub(crate) fn is_on(&self, id: u64, stream: u32) {
        if let Some(exchange) = self.state().exchanges.get_mut(&id) {
            exchange.stream = Some(stream);
        }
    }

    /// The response's stream was reset.
    pub(crate) fn is_reset(&self, id: u64) {
        if let Some(exchange) = self.state().exchanges.get_mut(&id) {
            exchange.is_reset = true;
        }
    }

    /// The HTTP/2 library has passed on the first `taken` bytes of these pieces of frames.
    pub(crate) fn passed_frames(
        &self,
        scanner: &mut FrameScanner,
        pieces: &[IoSlice<'_>],
        taken: usize,
    ) {
        let mut state = self.state();
        let Some(mut position) = state.position else { return };
        let mut left = taken;
        for piece in pieces {
            let bytes = &piece[..piece.len().min(left)];
            left -= bytes.len();
            scanner.scan(bytes, |count, event| {
                position.pass(count as u64);
                let Some((stream, event)) = event else { return };
                let Some(exchange) = state.on_stream(stream) else { return };
                match event {
                    FrameEvent::Data(bytes) => exchange.sent += bytes,
                    FrameEvent::End => exchange.last_byte = Some(position.get()),
                    FrameEvent::Reset => exchange.is_reset = true,
                }
            });
        }
        state.position = Some(position);
    }

    /// The client has sent these bytes of frames.
    pub(crate) fn received_frames(&self, scanner: &mut FrameScanner, bytes: &[u8]) {
        scanner.scan(bytes, |_, event| {
            if let Some((stream, FrameEvent::Reset)) = event
                && let Some(exchange) = self.state().on_stream(stream)
            {
                exchange.is_reset = true;
            }
        });
    }

    /// The HTTP/1.1 library has passed on `bytes`, which may still wait for the socket.
    pub(crate) fn passed(&self, bytes: usize) {
        if let Some(position) = &mut self.state().position {
            position.pass(bytes as u64);
        }
    }

    /// The HTTP/1.1 library has passed on all that it has: responses that have ended are complete here.
    pub(crate) fn passed_all(&self) {
        let mut state = self.state();
        let Some(position) = state.position else { return };
        for exchange in state.exchanges.values_mut().filter(|it| it.taken.is_some()) {
            exchange.last_byte.get_or_insert(position.get());
        }
    }

    /// The socket has accepted everything offered. HTTP/2 withholds bodies for flow control, so a
    /// body longer than the bytes written has not been sent completely.
    pub(crate) fn flushed(&self) {
        let mut state = self.state();
        let (written, before) = (state.written, state.position());
        if let Some(position) = &mut state.position {
            position.settle(written);
        }
        state.find_ends(before);
    }

    /// Nothing more is written. The socket may not have accepted everything.
    pub(crate) fn stops_writing(&self) {
        self.state().find_ends(None);
    }

    /// Whether an observed response is written and awaits acknowledgements.
    pub(crate) fn settles(&self) -> bool {
        self.state().exchanges.values().any(|exchange| exchange.end.is_some())
    }

    /// Closes the connection: nothing more is written.
    pub(crate) fn close(&self) {
        self.stops_writing();
        let now = clock::now();
        let mut state = self.state();
        (state.is_closed, state.last_progress) = (true, now);
    }

    fn progressed(&self, state: &mut ProgressState, now: Instant) {
        state.last_progress = now;
        self.claim.progressed(now);
    }

    /// The connection's place in the admission table.
    pub(crate) fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    /// When it closed, or last made progress.
    pub(super) fn closed(&self) -> Instant {
        self.state().last_progress
    }

    /// When the timeout expires, unless it makes progress before.
    pub(crate) fn deadline(&self, timeouts: &Timeouts) -> Instant {
        let state = self.state();
        state.last_progress + timeouts.span(state.is_answering(), state.has_served)
    }

    /// When it last made progress.
    pub(crate) fn last_progress(&self) -> Instant {
        self.state().last_progress
    }

    /// Whether a request is being answered, or the socket has not accepted all of a response.
    pub(crate) fn is_answering(&self) -> bool {
        self.state().is_answering()
    }
}
