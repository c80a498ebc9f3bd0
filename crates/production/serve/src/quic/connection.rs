//! One QUIC connection, from its acceptance to its end.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use noq_proto::{Connection, ConnectionError, PathId, TransportErrorCode, VarInt};
use uncork_h3::{SessionScope, Transport};
use uncork_quic::Handle;
use uncork_quic_io::ConnectionContext;

use super::account::AddressAccount;
use super::answer::answer;
use super::app::ConnectionState;
use super::exchange::ExchangeOutcome;
use super::listener::{EXCESSIVE_LOAD, NO_ERROR};
use super::responses::ResponseTable;
use super::steering::QuicSteering;
use crate::admission::Claim;
use crate::shared::Shared;
use crate::telemetry::Labels;
use crate::timing::Timing;

/// The state that the tasks of a connection share with its event handlers.
#[derive(Clone)]
pub(super) struct H3Connection(Rc<Inner>);

pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) scope: SessionScope,
    pub(super) cc: Handle,
    pub(super) steering: Arc<QuicSteering>,
    pub(super) labels: Labels,
    pub(super) client: IpAddr,
    /// The server's.
    pub(super) port: u16,
    responses: RefCell<ResponseTable>,
    leaving: Cell<GoawayState>,
    /// When the connection was asked to end.
    left: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
    pub(super) account: RefCell<AddressAccount>,
    pub(super) timing: RefCell<Timing>,
    pub(super) packets: Cell<u64>,
    /// The turn in which they were counted.
    counted_at: Cell<Option<Instant>>,
    /// Its place in the admission table, once the client's address is validated.
    claim: OnceCell<Arc<Claim>>,
    must_end: Cell<bool>,
    wake_at: Cell<Option<Instant>>,
}

/// Progress of a graceful end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoawayState {
    No,
    /// A GOAWAY is due.
    Asked,
    /// A GOAWAY was sent.
    Sent,
}

