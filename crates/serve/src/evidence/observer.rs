//! Watching one connection until the client has all of what it asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;
use uncork_diag::{Connection, TcpInfo, TcpState};

use super::exchange::Ending;
use super::probe::Probe;
use super::records::Records;
use super::wire::Wire;
use crate::clock;

/// How often the kernel is asked while a response is written.
const WRITING: Duration = Duration::from_millis(100);
/// How often it is asked, at most and at least, when only acknowledgements are awaited.
const SETTLING: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// How long acknowledgements are awaited on a closed connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all records of a connection say.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// The connection's number.
    pub(crate) connection: u32,
    /// The beginning of time: when the server started.
    pub(crate) epoch: Instant,
}

/// Tells of one connection's responses.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) wire: Arc<Wire>,
    pub(crate) probe: Arc<Probe>,
    pub(crate) records: Records,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) labels: Labels,
}

/// What the kernel knows of a connection now.
struct Look {
    at: Instant,
    connection: Option<Connection>,
}

impl Observer {
    /// Watches until the connection is closed and all its responses are told of; no longer than until
    /// `stop` says, with what is known by then.
    pub(crate) async fn watch(&self, stop: watch::Receiver<Option<Instant>>) {
        let mut closed_at = None;
        loop {
            let (is_idle, settles, is_closed) = self.state();
            if is_idle && is_closed {
                return;
            }
            if is_idle {
                self.wire.changed.notified().await;
                continue;
            }
            let wait = if settles { self.settling() } else { WRITING };
            let _changed = timeout(wait, self.wire.changed.notified()).await;
            let now = clock::now();
            let closed_at = closed_at.get_or_insert(now);
            if !is_closed {
                *closed_at = now;
            }
            let stopped = stop.borrow().is_some_and(|deadline| now >= deadline);
            self.look(stopped || *closed_at + PATIENCE <= now);
        }
    }

    /// Whether there is nothing to tell of, whether a response only awaits acknowledgements, and whether
    /// the connection is closed.
    fn state(&self) -> (bool, bool, bool) {
        let ledger = self.wire.ledger();
        let settles = ledger.exchanges.values().any(|exchange| exchange.taken.is_some());
        (ledger.exchanges.is_empty(), settles, ledger.is_closed)
    }

    /// Half of a round trip.
    fn settling(&self) -> Duration {
        let ledger = self.wire.ledger();
        let last = ledger.exchanges.values().next_back();
        let rtt = last.map_or(0, |exchange| exchange.last.rtt.as_nanos());
        Duration::from_nanos(rtt / 2).clamp(SETTLING.0, SETTLING.1)
    }

    /// Asks the kernel, and tells of those responses that have come to their end; of all if it is the
    /// `last` time. Gives what the kernel knows, for a response that begins now: with its request came the
    /// acknowledgement of those before.
    pub(crate) fn look(&self, last: bool) -> Option<TcpInfo> {
        let look = Look { at: clock::now(), connection: self.probe.look(self.local, self.peer) };
        let mut ledger = self.wire.ledger();
        let written = ledger.written;
        let mut told = Vec::new();
        for (id, exchange) in &mut ledger.exchanges {
            if let Some(info) = look.info() {
                exchange.note(&info);
            }
            let acknowledged = exchange.end.and_then(|end| look.acknowledged(end, written));
            let is_over = exchange.is_broken_off() || look.is_gone();
            let ending = match acknowledged.filter(|_| !exchange.is_broken_off()) {
                Some(at) => Ending::Acknowledged(at),
                None if last || (is_over && exchange.taken.is_some()) => Ending::BrokenOff,
                None => continue,
            };
            self.records.leave(exchange.record(ending, &self.labels));
            told.push(*id);
        }
        for id in told {
            ledger.exchanges.remove(&id);
        }
        look.info()
    }
}

impl Look {
    fn info(&self) -> Option<TcpInfo> {
        self.connection.and_then(|connection| connection.info)
    }

    fn is_gone(&self) -> bool {
        self.connection.is_none()
    }

    /// When the client has acknowledged the first `end` bytes, of `written`. If it is all of them, the
    /// last acknowledgement that came was for them; else it is known no better than by when.
    fn acknowledged(&self, end: u64, written: u64) -> Option<Instant> {
        let connection = self.connection?;
        // Our FIN is behind all bytes, and acknowledged.
        if matches!(connection.state, TcpState::TimeWait | TcpState::FinWait2) {
            return Some(self.at);
        }
        let info = connection.info?;
        let acked = info.bytes_acked?;
        let age = Duration::from_nanos(info.last_ack_recv.as_nanos());
        let at = if acked >= written { self.at.checked_sub(age)? } else { self.at };
        (acked >= end).then_some(at)
    }
}
