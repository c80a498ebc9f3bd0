//! The events of QUIC connections.

use std::sync::Arc;

use noq_proto::{ConnectionError, Dir, Side, StreamId, VarInt};
use uncork_h3::{Session, SessionBounds};
use uncork_quic_io::{Arrival, ConnectionContext, Mailer, Verdict};

use super::connection::{H3Connection, talk};
use super::exchange::ExchangeOutcome;
use super::listener::QuicContext;
use super::steering::QuicSteering;
use crate::admission::Transport;
use crate::clock;
use crate::telemetry::Labels;

/// Above this many concurrent handshakes per worker, clients must validate their addresses (Retry,
/// RFC 9000 §8.1.2), which stops spoofed sources.
const TRUSTED_HANDSHAKES: usize = 100;
/// Limit of the data on a client's control stream over the connection's life, in bytes.
const CONTROL: u64 = 1 << 20;

/// A worker of a listener.
pub(super) struct App {
    context: QuicContext,
    mailer: Mailer<()>,
    /// Number of connections above which idle ones are closed.
    room: usize,
    accepted: u64,
}

/// The state of a connection.
pub(super) struct ConnectionState {
    session: Session,
    talk: H3Connection,
}

impl App {
    pub(super) fn new(context: QuicContext, room: usize, mailer: Mailer<()>) -> Self {
        Self { context, mailer, room, accepted: 0 }
    }

    /// A different seed for each connection.
    fn seed(&mut self) -> u64 {
        self.accepted += 1;
        ((self.mailer.worker() as u64) << 48) + self.accepted
    }
}

impl uncork_quic_io::App for App {
    type State = ConnectionState;
    type Command = ();

    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<ConnectionState> {
        let is_full = arrival.load.connections >= self.room;
        if !arrival.is_validated() && (is_full || arrival.load.handshaking >= TRUSTED_HANDSHAKES) {
            return Verdict::Retry;
        }
        if is_full {
            self.context.shared.admission.make_room(Transport::Quic, arrival.now);
        }
        let seed = self.seed();
        let QuicContext { shared, listener, port, chooser, server, .. } = &self.context;
        let client = arrival.remote().ip();
        let choice = chooser.accept(client, clock::unix());
        let number = (shared.next_connection(), shared.epoch);
        let labels = Labels::new(number, listener, client, choice.origin());
        let steering = Arc::new(QuicSteering::begin(choice, &shared.resume, client));
        let asked = Arc::clone(&steering);
        let (cc, config) =
            server.accept(steering.sending(), seed, move |sni| asked.server_name(sni));
        let qlog = shared.qlog.as_ref();
        if let Some(watch) = qlog.and_then(|it| it.watch(number.0, arrival.now, shared.epoch)) {
            cc.watch(watch);
        }
        // Heads that are too large get an error response, up to this size.
        let request = u64::from(shared.limits.head_bytes) * 4 + 64 * 1024;
        let bounds = SessionBounds { request, control: CONTROL };
        let session = Session::new(self.mailer.clone(), Side::Server, bounds, arrival.now);
        let shared = Arc::clone(shared);
        let known = (shared, labels, (client, *port), cc.clone(), steering);
        let talk = H3Connection::new(known, session.scope(), arrival.now);
        Verdict::Accept { config, cc, state: ConnectionState { session, talk } }
    }

    fn connected(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        let ConnectionState { session, talk: visit } = &mut *turn.state;
        let claim = self.context.shared.admission.admit(visit.client, Transport::Quic, turn.now);
        let Some(claim) = claim else { return visit.must_end() };
        visit.take_place(Arc::clone(&claim));
        if let Some(choice) = visit.steering.connected(turn.now) {
            visit.cc.choose(choice);
        }
        let ended = visit.clone();
        session.scope().spawn(async move {
            claim.ended().await;
            ended.must_end();
        });
        visit.open_account();
        session.scope().spawn(talk(session.transport(), visit.clone()));
    }

    fn opened(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>, dir: Dir) {
        turn.state.session.opened(turn.connection, dir);
    }

    fn readable(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>, stream: StreamId) {
        turn.state.session.readable(stream);
    }

    fn writable(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>, stream: StreamId) {
        turn.state.session.writable(stream);
    }

    fn finished(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>, stream: StreamId) {
        turn.state.session.finished(stream);
        turn.state.talk.note_sent(turn.now, turn.connection);
        turn.state.talk.ends(turn.now, stream.into(), ExchangeOutcome::Whole);
    }

    fn stopped(
        &mut self,
        turn: &mut ConnectionContext<'_, ConnectionState>,
        stream: StreamId,
        code: VarInt,
    ) {
        turn.state.session.stopped(turn.connection, stream, code);
        turn.state.talk.note_sent(turn.now, turn.connection);
        turn.state.talk.ends(turn.now, stream.into(), ExchangeOutcome::BrokenOff);
    }

    fn timer(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        turn.state.talk.clone().look(turn);
    }

    fn settle(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        // Bodies use threads of the runtime to read data that is not in memory.
        let _context = self.context.runtime.enter();
        turn.state.talk.note_sent(turn.now, turn.connection);
        turn.state.session.settle(turn.now, turn.key, turn.connection);
        turn.state.talk.clone().settle(turn);
    }

    fn shutting_down(&mut self, turn: &mut ConnectionContext<'_, ConnectionState>) {
        turn.state.talk.leave();
    }

    fn closed(
        &mut self,
        turn: &mut ConnectionContext<'_, ConnectionState>,
        reason: &ConnectionError,
    ) {
        let _context = self.context.runtime.enter();
        turn.state.session.closed(turn.now, turn.key, reason);
        turn.state.talk.note_sent(turn.now, turn.connection);
        turn.state.talk.over(reason);
    }
}
