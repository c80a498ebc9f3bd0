//! A server that sends as many bytes as requested, and clients that check them.
#![allow(dead_code, unused_imports, reason = "no test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

#[path = "../../../quic/tests/pair/identity.rs"]
pub(crate) mod identity;
mod real;

use real::{fits, piece};
pub(crate) use uncork_testkit::now;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use bytes::Bytes;
use noq_proto::{
    Connection, ConnectionError, Dir, IdleTimeout, ServerConfig, StreamId, TransportConfig, VarInt,
};
use uncork_cc::CcSpec;
use uncork_quic_io::{
    App, Arrival, Client, Config, ConnectionContext, ConnectionKey, Host, Identity, Server, Verdict,
};

/// Server and client configurations with a shared certificate.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) server: Server,
    pub(crate) client: Client,
}

pub(crate) fn transport(idle: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(idle).unwrap()));
    transport.stream_receive_window(VarInt::from_u32(2 << 20));
    transport.receive_window(VarInt::from_u32(2 << 20));
    transport.send_window(8 << 20);
    transport.mtu_discovery_config(Some(noq_proto::MtuDiscoveryConfig::default()));
    transport
}

impl Ends {
    pub(crate) fn new(transport: &TransportConfig) -> Self {
        let (certificate, key) = identity::certificate();
        Self::with(&certificate, &key, transport)
    }

    /// Creates both configurations with a certificate that [`identity::certificate`] made.
    pub(crate) fn with(certificate: &[u8], key: &[u8], transport: &TransportConfig) -> Self {
        let epoch = now();
        let (tls, trusting) = identity::cryptography(certificate, key);
        let base = ServerConfig::with_crypto(tls);
        Self {
            server: Server::new(base, transport.clone(), epoch),
            client: Client::new(trusting, transport.clone(), epoch),
        }
    }

    pub(crate) fn server_config(&self) -> Config {
        let mut config = Config::new(Identity::random().unwrap());
        config.server = Some(self.server.base());
        config
    }

    pub(crate) fn client_config() -> Config {
        Config::new(Identity::random().unwrap())
    }
}

/// The server: sends as many bytes as requested.
#[derive(Clone)]
pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) cc: CcSpec,
    /// Replaces the configuration for `cc`.
    pub(crate) other: Option<Arc<ServerConfig>>,
    /// Clients must validate their address with a Retry.
    pub(crate) retries: bool,
    /// Bytes declared lost, over all connections.
    pub(crate) lost: Arc<AtomicU64>,
    pub(crate) seed: u64,
}

impl TestServer {
    pub(crate) fn new(ends: &Ends, cc: &str) -> Self {
        let (cc, server) = (cc.parse().unwrap(), ends.server.clone());
        Self { server, cc, other: None, retries: false, lost: Arc::default(), seed: 0 }
    }
}

/// A response in progress.
#[derive(Default)]
pub(crate) struct Response {
    request: Vec<u8>,
    offset: u64,
}

/// The open streams of a server connection.
pub(crate) type Streams = BTreeMap<StreamId, Response>;

impl App for TestServer {
    type State = Streams;
    type Command = ();

    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<Streams> {
        if self.retries && !arrival.is_validated() {
            return Verdict::Retry;
        }
        self.seed += 1;
        let (cc, config) = self.server.accept(self.cc.into(), self.seed, |_| None);
        let config = self.other.clone().unwrap_or(config);
        Verdict::Accept { config, cc, state: Streams::new() }
    }

    fn opened(&mut self, context: &mut ConnectionContext<'_, Streams>, dir: Dir) {
        while let Some(stream) = context.connection.streams().accept(dir) {
            context.state.insert(stream, Response::default());
            self.readable(context, stream);
        }
    }

    fn readable(&mut self, context: &mut ConnectionContext<'_, Streams>, stream: StreamId) {
        let Some(response) = context.state.get_mut(&stream) else { return };
        let is_complete = read(context.connection, stream, |bytes| response.request.extend(bytes));
        if is_complete {
            self.writable(context, stream);
        }
    }

