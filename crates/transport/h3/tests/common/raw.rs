//! A client that sends arbitrary bytes, valid HTTP/3 or not.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use noq_proto::{ConnectionError, Dir, ReadError, StreamId, VarInt};
use uncork_quic_io::{
    App, Arrival, Client, Config, ConnectionContext, Host, Identity, Verdict, Workers,
};

use super::{Test, identity, now, transport};

/// A stream's direction, its bytes, and whether it ends with FIN.
pub(crate) type Written = (Dir, Vec<u8>, bool);

/// Writes streams and reports how they end.
struct Raw(Client);

pub(crate) struct RawRequest {
    remote: SocketAddr,
    streams: Vec<Written>,
    /// Written on the first stream when the first bytes of a response arrive.
    later: Vec<u8>,
    events: Sender<RawEvent>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawEvent {
    /// The connection was closed with this code.
    Closed(u64),
    /// A stream was reset or stopped with this code.
    Reset(u64),
    /// The response on this stream is complete.
    Answered(u64),
}

struct State {
    ask: RawRequest,
    streams: Vec<StreamId>,
}

impl App for Raw {
    type State = State;
    type Command = RawRequest;

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<State> {
        Verdict::Ignore
    }

    fn command(&mut self, host: &mut Host<'_, State>, ask: RawRequest) {
        let config = self.0.begin("cubic".parse().expect("a controller"), 1);
        let remote = ask.remote;
        let state = State { ask, streams: Vec::new() };
        host.connect(config, remote, identity::NAME, state).expect("begun");
    }

    fn connected(&mut self, context: &mut ConnectionContext<'_, State>) {
        for (dir, bytes, ends) in std::mem::take(&mut context.state.ask.streams) {
            let id = context.connection.streams().open(dir).expect("room");
            let mut stream = context.connection.send_stream(id);
            assert_eq!(stream.write(&bytes), Ok(bytes.len()));
            if ends {
                stream.finish().expect("open");
            }
            context.state.streams.push(id);
        }
    }

    fn readable(&mut self, context: &mut ConnectionContext<'_, State>, id: StreamId) {
        if !context.state.streams.contains(&id) {
            return;
        }
        let later = std::mem::take(&mut context.state.ask.later);
        if !later.is_empty() {
            let mut first = context.connection.send_stream(context.state.streams[0]);
            assert_eq!(first.write(&later), Ok(later.len()));
        }
        let mut stream = context.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let event = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => break Some(RawEvent::Answered(id.into())),
                Err(ReadError::Reset(code)) => break Some(RawEvent::Reset(code.into_inner())),
                Err(ReadError::Blocked) => break None,
            }
        };
        let _credit = chunks.finalize();
        if let Some(event) = event {
            let _ = context.state.ask.events.send(event);
        }
    }

    fn stopped(&mut self, context: &mut ConnectionContext<'_, State>, _: StreamId, code: VarInt) {
        let _ = context.state.ask.events.send(RawEvent::Reset(code.into_inner()));
    }

    fn closed(&mut self, context: &mut ConnectionContext<'_, State>, reason: &ConnectionError) {
        if let ConnectionError::ApplicationClosed(close) = reason {
            let _ = context.state.ask.events.send(RawEvent::Closed(close.error_code.into_inner()));
        }
    }
}

/// Writes `streams` on a new connection. The receiver reports how they end.
pub(crate) fn ask(
    socket: UdpSocket,
    test: &Test,
    streams: &[Written],
    later: &[u8],
) -> (Workers<RawRequest>, Receiver<RawEvent>) {
    let crypto = Arc::clone(&test.crypto);
    let raw = Client::new(crypto, transport(), now());
    let config = Config::new(Identity::random().expect("random numbers"));
    let workers = Workers::start(vec![socket], &config, move |_| Raw(raw.clone()));
    let workers = workers.expect("a thread");
    let (events, received) = channel();
    let (streams, later) = (streams.to_vec(), later.to_vec());
    workers.send(0, RawRequest { remote: test.address, streams, later, events });
    (workers, received)
}

pub(crate) fn control(bytes: &[u8]) -> Written {
    (Dir::Uni, [&[0], bytes].concat(), false)
}

pub(crate) fn request(bytes: &[u8]) -> Written {
    (Dir::Bi, bytes.to_vec(), true)
}

/// A frame of less than 64 bytes.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8], payload].concat()
}

/// `:method: GET` and `:scheme: https` of QPACK's static table (RFC 9204, appendix A).
pub(crate) const GET: u8 = 0xd1;
pub(crate) const HTTPS: u8 = 0xd7;

/// A GET request's field section, with `:authority` and `path`.
pub(crate) fn fields(path: &str) -> Vec<u8> {
    let literal =
        |name: u8, value: &str| [&[0x50 | name, value.len() as u8], value.as_bytes()].concat();
    [&[0, 0, GET, HTTPS][..], &literal(0, "a"), &literal(1, path)].concat()
}

pub(crate) const SETTINGS: [u8; 2] = [4, 0];
