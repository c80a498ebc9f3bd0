//! The application on a client's workers.

use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::{ClientConfig, ConnectionError, Dir, Side, StreamId, VarInt};
use tokio::sync::{mpsc, oneshot};
use uncork_quic::Handle;
use uncork_quic_io::{Arrival, ConnectionContext, Host, Mailer, Verdict};

use super::connection::Link;
use super::error::ClientError;
use super::request;
use crate::session::{Session, SessionBounds};

/// The command for a worker: open a connection.
pub(super) struct Command(pub(super) Box<ConnectRequest>);

/// The parameters of a new connection.
pub(super) struct ConnectRequest {
    pub(super) remote: SocketAddr,
    pub(super) server_name: String,
    pub(super) config: (Handle, ClientConfig),
    pub(super) reply: Reply,
}

pub(super) type Reply = oneshot::Sender<Result<Link, ClientError>>;

pub(super) struct App {
    mailer: Mailer<Command>,
    head_bytes: u64,
}

/// Per-connection state.
pub(super) struct State {
    session: Session,
    begun: Instant,
    /// Receives the connection once it is established.
    reply: Option<Reply>,
}

impl App {
    pub(super) fn new(mailer: Mailer<Command>, head_bytes: u64) -> Self {
        Self { mailer, head_bytes }
    }
}

impl uncork_quic_io::App for App {
    type State = State;
    type Command = Command;

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<State> {
        Verdict::Ignore
    }

    fn command(&mut self, host: &mut Host<'_, State>, Command(connect): Command) {
        let ConnectRequest { remote, server_name, config, reply } = *connect;
        // The client requested its responses, so their length is not limited.
        let bounds = SessionBounds { request: u64::MAX, control: u64::MAX };
        let session = Session::new(self.mailer.clone(), Side::Client, bounds, host.now);
        let state = State { session, begun: host.now, reply: None };
        match host.connect(config, remote, &server_name, state) {
            Ok(key) => {
                if let Some(context) = host.context(key) {
                    context.state.reply = Some(reply);
                }
            }
            Err(error) => {
                let _receiver_may_be_gone =
                    reply.send(Err(ClientError::Connect(error.to_string())));
            }
        }
    }

    fn connected(&mut self, context: &mut ConnectionContext<'_, State>) {
        let State { session, begun, reply } = &mut *context.state;
        let Some(reply) = reply.take() else { return };
        let (asks, asked) = mpsc::unbounded_channel();
        let handshake = context.now.saturating_duration_since(*begun);
        let scope = session.scope();
        scope.spawn(request::talk(session.transport(), scope.clone(), asked, self.head_bytes));
        // If the receiver is gone, this drops the last `Link` and so closes the connection.
        let _ = reply.send(Ok(Link { asks, cc: context.cc.clone(), handshake }));
    }

    fn opened(&mut self, context: &mut ConnectionContext<'_, State>, dir: Dir) {
        context.state.session.opened(context.connection, dir);
    }

    fn readable(&mut self, context: &mut ConnectionContext<'_, State>, stream: StreamId) {
        context.state.session.readable(stream);
    }

    fn writable(&mut self, context: &mut ConnectionContext<'_, State>, stream: StreamId) {
        context.state.session.writable(stream);
    }

    fn finished(&mut self, context: &mut ConnectionContext<'_, State>, stream: StreamId) {
        context.state.session.finished(stream);
    }

    fn stopped(
        &mut self,
        context: &mut ConnectionContext<'_, State>,
        stream: StreamId,
        code: VarInt,
    ) {
        context.state.session.stopped(context.connection, stream, code);
    }

    fn settle(&mut self, context: &mut ConnectionContext<'_, State>) {
        context.state.session.settle(context.now, context.key, context.connection);
    }

    fn closed(&mut self, context: &mut ConnectionContext<'_, State>, reason: &ConnectionError) {
        if let Some(reply) = context.state.reply.take() {
            let _receiver_may_be_gone = reply.send(Err(ClientError::Lost(reason.to_string())));
        }
        context.state.session.closed(context.now, context.key, reason);
    }
}