    fn writable(&mut self, context: &mut ConnectionContext<'_, Streams>, stream: StreamId) {
        let Some(response) = context.state.get_mut(&stream) else { return };
        let Ok(wanted) = <[u8; 8]>::try_from(&response.request[..]).map(u64::from_be_bytes) else {
            return;
        };
        let mut output = context.connection.send_stream(stream);
        while response.offset < wanted {
            let mut chunks = [piece(response.offset, wanted - response.offset)];
            match output.write_chunks(&mut &mut chunks[..]) {
                Ok(written) => response.offset += written as u64,
                Err(_) => return,
            }
        }
        let _ = output.finish();
        context.state.remove(&stream);
    }

    fn closed(&mut self, context: &mut ConnectionContext<'_, Streams>, _: &ConnectionError) {
        let lost = context.cc.observe().map_or(0, |observation| observation.lost_bytes);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }
}

/// The client: requests bytes on several streams and checks them.
#[derive(Clone)]
pub(crate) struct TestClient {
    pub(crate) client: Client,
}

/// A request: opens a connection and asks for `bytes` on each of `streams`.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) remote: SocketAddr,
    pub(crate) bytes: u64,
    pub(crate) streams: u64,
    /// Whether to check the bytes.
    pub(crate) verify: bool,
    pub(crate) report: Sender<Report>,
}

/// Progress of a request.
#[derive(Debug)]
pub(crate) enum Report {
    /// The first byte arrived.
    Started(#[expect(dead_code, reason = "seen in failures")] ConnectionKey),
    /// The connection is closed: bytes received, whether all were correct, and the reason.
    Closed { bytes: u64, is_valid: bool, finished: u64, reason: ConnectionError },
}

pub(crate) struct ClientState {
    request: Request,
    offsets: BTreeMap<StreamId, u64>,
    bytes: u64,
    finished: u64,
    is_valid: bool,
}

impl App for TestClient {
    type State = ClientState;
    type Command = Request;

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<ClientState> {
        Verdict::Ignore
    }

    fn command(&mut self, host: &mut Host<'_, ClientState>, request: Request) {
        let config = self.client.begin("cubic".parse().unwrap(), 1);
        let remote = request.remote;
        let offsets = BTreeMap::new();
        let state = ClientState { request, offsets, bytes: 0, finished: 0, is_valid: true };
        host.connect(config, remote, identity::NAME, state).unwrap();
    }

    fn connected(&mut self, context: &mut ConnectionContext<'_, ClientState>) {
        for _ in 0..context.state.request.streams {
            let stream = context.connection.streams().open(Dir::Bi).unwrap();
            let mut output = context.connection.send_stream(stream);
            output.write(&context.state.request.bytes.to_be_bytes()).unwrap();
            output.finish().unwrap();
            context.state.offsets.insert(stream, 0);
        }
    }

    fn readable(&mut self, context: &mut ConnectionContext<'_, ClientState>, stream: StreamId) {
        let state = &mut *context.state;
        let Some(offset) = state.offsets.get_mut(&stream) else { return };
        if state.bytes == 0 {
            let _ = state.request.report.send(Report::Started(context.key));
        }
        let is_complete = read(context.connection, stream, |bytes| {
            state.is_valid &= !state.request.verify || fits(*offset, bytes);
            *offset += bytes.len() as u64;
            state.bytes += bytes.len() as u64;
        });
        if is_complete {
            state.is_valid &= *offset == state.request.bytes;
            state.finished += 1;
            if state.finished == state.request.streams {
                context.connection.close(context.now, VarInt::from_u32(0), Bytes::new());
            }
        }
    }

    fn closed(
        &mut self,
        context: &mut ConnectionContext<'_, ClientState>,
        reason: &ConnectionError,
    ) {
        let ClientState { bytes, is_valid, finished, .. } = *context.state;
        let report = Report::Closed { bytes, is_valid, finished, reason: reason.clone() };
        let _ = context.state.request.report.send(report);
    }
}

/// Reads available data. Returns whether the stream ended.
fn read(connection: &mut Connection, stream: StreamId, mut take: impl FnMut(&[u8])) -> bool {
    let mut input = connection.recv_stream(stream);
    let Ok(mut chunks) = input.read(true) else { return false };
    let is_complete = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let _ = chunks.finalize();
    is_complete
}

/// Waits until `condition` returns true; fails after two minutes.
pub(crate) fn until(what: &str, condition: impl FnMut() -> bool) {
    uncork_testkit::wait_until(what, Duration::from_mins(2), condition);
}