impl std::ops::Deref for H3Connection {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Accepts requests until the connection ends. After an error, `h3` has closed the connection with
/// the error's code.
pub(super) async fn talk(transport: Transport, talk: H3Connection) {
    let mut builder = h3::server::builder();
    let head_bytes = talk.shared.limits.head_bytes;
    builder.max_field_section_size(head_bytes.into()).send_grease(false);
    let Ok(mut connection) = builder.build(transport).await else { return };
    // A GOAWAY before the first request would reject it.
    let mut has_accepted = false;
    loop {
        let next = {
            let mut accept = pin!(connection.accept());
            poll_fn(|context| match accept.as_mut().poll(context) {
                Poll::Ready(next) => Poll::Ready(Some(next)),
                Poll::Pending if !has_accepted => Poll::Pending,
                Poll::Pending => talk.poll_leaving(context).map(|()| None),
            })
            .await
        };
        match next {
            Some(Ok(Some(request))) => {
                has_accepted = true;
                talk.scope.spawn(answer(request, talk.clone()));
            }
            Some(Ok(None) | Err(_)) => return,
            None => {
                talk.leaving.set(GoawayState::Sent);
                // The client sends no more requests. Requests in flight are still answered (RFC
                // 9114 §5.2).
                if connection.shutdown(usize::MAX).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Whether the client closed the connection. Otherwise it is unreachable, or the server closed it.
fn is_by_client(reason: &ConnectionError) -> bool {
    matches!(reason, ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_))
}

/// Whether the client closed the connection without an error (RFC 9114 §5.3). Libraries close with code 0
/// unless their application names another. HTTP/3 has no error with that code.
fn is_in_order(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::ApplicationClosed(close) => {
            [NO_ERROR, VarInt::from_u32(0)].contains(&close.error_code)
        }
        ConnectionError::ConnectionClosed(close) => {
            close.error_code == TransportErrorCode::NO_ERROR
        }
        _ => false,
    }
}

impl H3Connection {
    pub(super) fn new(
        (shared, labels, (client, port), cc, steering): (
            Arc<Shared>,
            Labels,
            (IpAddr, u16),
            Handle,
            Arc<QuicSteering>,
        ),
        scope: SessionScope,
        now: Instant,
    ) -> Self {
        Self(Rc::new(Inner {
            labels,
            client,
            port,
            shared,
            scope,
            cc,
            steering,
            responses: RefCell::new(ResponseTable::new(now)),
            leaving: Cell::new(GoawayState::No),
            left: Cell::new(None),
            waker: RefCell::new(None),
            account: RefCell::default(),
            timing: RefCell::default(),
            packets: Cell::new(0),
            counted_at: Cell::new(None),
            claim: OnceCell::new(),
            must_end: Cell::new(false),
            wake_at: Cell::new(None),
        }))
    }
}

impl Inner {
    pub(super) fn responses(&self) -> std::cell::RefMut<'_, ResponseTable> {
        self.responses.borrow_mut()
    }

    /// Updates the number of packets sent. Nothing is sent during a turn, so once is enough for its events.
    pub(super) fn note_sent(&self, now: Instant, connection: &mut Connection) {
        if self.shared.has_telemetry()
            && self.counted_at.replace(Some(now)) != Some(now)
            && let Some(stats) = connection.path_stats(PathId::ZERO)
        {
            self.packets.set(stats.sent_packets);
        }
    }

    /// A response has ended: the client has acknowledged all of it, or the rest will not be sent.
    pub(super) fn ends(&self, now: Instant, stream: u64, outcome: ExchangeOutcome) {
        self.watch(now);
        let exchange = self.responses().remove(now, stream);
        if let Some(exchange) = exchange {
            exchange.end(now, outcome, self);
            self.watch(now);
        }
    }

    /// The connection is closed. If the client closed it, it may have received whole responses without having
    /// acknowledged their last packets.
    pub(super) fn over(&self, reason: &ConnectionError) {
        let now = self.scope.now();
        self.watch(now);
        let seen = self.cc.observe().filter(|_| is_by_client(reason));
        let exchanges = self.responses().take();
        for exchange in exchanges {
            let at_close = |seen| match exchange.outcome_at_close(now, seen) {
                // A client that has all of it may fail for another reason.
                ExchangeOutcome::Whole if !is_in_order(reason) => ExchangeOutcome::Unknown,
                outcome => outcome,
            };
            let outcome = seen.as_ref().map_or(ExchangeOutcome::BrokenOff, at_close);
            exchange.end(now, outcome, self);
        }
        self.close_account(now);
        if let Some(seen) = self.cc.observe() {
            self.steering.end(now, &seen);
        }
    }

    /// Starts a graceful end of the connection.
    pub(super) fn leave(&self) {
        if self.leaving.get() == GoawayState::No {
            self.leaving.set(GoawayState::Asked);
            self.left.set(Some(self.scope.now()));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    fn poll_leaving(&self, context: &Context<'_>) -> Poll<()> {
        if self.leaving.get() == GoawayState::Asked {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }

    /// Checks the timeouts.
    pub(super) fn look(&self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        let acked = turn.cc.observe().map_or(0, |observation| observation.acked_bytes);
        let timeouts = self.shared.timeouts();
        let is_over = {
            let mut responses = self.responses();
            responses.note_progress(turn.now, acked);
            turn.now >= responses.deadline(&timeouts)
        };
        self.wake_at.set(None);
        self.watch(turn.now);
        if is_over {
            turn.connection.close(turn.now, NO_ERROR, "nothing happens".into());
        }
    }

    /// Sets the connection's place in the admission table.
    pub(super) fn take_place(&self, claim: Arc<Claim>) {
        let _once = self.claim.set(claim);
    }

    pub(super) fn claim(&self) -> Option<&Arc<Claim>> {
        self.claim.get()
    }

    /// Closes the connection at the end of its turn, to make room for others.
    pub(super) fn must_end(&self) {
        self.must_end.set(true);
    }

    /// Ends a turn: updates accounting and timers.
    pub(super) fn settle(&self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        self.watch(turn.now);
        self.settle_account();
        if self.must_end.get() {
            turn.connection.close(turn.now, EXCESSIVE_LOAD, "too many connections".into());
            return;
        }
        let responses = self.responses();
        if let Some(claim) = self.claim() {
            claim.progressed(responses.last_progress());
        }
        let mut wanted = responses.next_look(turn.now, &self.shared.timeouts());
        if let Some(left) = self.left.get().filter(|_| responses.is_idle()) {
            let end = responses.last_progress().max(left) + self.shared.linger();
            if turn.now >= end {
                turn.connection.close(turn.now, NO_ERROR, "the server ends".into());
                return;
            }
            wanted = wanted.min(end);
        }
        let wanted = Some(wanted);
        // An early wake-up costs only a check. The timer moves to an earlier time only if
        // something has just begun.
        if self.wake_at.get().is_none_or(|set| wanted.is_some_and(|wanted| wanted < set)) {
            self.wake_at.set(wanted);
            turn.wake_at(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use noq_proto::ApplicationClose;

    use super::*;

    #[test]
    fn a_close_without_an_error_is_in_order() {
        let closed = |code| {
            let close = ApplicationClose { error_code: VarInt::from_u32(code), reason: "".into() };
            is_in_order(&ConnectionError::ApplicationClosed(close))
        };
        assert!(closed(0x100), "H3_NO_ERROR");
        assert!(closed(0), "the default of libraries");
        assert!(!closed(0x102), "H3_INTERNAL_ERROR");
        assert!(!closed(0x10c), "H3_REQUEST_CANCELLED");
        assert!(!is_in_order(&ConnectionError::TimedOut));
    }
}
